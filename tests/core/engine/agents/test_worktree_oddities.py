"""Repositories that are not as most are: what is refused says why and leaves nothing, and nothing else is lost."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from marvin_core.api.errors import ToolError
from tests.support.repositories import TestRepository


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    """A repository."""
    return TestRepository(tmp_path / "home")


def change(folder: Path) -> None:
    """What an agent does."""
    (folder / "new.txt").write_text("new\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the file system may not tell a from A")
@pytest.mark.parametrize("setting", ["true", "false"])
def test_a_name_in_another_case(repository: TestRepository, setting: str) -> None:
    """Also where the settings came from a system that takes both for one, so that git would see one of them alone."""
    repository.git("config", "core.ignorecase", setting)
    told = repository.agent(lambda folder: os.rename(folder / "a.txt", folder / "A.txt"))
    assert "merged into main" in told
    assert (repository.root / "A.txt").read_text() == "one\n"
    assert not (repository.root / "a.txt").exists()


def test_what_git_ignores_is_named_where_it_goes_with_a_worktree(repository: TestRepository) -> None:
    """Whoever asked for it should not believe that it is there; what is made again is not worth a word."""
    repository.write(".gitignore", "*.csv\nout/\nnode_modules/\n")
    repository.commit("Ignore")

    def work(folder: Path) -> None:
        for name in ("data/x.csv", "out/y.txt", "node_modules/z/i.js", "kept.txt"):
            repository.write(name, "x", folder)

    told = repository.agent(work)
    assert "Files that git ignores were removed with it: data/x.csv, out/." in told
    assert repository.agent(ticket="t-2") == "It committed nothing. The worktree and its branch were removed."


@pytest.mark.parametrize("folder", ["out", "out/deep"])
def test_a_folder_that_git_ignores_is_no_place_for_a_worktree(repository: TestRepository, folder: str) -> None:
    repository.write(".gitignore", "out/\n")
    repository.commit("Ignore")
    (repository.root / folder).mkdir(parents=True)
    with pytest.raises(
        ToolError, match=r"git ignores .*, so the changes of a worktree would be lost. Leave isolation out"
    ):
        repository.agent(change, root=repository.root / folder)
    repository.write(f"{folder}/known.txt", "x")
    repository.git("add", "--force", f"{folder}/known.txt")
    repository.commit("Known all the same")
    work: Callable[[Path], object] = lambda place: (place / "known.txt").write_text("y")  # noqa: E731
    assert "merged into main" in repository.agent(work, root=repository.root / folder)


def test_branches_below_the_name_that_an_agent_would_get(repository: TestRepository) -> None:
    repository.git("branch", "marvin/t-1/of-somebody")
    assert "merged into main" in repository.agent(change)
    assert repository.branches() == ["main", "marvin/t-1/of-somebody"]


def test_a_worktree_that_cannot_be_made_leaves_no_branch(repository: TestRepository) -> None:
    (repository.root / ".git/worktrees").write_text("in the way")
    with pytest.raises(ToolError, match="git worktree add failed"):
        repository.agent()
    assert repository.branches() == ["main"]


def test_a_line_break_in_the_path_is_said(tmp_path: Path) -> None:
    repository = TestRepository(tmp_path / "a\nhome")
    with pytest.raises(ToolError, match="has a line break in it"):
        repository.agent()


@pytest.mark.parametrize("state", ["detached", "merge", "rebase", "bisect"])
def test_what_is_in_progress_is_not_touched(repository: TestRepository, state: str) -> None:
    """The agent works on the newest commit, and its branch is left to be merged later."""
    if state == "detached":
        repository.git("checkout", "--quiet", "--detach")
    elif state == "bisect":
        repository.commit_of("c.txt", "1")
        repository.commit_of("c.txt", "2")
        repository.git("bisect", "start", "HEAD", "HEAD~2")
    else:
        repository.git("checkout", "--quiet", "-b", "other")
        repository.commit_of("a.txt", "other\n")
        repository.git("checkout", "--quiet", "main")
        repository.commit_of("a.txt", "mine\n")
        repository.git_fails(state, "other")
    before = repository.dirty()
    told = repository.agent(change)
    assert "is not merged" in told
    assert "The worktree was kept" in told
    assert repository.dirty() == before
    assert "marvin/t-1" in repository.branches()


def test_a_shallow_repository_and_one_with_lines_of_another_system(repository: TestRepository) -> None:
    repository.commit_of("c.txt", "1")
    repository.git("clone", "--quiet", "--depth", "1", f"file://{repository.root}", str(repository.home / "shallow"))
    repository.root = repository.home / "shallow"
    repository.git("config", "core.autocrlf", "true")
    repository.write("w.txt", "a\r\nb\r\n")
    repository.commit("Windows")

    def work(folder: Path) -> None:
        (folder / "w.txt").write_bytes(b"a\r\nb\r\nc\r\n")

    assert "merged into main" in repository.agent(work)
    assert (repository.root / "w.txt").read_bytes() == b"a\r\nb\r\nc\r\n"
    assert repository.dirty() == ""


def test_git_keeps_nothing_of_a_worktree_that_it_names_by_a_relative_path(repository: TestRepository) -> None:
    """As since git 2.48 with worktree.useRelativePaths."""

    def work(folder: Path) -> None:
        change(folder)
        (place,) = (repository.root / ".git/worktrees").iterdir()
        (place / "gitdir").write_text(os.path.relpath(folder / ".git", place) + "\n")

    assert "The worktree and its branch were removed" in repository.agent(work)
    assert not list((repository.root / ".git").glob("worktrees/*"))


def test_a_file_that_git_ignores_in_the_main_folder_is_not_replaced(repository: TestRepository) -> None:
    """An agent committed one with the same name."""
    repository.write(".git/info/exclude", "secret\n")
    secret = repository.write("secret", "the user's\n")

    def work(folder: Path) -> None:
        repository.write("secret", "the agent's\n", folder)
        repository.git("add", "--force", "secret", at=folder)
        repository.git("commit", "--quiet", "-m", "Add it", at=folder)

    told = repository.agent(work)
    assert secret.read_text() == "the user's\n"
    assert "not merged: the main folder has uncommitted changes" in told


def test_a_switch_in_the_moment_of_the_merge_is_told_with_the_branch_that_has_the_changes(
    repository: TestRepository,
) -> None:
    repository.git("branch", "theirs")
    repository.git("config", "filter.switch.smudge", "git symbolic-ref HEAD refs/heads/theirs; cat")
    (repository.root / ".git/info").mkdir(exist_ok=True)
    (repository.root / ".git/info/attributes").write_text("new.txt filter=switch\n")
    told = repository.agent(change)
    assert "the main folder was switched to theirs in the same moment, which has the changes now" in told
    assert repository.git("show", "theirs:new.txt") == "new\n"
