"""The whole call of run_command, without sandbox and snapshot, compared with `bash -c` of the same command."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.table import Row
from marvin_core.testing import ToolRunner
from marvin_core.testing.environment import start_repository

_GOAL = 1.3
_FILES = 100
_COMMANDS = ("git status --short", "true")
"""A command of every day, and the one that does least: of it the call's own milliseconds are the largest share."""


def rows(count: int) -> Iterator[Row]:
    """Each is the ratio of the medians of `count` interleaved runs."""
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder), Path(folder, "project")
        root.mkdir()
        start_repository(root)
        for number in range(_FILES):
            (root / f"{number}.txt").write_text("a line\n")
        settings = home / ".config" / "marvin" / "config.yaml"
        settings.parent.mkdir(parents=True)
        settings.write_text("limits: {undo_snapshots: 1}\n")  # too little for any snapshot
        with ToolRunner(home, root, interactive=False) as tools:
            for command in _COMMANDS:
                bare, own = _interleaved(count, partial(_bare, command, root), partial(_own, tools, command))
                told = f"{own * 1e3:.2f} ms, `bash -c` {bare * 1e3:.2f} ms"
                yield Row(f"run_command `{command}`, no sandbox, no snapshot", own / bare, _GOAL, "x", told)


def _interleaved(count: int, bare: Callable[[], object], own: Callable[[], object]) -> tuple[float, float]:
    """The median seconds of the one and of the other."""
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(count + 1):
        for seconds, work in zip(taken, (bare, own), strict=True):
            begun = time.perf_counter()
            work()
            if turn:  # the first run fills caches
                seconds.append(time.perf_counter() - begun)
    return statistics.median(taken[0]), statistics.median(taken[1])


def _bare(command: str, root: Path) -> None:
    output, errors = subprocess.PIPE, subprocess.STDOUT
    subprocess.run(
        ["bash", "-c", command], cwd=root, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, check=True
    )


def _own(tools: ToolRunner, command: str) -> None:
    outcome = tools.call("run_command", command=command)
    if outcome.is_error:
        raise RuntimeError(outcome.text)
