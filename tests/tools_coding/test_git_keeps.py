"""What git_commit and git_checkout keep for the user: what is staged, marked, in progress, or changed unseen by git."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path

import pytest

from marvin_core import ToolError, ToolResult
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.inspecting import git_status
from marvin_tools_coding.git.switching import git_checkout

from .support_hooks import AUTHOR, hook
from .support_shell import Folder, text

pytestmark = pytest.mark.slow

ALTERS = "git update-index --cacheinfo 100644,$(echo altered | git hash-object -w --stdin),a.txt"
"""A hook changes what is committed, and not the file."""


@pytest.fixture
def repo(tmp_path: Path) -> Folder:
    """A repository with a branch beside main."""
    root = tmp_path / "project"
    root.mkdir()
    folder = Folder(root, **AUTHOR)
    folder.sh("git init -qb main; echo one > a.txt; echo b > b.txt; git add .; git commit -qm first; git branch other")
    return folder


# What is staged


@pytest.mark.parametrize("arguments", [{}, {"paths": ["a.txt", "n.txt"]}, {"add_all": False}], ids=str)
def test_a_commit_that_a_hook_refuses_leaves_what_is_staged(repo: Folder, arguments: dict[str, object]) -> None:
    """Of a file that is staged in part, the index may have the only copy."""
    hook(repo, "echo no >&2; exit 1")
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt; echo n > n.txt")
    told = repo.error(git_commit, message="m", **arguments)
    assert "The index is as before this call." in told
    assert repo.sh("git show :a.txt; git status --porcelain") == "part\nMM a.txt\n?? n.txt\n"


def cancelled_when_started(repo: Folder) -> str:
    """The error of a commit that is cancelled as soon as its hook says `started`."""

    async def use() -> str:
        call = asyncio.ensure_future(git_commit.function(repo.context, message="m", add_all=False))
        while "started" not in "".join(repo.told):
            await asyncio.wait_for(repo.told_something.wait(), 60)
            repo.told_something.clear()
        call.cancel()
        with pytest.raises(ToolError) as caught:
            await call
        return str(caught.value)

    return repo.run(use)


def test_a_commit_that_is_cancelled_leaves_what_is_staged(repo: Folder) -> None:
    """The error has what hooks said: lint-staged and pre-commit put changes aside, and say where."""
    hook(repo, "git diff > .git/aside; git checkout -q -- a.txt; echo 'It is in .git/aside. started'; exec sleep 300")
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt")

    said = cancelled_when_started(repo)
    assert re.search(r"(?s)If they are not back.*It is in \.git/aside.*The index is as before", said)
    repo.sh("git apply .git/aside")
    assert repo.sh("git show :a.txt; git status --porcelain; cat a.txt") == "part\nMM a.txt\nall\n"


def test_a_hook_restores_what_it_has_put_aside_if_its_commit_is_cancelled(repo: Folder) -> None:
    """As on Ctrl+C: lint-staged and pre-commit do this on SIGINT only."""
    restore = "sleep 0.7; git stash drop -q; git apply .git/aside; exit 1"
    aside = "git diff >.git/aside; git stash -q --keep-index"
    hook(repo, f"trap '{restore}' INT; {aside}; echo started; while :; do sleep 0.1; done")
    repo.timeouts = repo.timeouts.replace(interrupt=60)
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt")

    assert "had time to restore them" in cancelled_when_started(repo)
    assert repo.sh("git show :a.txt; git status --porcelain; cat a.txt; git stash list") == "part\nMM a.txt\nall\n"


@pytest.mark.parametrize(
    ("name", "end"), [("pre-commit", ""), ("pre-commit", "; exit 1"), ("post-commit", "")], ids=["undone", "no", "made"]
)
def test_what_somebody_stages_during_a_commit_can_be_staged_again(repo: Folder, name: str, end: str) -> None:
    """It may be the only copy, and nothing tells it from what a hook has read elsewhere."""
    hook(repo, f"mkdir -p 'd e'; echo part > 'd e/p'; git add 'd e/p'; echo all > 'd e/p'{end}", name)
    (repo.root / "a.txt").write_text("ours\n")
    told = repo.call(git_commit, message="m") if name == "post-commit" else repo.error(git_commit, message="m")
    assert repo.sh("git diff --cached -- d*") == ""
    (command,) = [line.partition("staged again: ")[2] for line in told.splitlines() if "staged again: " in line]
    repo.sh(command)
    assert repo.sh("git show ':d e/p'") == "part\n"


# Operations in progress


def test_a_merge_whose_commit_is_undone_goes_on_with_every_file(repo: Folder) -> None:
    """Also with files that are ignored, or that git_commit leaves out elsewhere."""
    repo.sh(
        "echo '*.dat' > .gitignore; echo m > a.txt; git add .; git commit -qm m; git switch -q other; echo o > a.txt"
    )
    repo.sh("echo 1 > t.dat; echo 2 > t.log; echo 3 > t.txt; git add -f .; git commit -qm o; git switch -q main")
    repo.sh("git merge -q other > ../said || echo resolved > a.txt")
    message = repo.sh("cat .git/MERGE_MSG; git rev-parse HEAD other")
    altering = hook(repo, ALTERS)
    assert "The commit was undone" in repo.error(git_commit, message="merge")
    assert repo.sh("cat .git/MERGE_MSG; git rev-parse HEAD; cat .git/MERGE_HEAD") == message
    assert repo.sh("cat a.txt t.dat t.log t.txt") == "resolved\n1\n2\n3\n"
    altering.unlink()
    assert repo.sh("git ls-files --unmerged | cut -d ' ' -f 3") == "1\ta.txt\n2\ta.txt\n3\ta.txt\n"
    assert "A merge is in progress" in repo.call(git_status)
    assert "Committed" in repo.call(git_commit, message="merge")
    assert repo.sh("git show HEAD:a.txt HEAD:t.dat HEAD:t.log HEAD:t.txt") == "resolved\n1\n2\n3\n"
    assert repo.sh("git rev-parse HEAD^1 HEAD^2") == repo.sh("git rev-parse main~1 other")
    assert repo.sh("git status --porcelain") == ""


@pytest.mark.parametrize("operation", ["cherry-pick", "revert"])
def test_the_last_of_several_picks_is_in_progress_again_after_its_commit_is_undone(
    repo: Folder, operation: str
) -> None:
    """Also what git keeps for going back to the state before the first one."""
    if operation == "cherry-pick":
        repo.sh("echo m > a.txt; git commit -qam m; git switch -q other; echo c > c.txt; git add .; git commit -qm c")
        repo.sh("echo o > a.txt; git commit -qam o; git switch -q main; git tag start")
        picks = "other~1 other"
    else:
        repo.sh(
            "echo 2 > a.txt; git commit -qam 2; echo c > b.txt; git commit -qam c; echo 3 > a.txt; git commit -qam 3"
        )
        repo.sh("git tag start")
        picks = "--no-edit HEAD~1 HEAD~2"
    repo.sh(f"git {operation} {picks} > ../said 2>&1 || echo resolved > a.txt")
    assert repo.sh("git rev-list --count start..HEAD") == "1\n"
    altering = hook(repo, ALTERS)
    assert "The commit was undone" in repo.error(git_commit, message="picked")
    altering.unlink()
    copy = repo.root.parent / "copy"
    repo.sh(f"cp -r . {copy}; cd {copy}; git update-index -q --refresh || true; git {operation} --abort")
    assert repo.sh(f"git -C {copy} rev-parse HEAD") == repo.sh("git rev-parse start")
    assert "Committed" in repo.call(git_commit, message="picked")
    assert repo.sh("git show HEAD:a.txt; git status --porcelain") == "resolved\n"
    assert not (repo.root / ".git/sequencer").exists()


# What git does not look at


@pytest.mark.parametrize("mark", ["assume-unchanged", "skip-worktree"])
def test_a_file_whose_changes_git_ignores_is_saved_before_it_is_restored(repo: Folder, mark: str) -> None:
    repo.sh(f"echo two > a.txt; git commit -qam two; git update-index --{mark} a.txt; echo mine > a.txt")
    told = repo.call(git_checkout, target="HEAD~1", path="a.txt")
    assert "had uncommitted changes, which were saved" in told
    (snapshot,) = repo.sh("git for-each-ref --format='%(refname)' refs/marvin").split()
    assert repo.sh(f"git show {snapshot}:a.txt; cat a.txt") == "mine\none\n"


@pytest.mark.parametrize("path", [".", "out/f"])
def test_a_file_beside_a_sparse_checkout_is_saved_before_it_is_restored(repo: Folder, path: str) -> None:
    repo.sh(
        "mkdir in out; echo 1 > in/f; echo 1 > out/f; git add .; git commit -qm 1; echo 2 > out/f; git commit -qam 2"
    )
    repo.sh("git sparse-checkout set in; mkdir -p out; echo mine > out/f")
    assert "had uncommitted changes, which were saved" in repo.call(git_checkout, target="HEAD~1", path=path)
    (snapshot,) = repo.sh("git for-each-ref --format='%(refname)' refs/marvin").split()
    assert repo.sh(f"git show {snapshot}:out/f; cat out/f") == "mine\n1\n"


# What a Marvin that was killed has left


@pytest.mark.parametrize("name", ["marvin-index-1", "marvin-index-1.lock", "marvin-objects-1", "marvin-snapshot-1-2"])
@pytest.mark.parametrize("tool", ["commit", "checkout"])
def test_what_a_call_needed_is_removed_a_day_later(repo: Folder, name: str, tool: str) -> None:
    left = repo.root / ".git" / name
    if "objects" in name:
        (left / "objects").mkdir(parents=True)
    else:
        left.touch()
    kept = repo.root / ".git" / "marvin-index-new"
    kept.touch()
    day_ago = time.time() - 90_000
    os.utime(left, (day_ago, day_ago))
    repo.sh("echo x > a.txt")
    if tool == "commit":
        repo.call(git_commit, message="m")
    else:
        repo.call(git_checkout, target="HEAD", path="a.txt")
    assert not left.exists()
    assert kept.exists()


# Names


def test_a_line_break_in_the_name_of_the_folder_is_told(tmp_path: Path) -> None:
    root = tmp_path / "two\nlines"
    root.mkdir()
    folder = Folder(root, **AUTHOR)
    folder.sh("git init -qb main")
    assert "has a line break. Rename its folder." in folder.error(git_status)


def test_a_branch_may_have_the_name_of_a_tag_or_one_that_is_no_utf_8(repo: Folder) -> None:
    repo.sh("git tag main; git switch -q other; git branch \"$(printf 'caf\\351')\"; git switch -q main 2> ../said")
    result = repo.run(lambda: repo.called(git_checkout, target="other"))
    assert isinstance(result, ToolResult)
    assert result.undo is not None
    repo.call(git_checkout, **result.undo.arguments)
    assert repo.sh("git symbolic-ref HEAD") == "refs/heads/main\n"
    repo.sh("git switch -q \"$(printf 'caf\\351')\"")
    assert "Switched to branch 'other'" in text(repo.call(git_checkout, target="other"))
