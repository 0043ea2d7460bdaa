"""Two processes that edit one file, with tools of their own: nothing that either writes is lost."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
from pathlib import Path

import pytest

from marvin_core import FilePatch, Hunk, ToolError, edit_files
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.files.locks import ProjectLocks
from marvin_core.guard.files.no_links import opened_folder
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


SAVER = """
import os, sys, time
path, how, count = sys.argv[1:]
lost = []
for number in range(int(count)):
    with open(path) as file:
        lines = file.readlines()
    text = "".join([f"save {number}\\n", *lines[1:]])
    if how == "in place":
        with open(path, "w") as file:
            file.write(text)
    else:
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)
    for _ in range(100):  # an edit that finds the save has its place for a moment
        with open(path) as file:
            if file.readline() == f"save {number}\\n":
                break
        time.sleep(0.01)
    else:
        lost.append(number)
print("lost:", lost)
"""


@pytest.mark.slow
@pytest.mark.parametrize("states", [("state", "state"), ("state", "other state")], ids=["one home", "two homes"])
def test_four_hundred_edits_by_two_processes_survive(tmp_path: Path, states: tuple[str, str]) -> None:
    root, count = tmp_path / "project", 200
    root.mkdir()
    (root / "shared.txt").write_text("".join(f"line {number}: no\n" for number in range(2 * count)))
    argv = [sys.executable, "-P", "-c", WRITER, str(root)]
    writers = [
        subprocess.Popen(
            [*argv, str(tmp_path / state), str(begin), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for state, begin in zip(states, (0, count), strict=True)
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
    assert [path.name for path in root.iterdir()] == ["shared.txt"]
    assert [list((tmp_path / state).iterdir()) for state in states] == [[], []]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["by rename", "in place"])
def test_no_save_of_an_editor_is_lost_beside_edits_of_the_same_file(tmp_path: Path, how: str) -> None:
    file, edits = tmp_path / "a.txt", 0
    file.write_text("save\nmarvin 0\n")
    paths = SandboxPaths(tmp_path)
    argv = [sys.executable, "-P", "-c", SAVER, str(file), how, "1000"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as saver:
        while saver.poll() is None:
            hunk = Hunk(old=f"marvin {edits}\n", new=f"marvin {edits + 1}\n")
            try:
                edit_files(paths, [FilePatch(path="a.txt", hunks=(hunk,))])
                edits += 1
            except ToolError:  # the save has taken back an edit, or the file is empty for a moment
                edits = int(next(iter(re.findall(r"marvin (\d+)", file.read_text())), edits))
        assert saver.stdout is not None
        assert saver.stdout.read() == "lost: []\n"
    assert edits


def test_a_lock_that_is_not_had_in_time_changes_nothing(tmp_path: Path) -> None:
    timeouts = Timeouts().replace(project_lock=0.05)
    root, locks = tmp_path / "project", ProjectLocks(tmp_path / "locks", timeouts)
    root.mkdir()
    file = root / "a.txt"
    file.write_text("old\n")
    paths = SandboxPaths(root, locks=locks)
    edit = FilePatch(path="a.txt", hunks=(Hunk(old="old", new="new"),))
    with locks.held([file.stat()], []), pytest.raises(ToolError, match="Another Marvin process has been writing"):
        edit_files(paths, [edit])
    assert file.read_text() == "old\n"
    edit_files(paths, [edit])
    assert file.read_text() == "new\n"
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_a_program_that_keeps_a_folder_locked_holds_up_no_edit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    paths = SandboxPaths(tmp_path, locks=ProjectLocks(tmp_path / "locks", Timeouts().replace(project_lock=0.05)))
    with opened_folder(tmp_path, ".") as folder:
        fcntl.flock(folder, fcntl.LOCK_EX)
        edit_files(paths, [FilePatch(path="a.txt", hunks=(Hunk(old="old", new="new"),))])
    assert (tmp_path / "a.txt").read_text() == "new\n"
