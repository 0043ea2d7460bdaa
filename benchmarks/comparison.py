"""Compare this checkout's Marvin with another's: the same rows, interleaved, as ratios of new to old.

Each side has a home, a working folder and the environment of its checkout; the scripted server is one for both.
Compared with itself (OLD is this checkout, or a clone of the same commit) it shows the noise of the machine.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.compared import Subject, subjects
from benchmarks.lab import ROOT, BenchmarkError, Lab, checkout, interleaved
from benchmarks.pairs import Pairs, summary, table
from benchmarks.service import Service, ServiceError
from benchmarks.sides import Side
from benchmarks.table import headline
from benchmarks.terminal import TerminalError

_FEWEST = 2
_PASSES = 4
"""Each row gets its pairs in so many parts, so that a busy minute does not hit all pairs of one row."""
_WIDE = 0.01
"""Rows whose interval is wider, to both sides, are measured on while there is time."""
_READING = (
    "Ratios are new to old, more is worse. `ratio` is that of the medians; `of pairs` is the centre of the pairs' own\n"
    "ratios, which has less noise, with its 99 % interval. Rows with a wide interval have got more pairs."
)


class Measured:
    """A subject and its samples so far."""

    def __init__(self, subject: Subject, sides: dict[str, Side], pairs: int) -> None:
        self._subject = subject
        self._target = max(_FEWEST, round(pairs * subject.share))
        # Even, so that the old one goes first as often as the new one.
        self._part = 2 * math.ceil(self._target / 2 / _PASSES)
        self._samples = {name: partial(subject.sample, side) for name, side in sides.items()}
        self._old: list[Sequence[float]] = []
        self._new: list[Sequence[float]] = []

    @property
    def name(self) -> str:
        """The name of its first row."""
        return self._subject.rows[0][0]

    @property
    def complete(self) -> bool:
        """Whether there are as many pairs as were asked for."""
        return len(self._old) >= self._target

    def more(self) -> None:
        """Measure one part of the pairs."""
        found = interleaved(self._samples, self._part, warm=bool(self._old))
        self._old += found["old"]
        self._new += found["new"]

    @property
    def rows(self) -> list[Pairs]:
        """What was found."""
        columns = zip(self._subject.rows, zip(*self._old, strict=True), zip(*self._new, strict=True), strict=True)
        return [Pairs(what, unit, old, new) for (what, unit), old, new in columns]


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; 1 where a row could not be measured."""
    options = _options(argv)
    begun = time.monotonic()
    try:
        with ExitStack() as stack:
            sides = _sides(stack, options.old.resolve())
            found, failed = _measure(sides, options.rows, options.pairs)
            _improve(found, begun + options.minutes * 60)
    except (BenchmarkError, ServiceError, TerminalError) as error:
        print(f"\nbenchmarks: {error}", file=sys.stderr)
        return 1
    rows = [row for each in found for row in each.rows]
    print(file=sys.stderr)
    print(f"old: {_commit(options.old)}\nnew: {_commit(ROOT)}\n{headline(time.monotonic() - begun)}\n{_READING}\n")
    print("\n".join([table(rows), "", *(f"NOT MEASURED: {each}" for each in failed), summary(rows)]))
    if options.json:
        options.json.write_text(json.dumps([row.as_dict() for row in rows], indent=2) + "\n", encoding="utf-8")
    return 1 if failed else 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    groups = list(dict.fromkeys(subject.group for subject in subjects()))
    parser = argparse.ArgumentParser(prog="benchmarks/compare.py", description=__doc__)
    parser.add_argument("old", type=Path, metavar="OLD", help="another checkout, set up by `make setup` there")
    parser.add_argument("--pairs", type=int, default=40, help="for each row; fewer where one takes seconds (40)")
    parser.add_argument("--minutes", type=float, default=10, help="rows with much noise get more pairs till then (10)")
    parser.add_argument("--rows", type=lambda text: text.split(","), metavar="GROUP,...", help=", ".join(groups))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value to a file as well")
    options = parser.parse_args(argv)
    options.rows = options.rows or groups
    if unknown := set(options.rows) - set(groups):
        parser.error(f"no such rows: {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
    return options


def _sides(stack: ExitStack, old: Path) -> dict[str, Side]:
    service = stack.enter_context(Service())
    roots = {"old": old, "new": ROOT}
    return {name: Side(stack.enter_context(Lab(checkout(root), service))) for name, root in roots.items()}


def _measure(sides: dict[str, Side], groups: Sequence[str], pairs: int) -> tuple[list[Measured], list[str]]:
    """Every row, and what failed: one side may lack what a row needs, the others are still worth their time."""
    found = [Measured(subject, sides, pairs) for subject in subjects() if subject.group in groups]
    failed: list[str] = []
    for number in range(1, _PASSES + 1):
        for each in [each for each in found if not each.complete]:
            _tell(f"part {number} of {_PASSES}: {each.name.strip()}")
            try:
                each.more()
            except (BenchmarkError, TerminalError) as error:
                failed.append(f"{each.name.strip()}: {error}")
                found.remove(each)
    return found, failed


def _improve(found: Sequence[Measured], until: float) -> None:
    """Measure more pairs of the rows with much noise, in turn. What the ratios are plays no part in the choice."""
    while noisy := [each for each in found if max(row.width for row in each.rows) > _WIDE]:
        for each in noisy:
            if time.monotonic() >= until:
                return
            _tell(f"{len(noisy)} with much noise, {until - time.monotonic():.0f} s left: {each.name.strip()}")
            each.more()


def _tell(progress: str) -> None:
    print(f"\r{progress:<70}", end="", file=sys.stderr, flush=True)


def _commit(root: Path) -> str:
    """The checkout's commit, with `-dirty` where files were changed since."""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return f"{shown or 'no commit'} of {root.resolve()}"
