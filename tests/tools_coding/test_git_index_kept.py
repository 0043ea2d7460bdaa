"""The index of the user outlives a git_commit that fails, and so do the commits and the locks of others."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import subprocess
import time
from contextlib import suppress

import pytest

from marvin_core import ToolResult
from marvin_tools_coding.git.committing import git_commit

from .support_hooks import hook
from .support_shell import Folder

IN_PART = "echo part > a.txt; git add a.txt; echo all > a.txt"
STAGED = "git ls-files --stage"
THEIRS = (
    "export GIT_INDEX_FILE=$PWD/../theirs; git read-tree HEAD; "
    "git update-index --cacheinfo 100644,$(echo theirs | git hash-object -w --stdin),b.txt; "
    "git update-ref HEAD $(git commit-tree $(git write-tree) -p HEAD -m 'Fix the login'); echo more > b.txt; "
)
"""Somebody else commits, and goes on with the file."""
KILLED = "cp .git/index .git/marvin-staged-$(git rev-parse HEAD | cut -c -16)-{}-1; git reset -q; "
"""What a Marvin has left that was killed once it had staged something else."""


def command(told: str, begin: str) -> str:
    """The command of a message that begins like this."""
    (found,) = re.findall(rf"run_command: ({begin}[^;\n]*(?:; mv [^;\n]*)?)", told)
    assert isinstance(found, str)
    return found


# The copy of the index


@pytest.mark.parametrize("fault", ["touch .git/index.lock", "echo broken > .git/index"], ids=["locked", "broken"])
def test_the_index_is_kept_and_told_of_until_it_is_put_back(repo: Folder, fault: str) -> None:
    failing = hook(repo, f"{fault}; exit 1")
    repo.sh(IN_PART)
    before = repo.sh(STAGED)
    told = repo.error(git_commit, message="m")
    assert "is not staged again. It is kept in" in told
    assert "as before this call" not in told
    failing.unlink()
    repo.sh("rm -f .git/index.lock; git read-tree HEAD")
    later = repo.error(git_commit, message="m")
    assert "an earlier git_commit did not put the index back" in later
    assert command(later, "mv") in told
    repo.sh(command(told, "rm"))
    assert repo.sh(STAGED) == before
    assert "Committed" in repo.call(git_commit, message="m")


def test_a_lock_that_was_there_before_leaves_no_copy(repo: Folder) -> None:
    """Nothing was staged, so nothing is to be put back."""
    repo.sh(f"{IN_PART}; touch .git/index.lock")
    assert "Another git command is running here" in repo.error(git_commit, message="m")
    repo.sh("rm .git/index.lock")
    assert "Committed" in repo.call(git_commit, message="m")


@pytest.mark.slow
def test_the_index_is_put_back_before_a_slow_filter_is_waited_for(repo: Folder) -> None:
    """A call that is cancelled has ten seconds."""
    repo.sh("git config filter.slow.clean 'test ! -e ../slow || sleep 60; cat'; echo c > c.txt; git add c.txt")
    repo.sh(f"echo 'c.txt filter=slow' > .git/info/attributes; git commit -qm c; {IN_PART}; echo cc > c.txt")
    altered = "$(echo altered | git hash-object -w --stdin)"
    hook(repo, f"git update-index --cacheinfo 100644,{altered},c.txt; touch ../slow; echo started; exit 1")
    before = repo.sh(STAGED)

    async def use() -> None:
        call = asyncio.ensure_future(git_commit.function(repo.context, message="m"))
        while "started" not in "".join(repo.told):
            await asyncio.wait_for(repo.told_something.wait(), 60)
            repo.told_something.clear()
        await asyncio.sleep(1)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call

    repo.run(use)
    assert repo.sh(STAGED) == before


def test_the_index_stays_if_its_copy_is_gone(repo: Folder) -> None:
    hook(repo, "rm .git/marvin-*; exit 1")
    repo.sh("echo 2 > a.txt")
    assert "What the call has staged is still staged." in repo.error(git_commit, message="m")
    assert repo.sh("git status -s") == "M  a.txt\n"


def test_a_call_is_known_to_be_killed_although_its_process_number_is_in_use(repo: Folder) -> None:
    """As in the next container."""
    repo.sh(f"{IN_PART}; cp .git/index .git/marvin-staged-{os.getpid()}-1; git reset -q")
    assert "an earlier git_commit was killed" in repo.error(git_commit, message="m")


def test_the_copy_of_a_call_that_runs_is_not_told(repo: Folder) -> None:
    repo.sh(IN_PART + "; " + KILLED.format(os.getpid()))
    (copy,) = (repo.root / ".git").glob("marvin-staged-*")
    with copy.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "Committed" in repo.call(git_commit, message="m")
    assert copy.exists()


def test_what_a_killed_call_left_does_not_revert_what_was_committed_since(repo: Folder) -> None:
    repo.sh(IN_PART + "; " + KILLED.format(1) + "echo user > b.txt; git commit -qm user b.txt; mkdir sub")
    told = repo.error(git_commit, message="m")
    assert "The branch has another commit since." in told
    repo.sh("cd sub; " + command(told, "cd"))
    assert repo.sh("git status -s; git show :a.txt") == "MM a.txt\npart\n"
    assert "Committed" in repo.call(git_commit, message="m")


def test_a_file_that_was_changed_in_the_moment_of_the_last_commit_stays_changed(repo: Folder) -> None:
    """git knows it by the time of the index, and by that of the file."""
    hook(repo, "exit 1")
    moment = "touch -d '2026-01-01 09:00:00'"
    repo.sh(f"git config core.trustctime false; {moment} a.txt; git update-index --refresh; echo two > a.txt")
    repo.sh(f"{moment} a.txt .git/index; echo new > z.txt")
    repo.error(git_commit, message="m", paths=["z.txt"])
    assert repo.sh("git --no-optional-locks status -s") == " M a.txt\n?? z.txt\n"


# Others


@pytest.mark.parametrize("way", ["refused", "locked"])
def test_a_commit_of_somebody_else_is_not_undone(repo: Folder, way: str) -> None:
    """git has made none, because a hook refused it, or because they were faster."""
    hook(repo, f"test ! -e ../go || {{ rm ../go; {THEIRS} }}; exit {int(way == 'refused')}")
    repo.sh("echo two > a.txt; touch ../go")
    told = repo.error(git_commit, message="Fix", paths=["a.txt"])
    assert "undone" not in told
    assert repo.sh("git log --format=%s; git show HEAD:b.txt") == "Fix the login\nfirst\ntheirs\n"


def test_what_somebody_stages_in_part_while_staging_fails_stays_staged(repo: Folder) -> None:
    repo.sh("echo 'z.txt filter=theirs' > .git/info/attributes; echo z > z.txt; echo all > b.txt")
    part = "git update-index --cacheinfo 100644,$(echo part | git hash-object -w --stdin),b.txt"
    repo.sh(f"git config filter.theirs.clean 'rm -f .git/index.lock; {part}; touch .git/index.lock; false'")
    repo.sh("git config filter.theirs.required true")
    repo.error(git_commit, message="m", paths=["z.txt"])
    assert repo.sh("git show :b.txt; git status -s") == "part\nMM b.txt\n?? z.txt\n"


def test_the_lock_of_another_git_stays(repo: Folder) -> None:
    hook(repo, "touch ../go; exit 1")
    lock, go = repo.root / ".git" / "index.lock", repo.root.parent / "go"
    takes = "while test -e ../on && ! test -e ../go; do :; done; while test -e ../on && ! test -e .git/index.lock; "
    takes += "do :; done; test -e ../on || exit 0; rm .git/index.lock && touch .git/theirs .git/index.lock"
    for number in range(10):
        for path in (lock, go, repo.root / ".git" / "theirs"):
            path.unlink(missing_ok=True)
        (repo.root.parent / "on").touch()
        repo.sh(f"echo {number} > n.txt")
        with subprocess.Popen(["sh", "-c", takes], cwd=repo.root):
            repo.error(git_commit, message="m")
            (repo.root.parent / "on").unlink()
        if (repo.root / ".git" / "theirs").exists():
            break
    assert (repo.root / ".git" / "theirs").exists()
    assert lock.exists()


# What is told of a commit that is made


@pytest.mark.parametrize("arguments", [{}, {"paths": ["a.txt", "b.txt"]}], ids=str)
def test_a_file_that_is_not_in_the_commit_is_told_as_such(repo: Folder, arguments: dict[str, object]) -> None:
    hook(repo, "git reset -q -- a.txt; git --no-pager diff --cached --name-only")
    repo.sh("echo 2 > a.txt; echo 2 > b.txt")
    told = repo.call(git_commit, message="m", **arguments)
    assert "Files: M b.txt." in told
    assert "Not in the commit, because a hook or another program has unstaged it: a.txt." in told
    assert repo.sh("git show --format= --name-only HEAD") == "b.txt\n"


def test_a_commit_without_any_of_the_files_is_told_as_such(repo: Folder) -> None:
    hook(repo, "git reset -q")
    repo.sh("echo 2 > a.txt")
    told = repo.call(git_commit, message="m")
    assert "Files:" not in told
    assert "has unstaged it: a.txt." in told


def test_a_commit_can_be_undone_although_the_index_is_locked_afterwards(repo: Folder) -> None:
    altered = "$(echo altered | git hash-object -w --stdin)"
    hook(repo, f"git update-index --cacheinfo 100644,{altered},b.txt; touch .git/index.lock", "post-commit")
    repo.sh("echo 2 > b.txt")
    result = repo.run(lambda: repo.called(git_commit, message="m", paths=["b.txt"]))
    assert isinstance(result, ToolResult)
    assert "could not be replaced" in str(result.content)
    assert result.undo is not None
    repo.sh("rm .git/index.lock")
    repo.call(git_commit, **result.undo.arguments)
    assert repo.sh("git log --format=%s") == "first\n"


# What is removed


@pytest.mark.parametrize("is_held", [False, True])
def test_a_copy_with_the_time_of_an_old_index_is_not_removed_during_its_call(repo: Folder, *, is_held: bool) -> None:
    copy = repo.root / ".git" / "marvin-index-first-1-1"
    copy.touch()
    day_ago = time.time() - 90_000
    os.utime(copy, (day_ago, day_ago))
    repo.sh("echo 2 > a.txt")
    with copy.open("rb") as file:
        if is_held:
            fcntl.flock(file, fcntl.LOCK_EX)
        repo.call(git_commit, message="m")
    assert copy.exists() == is_held
