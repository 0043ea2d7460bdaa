"""What is staged when git_commit fails is what was staged before it: the index may have the only copy of it."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from marvin_core import ToolError, ToolResult
from marvin_tools_coding.git.committing import git_commit

from .support_hooks import hook
from .support_shell import Folder

AS_COMMITTED = (
    "echo part > a.txt; git add a.txt; echo one > a.txt; echo n > n.txt; git add n.txt; rm n.txt; "
    "git rm -q --cached b.txt"
)
"""Staged otherwise than in the commit, which has what is in the files."""
FAILS = "git config filter.bad.clean false; git config filter.bad.required true; "
FAILS += "echo 'z.txt filter=bad' > .git/info/attributes"
STAGED = "git ls-files --stage"


def cancel_once_told(repo: Folder, text: str) -> ToolResult | None:
    """What a call returns nevertheless; None if it was cancelled."""

    async def use() -> ToolResult | None:
        call = asyncio.ensure_future(git_commit.function(repo.context, message="m"))
        while text not in "".join(repo.told):
            await asyncio.wait_for(repo.told_something.wait(), 60)
            repo.told_something.clear()
        call.cancel()
        with suppress(asyncio.CancelledError, ToolError):
            return await call
        return None

    return repo.run(use)


@pytest.mark.parametrize("more", ["echo c > c.txt", "true"], ids=["refused", "nothing"])
@pytest.mark.parametrize("paths", [None, ["."], ["a.txt", "n.txt", "b.txt"]], ids=str)
def test_what_is_staged_is_kept_where_the_files_are_as_committed(
    repo: Folder, more: str, paths: list[str] | None
) -> None:
    hook(repo, "exit 1")
    repo.sh(f"{AS_COMMITTED}; {more}")
    before = repo.sh(STAGED)
    told = repo.error(git_commit, message="m", paths=paths)
    assert "The index is as before this call." in told or "Files:" not in told
    assert repo.sh(STAGED) == before


def test_what_is_staged_is_kept_where_the_files_are_as_committed_if_the_call_is_cancelled(repo: Folder) -> None:
    hook(repo, "echo started; exec sleep 300")
    repo.sh(f"{AS_COMMITTED}; echo c > c.txt")
    before = repo.sh(STAGED)
    cancel_once_told(repo, "started")
    assert repo.sh(STAGED) == before


def test_what_is_staged_is_kept_where_the_files_are_as_committed_if_the_commit_is_undone(repo: Folder) -> None:
    """Also if somebody stages something meanwhile."""
    altered = "git update-index --add --cacheinfo 100644,$(echo altered | git hash-object -w --stdin),c.txt"
    hook(repo, altered)
    hook(repo, "echo d > d.txt; git add d.txt", "post-commit")
    repo.sh(f"{AS_COMMITTED}; echo c > c.txt")
    before = repo.sh(STAGED)
    assert "The commit was undone" in repo.error(git_commit, message="m")
    assert repo.sh(f"{STAGED} | grep -v d.txt") == before
    assert repo.sh("git show :d.txt") == "d\n"


@pytest.mark.parametrize("add_all", [True, False], ids=["all", "staged"])
def test_what_is_staged_in_part_is_kept_if_a_hook_formats_it_and_fails(repo: Folder, *, add_all: bool) -> None:
    hook(repo, "tr a-z A-Z < a.txt > n; mv n a.txt; git add a.txt; exit 1")
    repo.sh("echo part > a.txt; git add a.txt; echo part and more > a.txt")
    assert "The index is as before this call." in repo.error(git_commit, message="m", add_all=add_all)
    assert repo.sh("git show :a.txt; cat a.txt") == "part\nPART AND MORE\n"


def test_what_a_hook_has_staged_and_stays_so_is_named(repo: Folder) -> None:
    hook(repo, "echo made > made.txt; git add made.txt; exit 1")
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt")
    assert "A hook or another program has also staged this, and it stays so: made.txt." in repo.error(
        git_commit, message="m"
    )
    assert repo.sh("git status --porcelain") == "MM a.txt\nA  made.txt\n"


@pytest.mark.parametrize("paths", [None, ["."], ["a.txt", "z.txt"]], ids=str)
def test_what_is_staged_is_kept_if_staging_fails(repo: Folder, paths: list[str] | None) -> None:
    """git stages the tracked files before it fails with a new one."""
    repo.sh(FAILS)
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt; git rm -q --cached b.txt; echo z > z.txt")
    before = repo.sh(STAGED)
    repo.error(git_commit, message="m", paths=paths)
    assert repo.sh(STAGED) == before


def test_what_is_staged_is_kept_if_staging_is_cancelled(repo: Folder) -> None:
    repo.sh(
        "git config filter.slow.clean 'echo started >&2; sleep 300'; echo 'z.txt filter=slow' > .git/info/attributes"
    )
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt; git rm -q --cached b.txt; echo z > z.txt")
    before = repo.sh(STAGED)
    cancel_once_told(repo, "started")
    assert repo.sh(STAGED) == before


def test_what_is_resolved_stays_so_if_staging_fails(repo: Folder) -> None:
    repo.sh(
        "git switch -qc o; echo o > a.txt; git commit -qam o; git switch -q main; echo m > a.txt; git commit -qam m"
    )
    repo.sh("git merge -q o > ../said || echo both > a.txt; echo part > b.txt; git add b.txt; echo all > b.txt")
    repo.sh(f"{FAILS}; echo z > z.txt")
    repo.error(git_commit, message="m")
    assert repo.sh("git show :b.txt; cat a.txt") == "part\nboth\n"


@pytest.mark.parametrize("altered", [False, True], ids=["same", "altered"])
def test_a_commit_that_is_cancelled_after_it_was_made_is_compared(repo: Folder, *, altered: bool) -> None:
    """With other content than the files it would stay; a commit that stays is told, and can be taken back."""
    hook(repo, "echo started; exec sleep 300", "post-commit")
    content = "100644,$(echo altered | git hash-object -w --stdin)"
    hook(repo, f"git update-index --cacheinfo {content},b.txt" if altered else "true")
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt; git rm -q --cached b.txt")
    before = repo.sh(STAGED)
    result = cancel_once_told(repo, "started")
    if not altered:
        assert repo.sh("git log --format=%s; git show HEAD:a.txt; git status --porcelain") == "m\nfirst\nall\n"
        assert result is not None
        assert result.undo is not None
        assert "The call was cancelled once the commit was made." in str(result.content)
        repo.call(git_commit, **result.undo.arguments)
    assert (result is None) == altered
    assert repo.sh(f"git log --format=%s; {STAGED}") == f"first\n{before}"


KILLED = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from tests.tools_coding.support_hooks import AUTHOR
from tests.tools_coding.support_shell import Folder
from marvin_tools_coding.git.committing import git_commit
Folder(Path(sys.argv[1]), **AUTHOR).call(git_commit, message="m")
"""


