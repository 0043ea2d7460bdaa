"""The sandbox's overhead for a command: `true` in a session's sandbox, compared with `bash -c true`."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import Row
from marvin_core import Record
from marvin_core.api.config import NetworkPolicy
from marvin_core.config.load import load
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.guard.sandbox.network import PlainNetwork
from marvin_core.guard.sandbox.session import SessionSandbox

_GOAL = 1.5


class _Folders(Record):
    root: Path
    playing: bool = False

    def folder(self, name: str) -> Path:
        """The folder of this name."""
        return self.root / name


def rows(rounds: int) -> Iterator[Row]:
    """One row: the ratio of the medians."""
    with TemporaryDirectory() as folder:
        inside, bare = asyncio.run(_measured(Path(folder), rounds))
    told = f"{inside * 1e3:.1f} ms against {bare * 1e3:.1f} ms"
    yield Row("`true` in the sandbox, against a bare `bash -c true`", inside / bare, _GOAL, "x", told)


async def _measured(home: Path, rounds: int) -> tuple[float, float]:
    root = home / "project"
    root.mkdir()
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    config = load((), environment, cwd=root)[0]
    folders = _Folders(root=root)
    sandbox = SessionSandbox(config, folders, environment, PlainNetwork(NetworkPolicy(kind="loopback")), print)
    kept = ProcessRunner(folders, environment, config.timeouts, sandbox)
    bare = ProcessRunner(folders, environment, config.timeouts)
    try:
        await kept.run(["true"])
        inside, outside = [], []
        for _ in range(rounds):
            inside.append(await _seconds(kept, ["true"]))
            outside.append(await _seconds(bare, ["bash", "-c", "true"]))
        return statistics.median(inside), statistics.median(outside)
    finally:
        await kept.close()
        await bare.close()


async def _seconds(runner: ProcessRunner, argv: list[str]) -> float:
    begun = time.perf_counter()
    await runner.run(argv)
    return time.perf_counter() - begun
