"""What Marvin itself runs outside of the sandbox is never what commands in it could have put into the search path."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from marvin_core.api.errors import ToolError
from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.guard.search_path import without_projects
from tests.support.folders import Folders

T = TypeVar("T")


class Moving:
    """A working directory that changes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, name: str) -> Path:
        """The folder of this name."""
        return self.root / name


def program(path: Path, says: str) -> Path:
    """A program that says this, and then its search path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho {says}\necho "$PATH"\n')
    path.chmod(0o755)
    return path


def with_path(root: Path, folders: Sequence[Path | str], use: Callable[[ProcessRunner], Awaitable[T]]) -> T:
    root.mkdir(exist_ok=True)

    async def go() -> T:
        search = os.pathsep.join([*map(str, folders), "/usr/bin", "/bin"])
        runner = ProcessRunner(Folders(root=root, base=root), {"PATH": search}, Timeouts())
        try:
            return await use(runner)
        finally:
            await runner.close()

    return asyncio.run(go())


def said(root: Path, folders: Sequence[Path | str], *, as_typed: bool = False, outside: bool = True) -> list[str]:
    async def use(runner: ProcessRunner) -> list[str]:
        result = await runner.run(["tool"], outside=outside, as_typed=as_typed)
        return result.output.decode().split()

    return with_path(root, folders, use)


@pytest.mark.parametrize("place", ["project/bin", "project/.venv/bin", "other/.venv/bin", "other/node_modules/.bin"])
def test_a_program_of_a_project_is_not_what_runs_outside(tmp_path: Path, place: str) -> None:
    root = tmp_path / "project"
    theirs = program(tmp_path / place / "tool", "theirs").parent
    ours = program(tmp_path / "ours" / "tool", "ours").parent
    word, search = said(root, [theirs, ours])
    assert word == "ours"
    assert str(theirs) not in search.split(os.pathsep), "it would start theirs"
    assert str(ours) in search.split(os.pathsep)
    assert said(root, [theirs, ours], outside=False)[0] == "theirs", "in the sandbox it is what the user has"


def test_an_environment_is_told_by_what_lies_beside_its_programs(tmp_path: Path) -> None:
    theirs = program(tmp_path / "any name" / "bin" / "tool", "theirs").parent
    (theirs.parent / "pyvenv.cfg").touch()
    ours = program(tmp_path / "ours" / "tool", "ours").parent
    assert said(tmp_path / "project", [theirs, ours])[0] == "ours"


def test_a_link_leads_to_no_program_of_the_project(tmp_path: Path) -> None:
    theirs = program(tmp_path / "project" / "bin" / "tool", "theirs")
    (tmp_path / "folder").symlink_to(theirs.parent)
    (tmp_path / "single").mkdir()
    (tmp_path / "single" / "tool").symlink_to(theirs)
    ours = program(tmp_path / "ours" / "tool", "ours").parent
    assert said(tmp_path / "project", [tmp_path / "folder", tmp_path / "single", ours])[0] == "ours"


def test_what_a_person_has_run_finds_programs_as_their_shell_does_once_it_runs(tmp_path: Path) -> None:
    """The shell itself is none of the project's; what is typed in it may well be."""
    theirs = program(tmp_path / "project" / ".venv" / "bin" / "tool", "theirs").parent
    ours = program(tmp_path / "ours" / "tool", "ours").parent
    word, search = said(tmp_path / "project", [theirs, ours], as_typed=True)
    assert (word, search.split(os.pathsep)[0]) == ("ours", str(theirs))


def test_a_program_of_the_project_that_is_named_by_its_path_is_looked_for_elsewhere(tmp_path: Path) -> None:
    theirs = program(tmp_path / "project" / "bin" / "tool", "theirs")

    async def use(runner: ProcessRunner) -> None:
        assert runner.which("tool", outside=True) is None
        assert runner.which("tool") == str(theirs)
        with pytest.raises(ToolError, match="outside of projects"):
            await runner.run([str(theirs)], outside=True)
        with pytest.raises(ToolError, match="outside of projects"):
            await runner.start_job(["tool"], outside=True)
        done = await runner.run([sys.executable, "-c", "print('own')"], outside=True)
        assert done.output == b"own\n"

    with_path(tmp_path / "project", [theirs.parent], use)


def test_a_folder_that_was_worked_in_before_counts_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    theirs = program(first / "bin" / "tool", "theirs").parent
    second.mkdir()

    async def go() -> None:
        folders = Moving(first)
        runner = ProcessRunner(folders, {"PATH": f"{theirs}:/usr/bin"}, Timeouts())
        assert runner.which("tool", outside=True) is None
        folders.root = second
        assert runner.which("tool", outside=True) is None
        await runner.close()

    asyncio.run(go())


def test_where_everything_is_the_project_programs_are_found_all_the_same() -> None:
    assert without_projects("/first/a:/second/b", frozenset()) == "/first/a:/second/b"
    assert without_projects("/first/a:bin::/second/b:/firstly", frozenset(["/first"])) == "/second/b:/firstly"
