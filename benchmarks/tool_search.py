"""What many installed tools cost: a search among them, the text of those that are offered, and the start."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from benchmarks import answers
from benchmarks.catalogue.embedding import Beside, Comparison, missing
from benchmarks.catalogue.measure import Measured, measured
from benchmarks.catalogue.requests import (
    EIGHTH_AUTHOR,
    SEVENTH_AUTHOR,
    THIRD_AUTHOR,
    by_another_author,
    by_the_fifth_author,
    by_the_fourth_author,
    by_the_sixth_author,
    requests,
    set_aside,
    third_party_tools,
)
from benchmarks.lab import NOTE, Lab, Run, interleaved, median
from benchmarks.packs import installed
from benchmarks.table import Row
from marvin_core.api.tools import SEARCH, ToolSpec
from marvin_core.conversation.window import CHARACTERS_PER_TOKEN, ToolSizes
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.deferral import Wish, advertised, hot
from marvin_core.tools.finding import Finder
from marvin_core.tools.routing.documents import documents
from marvin_core.tools.toolbox import HOT

_TOOLS = 500
_PACKS, _OF_ONE = 10, 30
_FOREIGN = _PACKS * _OF_ONE
_GOAL = 1.05
"""What many tools may cost, beside the core and the coding pack alone."""
_TEXTS = (
    "what will the weather be like tomorrow in Paris",
    "remind me to call my mother in two hours",
    "find the bug in this repository",
    "a film with a dog and a spaceship",
)


_HEAD = """
from typing import Annotated
from marvin_core import hookimpl, tool
"""
_TOOL = """
@tool(access=["read"])
async def {{name}}_{number}(place: Annotated[str, "Where to look"], most: Annotated[int, "How many"] = 5) -> str:
    '''Tell what number {number} of {{name}} is about, where it stands today and what was said of it lately.'''
    return "told"
"""
_TAIL = """
@hookimpl
def marvin_register_tools():
    return [{tools}]
