"""What git_checkout would replace and no snapshot can keep, and what it has done when it is cancelled."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Tool, ToolError, ToolResult
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.switching import git_checkout

from .support_hooks import AUTHOR, hook
from .support_shell import Folder

FILE = "echo x > d; git add .; git commit -qm file; git branch file; git rm -rq d; git commit -qm none"
FOLDER = "mkdir d; echo x > d/x; git add .; git commit -qm folder; git branch folder; git rm -rq d; git commit -qm none"
SUBMODULE = "git -c protocol.file.allow=always submodule add -q ./ d; git commit -qm sub; echo mine > d/mine"
REPOSITORY = "git init -q d/deep; cd d/deep; echo mine > mine; git add .; git commit -qm mine; cd ../.."


@pytest.fixture
def repo(tmp_path: Path) -> Folder:
    """A repository with one commit of one file."""
    root = tmp_path / "project"
    root.mkdir()
    folder = Folder(root, **AUTHOR)
    folder.sh("git init -qb main; echo one > a.txt; git add .; git commit -qm first")
    return folder


@pytest.mark.parametrize(
    "now",
    ["echo mine > d", "echo b > d; git add d; git commit -qm d; echo mine > d"],
    ids=["new", "changed"],
)
def test_a_file_is_not_replaced_by_the_folder_of_what_is_restored(repo: Folder, now: str) -> None:
    repo.sh(f"{FOLDER}; {now}")
    told = repo.error(git_checkout, target="folder", path="d/x")
    assert "Nothing was restored: d is not a folder" in told
    assert repo.sh("cat d") == "mine\n"
    assert "were saved" in repo.call(git_checkout, target="folder", path="d")


@pytest.mark.parametrize(("own", "kept"), [(SUBMODULE, "d/mine"), (REPOSITORY, "d/deep/mine")], ids=["sub", "new"])
def test_a_folder_with_a_repository_is_not_replaced_by_a_file_that_is_restored(
    repo: Folder, own: str, kept: str
) -> None:
    repo.sh(f"{FILE}; {own}")
    for path in ("d", "."):
        assert "has a repository of its own" in repo.error(git_checkout, target="file", path=path)
        assert repo.sh(f"cat {kept}") == "mine\n"


def test_nothing_is_restored_into_a_folder_with_a_repository(repo: Folder) -> None:
    repo.sh(f"{FOLDER}; {SUBMODULE}; echo mine > d/x")
    for path in ("d", "d/x"):
        assert "has a repository of its own" in repo.error(git_checkout, target="folder", path=path)
    assert repo.sh("cat d/x") == "mine\n"


@pytest.mark.parametrize("target", ["file", "file~0", "-", "far"])
def test_a_submodule_is_not_replaced_by_a_file_in_a_switch(repo: Folder, target: str) -> None:
    """git itself would remove what has been changed in it."""
    repo.sh(f"{FILE}; git switch -q file; git switch -q main; {SUBMODULE}")
    repo.sh("git update-ref refs/remotes/origin/far file; git remote add origin nowhere")
    assert "Nothing was switched: d is or has a repository" in repo.error(git_checkout, target=target)
    assert repo.sh("cat d/mine; git branch --show-current") == "mine\nmain\n"


def test_a_branch_without_a_submodule_is_checked_out(repo: Folder) -> None:
    repo.sh(f"git branch without; {SUBMODULE}")
    assert "Switched" in repo.call(git_checkout, target="without")
    assert repo.sh("cat d/mine") == "mine\n"
    assert "Switched" in repo.call(git_checkout, target="main")
    assert "Restored" in repo.call(git_checkout, target="HEAD", path=".")
    assert repo.sh("cat d/mine") == "mine\n"


def test_conflicts_with_longer_markers_are_not_committed(repo: Folder) -> None:
    repo.sh("echo 'a.txt conflict-marker-size=20' > .gitattributes; git add .; git commit -qm marks; git branch o")
    repo.sh("echo m > a.txt; git commit -qam m; git switch -q o; echo o > a.txt; git commit -qam o")
    repo.sh("git merge -q main > ../said || true")
    assert "there are conflict markers" in repo.error(git_commit, message="m")


def test_the_answer_to_new_files_in_the_way_is_not_to_stash_them(repo: Folder) -> None:
    """`git stash` leaves them there."""
    repo.sh("git switch -qc other; echo x > new; git add .; git commit -qm new; git switch -q main; echo mine > new")
    told = repo.error(git_checkout, target="other")
    assert "Move yours away" in told
    assert "git stash" not in told
    assert repo.sh("cat new") == "mine\n"


# Calls that are cancelled


def cancelled(repo: Folder, tool: Tool, **arguments: Any) -> ToolResult | str:
    """What a call returns, or why it failed, that is cancelled once its hook says that it has started."""

    async def use() -> ToolResult | str:
        call = asyncio.ensure_future(repo.called(tool, **arguments))
        while "started" not in "".join(repo.told):
            await asyncio.wait_for(repo.told_something.wait(), 60)
            repo.told_something.clear()
        call.cancel()
        return await call

    return repo.run(use)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [{"target": "other"}, {"target": "new", "create_branch": True}, {"target": "HEAD", "path": "a.txt"}],
    ids=["switched", "created", "restored"],
)
def test_a_checkout_that_is_done_when_it_is_cancelled_is_told_and_taken_back(
    repo: Folder, arguments: dict[str, Any]
) -> None:
    repo.sh("git branch other; echo mine > a.txt")
    hanging = hook(repo, "echo started; exec sleep 300", "post-checkout")
    result = cancelled(repo, git_checkout, **arguments)
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert "The call was cancelled." in str(result.content)
    hanging.unlink()
    assert result.undo is not None
    repo.call(git_checkout, **result.undo.arguments)
    assert repo.sh("git branch --show-current; cat a.txt") == "main\nmine\n"


@pytest.mark.parametrize("path", [None, "."], ids=["switched", "restored"])
def test_a_checkout_under_way_is_completed_if_it_is_cancelled(repo: Folder, path: str | None) -> None:
    """With half of it git refuses to switch: files of the other branch are in the way."""
    repo.sh("git switch -qc other; echo two > a.txt; echo new > b.txt; echo c > c.txt; git add .; git commit -qm two")
    repo.sh("git switch -q main; echo 'b.txt filter=slow' > .git/info/attributes")
    repo.sh("git config filter.slow.smudge 'echo started >&2; sleep 1; cat'")
    result = cancelled(repo, git_checkout, target="other", path=path)
    assert isinstance(result, ToolResult)
    assert repo.sh("git diff other; cat a.txt b.txt c.txt") == "two\nnew\nc\n"
    assert result.undo is not None
    repo.call(git_checkout, **result.undo.arguments)
    assert repo.sh("git status --porcelain; git branch --show-current; git diff main") == "main\n"


@pytest.mark.slow
def test_what_was_saved_is_told_if_restoring_is_cancelled(repo: Folder) -> None:
    repo.sh("echo 'b.txt filter=slow' > .git/info/attributes")
    repo.sh("git config filter.slow.smudge 'echo started >&2; sleep 300'")
    repo.sh("echo two > b.txt; git add .; git commit -qm two; echo mine > a.txt; echo mine > b.txt")
    with pytest.raises(ToolError, match="cancelled") as caught:
        cancelled(repo, git_checkout, target="HEAD", path=".")
    (snapshot,) = re.findall(r"refs/marvin/snapshots/[\w-]+", str(caught.value))
    assert repo.sh(f"git show {snapshot}:a.txt {snapshot}:b.txt") == "mine\nmine\n"
