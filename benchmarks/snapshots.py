"""The duration of a snapshot around commands, in folders of many files."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import Row
from marvin_core.api.limits import Limits
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.guard.undo.snapshots import Snapshots

_GOALS = {1_000: 50.0, 100_000: 500.0}
_IN_A_FOLDER = 100
_TIMEOUTS = Timeouts(snapshot=600.0, snapshot_git=600.0)


class _Folders:
    """Where the programs of a project run."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> Path:
        """Where it would write logs."""
        return self.root.parent / name


def rows(count: int, most: int) -> Iterator[Row]:
    """The first snapshot of a folder, and those around a command that changes a file, each measured `count` times."""
    for files, goal in _GOALS.items():
        if files <= most:
            with tempfile.TemporaryDirectory() as folder:
                first, later = asyncio.run(_measured(Path(os.path.realpath(folder)), files, count))
            how = f"median of {count}, one file changed"
            yield Row(f"snapshot of {files:,} files, the first", first, None, "ms", "all files are read")
            yield Row(f"snapshot of {files:,} files", later, goal, "ms", how)


async def _measured(folder: Path, files: int, count: int) -> tuple[float, float]:
    root = folder / "project"
    for number in range(files):
        place = root / f"f{number // _IN_A_FOLDER}"
        if number % _IN_A_FOLDER == 0:
            place.mkdir(parents=True)
        (place / f"{number}.py").write_text(f"value = {number}\n" * 20, encoding="utf-8")
    processes = ProcessRunner(_Folders(root), {"PATH": os.environ["PATH"]}, _TIMEOUTS)
    snapshots = Snapshots(folder / "data", root, processes, Limits(), _TIMEOUTS)
    begin = time.perf_counter()
    await snapshots.take()
    first = time.perf_counter() - begin
    taken = []
    for number in range(count):
        (root / "f0" / "0.py").write_text(f"other = {number}\n", encoding="utf-8")
        begin = time.perf_counter()
        await snapshots.take()
        taken.append(time.perf_counter() - begin)
    return first * 1000, statistics.median(taken) * 1000
