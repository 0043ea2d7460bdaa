"""The rows of a comparison: how one sample of each row is measured on one side."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks import answers, chat, compaction, instructions, packs, rounds, sessions, startup, streams, turns
from benchmarks.lab import per_thousand
from benchmarks.sides import Side

_MB = 1024 * 1024
_ONE = [answers.text(1)]


class Subject(NamedTuple):
    """Rows that are measured by one sample.

    `rows` are their names and units, in the order of the sample's values; `share` is less than 1 where a sample
    takes seconds: how many pairs are measured for each that is asked for.
    """

    group: str
    rows: Sequence[tuple[str, str]]
    sample: Callable[[Side], Sequence[float]]
    share: float = 1


def subjects() -> Iterator[Subject]:
    """Everything that is compared."""
    yield from _startup()
    if instructions.AVAILABLE:
        yield from _instructions()
    yield from _packs()
    yield from _rounds()
    yield from _streams()
    yield from _chat()
    yield from _sessions()


def _startup() -> Iterator[Subject]:
    for flag in ("--version", "--help"):
        yield Subject("startup", [(f"marvin {flag}", "ms")], partial(_wall, flag))
    yield Subject("startup", [("exec to first request", "ms")], lambda side: [_first_request(side)])
    yield Subject("startup", [("  as python -P -m marvin_core", "ms")], _as_module)


def _wall(flag: str, side: Side) -> Sequence[float]:
    return [startup.wall(side.lab, side.lab.program.marvin, flag)]


def _first_request(side: Side, *flags: str) -> float:
    return side.lab.run([*side.lab.marvin(), *flags], _ONE).to_first_request


def _as_module(side: Side) -> Sequence[float]:
    return [side.lab.run(side.lab.module(), _ONE).to_first_request]


def _instructions() -> Iterator[Subject]:
    for flag in ("--version", "--help"):
        yield Subject("instructions", [(f"instructions, {flag}", "M")], partial(_counted, [flag], []), 0.05)
    yield Subject("instructions", [("instructions, one answer", "M")], partial(_counted, None, _ONE), 0.05)
    yield Subject(
        "instructions", [("instructions, 20 calls of read_file", "M")], partial(_counted, None, rounds.READ), 0.05
    )


def _counted(flags: Sequence[str] | None, script: Sequence[answers.Description], side: Side) -> Sequence[float]:
    command = side.lab.marvin() if flags is None else [side.lab.program.marvin, *flags]
    return [instructions.counted(side.lab, command, script)]


def _packs() -> Iterator[Subject]:
    for what, count, source in (
        ("to first request, 1 pack with hooks", 1, packs.HOOKS),
        ("to first request, 20 packs with hooks", 20, packs.HOOKS),
        ("to first request, 100 packs with tools", 100, packs.TOOLS),
    ):
        yield Subject("packs", [(what, "ms")], partial(_with_packs, count, source))
    yield Subject("packs", [("the index, 200 distributions", "ms")], _index)


def _with_packs(count: int, source: str, side: Side) -> Sequence[float]:
    return [side.lab.run(side.lab.marvin(), _ONE, packages=side.packs(count, source)).to_first_request]


def _index(side: Side) -> Sequence[float]:
    return [packs.load_index(side.lab, side.scripts["index"], side.distributions)]


def _rounds() -> Iterator[Subject]:
    for what, script in (("gap, read_file", rounds.READ), ("gap, run_command true", rounds.RUN)):
        yield Subject("rounds", [(what, "ms")], partial(_gaps, script))


def _gaps(script: Sequence[answers.Description], side: Side) -> Sequence[float]:
    return [rounds.steady(side.lab.run(side.lab.marvin(), script))]


def _streams() -> Iterator[Subject]:
    burst = [
        ("CPU per 1,000 chunks in a burst", "ms"),
        (f"peak memory, {streams.SHORT:,} tokens", "MB"),
        (f"peak memory, {streams.LONG:,} tokens", "MB"),
    ]
    yield Subject("streams", burst, _burst)
    yield Subject("streams", [("first visible character", "ms")], _first_character)
    small = streams.SIZES[0]
    yield Subject("streams", [(f"a call with {small} KB of arguments", "ms")], _long_call)


def _burst(side: Side) -> Sequence[float]:
    short, long = (side.lab.run(side.lab.marvin(), [answers.text(size)]) for size in (streams.SHORT, streams.LONG))
    cpu = per_thousand(streams.LONG - streams.SHORT, short.cpu, long.cpu)
    return [cpu, short.peak / _MB, long.peak / _MB]


def _first_character(side: Side) -> Sequence[float]:
    return [streams.first_character(side.lab, side.lab.marvin())]


def _long_call(side: Side) -> Sequence[float]:
    return [streams.long_call(side.lab, side.lab.marvin(), streams.SIZES[0], first=True)]


def _chat() -> Iterator[Subject]:
    yield Subject("chat", [("chat: start to prompt", "ms"), ("chat: key to echo", "ms")], _keys)
    yield Subject("chat", [("chat: CPU per 1,000 tokens", "ms")], _drawing, 0.2)
    yield Subject("turns", [(f"memory after {turns.MANY} turns", "MB")], _held, 0.05)


def _keys(side: Side) -> Sequence[float]:
    return chat.keys(side.lab, [side.lab.program.marvin], *chat.READY)


def _drawing(side: Side) -> Sequence[float]:
    command = [side.lab.program.marvin]
    short, long = (chat.drawing(side.lab, command, tokens, *chat.READY)[0] for tokens in (chat.SHORT, chat.LONG))
    return [per_thousand(chat.LONG - chat.SHORT, short, long)]


def _held(side: Side) -> Sequence[float]:
    return [turns.held(side.lab, turns.MANY)]


def _sessions() -> Iterator[Subject]:
    yield Subject("compaction", [(f"compaction of {compaction.TOKENS:,} tokens", "ms")], _compaction)
    for what, name in (("no compaction", "whole"), ("a compaction near the end", "compacted")):
        yield Subject("sessions", [(f"open 10,000 messages, {what}", "ms")], partial(_opened, name))
    yield Subject("sessions", [("  resumed, to first request", "ms")], _resumed)


def _compaction(side: Side) -> Sequence[float]:
    return [compaction.timed(side.lab, side.scripts["compaction"], "compact")[0]]


def _opened(name: str, side: Side) -> Sequence[float]:
    return [sessions.opened(side.lab, side.scripts["sessions"], "resume", side.session(name))]


def _resumed(side: Side) -> Sequence[float]:
    # A copy, and gone afterwards: other rows have a home without long sessions.
    folder = sessions.sessions_folder(side.lab)
    folder.mkdir(parents=True, exist_ok=True)
    path = Path(shutil.copy(side.session("compacted"), folder))
    try:
        return [_first_request(side, "--resume", path.stem)]
    finally:
        path.unlink()
