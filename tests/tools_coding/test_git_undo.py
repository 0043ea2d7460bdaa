"""Taking back commits and checkouts that tools made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_tools_coding.files.edit import write_file
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.switching import git_checkout
from marvin_tools_coding.shell.commands import run_command
from tests.support.undoing import Desk

AUTHOR = {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


class Repo(Desk):
    """A repository with one commit, and a session in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, env=AUTHOR, answers=["yes"])
        self.sh("git init -q -b main; echo 1 >a; echo 1 >b; git add .; git commit -qm First")

    def sh(self, command: str) -> str:
        env = {**AUTHOR, "PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(self.home)}
        done = subprocess.run(["bash", "-ec", command], cwd=self.project, env=env, check=True, capture_output=True)
        return done.stdout.decode()

    @property
    def state(self) -> tuple[str, ...]:
        """Commit, branch, index and files."""
        return tuple(
            self.sh(command)
            for command in (
                "git rev-parse HEAD",
                "git symbolic-ref -q HEAD || true",
                "git status -s",
                "head -v * </dev/null",
            )
        )


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    made = Repo(tmp_path)
    yield made
    made.runner.close()


def test_a_commit_is_taken_back_with_the_index_before_it(repo: Repo) -> None:
    repo.sh("echo 2 >a; git add a; echo 2 >b; echo new >c")
    before = repo.state
    assert not repo.runner.call(git_commit, message="Second").is_error
    assert repo.sh("git status -s") == ""
    (line,) = repo.runner.take_back()
    assert line.startswith("git_commit: message=Second")
    assert repo.state == before


def test_the_first_commit_is_taken_back(repo: Repo) -> None:
    repo.sh("rm -rf .git; git init -q -b main; git add a")
    status = repo.sh("git status -s")
    repo.runner.call(git_commit, message="First", paths=["a"])
    repo.runner.take_back()
    assert repo.sh("git status -s") == status


def test_what_was_staged_since_stays_staged(repo: Repo) -> None:
    repo.sh("echo 2 >a")
    repo.runner.call(git_commit, message="Second")
    repo.sh("echo 3 >b; git add b")
    repo.runner.take_back()
    assert repo.sh("git status -s") == "M  a\nM  b\n"


def test_a_commit_that_is_not_the_newest_or_was_pushed_is_refused(repo: Repo) -> None:
    repo.sh("echo 2 >a")
    repo.runner.call(git_commit, message="Second")
    repo.sh("git commit -q --allow-empty -m Third")
    assert "git revert" in repo.refused()
    repo.sh(
        "git reset -q --soft HEAD^; git init -q --bare ../far; git push -q ../far main; git fetch -q ../far "
        "main:refs/remotes/far/main"
    )
    assert "was already pushed" in repo.refused()


def test_a_merge_is_not_taken_back_by_half(repo: Repo) -> None:
    repo.sh(
        "git switch -qc other; echo 2 >a; git commit -qam Other; git switch -q main; echo 2 >b; git commit -qam Main"
    )
    repo.sh("git merge -q --no-commit other")
    assert not repo.runner.call(git_commit, message="Merge").is_error
    assert repo.runner.take_back() == ()


@pytest.mark.slow
def test_switching_and_making_a_branch_are_taken_back(repo: Repo) -> None:
    repo.sh("git branch other; git switch -q other; echo 2 >a; git commit -qam Other; git switch -q main; echo mine >c")
    before = repo.state
    for arguments in ({"target": "other"}, {"target": "HEAD^0"}, {"target": "made", "create_branch": True}):
        assert not repo.runner.call(git_checkout, **arguments).is_error
    assert len(repo.runner.take_back(3)) == 3
    assert repo.state == before
    repo.runner.call(git_checkout, target="other")
    repo.sh("git switch -q made")
    assert "made is the current branch now, not" in repo.refused()


@pytest.mark.slow
def test_a_restored_file_is_as_it_was_before(repo: Repo) -> None:
    repo.sh("echo 2 >a; git commit -qam Second; echo mine >a; echo mine >b")
    repo.runner.call(git_checkout, target="HEAD^", path="a")
    assert repo.sh("cat a") == "1\n"
    repo.runner.take_back()
    assert repo.sh("cat a b") == "mine\nmine\n"
    repo.runner.call(git_checkout, target="HEAD", path="a")
    repo.sh("echo later >a")
    assert "a was changed since then" in repo.refused()
    assert repo.sh("cat a") == "later\n"


@pytest.mark.slow
def test_commands_commits_and_files_are_taken_back_in_their_order(repo: Repo) -> None:
    states = [repo.state]
    repo.runner.call(write_file, path="c", content="c\n")
    states.append(repo.state)
    repo.runner.call(run_command, command="rm a; echo 2 >b")
    states.append(repo.state)
    repo.runner.call(git_commit, message="Second")
    while states:
        assert len(repo.runner.take_back()) == 1
        assert repo.state == states.pop()
