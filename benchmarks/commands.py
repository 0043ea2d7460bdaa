"""What a call of run_command adds to a command that does nothing, without sandbox and snapshot."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.finding import bare, called, measured, without_snapshots
from benchmarks.table import Row
from marvin_core.testing import ToolRunner
from marvin_tools_coding.shell.commands import run_command

_COMMAND = "true"


def rows(count: int) -> Iterator[Row]:
    """One row: the ratio of the medians of `count` interleaved runs. It is near 1 for a command that works a while."""
    with tempfile.TemporaryDirectory() as home:
        root = Path(home, "project")
        root.mkdir()
        (root / "a.txt").write_text("a line\n")
        without_snapshots(Path(home))
        with ToolRunner(Path(home), root, interactive=False) as tools:
            own = partial(called, tools, run_command, {"command": _COMMAND})
            alone, whole = measured(count, partial(bare, _COMMAND, root), own)
    told = f"{whole * 1e3:.2f} ms, `bash -c {_COMMAND}` {alone * 1e3:.2f} ms"
    yield Row(f"run_command `{_COMMAND}`, the whole call", whole / alone, None, "x", told)
