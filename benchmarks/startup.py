"""What starting costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks import answers
from benchmarks.lab import PYTHON, Lab, interleaved, median
from benchmarks.table import Row


def rows(lab: Lab, rounds: int) -> Iterator[Row]:
    """The start-up rows of the table."""
    yield from _answered_at_once(lab, rounds)
    yield from _first_request(lab, rounds)


def wall(lab: Lab, *command: str) -> float:
    """Milliseconds from exec to the end of a command that asks no model."""
    run = lab.run(command)
    return (run.ended - run.begun) / 1e6


def _answered_at_once(lab: Lab, rounds: int) -> Iterator[Row]:
    times = interleaved(
        {
            "python": partial(wall, lab, PYTHON, "-c", "pass"),
            "--version": partial(wall, lab, lab.program.marvin, "--version"),
            "--help": partial(wall, lab, lab.program.marvin, "--help"),
        },
        rounds,
    )
    reference = median(times["python"])
    for flag, goal in (("--version", 1.5), ("--help", 4.0)):
        value = median(times[flag])
        how = f"{value:.0f} ms; python -c pass {reference:.0f} ms"
        yield Row(f"marvin {flag}", value / reference, goal, "x", how)


def _first_request(lab: Lab, rounds: int) -> Iterator[Row]:
    def taken(command: Sequence[str]) -> float:
        return lab.run(command, [answers.text(1)]).to_first_request

    commands = {
        "async": lab.bare("async"),
        "sync": lab.bare("sync"),
        "marvin": lab.marvin(),
        "module": lab.module(),
    }
    times = interleaved({name: partial(taken, command) for name, command in commands.items()}, rounds)
    middle = {name: median(values) for name, values in times.items()}
    reference = min(middle["async"], middle["sync"])
    bare = f"bare {reference:.0f} ms, the faster of async {middle['async']:.0f} and sync {middle['sync']:.0f}"
    value = middle["marvin"]
    yield Row("exec to first request", value / reference, 1.2, "x", f"{value:.0f} ms; {bare}")
    value = middle["module"]
    yield Row("  as python -P -m marvin_core", value / reference, None, "x", f"{value:.0f} ms")
