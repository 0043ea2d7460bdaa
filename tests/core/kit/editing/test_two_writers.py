"""Two processes that edit one file, with tools of their own: nothing that either writes is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from marvin_core import FilePatch, Hunk, ToolError, edit_files
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.files.locks import ProjectLocks
from marvin_core.guard.files.sandbox import SandboxPaths

WRITER = """
import sys
from pathlib import Path
from marvin_core import FilePatch, Hunk, edit_files
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.files.locks import ProjectLocks
from marvin_core.guard.files.sandbox import SandboxPaths
root, locks, begin, count = sys.argv[1:]
paths = SandboxPaths(Path(root), locks=ProjectLocks(Path(locks), Timeouts().replace(project_lock=60.0)))
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(begin), int(begin) + int(count)):
    hunk = Hunk(old=f"line {number}: no\\n", new=f"line {number}: ok\\n")
    edit_files(paths, [FilePatch(path="shared.txt", hunks=(hunk,))])
"""


@pytest.mark.slow
def test_four_hundred_edits_by_two_processes_survive(tmp_path: Path) -> None:
    root, locks, count = tmp_path / "project", tmp_path / "locks", 200
    root.mkdir()
    (root / "shared.txt").write_text("".join(f"line {number}: no\n" for number in range(2 * count)))
    argv = [sys.executable, "-P", "-c", WRITER, str(root), str(locks)]
    writers = [
        subprocess.Popen([*argv, str(begin), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for begin in (0, count)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    assert (root / "shared.txt").read_text().count(": ok\n") == 2 * count
    assert list(locks.iterdir()) == []
    assert [path.name for path in root.iterdir()] == ["shared.txt"]


def test_a_lock_that_is_not_had_in_time_changes_nothing(tmp_path: Path) -> None:
    timeouts = Timeouts().replace(project_lock=0.05)
    root, locks = tmp_path / "project", ProjectLocks(tmp_path / "locks", timeouts)
    root.mkdir()
    file = root / "a.txt"
    file.write_text("old\n")
    paths = SandboxPaths(root, locks=locks)
    edit = FilePatch(path="a.txt", hunks=(Hunk(old="old", new="new"),))
    with locks.held([file.stat()]), pytest.raises(ToolError, match="Another Marvin process has been writing"):
        edit_files(paths, [edit])
    assert file.read_text() == "old\n"
    edit_files(paths, [edit])
    assert file.read_text() == "new\n"
    assert [path.name for path in root.iterdir()] == ["a.txt"]
