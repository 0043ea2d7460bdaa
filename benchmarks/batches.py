"""What a batch costs beside its tasks: the same clones and runs by a script that only starts child processes."""

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


def rows(lab: Lab, rounds: int, tasks: int) -> Iterator[Row]:
    """The rows of the table on batches. Each task is a run of the pipeline that finds all phases finished."""
    source, numbers = _repository(lab), count()
    file = lab.folder / "tasks.jsonl"
    lines = [{"id": f"t{number}", "repository": str(source), "prompt": _PROMPT} for number in range(tasks)]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def batch() -> Run:
        results = f"--results={lab.folder / f'results-{next(numbers)}'}"
        words = ["pipeline", "batch", str(file), results, f"--workers={_WORKERS}"]
        return lab.run([lab.program.marvin, *words], limit=_LIMIT)

    def bare() -> Run:
        place = str(lab.folder / f"bare-{next(numbers)}")
        command = [PYTHON, _BARE, lab.program.python, str(source), place, str(tasks), str(_WORKERS), _PROMPT]
        return lab.run(command, limit=_LIMIT)

    runs = interleaved({"batch": partial(batch), "bare": partial(bare)}, rounds)
    taken, reference = (median([(run.ended - run.begun) / 1e9 for run in runs[name]]) for name in ("batch", "bare"))
    how = f"{taken:.1f} s; child processes alone {reference:.1f} s, {_WORKERS} at a time"
    yield Row(f"a batch of {tasks} tasks: total", taken / reference, _GOAL, "x", how)
    more = (taken - reference) / tasks * 1000
    yield Row("  overhead per task", more, None, "ms", "of the wall clock, beside the child process")
    yield Row("  its memory", median([run.peak / 1e6 for run in runs["batch"]]), None, "MB", "resident, at most")


def _repository(lab: Lab) -> Path:
    """A project of which all phases are finished, so that no model has a part in a run."""
    source = lab.folder / "finished"
    (source / ".marvin").mkdir(parents=True)
    (source / ".marvin/request.md").write_text(f"{_PROMPT}\n")
    (source / ".marvin/pipeline_state").write_text("5")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "-m", "All of it")):
        lab.check("git", "-C", str(source), *words)
    return source