def kill_during(repo: Folder, name: str) -> None:
    """Call git_commit in another process, and have a hook kill that and git."""
    killing = hook(repo, f"kill -9 $(cat {repo.root.parent}/killed) $PPID", name)
    script = shlex.quote(KILLED.format(path=sys.path))
    with pytest.raises(AssertionError):
        repo.sh(f"echo $$ > {repo.root.parent}/killed; exec {sys.executable} -c {script} {repo.root}")
    killing.unlink()


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg"])
def test_what_was_staged_is_told_if_marvin_is_killed(repo: Folder, name: str) -> None:
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt; git rm -q --cached b.txt; echo n > n; git add -N n")
    before = repo.sh(f"{STAGED}; git status -s")
    kill_during(repo, name)
    told = repo.error(git_commit, message="m")
    assert "an earlier git_commit was killed" in told
    (command,) = re.findall(r"run_command: (mv \S+ \S+);", told)
    repo.sh(command)
    assert repo.sh(f"{STAGED}; git status -s") == before
    assert "Committed" in repo.call(git_commit, message="m")


def test_nothing_is_told_of_a_call_that_was_killed_if_nothing_was_staged_before_it(repo: Folder) -> None:
    repo.sh("echo all > a.txt")
    kill_during(repo, "pre-commit")
    assert "Committed" in repo.call(git_commit, message="m")


def test_what_somebody_else_commits_during_a_hook_is_not_staged_as_reverted(repo: Folder) -> None:
    hook(repo, "git update-ref HEAD $(git commit-tree $(git write-tree) -p HEAD -m theirs)")
    repo.sh("echo 2 > a.txt; echo n > n.txt")
    repo.error(git_commit, message="m")
    assert repo.sh("git log --format=%s; git status --porcelain") == "theirs\nfirst\n"


# Merges


@pytest.mark.parametrize("end", ["", "; exit 1"], ids=["undone", "refused"])
def test_what_was_merged_stays_merged_beside_conflicts_if_a_hook_alters_it(repo: Folder, end: str) -> None:
    """Reset to the current branch, the commit of the merge would drop the other side."""
    repo.sh("git switch -qc o; echo o > a.txt; echo o > b.txt; echo o > n.txt; git add .; git commit -qm o")
    repo.sh("git switch -q main; echo m > a.txt; git commit -qam m; git merge -q o > ../said || echo both > a.txt")
    altered = "100644,$(echo altered | git hash-object -w --stdin)"
    altering = hook(repo, f"for n in b.txt n.txt; do git update-index --cacheinfo {altered},$n; done{end}")
    repo.error(git_commit, message="m")
    assert repo.sh("git show :b.txt :n.txt") == "o\no\n"
    altering.unlink()
    repo.sh("git add a.txt; git commit -qm merge")
    assert repo.sh("git show HEAD:a.txt HEAD:b.txt HEAD:n.txt; git status --porcelain") == "both\no\no\n"