"""


def _foreign() -> str:
    """The source of a third-party pack, with many tools; `{name}` stands for its name."""
    tools = ", ".join(f"{{name}}_{number}" for number in range(_OF_ONE))
    return "".join([_HEAD, *(_TOOL.format(number=number) for number in range(_OF_ONE)), _TAIL.format(tools=tools)])


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The rows of the table on many tools."""
    ours = [spec for spec in installed_tools() if spec.source.startswith("marvin-")]
    many = [spec.replace(name=f"{spec.name}_{number}") for number in range(1 + _TOOLS // len(ours)) for spec in ours]
    yield from _search(many[:_TOOLS], lab.folder / "words", rounds)
    theirs = by_another_author()
    asked = (
        ("set aside", [*set_aside(), *theirs], True),
        ("those by another author", theirs, False),
        ("those by a third author", by_another_author(THIRD_AUTHOR), False),
        ("those by a fourth author", by_the_fourth_author()[1], False),
        ("those by a fifth author", by_the_fifth_author()[1], False),
        ("those by a sixth author", by_the_sixth_author()[1], False),
        ("those by a seventh author", by_another_author(SEVENTH_AUTHOR), False),
        ("those by an eighth author", by_another_author(EIGHTH_AUTHOR), False),
        ("all by a fifth author, half of them for tuning", [*chain.from_iterable(by_the_fifth_author())], False),
    )
    beside = None if missing() else Comparison(lab.folder, requests()[0])
    for folder, specs, goal in (("ours", ours, 5.0), ("others", [*ours, *third_party_tools()][:_TOOLS], 10.0)):
        (lab.folder / folder).mkdir(parents=True)
        for whose, said, is_whole in asked:
            found = measured(specs, lab.folder / folder, said)
            yield from _missed(f"{len(specs)} tools, {whose}", found, goal if is_whole else None)
        if beside is not None:
            yield from _missed_beside(len(specs), beside.measured(specs, asked[0][1]))
    tokens = _tokens_of(ours)
    yield Row("tool text of an idle chat, every pack", tokens, 3_000.0, "tokens", f"of {len(ours)} tools")
    yield from _starts(lab, rounds)


def _search(specs: Sequence[ToolSpec], folder: Path, rounds: int) -> Iterator[Row]:
    folder.mkdir(parents=True)
    cold = _seconds(lambda: documents(specs, folder))
    warm = median([_seconds(lambda: Finder(specs, folder)) for _ in range(rounds)])
    finder = Finder(specs, folder)
    taken = [median([_seconds(partial(finder.find, text, 5)) for _ in range(rounds)]) for text in _TEXTS]
    how = f"{warm * 1e3:.0f} ms before the first one, {cold * 1e3:.0f} ms once after an install"
    yield Row(f"a search among {len(specs)} tools", max(taken) * 1e3, 5.0, "ms", how)


def _missed(among: str, found: Measured, goal: float | None) -> Iterator[Row]:
    """The share of held-out requests that miss their tool, for a model and without one; `goal` is in percent."""
    how = f"of {found.requests} requests; the first {found.first:.1%}"
    yield Row(f"not among the 5 found, {among}", 100 - 100 * found.of_five, goal, "%", how)
    how = f"of the same; of {found.nothing} that mean no tool {found.offered_for_nothing:.0%} are offered one"
    offered = 100 - 100 * found.offered
    yield Row(f"not among the 3 offered without a model, {among}", offered, None if goal is None else 15.0, "%", how)
    how = f"of all those texts; for {found.shown}, another tool is shown and waits"
    yield Row(f"another tool called without a model, {among}", found.wrong, 0.0, "", how)


def _missed_beside(tools: int, found: Beside) -> Iterator[Row]:
    """The same for a small embedding model, alone and in a sum with the index."""
    for what, share in (("alone", found.model), (f"{found.weight:.0%} of a sum with the index", found.both)):
        how = f"the index alone {100 - 100 * found.words:.2f} %"
        yield Row(f"not among the 5 found by all-MiniLM-L6-v2 {what}, {tools} tools", 100 - 100 * share, None, "%", how)


def _seconds(work: object) -> float:
    assert callable(work)
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _tokens_of(specs: Sequence[ToolSpec]) -> float:
    """The larger of what is offered on code and elsewhere."""
    sizes = ToolSizes()
    found = []
    for is_code in (True, False):
        wish = Wish(is_code=is_code, calls={}, first=SEARCH, most=HOT)
        chosen = hot(specs, wish, lambda spec: sizes.of(spec) // CHARACTERS_PER_TOKEN)
        search = advertised(chosen[0], [spec for spec in specs if spec not in chosen])
        found.append(sizes.of_all((search, *chosen[1:])) / CHARACTERS_PER_TOKEN)
    return max(found)


def _starts(lab: Lab, rounds: int) -> Iterator[Row]:
    """Starts and prompts with every pack and third-party tools, beside the core and the coding pack alone."""
    many, none = installed(lab.folder / "foreign", _PACKS, _foreign()), installed(lab.folder / "no-foreign", 0, "")
    sides = {
        "many": partial(lab.run, packages=many),
        "few": partial(lab.run, packages=none, only="marvin-tools-coding"),
    }
    version, prompt = [lab.program.marvin, "--version"], lab.with_all_tools()
    script = [answers.call("read_file", {"path": NOTE}), answers.text(1)]
    measured = {
        "--version": ({name: partial(run, version) for name, run in sides.items()}, _whole),
        "a first request": ({name: partial(run, prompt, script) for name, run in sides.items()}, _first),
        "a prompt with a call": ({name: partial(run, prompt, script) for name, run in sides.items()}, _whole),
    }
    for what, (runs, taken) in measured.items():
        made = interleaved(runs, rounds)
        times = {name: median([*map(taken, each)]) for name, each in made.items()}
        used = {name: median([run.cpu * 1e3 for run in each]) for name, each in made.items()}
        how = f"{times['many']:.0f} ms; {times['few']:.0f} ms with the core and the coding pack alone"
        how += f". The processor's time of all: {used['many']:.0f} and {used['few']:.0f} ms"
        yield Row(f"{what}, every pack, {_FOREIGN} foreign tools", times["many"] / times["few"], _GOAL, "x", how)


def _first(run: Run) -> float:
    return run.to_first_request


def _whole(run: Run) -> float:
    return (run.ended - run.begun) / 1e6
