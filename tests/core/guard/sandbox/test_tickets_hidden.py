"""The tickets of a project are out of reach of commands, and in the way of none that walks through all of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.sandboxes import Place, in_sandbox


def git(project: Path, *words: str) -> str:
    """What git prints there."""
    return subprocess.run(["git", *words], cwd=project, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a ticket."""
    found = tmp_path / "home" / "project"
    (found / ".tickets").mkdir(parents=True)
    (found / ".tickets" / "a-1.md").write_text("The ticket.")
    (found / "one.txt").write_text("one")
    return found


@pytest.mark.parametrize("has_repository", [False, True])
def test_what_walks_through_a_project_finds_no_tickets_and_is_not_stopped(
    tmp_path: Path, project: Path, has_repository: bool
) -> None:
    """As the test runner of Node does, which fails at a folder that it cannot read."""
    if has_repository:
        git(project, "init", "-q")
        (project / ".git" / "info" / "exclude").write_text(".tickets/\n")
        git(project, "add", ".")

    async def use(found: Place) -> None:
        result = await found.sh("find . -path ./.git -prune -o -type f -print; ls -A .tickets")
        assert (result.exit_code, result.output.split()) == (0, [b"./one.txt"])
        assert (await found.sh("echo x > .tickets/new.md")).exit_code != 0

    in_sandbox(tmp_path, use)
    assert [path.name for path in (project / ".tickets").iterdir()] == ["a-1.md"]


@pytest.mark.parametrize("version", ["2", "4"])
def test_git_does_not_take_committed_tickets_for_removed(tmp_path: Path, project: Path, version: str) -> None:
    for words in (("init", "-q"), ("config", "user.name", "A"), ("config", "user.email", "a@b.c"), ("add", ".")):
        git(project, *words)
    git(project, "update-index", "--index-version", version)
    git(project, "commit", "-qm", "x")

    async def use(found: Place) -> None:
        await found.sh("git commit -qam y --allow-empty")

    in_sandbox(tmp_path, use)
    assert git(project, "ls-files").split() == [".tickets/a-1.md", "one.txt"]
    assert git(project, "log", "--format=%s").split() == ["y", "x"]
