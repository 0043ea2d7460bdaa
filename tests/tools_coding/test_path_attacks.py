"""Every tool that takes a path, while another process swaps what the path leads to.

The swapper turns a folder of the project into a link to a folder outside and back, as fast as it can; or a file into a
link or a hard link. Nothing of outside may be read, listed or written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Tool, ToolError
from marvin_tools_coding.files.edit import append_file, apply_patch, create_file, write_file
from marvin_tools_coding.files.folders import tree
from marvin_tools_coding.files.read import read_file
from marvin_tools_coding.files.search import code_grep, glob
from tests.support.swapping import running
from tests.tools_coding.support import Project

SWAPPER = """
import ctypes, os, sys
place, target, root = sys.argv[1:]
os.chdir(root)
if target:
    os.symlink(target, "swapped")
else:
    os.link("../outside/inner/data.txt", "swapped")
exchange = ctypes.CDLL(None, use_errno=True).renameat2
first, second = os.fsencode(place), b"swapped"
print("ready", flush=True)
while True:
    if exchange(-100, first, -100, second, 2):
        raise OSError(ctypes.get_errno(), "the exchange failed")
"""
"""Two names change places in one step (RENAME_EXCHANGE of Linux), so that there is always something."""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="two names change places in one step on Linux only")
KINDS = {
    "folder": ("area", "../outside"),
    "inner": ("area/inner", "../../outside/inner"),
    "file": ("area/inner/data.txt", "../../../outside/inner/data.txt"),
    "tickets": ("area/inner", "../.Tickets"),
    "hard": ("area/inner/data.txt", ""),
}
LISTED = ("inner", "tickets")
LISTING = (glob, tree, code_grep)
WRITING = (create_file, append_file, write_file, apply_patch)
CALLS: dict[str, tuple[Tool, dict[str, Any]]] = {
    "read_file": (read_file, {"path": "area/inner/data.txt"}),
    "create_file": (create_file, {"path": "area/inner/new-{}.txt", "content": "written"}),
    "append_file": (append_file, {"path": "area/inner/data.txt", "content": "written\n"}),
    "write_file": (write_file, {"path": "area/inner/data.txt", "content": "INSIDE needle\n"}),
    "apply_patch": (apply_patch, {"path": "area/inner/data.txt", "old_str": "INSIDE", "new_str": "INSIDE"}),
    "apply_patch_adds": (
        apply_patch,
        {"patch": "*** Begin Patch\n*** Add File: area/inner/added-{}.txt\n+written\n*** End Patch"},
    ),
    "apply_patch_moves": (
        apply_patch,
        {
            "patch": "*** Begin Patch\n*** Add File: area/a-{}.txt\n+written\n*** Update File: area/inner/data.txt\n"
            "*** Move to: area/inner/data.txt\n@@\n-INSIDE needle\n+INSIDE needle\n*** End Patch"
        },
    ),
    "glob": (glob, {"pattern": "**/*.txt"}),
    "glob_below": (glob, {"pattern": "**/*.txt", "path": "area"}),
    "tree": (tree, {}),
    "tree_all": (tree, {"path": "area", "respect_gitignore": False}),
    "code_grep": (code_grep, {"pattern": "needle"}),
    "code_grep_below": (code_grep, {"pattern": "needle", "path": "area/inner"}),
    "code_grep_files": (code_grep, {"pattern": "needle", "glob_filter": "*.txt"}),
    "code_grep_look_ahead": (code_grep, {"pattern": "(?=x?)needle"}),
    "code_grep_names": (code_grep, {"pattern": "needle", "output": "files"}),
    "code_grep_counts": (code_grep, {"pattern": "needle", "output": "count"}),
    "code_grep_own": (code_grep, {"pattern": "needle"}),
    "code_grep_own_counts": (code_grep, {"pattern": "needle", "output": "count"}),
    "code_grep_own_explains": (code_grep, {"pattern": "needle", "glob_filter": "secret*"}),
    "glob_explains": (glob, {"pattern": "area/**/secret*"}),
}


def outside_of(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


def swapping(kind: str, root: Path) -> AbstractContextManager[None]:
    return running(SWAPPER, *KINDS[kind], root)


def ground(tmp_path: Path, *, is_repository: bool) -> tuple[Project, Path]:
    outside = tmp_path / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "inner" / "data.txt").write_text("SECRET needle\n")
    (outside / "inner" / "secret-name.txt").write_text("SECRET needle\n")
    (outside / "secret-name.txt").write_text("SECRET needle\n")
    project = Project(tmp_path / "project")
    (project.root / ".Tickets").mkdir()
    (project.root / ".Tickets" / "secret-name.txt").write_text("SECRET needle\n")
    (project.root / ".Tickets" / "data.txt").write_text("SECRET needle\n")
    (project.root / "area" / "inner").mkdir(parents=True)
    (project.root / "area" / "inner" / "data.txt").write_text("INSIDE needle\n")
    (project.root / "area" / "more.txt").write_text("INSIDE needle\n")
    if is_repository:
        project.git("init", "--quiet")
        project.git("config", "user.name", "T")
        project.git("config", "user.email", "t@example.org")
        project.git("add", "--all")
        project.git("commit", "--quiet", "-m", "first")
        (project.root / "area" / "inner" / "data.txt").write_text("INSIDE needle changed\n")
    return project, outside


def attacked(project: Project, name: str, goes_on: Callable[[int], bool]) -> set[str]:
    """What a tool says, in all of its calls."""
    called, arguments = CALLS[name]
    said: set[str] = set()
    number = 0
    while goes_on(number):
        given = {key: value.format(number) if isinstance(value, str) else value for key, value in arguments.items()}
        try:
            said.add(project.call(called, **given))
        except ToolError as error:
            said.add(str(error))
        number += 1
    return said


def check(tmp_path: Path, name: str, kind: str, is_repository: bool, goes_on: Callable[[int], bool]) -> None:
    project, outside = ground(tmp_path, is_repository=is_repository)
    before = outside_of(outside)
    caller = Project(project.root, programs=("git",)) if "_own" in name else project  # so without ripgrep
    with swapping(kind, project.root):
        said = attacked(caller, name, goes_on)
    assert outside_of(outside) == before
    if kind != "hard":  # whoever may link a file here may read it: it is one of the project's, too
        assert not [text for text in said if "SECRET" in text or "secret-name" in text]
    assert outside_of(project.root / ".Tickets") == {
        "data.txt": "SECRET needle\n",
        "secret-name.txt": "SECRET needle\n",
    }


CASES = [
    *((name, kind, False) for name in CALLS for kind in ("folder", "file")),
    *((name, "hard", False) for name, (called, _) in CALLS.items() if called in WRITING),
    *((name, kind, kind == "inner") for name, (called, _) in CALLS.items() if called in LISTING for kind in LISTED),
]


@pytest.mark.parametrize(("name", "kind", "is_repository"), CASES)
def test_nothing_of_outside_is_read_listed_or_written(
    tmp_path: Path, name: str, kind: str, is_repository: bool
) -> None:
    """I4: the paths are checked where they are used, and not before."""
    rounds = 4 if CALLS[name][0] in LISTING else 25
    check(tmp_path, name, kind, is_repository, lambda number: number < rounds)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_twenty_seconds_of_it(tmp_path: Path, name: str) -> None:
    kinds = [kind for kind in KINDS if kind != "hard" or CALLS[name][0] in WRITING]
    for kind in kinds:
        (tmp_path / kind).mkdir()
        end = time.monotonic() + 20 / len(kinds)
        check(tmp_path / kind, name, kind, True, lambda number, end=end: time.monotonic() < end)  # type: ignore[misc]
