"""How often requests find the intended tool: by a model's tool search, and without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.catalogue.requests import NOTHING, set_aside
from marvin_core.api.tools import ToolSpec
from marvin_core.tools.finding import Finder
from marvin_core.tools.routing.router import OFFERED, Router

_FOUND = 5


class Measured(NamedTuple):
    """Shares of the requests, from 0 to 1, and their number.

    `wrong` counts the texts for which a tool is called that is not meant, also those that mean none. `shown` counts
    those for which such a tool is the only proposal. It waits for Enter, or for a value that is missing.
    """

    requests: int
    first: float
    of_five: float
    offered: float
    wrong: int
    shown: int
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
    nothing = [router.route(text).action for text, name in said if name == NOTHING]
    pairs = [*zip(names, ranks, offers, strict=True)]
    missed = [route.action for route, (name, _, offer) in zip(routes, pairs, strict=True) if not _has(offer, name)]
    mistaken = Counter([*missed, *nothing])
    return Measured(
        requests=len(names),
        first=sum(_has(rank[:1], name) for name, rank, _ in pairs) / len(names),
        of_five=sum(_has(rank, name) for name, rank, _ in pairs) / len(names),
        offered=sum(_has(offer, name) for name, _, offer in pairs) / len(names),
        wrong=mistaken["act"],
        shown=mistaken["confirm"] + mistaken["ask"],
        nothing=len(nothing),
        offered_for_nothing=sum(action != "nothing" for action in nothing) / max(1, len(nothing)),
    )


def _has(found: Sequence[str], names: str) -> bool:
    """Whether one of the tools that would do was found."""
    return any(name in found for name in names.split())
