"""Taking back a commit that was made during a merge, cherry-pick, revert, rebase or bisect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_tools_coding.files.edit import write_file
from marvin_tools_coding.git.committing import git_commit

from .test_git_undo import PUSHED, Repo

FORKED = (
    "git switch -qc other; echo theirs >a; echo new >c; git add .; git commit -qm Other; echo 2 >b; "
    "git commit -qam More; git switch -q main; echo ours >a; git commit -qam Main; "
)
MERGE = f"{FORKED} git merge other || true; "
RESOLVED = "echo resolved >a"
SEEN = (
    "git rev-parse HEAD; git symbolic-ref HEAD || true; git status --porcelain=v2; git status; git ls-files -s; "
    "git diff; git for-each-ref; git stash list; tail -n +1 *; cd .git; "
    "for f in MERGE_* AUTO_MERGE SQUASH_MSG *_HEAD sequencer/* rebase-merge/* rebase-apply/next BISECT_LOG; do"
    ' if [ -s $f ]; then echo "$f: $(cat $f)"; fi; done'
)
OPERATIONS = {
    "merge": f"{MERGE} {RESOLVED}; echo untracked >u",
    "merge, staged": f"{MERGE} {RESOLVED}; git add a; echo since >a",
    "merge without conflicts": f"git switch -qc other; {RESOLVED}; git commit -qam O; git switch -q main;"
    "git merge --no-commit --no-ff other",
    "merge of deleted files": f"{FORKED} git rm -q a; git commit -qm D; git merge other || true; git rm -q a",
    "merge with rerere": f"git config rerere.enabled true; {MERGE} {RESOLVED}",
    "squash": f"{FORKED} git merge --squash other || true; {RESOLVED}",
    "cherry-pick": f"{FORKED} git cherry-pick other^ || true; {RESOLVED}",
    "first of two": f"{FORKED} git cherry-pick other^ other || true; {RESOLVED}",
    "last of two": f"{FORKED} git cherry-pick other other^ || true; {RESOLVED}",
    "picked without a commit": f"{FORKED} git cherry-pick -n other",
    "revert": f"{FORKED} echo 3 >a; git commit -qam Three; git revert HEAD^ || true; {RESOLVED}",
    "rebase": f"{FORKED} git rebase other || true; {RESOLVED}",
    "rebase, edited": f"{FORKED} GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -i HEAD^; {RESOLVED}",
    "rebase by patches": f"{FORKED} git rebase --apply other || true; {RESOLVED}",
    "mails": f"{FORKED} git format-patch -1 --stdout other^ >../mail; git am -3 ../mail || true; {RESOLVED}",
    "bisect": f"{FORKED} git bisect start; git bisect bad other; git bisect good other~2; {RESOLVED}",
}


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    made = Repo(tmp_path)
    yield made
    made.runner.close()


@pytest.mark.parametrize("script", OPERATIONS.values(), ids=OPERATIONS)
def test_the_operation_is_in_progress_again_as_before(repo: Repo, script: str) -> None:
    repo.sh(script)
    before = repo.sh(SEEN)
    assert not repo.runner.call(git_commit, message="Done").is_error
    assert repo.sh(SEEN) != before
    assert len(repo.runner.take_back()) == 1
    assert repo.sh(SEEN) == before


def test_a_merge_that_was_taken_back_can_be_committed_and_aborted(repo: Repo) -> None:
    repo.sh(OPERATIONS["merge"])
    repo.runner.call(git_commit, message="Merge")
    repo.runner.take_back()
    assert "Committed" in repo.runner.call(git_commit, message="Again").text
    assert repo.sh("git show -s --format=%P | wc -w") == "2\n"
    repo.runner.take_back()
    repo.sh("git merge --abort")
    assert repo.sh("git log -1 --format=%s; cat a u") == "Main\nours\nuntracked\n"


def test_a_rebase_goes_on_after_its_commit_was_taken_back(repo: Repo) -> None:
    repo.sh(OPERATIONS["rebase"])
    repo.runner.call(git_commit, message="Done")
    repo.runner.take_back()
    repo.sh("git add a; GIT_EDITOR=true git rebase --continue")
    assert (
        repo.sh("git symbolic-ref --short HEAD; git log --format=%s; cat a")
        == "main\nMain\nMore\nOther\nFirst\nresolved\n"
    )


SINCE = {
    "committed": ("merge", "git commit -q --allow-empty -m More", "is no longer the newest commit"),
    "reset": ("merge", "git reset -q --hard HEAD^", "is no longer the newest commit"),
    "pushed": ("merge", PUSHED, "was already pushed"),
    "rebased": ("rebase", "GIT_EDITOR=true git rebase --continue", "has gone on since"),
    "aborted": ("rebase", "git rebase --abort", "is no longer the newest commit"),
    "bisected": ("bisect", "git add .; git bisect good", "is no longer the newest commit"),
    "marked": ("bisect", "at=$(git rev-parse HEAD); git bisect skip; git switch -qf --detach $at", "has gone on since"),
    "picked": ("first of two", "git cherry-pick --continue", "is no longer the newest commit"),
    "skipped": ("first of two", "git cherry-pick --quit", "has gone on since"),
    "pruned": ("merge", "git prune --expire=now", "git has removed what was kept"),
}


@pytest.mark.parametrize(("operation", "since", "why"), SINCE.values(), ids=SINCE)
def test_what_somebody_has_done_since_is_not_touched(repo: Repo, operation: str, since: str, why: str) -> None:
    repo.runner.call(write_file, path="first", content="c\n")
    repo.sh(OPERATIONS[operation])
    assert not repo.runner.call(git_commit, message="Done", add_all=True).is_error
    repo.sh(since)
    before = repo.sh(SEEN)
    told = repo.refused()
    assert why in told
    assert "It is no longer listed" in told
    assert repo.sh(SEEN) == before


def test_a_merge_is_not_taken_back_during_another_one(repo: Repo) -> None:
    repo.sh(f"{OPERATIONS['merge']}; git branch third")
    repo.runner.call(git_commit, message="Merge")
    repo.sh("git switch -q third -f; echo 3 >b; git commit -qam Third; git switch -q main; git merge third || true")
    before = repo.sh(SEEN)
    assert "A merge is in progress" in repo.refused()
    assert repo.sh(SEEN) == before
    repo.sh("git merge --abort")
    assert len(repo.runner.take_back()) == 1
    assert "All conflicts fixed" not in repo.sh("git status")


def test_what_was_staged_since_the_merge_stays_staged(repo: Repo) -> None:
    repo.sh(f"{OPERATIONS['merge']}")
    repo.runner.call(git_commit, message="Merge")
    repo.sh("echo since >a; git add a; echo later >a")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git show :a; cat a; git rev-parse -q --verify MERGE_HEAD | wc -l") == "since\nlater\n1\n"


def test_a_commit_after_which_git_restores_changes_put_aside_stays(repo: Repo) -> None:
    """Otherwise `git merge --abort` would discard them."""
    repo.sh(f"{FORKED} echo work >d; git add d; git commit -qm D; echo wip >d; git merge --autostash other || true")
    repo.sh(RESOLVED)
    assert not repo.runner.call(git_commit, message="Merge").is_error
    assert repo.sh("cat d") == "wip\n"
    assert repo.runner.take_back() == ()


@pytest.mark.parametrize("operation", ["merge", "last of two"])
def test_nothing_is_in_progress_if_the_branch_cannot_be_moved(repo: Repo, operation: str) -> None:
    repo.sh(OPERATIONS[operation])
    repo.runner.call(git_commit, message="Done")
    repo.sh("touch .git/refs/heads/main.lock")
    before = repo.sh(SEEN), repo.sh("ls .git")
    assert "main.lock': File exists" in repo.refused()
    assert (repo.sh(SEEN), repo.sh("ls .git")) == before
    repo.sh("rm .git/refs/heads/main.lock")
    assert len(repo.runner.take_back()) == 1


def test_a_merge_that_cannot_be_in_progress_again_is_not_taken_back(repo: Repo) -> None:
    repo.sh(OPERATIONS["merge"])
    repo.runner.call(git_commit, message="Merge")
    repo.sh("mkdir .git/MERGE_MSG")
    before = repo.sh(SEEN)
    assert "MERGE_MSG: Is a directory" in repo.refused()
    assert repo.sh(SEEN) == before
    repo.sh("rmdir .git/MERGE_MSG")
    assert len(repo.runner.take_back()) == 1
