"""The duration of searches in 100,000 files, compared with the bare programs."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.table import Row
from marvin_core import Tool
from marvin_core.testing import ToolRunner
from marvin_tools_coding.files.folders import tree
from marvin_tools_coding.files.search import code_grep, glob
from marvin_tools_coding.shell.commands import run_command

_FOLDERS, _FILES = 100, 100
_TEXT = "".join(f"def work_{number}(value):\n    return value + {number}  # a common word\n" for number in range(12))
_KINDS = ("py", "ts", "md", "txt")


class _Pair(NamedTuple):
    """A call, and the equivalent shell command."""

    title: str
    goal: float
    bare: str
    tool: Tool
    arguments: dict[str, Any]


_PAIRS = (
    # With the two context lines that the tool shows: they change how the program reads files.
    _Pair("code_grep, a rare word", 1.1, "rg -nC2 needle", code_grep, {"pattern": "needle"}),
    _Pair("code_grep, a glob", 1.5, "rg -nC2 -g'*.py' needle", code_grep, {"pattern": "needle", "glob_filter": "*.py"}),
    _Pair("code_grep, first 20", 3.0, "rg -nC2 common | head -20", code_grep, {"pattern": "common"}),
    _Pair("code_grep, look-ahead", 1.5, "rg -nPC2 'need(?=le)'", code_grep, {"pattern": "need(?=le)"}),
    _Pair("glob", 2.0, "git ls-files -co --exclude-standard -- '*.py'", glob, {"pattern": "**/*.py"}),
    _Pair("tree", 3.0, "git ls-files -co --exclude-standard", tree, {}),
    # Without sandbox and snapshot: what the call itself adds.
    _Pair("run_command `git status`", 1.3, "git status --short", run_command, {"command": "git status --short"}),
)


def rows(count: int, folders: int = 10) -> Iterator[Row]:
    """Each is the ratio of the medians of `count` interleaved runs, in `folders` times 10,000 files."""
    with tempfile.TemporaryDirectory() as home:
        root = Path(home, "project")
        _make(root, folders)
        without_snapshots(Path(home))
        with ToolRunner(Path(home), root, interactive=False) as tools:
            for pair in _PAIRS:
                alone, own = measured(
                    count, partial(bare, pair.bare, root), partial(called, tools, pair.tool, pair.arguments)
                )
                said = f"{own * 1e3:,.0f} ms, `{pair.bare}` {alone * 1e3:,.0f} ms"
                yield Row(f"{pair.title}, {folders * _FOLDERS * _FILES:,} files", own / alone, pair.goal, "x", said)


def _make(root: Path, folders: int) -> None:
    for number in range(folders * _FOLDERS):
        folder = root / f"part{number // _FOLDERS}" / f"inner{number % _FOLDERS}"
        folder.mkdir(parents=True)
        for file in range(_FILES):
            (folder / f"file{file}.{_KINDS[file % len(_KINDS)]}").write_text(_TEXT)
    (root / "part0" / "inner50" / "needle.py").write_text("needle\n")
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    for words in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def without_snapshots(home: Path) -> None:
    """Configure a home folder so that no command has a snapshot: one byte is too little for any."""
    settings = home / ".config" / "marvin" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("limits: {undo_snapshots: 1}\n")


def measured(count: int, alone: Callable[[], None], own: Callable[[], None]) -> tuple[float, float]:
    """The median seconds of the one and of the other, in turns."""
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(count + 1):
        for seconds, work in zip(taken, (alone, own), strict=True):
            begun = time.perf_counter()
            work()
            if turn:  # the first run fills caches
                seconds.append(time.perf_counter() - begun)
    return statistics.median(taken[0]), statistics.median(taken[1])


def bare(command: str, root: Path) -> None:
    """Run a command in a shell."""
    subprocess.run(["bash", "-c", command], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)


def called(tools: ToolRunner, tool: Tool, arguments: dict[str, Any]) -> None:
    """Call a tool, which has to succeed."""
    outcome = tools.call(tool, **arguments)
    if outcome.is_error:
        raise RuntimeError(outcome.text)
