"""What streaming costs: processor time, memory, the wait for the first character, long arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks import answers
from benchmarks.answers import PIECE
from benchmarks.lab import Lab, Run, interleaved, median
from benchmarks.table import Row

_SHORT, _LONG = 2_000, 20_000
_KB, _MB = 1024, 1024 * 1024
_SIZES = (32, 64, 128)
_PAUSE = 0.1
"""Seconds before the first token, as a model takes them: the client has nothing else to do by then."""


def rows(lab: Lab, runs: int, short_runs: int) -> Iterator[Row]:
    """The rows of the table on streaming; `runs` of the long streams, `short_runs` of the short ones."""
    yield from _burst(lab, runs)
    yield from _first_character(lab, short_runs)
    yield from _long_arguments(lab, short_runs)


def _burst(lab: Lab, rounds: int) -> Iterator[Row]:
    commands = {"async": lab.bare("async"), "sync": lab.bare("sync"), "marvin": lab.marvin()}
    runs = interleaved(
        {
            f"{name} {tokens}": lambda c=command, n=tokens: lab.run(c, [answers.text(n)])
            for tokens in (_SHORT, _LONG)
            for name, command in commands.items()
        },
        rounds,
    )
    # The difference of a long and a short stream: what starting costs is in both.
    cpu = {
        name: median([run.cpu for run in runs[f"{name} {_LONG}"]])
        - median([run.cpu for run in runs[f"{name} {_SHORT}"]])
        for name in commands
    }
    each = {name: seconds * 1e3 / ((_LONG - _SHORT) / 1000) for name, seconds in cpu.items()}
    how = f"{each['marvin']:.1f} ms; bare {each['async']:.1f} ms (sync {each['sync']:.1f} ms)"
    yield Row("CPU per 1,000 chunks in a burst", each["marvin"] / each["async"], 1.3, "x", how)
    yield from _memory(runs)


def _memory(runs: dict[str, list[Run]]) -> Iterator[Row]:
    peak = {name: median([run.peak for run in each]) / _MB for name, each in runs.items()}
    for tokens in (_SHORT, _LONG):
        marvin, bare, blocking = (peak[f"{name} {tokens}"] for name in ("marvin", "async", "sync"))
        how = f"{marvin:.1f} MB; bare {bare:.1f} MB (sync {blocking:.1f} MB)"
        yield Row(f"peak memory, {tokens:,} tokens", marvin / bare, 1.6, "x", how)
    growth = {name: peak[f"{name} {_LONG}"] - peak[f"{name} {_SHORT}"] for name in ("marvin", "async")}
    how = f"from {_SHORT:,} to {_LONG:,} tokens; bare {growth['async']:.1f} MB"
    yield Row("  its growth", growth["marvin"], 2.0, "MB", how)


def _first_character(lab: Lab, rounds: int) -> Iterator[Row]:
    def taken(command: Sequence[str]) -> float:
        run = lab.run(command, [answers.text(20, pause=_PAUSE)], piped=True)
        assert run.first_output is not None
        assert run.output.startswith(PIECE.encode())
        return (run.first_output - run.exchanges[0].marks["content"]) / 1e6

    times = interleaved({"bare": lambda: taken(lab.bare()), "marvin": lambda: taken(lab.marvin())}, rounds)
    how = f"after its bytes were sent; bare {median(times['bare']):.1f} ms"
    yield Row("first visible character", median(times["marvin"]), 10.0, "ms", how)


def _long_arguments(lab: Lab, rounds: int) -> Iterator[Row]:
    def taken(command: Sequence[str], size: int) -> float:
        written = lab.work / f"written-{size}.txt"
        written.unlink(missing_ok=True)
        content = ('The quick brown fox jumps over the lazy dog, "again".\n' * size * _KB)[: size * _KB]
        call = answers.call("create_file", {"path": written.name, "content": content})
        run = lab.run(command, [call, answers.text(1)])
        assert written.read_text() == content
        return (run.exchanges[1].received - run.exchanges[0].marks["content"]) / 1e6

    commands = {"bare": lab.bare(), "marvin": lab.marvin()}
    times = interleaved(
        {
            f"{name} {size}": lambda c=command, s=size: taken(c, s)
            for size in _SIZES
            for name, command in commands.items()
        },
        rounds,
    )
    small, middle, large = (median(times[f"marvin {size}"]) for size in _SIZES)
    bare = [median(times[f"bare {size}"]) for size in _SIZES]
    how = f"{middle:.0f} ms; bare {bare[1]:.0f} ms"
    yield Row("a call with 64 KB of arguments", middle / bare[1], 2.0, "x", how)
    how = f"{small:.0f}, {middle:.0f} and {large:.0f} ms for 32, 64 and 128 KB (bare {bare[0]:.0f}, {bare[1]:.0f}, {bare[2]:.0f})"
    yield Row("  128 KB against 32 KB", large / small, 4.4, "x", how + "; 4 is linear")
