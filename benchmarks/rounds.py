"""The cost of a round of tool calls: from an answer's last byte to the next request, and processor time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks import answers
from benchmarks.answers import Description
from benchmarks.lab import BARE, NOTE, PYTHON, Lab, Run, interleaved, median
from benchmarks.table import Row

_ROUNDS = 20
_GOAL = 1.5
"""The maximum ratio of Marvin's round to the baseline client's."""
_STEADY = range(3, _ROUNDS + 1)
"""The rounds after the tool's module has been imported."""
_PAUSE = 0.003
"""Services stream: the call has arrived before the answer's last bytes do."""
_SPAWNS = 10
_GRACE = 3.0
"""Milliseconds that a command may take beyond a bare spawn."""


def session(name: str, arguments: Mapping[str, Any]) -> list[Description]:
    """Rounds that each call this tool, and the answer after them."""
    return [*[answers.call(name, arguments, pause=_PAUSE)] * _ROUNDS, answers.text(1)]


ONE = [answers.text(1)]
READ = session("read_file", {"path": NOTE})
RUN = session("run_command", {"command": "true"})


def steady(*runs: Run) -> float:
    """Milliseconds of the gaps after the tool's module has been imported: their median."""
    return median([run.gap(number) for run in runs for number in _STEADY])


def _processor_time(sessions: Sequence[Run], single: Sequence[Run]) -> float:
    """Milliseconds of a round; what starting and ending cost is in both."""
    return (median([run.cpu for run in sessions]) - median([run.cpu for run in single])) * 1e3 / _ROUNDS


def rows(lab: Lab, sessions: int) -> Iterator[Row]:
    """The rows of the table on rounds of tool calls."""
    yield from _in_process(lab, sessions)
    yield from _command(lab, sessions)


def _in_process(lab: Lab, sessions: int) -> Iterator[Row]:
    commands = {"async": lab.bare("async"), "sync": lab.bare("sync"), "marvin": lab.marvin()}
    runs = interleaved({name: partial(lab.run, command, READ) for name, command in commands.items()}, sessions)
    gap = {name: steady(*each) for name, each in runs.items()}
    how = f"{gap['marvin']:.2f} ms; bare {gap['async']:.2f} ms (sync {gap['sync']:.2f} ms)"
    yield Row("a tool round: gap, read_file", gap["marvin"] / gap["async"], _GOAL, "x", how)
    single = interleaved({name: partial(lab.run, command, ONE) for name, command in commands.items()}, sessions)
    used = {name: _processor_time(runs[name], single[name]) for name in commands}
    how = f"{used['marvin']:.2f} ms; bare {used['async']:.2f} ms (sync {used['sync']:.2f} ms)"
    yield Row("  its processor time, from answer to answer", used["marvin"] / used["async"], None, "x", how)
    second, last = (median([run.gap(number) for run in runs["marvin"]]) for number in (2, _ROUNDS))
    how = f"{last:.2f} ms; round 2 {second:.2f} ms"
    yield Row(f"gap, round {_ROUNDS} against round 2", last / second, 1.3, "x", how)


def _command(lab: Lab, sessions: int) -> Iterator[Row]:
    runs = interleaved(
        {
            "sh": partial(lab.run, [PYTHON, BARE, "spawn", "sh", str(_SPAWNS)], piped=True),
            "bash": partial(lab.run, [PYTHON, BARE, "spawn", "bash", str(_SPAWNS)], piped=True),
            "marvin": partial(lab.run, lab.marvin(), RUN),
        },
        sessions,
    )
    spawn = {
        shell: median([nanoseconds / 1e6 for run in runs[shell] for nanoseconds in json.loads(run.output)])
        for shell in ("sh", "bash")
    }
    how = f"goal: a bare sh -c true, {spawn['sh']:.2f} ms, and {_GRACE:g} ms; it runs bash, {spawn['bash']:.2f} ms"
    yield Row("gap, run_command true", steady(*runs["marvin"]), spawn["sh"] + _GRACE, "ms", how)
