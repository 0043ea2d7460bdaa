"""What streaming costs: processor time, memory, the wait for the first character, long arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks import answers
from benchmarks.answers import PIECE
from benchmarks.lab import NOTE, BenchmarkError, Lab, Run, interleaved, median, per_thousand
from benchmarks.table import Row

SHORT, LONG = 2_000, 20_000
_KB, _MB = 1024, 1024 * 1024
SIZES = (64, 128, 256)
"""KB of arguments."""
_PAUSE = 0.1
"""Seconds before the first token, as a model takes them: the client has nothing else to do by then."""


def first_character(lab: Lab, command: Sequence[str]) -> float:
    """Milliseconds from the sending of the first token to the first output."""
    run = lab.run(command, [answers.text(20, pause=_PAUSE)], piped=True)
    if run.first_output is None or not run.output.startswith(PIECE.encode()):
        raise BenchmarkError(f"{command[0]} printed {run.output[:100]!r}")
    return (run.first_output - run.exchanges[0].marks["content"]) / 1e6


def long_call(lab: Lab, command: Sequence[str], size: int, *, first: bool) -> float:
    """Milliseconds from the begin of a call with so many KB of arguments to the next request.

    Args:
        first: it is the first call of the process; else another tool was called before.
    """
    written = lab.work / f"written-{size}.txt"
    written.unlink(missing_ok=True)
    content = ('The quick brown fox jumps over the lazy dog, "again".\n' * size * _KB)[: size * _KB]
    before = [] if first else [answers.call("read_file", {"path": NOTE})]
    call = answers.call("create_file", {"path": written.name, "content": content})
    exchanges = lab.run(command, [*before, call, answers.text(1)]).exchanges
    if written.read_text() != content:
        raise BenchmarkError(f"{command[0]} did not write the {size} KB that it was given")
    return (exchanges[-1].received - exchanges[-2].marks["content"]) / 1e6


def rows(lab: Lab, runs: int, short_runs: int) -> Iterator[Row]:
    """The rows of the table on streaming; `runs` of the long streams, `short_runs` of the short ones."""
    yield from _burst(lab, runs)
    yield from _first_character(lab, short_runs)
    yield from _long_arguments(lab, short_runs)


def _burst(lab: Lab, rounds: int) -> Iterator[Row]:
    commands = {"async": lab.bare("async"), "sync": lab.bare("sync"), "marvin": lab.marvin()}
    runs = interleaved(
        {
            f"{name} {tokens}": partial(lab.run, command, [answers.text(tokens)])
            for tokens in (SHORT, LONG)
            for name, command in commands.items()
        },
        rounds,
    )
    cpu = {name: median([run.cpu for run in each]) for name, each in runs.items()}
    each = {name: per_thousand(LONG - SHORT, cpu[f"{name} {SHORT}"], cpu[f"{name} {LONG}"]) for name in commands}
    how = f"{each['marvin']:.1f} ms; bare {each['async']:.1f} ms (sync {each['sync']:.1f} ms)"
    yield Row("CPU per 1,000 chunks in a burst", each["marvin"] / each["async"], 1.3, "x", how)
    yield from _memory(runs)


def _memory(runs: dict[str, list[Run]]) -> Iterator[Row]:
    peak = {name: median([run.peak for run in each]) / _MB for name, each in runs.items()}
    for tokens in (SHORT, LONG):
        marvin, bare, blocking = (peak[f"{name} {tokens}"] for name in ("marvin", "async", "sync"))
        how = f"{marvin:.1f} MB; bare {bare:.1f} MB (sync {blocking:.1f} MB)"
        yield Row(f"peak memory, {tokens:,} tokens", marvin / bare, 1.6, "x", how)
    growth = {name: peak[f"{name} {LONG}"] - peak[f"{name} {SHORT}"] for name in ("marvin", "async")}
    how = f"from {SHORT:,} to {LONG:,} tokens; bare {growth['async']:.1f} MB"
    yield Row("  its growth", growth["marvin"], 2.0, "MB", how)


def _first_character(lab: Lab, rounds: int) -> Iterator[Row]:
    taken = partial(first_character, lab)
    times = interleaved({"bare": lambda: taken(lab.bare()), "marvin": lambda: taken(lab.marvin())}, rounds)
    how = f"after its bytes were sent; bare {median(times['bare']):.1f} ms"
    yield Row("first visible character", median(times["marvin"]), 10.0, "ms", how)


def _long_arguments(lab: Lab, rounds: int) -> Iterator[Row]:
    taken = partial(long_call, lab)
    small, middle, large = SIZES
    subjects = {
        "bare": partial(taken, lab.bare(), small, first=True),
        "marvin": partial(taken, lab.marvin(), small, first=True),
    }
    subjects |= {str(size): partial(taken, lab.marvin(), size, first=False) for size in SIZES}
    times = interleaved(subjects, rounds)
    took = {name: median(values) for name, values in times.items()}
    how = f"{took['marvin']:.0f} ms as the first call, {took[str(small)]:.0f} ms later; bare {took['bare']:.0f} ms"
    yield Row(f"a call with {small} KB of arguments", took["marvin"] / took["bare"], 2.0, "x", how)
    # The quickest of each: a difference of medians would have the noise of both.
    best = {name: min(values) for name, values in times.items()}
    first, second = best[str(middle)] - best[str(small)], best[str(large)] - best[str(middle)]
    how = f"{large - middle} KB more take {second:.0f} ms, {middle - small} KB more {first:.0f} ms; 2 is linear"
    yield Row("  its growth with the size", second / first, 2.4, "x", how)
