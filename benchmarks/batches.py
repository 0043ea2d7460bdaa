"""The overhead of a batch, compared with a script that only starts the same clones and runs as child processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.lab import PYTHON, Lab, Run, interleaved, median
from benchmarks.table import Row

_GOAL = 1.2
_WORKERS = 2
_PROMPT = "Build what is built already."
_BARE = str(Path(__file__).with_name("bare_batch.py"))
_LIMIT = 600.0
"""Seconds that a batch may take."""


def rows(lab: Lab, rounds: int, tasks: int, many: int) -> Iterator[Row]:
    """The rows of the table on batches. Each task is a run of the pipeline that finds all phases finished.

    Args:
        tasks: of the batches that are compared with child processes.
        many: of one large batch.
    """
    source, numbers = _repository(lab), count()
    at_a_time = f"{_WORKERS} at a time"

    def batch(size: int) -> Run:
        file = lab.folder / f"tasks-{size}.jsonl"
        lines = [{"id": f"t{number}", "repository": str(source), "prompt": _PROMPT} for number in range(size)]
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        results = f"--results={lab.folder / f'results-{next(numbers)}'}"
        words = ["pipeline", "batch", str(file), results, f"--workers={_WORKERS}"]
        return lab.run([lab.program.marvin, *words], limit=_LIMIT)

    def bare() -> Run:
        place = str(lab.folder / f"bare-{next(numbers)}")
        command = [PYTHON, _BARE, lab.program.python, str(source), place, str(tasks), str(_WORKERS), _PROMPT]
        return lab.run(command, limit=_LIMIT)

    runs = interleaved({"batch": partial(batch, tasks), "bare": partial(bare)}, rounds)
    taken, reference = (median([_seconds(run) / tasks for run in runs[name]]) for name in ("batch", "bare"))
    how = f"{taken * 1000:.0f} ms; a child process alone {reference * 1000:.0f} ms, {tasks} tasks, {at_a_time}"
    yield Row("a task of a batch", taken / reference, _GOAL, "x", how)
    more = (taken - reference) * 1000
    yield Row("  beside the child process", more, None, "ms", "of the wall clock, the start of the batch included")
    used, alone = (median([run.cpu / tasks for run in runs[name]]) for name in ("batch", "bare"))
    how = f"{used * 1000:.0f} ms; a child process alone {alone * 1000:.0f} ms"
    yield Row("  its processor time", used / alone, None, "x", how)
    large = batch(many)
    how = f"on this machine, {at_a_time}; {_seconds(large) / many * 1000:.0f} ms a task"
    yield Row(f"a batch of {many} tasks", _seconds(large), None, "s", how)
    yield Row("  its memory", large.peak / 1e6, None, "MB", "resident, at most")


def _seconds(run: Run) -> float:
    return (run.ended - run.begun) / 1e9


def _repository(lab: Lab) -> Path:
    """A project with all phases finished, so that a run needs no model."""
    source = lab.folder / "finished"
    (source / ".marvin").mkdir(parents=True)
    (source / ".marvin/request.md").write_text(f"{_PROMPT}\n")
    (source / ".marvin/pipeline_state").write_text("5")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "-m", "All of it")):
        lab.check("git", "-C", str(source), *words)
    return source