@pytest.mark.parametrize("end", ["", "; exit 1"], ids=["undone", "refused"])
def test_what_is_staged_in_part_is_kept_beside_a_conflict(repo: Folder, end: str) -> None:
    repo.sh(
        "git switch -qc o; echo o > a.txt; git commit -qam o; git switch -q main; echo m > a.txt; git commit -qam m"
    )
    repo.sh("git merge -q o > ../said || echo both > a.txt; echo part > b.txt; git add b.txt; echo all > b.txt")
    before = repo.sh(STAGED)
    hook(repo, f"git update-index --add --cacheinfo 100644,$(echo altered | git hash-object -w --stdin),c.txt{end}")
    repo.error(git_commit, message="m")
    assert repo.sh(STAGED) == before


def test_a_new_file_that_is_to_be_added_stays_so_if_a_hook_refuses(repo: Folder) -> None:
    hook(repo, "exit 1")
    repo.sh("echo new > n.txt; git add -N n.txt; echo 2 > a.txt")
    repo.error(git_commit, message="m")
    assert repo.sh("git status -s") == " M a.txt\n A n.txt\n"


@pytest.mark.slow
def test_hundreds_of_conflicts_are_unresolved_again(repo: Folder) -> None:
    all_of_them = "for n in $(seq 510); do echo {0} > c$n; done; git add .; git commit -qm {0}"
    repo.sh(f"git switch -qc o; {all_of_them.format('o')}; git switch -q main; {all_of_them.format('m')}")
    repo.sh("git merge -q o > ../said || for n in $(seq 510); do echo both > c$n; done")
    altered = "100644 $(echo altered | git hash-object -w --stdin)"
    hook(
        repo, f'blob="{altered}"; for n in $(seq 510); do printf "$blob\\tc$n\\n"; done | git update-index --index-info'
    )
    assert "The commit was undone" in repo.error(git_commit, message="m")
    assert repo.sh("git ls-files --unmerged | cut -f 2 | sort -u | wc -l").strip() == "510"


# Locks


def test_what_is_staged_is_kept_if_the_index_is_locked_for_a_moment(repo: Folder) -> None:
    """As by a `git status` of an editor."""
    hook(repo, "touch .git/index.lock .git/told; exit 1")
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt")
    lock, told = repo.root / ".git" / "index.lock", repo.root / ".git" / "told"

    def release() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (told.exists() and lock.exists()):
            time.sleep(0.02)
        time.sleep(0.3)
        lock.unlink()

    with ThreadPoolExecutor() as threads:
        released = threads.submit(release)
        repo.error(git_commit, message="m")
        released.result()
    assert repo.sh("git show :a.txt") == "part\n"


@pytest.mark.parametrize("end", ["", "; exit 1"], ids=["undone", "refused"])
def test_the_way_to_what_was_staged_is_told_if_the_index_stays_locked(repo: Folder, end: str) -> None:
    altered = "git update-index --cacheinfo 100644,$(echo altered | git hash-object -w --stdin),b.txt"
    hook(repo, f"{altered if not end else 'cp .git/index .git/index.lock'}{end}")
    hook(repo, "touch .git/index.lock", "post-commit")
    repo.sh("echo part > a.txt; git add a.txt; echo all > a.txt; echo new > n.txt; git add -N n.txt")
    before = repo.sh(STAGED)
    told = repo.error(git_commit, message="m")
    assert "staged as before" not in told
    assert repo.sh("git log --format=%s") == "first\n"
    (command,) = re.findall(r"run_command: (rm .*; mv .*)", told)
    repo.sh(command)
    assert repo.sh(STAGED) == before


# What is told of content that is not staged any more


def test_nothing_leads_to_what_git_may_have_read_elsewhere(repo: Folder) -> None:
    """Given paths, git itself reads the files for the commit, and a folder may be a link by then."""
    name = repo.sh("echo altered | git hash-object -w --stdin").strip()
    hook(repo, f"git update-index --cacheinfo 100644,{name},b.txt")
    repo.sh("echo 2 > b.txt")
    told = repo.error(git_commit, message="m", paths=["b.txt"])
    assert "This was staged during the call, with other content than the files have" in told
    assert name not in told
    assert name in repo.error(git_commit, message="m")


def test_what_cannot_be_staged_again_by_a_command_is_not_told_as_one(repo: Folder) -> None:
    name = "$(echo part | git hash-object -w --stdin)"
    hook(repo, f"for n in \"$(printf 'caf\\351')\" n.txt; do git update-index --add --cacheinfo 100644,{name},$n; done")
    repo.sh("echo 2 > a.txt; echo n > n.txt")
    told = repo.error(git_commit, message="m")
    (command,) = [line.partition("staged again")[2] for line in told.splitlines() if "staged again" in line]
    assert command.startswith(" (1 more are not listed): git update-index")
    assert command.count("git update-index") == 1
    repo.sh(command.partition(": ")[2])
    assert repo.sh("git show :n.txt") == "part\n"
