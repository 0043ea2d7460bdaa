"""What many installed tools cost: a search among them, the text of those that are offered, and the start."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import answers
from benchmarks.lab import Lab, interleaved, median
from benchmarks.packs import TOOLS, installed
from benchmarks.table import Row
from marvin_core.api.tools import ToolSpec
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.deferral import Wish, advertised, hot
from marvin_core.tools.routing.documents import documents
from marvin_core.tools.routing.ranking import Ranking
from marvin_core.tools.toolbox import HOT, SEARCH

_TOOLS = 500
_FOREIGN = 300
_TEXTS = (
    "what will the weather be like tomorrow in Paris",
    "remind me to call my mother in two hours",
    "find the bug in this repository",
    "a film with a dog and a spaceship",
)


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The rows of the table on many tools."""
    ours = [spec for spec in installed_tools() if spec.source.startswith("marvin-")]
    many = [spec.replace(name=f"{spec.name}_{number}") for number in range(1 + _TOOLS // len(ours)) for spec in ours]
    yield from _search(many[:_TOOLS], lab.folder / "words", rounds)
    tokens = _tokens_of(ours)
    yield Row("tool text of an idle chat, every pack", tokens, 3_000.0, "tokens", f"of {len(ours)} tools")
    yield _start(lab, rounds)


def _search(specs: Sequence[ToolSpec], folder: Path, rounds: int) -> Iterator[Row]:
    folder.mkdir(parents=True)
    cold = _seconds(lambda: documents(specs, folder))
    warm = median([_seconds(lambda: Ranking(specs, documents(specs, folder))) for _ in range(rounds)])
    ranking = Ranking(specs, documents(specs, folder))
    taken = [median([_seconds(partial(ranking.best, text, 5)) for _ in range(rounds)]) for text in _TEXTS]
    how = f"{warm * 1e3:.0f} ms before the first one, {cold * 1e3:.0f} ms once after an install"
    yield Row(f"a search among {len(specs)} tools", max(taken) * 1e3, 5.0, "ms", how)


def _seconds(work: object) -> float:
    assert callable(work)
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _tokens_of(specs: Sequence[ToolSpec]) -> float:
    """The larger of what is offered on code and elsewhere; a token is four bytes."""
    sizes = []
    for is_code in (True, False):
        chosen = hot(specs, Wish(is_code=is_code, calls={}, first=SEARCH, most=HOT), _tokens)
        search = advertised(chosen[0], [spec for spec in specs if spec not in chosen])
        sizes.append(sum(map(_tokens, (search, *chosen[1:]))))
    return float(max(sizes))


def _tokens(spec: ToolSpec) -> int:
    return len(json.dumps({"name": spec.name, "description": spec.description, "parameters": spec.parameters})) // 4


def _start(lab: Lab, rounds: int) -> Row:
    folders = {
        "many": installed(lab.folder / "foreign", _FOREIGN, TOOLS),
        "none": installed(lab.folder / "no-foreign", 0, ""),
    }

    def taken(folder: Path) -> float:
        return lab.run(lab.marvin(), [answers.text(1)], packages=folder).to_first_request

    times = interleaved({name: partial(taken, folder) for name, folder in folders.items()}, rounds)
    middle = {name: median(values) for name, values in times.items()}
    how = f"{middle['many']:.0f} ms to the first request; {middle['none']:.0f} ms without them"
    return Row(f"a start with {_FOREIGN} tools of strangers", middle["many"] / middle["none"], 1.05, "x", how)
