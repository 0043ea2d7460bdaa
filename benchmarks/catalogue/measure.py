"""How often requests find the intended tool: by a model's tool search, and without one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.catalogue.requests import NOTHING, set_aside
from marvin_core.api.tools import ToolSpec
from marvin_core.tools.finding import Finder
from marvin_core.tools.routing.router import OFFERED, Router

_FOUND = 5
_SURE = ("act", "confirm", "ask")
"""What is done where one tool is taken."""


class Measured(NamedTuple):
    """Shares of the requests, from 0 to 1, and their number.

    `wrong` counts the requests for which a tool that is not meant is taken, also those that mean none.
    """

    requests: int
    first: float
    of_five: float
    offered: float
    wrong: int
    nothing: int
    offered_for_nothing: float


def measured(specs: Sequence[ToolSpec], cache_folder: Path, asked: Sequence[tuple[str, str]] | None = None) -> Measured:
    """The results of these requests for the tools; by default the held-out requests."""
    said = set_aside() if asked is None else asked
    finder, router = Finder(specs, cache_folder), Router(specs)
    meaning = [(text, name) for text, name in said if name != NOTHING]
    ranks = [[spec.name for spec in finder.find(text, _FOUND)] for text, _ in meaning]
    routes = [router.route(text) for text, _ in meaning]
    offers = [[offer.spec.name for offer in route.proposals[:OFFERED]] for route in routes]
    names = [name for _, name in meaning]
    is_sure = [route.action in _SURE for route in routes]
    nothing = [router.route(text).action for text, name in said if name == NOTHING]
    pairs = [*zip(names, ranks, offers, is_sure, strict=True)]
    return Measured(
        requests=len(names),
        first=sum(name in rank[:1] for name, rank, _, _ in pairs) / len(names),
        of_five=sum(name in rank for name, rank, _, _ in pairs) / len(names),
        offered=sum(name in offer for name, _, offer, _ in pairs) / len(names),
        wrong=sum(sure and name not in offer for name, _, offer, sure in pairs) + sum(map(_SURE.__contains__, nothing)),
        nothing=len(nothing),
        offered_for_nothing=sum(action != "nothing" for action in nothing) / max(1, len(nothing)),
    )
