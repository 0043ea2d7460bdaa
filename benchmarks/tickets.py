"""Tickets: a hundred commands in one process, and the program as a program, against starts of Python."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.table import Row
from marvin_core import TicketPlace, run_tickets

_OPERATIONS = 100
_GOAL = 1.0
_START_GOAL = 1.5
_BARE = [sys.executable, "-P", "-c", "pass"]
_PROGRAM = [str(Path(sys.executable).with_name("marvin-tk")), "ls"]


def rows(count: int) -> Iterator[Row]:
    """Each measured `count` times, by turns with what it is compared to."""
    with tempfile.TemporaryDirectory() as folder:
        place = TicketPlace(folder)
        _work(place)
        taken, starts = _by_turns(lambda: _work(place), lambda: _run(_BARE, folder), count)
        ratio = taken / (starts * _OPERATIONS)
        how = f"{taken:.0f} ms against {starts * _OPERATIONS:.0f}, median of {count}"
        yield Row(f"{_OPERATIONS} ticket operations / starts of Python", ratio, _GOAL, "x", how)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(20):
            run_tickets(["create", f"Ticket {number}"], TicketPlace(folder))
        program, bare = _by_turns(lambda: _run(_PROGRAM, folder), lambda: _run(_BARE, folder), 5 * count)
        how = f"{program:.0f} ms against {bare:.0f}, median of {5 * count}"
        yield Row("marvin-tk ls of 20 tickets / start of Python", program / bare, _START_GOAL, "x", how)


def _work(place: TicketPlace) -> None:
    """A hundred operations as an agent makes them: half of them change something."""
    first = next(iter(run_tickets(["create", "The whole", "-d", "What and why"], place).lines))
    for _ in range((_OPERATIONS - 1) // 11):
        made = next(iter(run_tickets(["create", "A part", "--parent", first], place).lines))
        run_tickets(["dep", first, made], place)
        run_tickets(["start", made], place)
        run_tickets(["add-note", made, "What was found out"], place)
        run_tickets(["close", made], place)
        for words in (["ls"], ["ready"], ["blocked"], ["show", first], ["dep", "tree", first], ["query"]):
            run_tickets(words, place)


def _by_turns(one: Callable[[], None], other: Callable[[], None], count: int) -> tuple[float, float]:
    """The medians of two works, in milliseconds."""
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(count):
        for work, times in zip((one, other), taken, strict=True):
            begun = time.perf_counter()
            work()
            times.append((time.perf_counter() - begun) * 1_000)
    return statistics.median(taken[0]), statistics.median(taken[1])


def _run(argv: list[str], folder: str) -> None:
    subprocess.run(argv, cwd=folder, stdout=subprocess.DEVNULL, check=True)
