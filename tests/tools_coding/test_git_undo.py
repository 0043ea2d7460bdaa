"""Taking back commits and checkouts that tools made."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_tools_coding.files.edit import write_file
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.switching import git_checkout
from marvin_tools_coding.shell.commands import run_command
from tests.support.undoing import Desk

from .support_shell import Folder

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
    assert repo.sh("git status -s") == " M a\nM  b\n"


PUSHED = "git init -q --bare ../far; git push -q ../far main; git fetch -q ../far main:refs/remotes/far/main"


@pytest.mark.parametrize(
    ("since", "why"),
    [
        ("git commit -q --allow-empty -m Third", "is no longer the newest commit"),
        ("git reset -q --hard HEAD^", "is no longer the newest commit"),
        (PUSHED, "was already pushed"),
        (f"{PUSHED}; git switch -qc other HEAD^", "was already pushed"),
    ],
    ids=["older", "gone", "pushed", "elsewhere"],
)
def test_a_commit_that_can_never_be_undone_does_not_hold_up_earlier_calls(repo: Repo, since: str, why: str) -> None:
    repo.runner.call(write_file, path="c", content="c\n")
    repo.sh("echo 2 >a")
    repo.runner.call(git_commit, message="Second", paths=["a"])
    repo.sh(since)
    told = repo.refused()
    assert why in told
    assert "git revert" in told
    assert "It is no longer listed" in told
    (line,) = repo.runner.take_back()
    assert line.startswith("write_file")


def test_a_commit_of_another_branch_is_undone_once_that_is_checked_out(repo: Repo) -> None:
    repo.sh("echo 2 >a")
    repo.runner.call(git_commit, message="Second")
    repo.sh("git switch -qc other HEAD^")
    assert "Switch to its branch" in repo.refused()
    repo.sh("git switch -q main")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git log --format=%s; git status -s") == "First\n M a\n"


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


def test_marks_of_files_stay_when_a_commit_is_taken_back(repo: Repo) -> None:
    """Without those of a sparse checkout, the next commit would delete each file that is not checked out."""
    repo.sh("mkdir in out; echo 1 >in/f; echo 1 >out/f; git add .; git commit -qm Folders; git sparse-checkout set in")
    repo.sh("git update-index --assume-unchanged a; echo mine >a; echo 2 >in/f")
    seen = "git rev-parse HEAD; git status -s; git ls-files -v; cat a in/f"
    before = repo.sh(seen)
    assert not repo.runner.call(git_commit, message="Second").is_error
    repo.runner.take_back()
    assert repo.sh(seen) == before


def test_a_commit_is_not_taken_back_during_a_merge(repo: Repo) -> None:
    """To abort the merge would then discard what was committed."""
    repo.sh(
        "git switch -qc other; echo 2 >a; git commit -qam Other; git switch -q main; echo 2 >b; git commit -qam Main"
    )
    repo.sh("echo work >c")
    repo.runner.call(git_commit, message="Second")
    repo.sh("git merge -q --no-commit other")
    assert "was not undone. A merge is in progress." in repo.refused()
    repo.sh("git merge --abort")
    assert repo.sh("cat c") == "work\n"
    assert len(repo.runner.take_back()) == 1


def test_a_first_commit_is_not_taken_back_without_a_branch(repo: Repo) -> None:
    """Without HEAD, there would be no repository any more."""
    repo.sh("rm -rf .git; git init -q -b main")
    repo.runner.call(git_commit, message="First")
    repo.sh("git switch -q --detach")
    assert "no branch is checked out" in repo.refused()
    assert repo.sh("git log --format=%s") == "First\n"


def test_what_still_has_a_commit_that_is_taken_back_is_told(repo: Repo) -> None:
    repo.sh("echo 2 >a")
    repo.runner.call(git_commit, message="Second")
    repo.sh("git branch topic; git tag v1")
    commit = repo.sh("git rev-parse HEAD").strip()
    told = repo.runner.call(git_commit, message="Second", take_back=commit)
    assert told.text.endswith("These still have it: topic, v1.")


def test_a_commit_right_after_one_of_somebody_else_is_taken_back(repo: Repo) -> None:
    theirs = "git update-ref HEAD $(git commit-tree HEAD^{tree} -p HEAD -m Theirs)"
    repo.sh(f"printf '%s\\n' '[ -e .git/done ] || {theirs}; touch .git/done; cat' >.git/theirs")
    repo.sh("git config filter.theirs.clean 'sh .git/theirs'; echo 'a filter=theirs' >.git/info/attributes; echo 2 >a")
    assert not repo.runner.call(git_commit, message="Second").is_error
    assert repo.sh("git log --format=%s") == "Second\nTheirs\nFirst\n"
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git log --format=%s; git status -s") == "Theirs\nFirst\nM  a\n"


def test_a_commit_whose_git_is_ended_by_a_hook_is_told_and_taken_back(repo: Repo) -> None:
    repo.sh("printf '#!/bin/sh\\nkill -9 $PPID\\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit")
    repo.sh("echo part >a; git add a; echo all >a")
    before = repo.state
    told = repo.runner.call(git_commit, message="Second")
    assert not told.is_error
    assert "git itself failed afterwards, with exit code -9." in told.text
    assert repo.sh("git log --format=%s; git show HEAD:a; git status -s") == "Second\nFirst\nall\n"
    assert len(repo.runner.take_back()) == 1
    assert (repo.state, repo.sh("git show :a")) == (before, "part\n")


def test_two_undo_one_commit_at_once(repo: Repo) -> None:
    """One of them does; the other one says why not, and no commit before is lost."""
    repo.sh("echo 2 >a")
    repo.runner.call(git_commit, message="Second")
    commit, index = repo.sh("git rev-parse HEAD HEAD~^{tree}").split()
    folder = Folder(repo.project, **AUTHOR)

    async def both() -> list[object]:
        calls = [git_commit.function(folder.context, message="m", take_back=f"{commit} {index}") for _ in range(2)]
        return await asyncio.gather(*calls, return_exceptions=True)

    told = sorted(map(str, folder.run(both)))
    assert sum("was undone" in one for one in told) == 1
    assert repo.sh("git log --format=%s; git status -s") == "First\n M a\n"


@pytest.mark.parametrize("arguments", [{"target": "other"}, {"target": "new", "create_branch": True}], ids=str)
def test_a_checkout_whose_hook_fails_is_told_and_taken_back(repo: Repo, arguments: dict[str, object]) -> None:
    """git switches first, and runs the hook then."""
    repo.sh("git branch other; printf '#!/bin/sh\\necho broken >&2; exit 3\\n' >.git/hooks/post-checkout")
    repo.sh("chmod +x .git/hooks/post-checkout")
    told = repo.runner.call(git_checkout, **arguments)
    assert told.is_error
    assert (
        f"{arguments['target']} is checked out now nevertheless. To switch back: git_checkout(target='main')"
        in told.text
    )
    repo.sh("rm .git/hooks/post-checkout")
    repo.runner.take_back()
    assert repo.sh("git branch --show-current") == "main\n"


def test_a_restored_file_is_taken_back_though_a_hook_failed(repo: Repo) -> None:
    repo.sh("printf '#!/bin/sh\\nexit 3\\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; echo mine >a")
    assert repo.runner.call(git_checkout, target="HEAD", path="a").is_error
    assert repo.sh("cat a") == "1\n"
    repo.sh("rm .git/hooks/post-checkout")
    repo.runner.take_back()
    assert repo.sh("cat a") == "mine\n"


@pytest.mark.parametrize(
    "arguments", [{"target": "other"}, {"target": "HEAD^0"}, {"target": "HEAD", "path": "a"}], ids=str
)
def test_an_undo_whose_hook_fails_is_done_and_does_not_hold_up_earlier_ones(
    repo: Repo, arguments: dict[str, object]
) -> None:
    repo.sh("git branch other; printf '#!/bin/sh\\nexit 3\\n' >.git/hooks/post-checkout; chmod +x .git/hooks/*")
    repo.runner.call(write_file, path="c", content="c\n")
    repo.sh("echo mine >a")
    seen = "git symbolic-ref HEAD; git rev-parse HEAD; head -v *"
    before = repo.sh(seen)
    assert repo.runner.call(git_checkout, **arguments).is_error
    (line,) = repo.runner.take_back()
    assert line.startswith("git_checkout")
    assert repo.sh(seen) == before
    (line,) = repo.runner.take_back()
    assert line.startswith("write_file")


def test_a_restored_folder_is_as_it_was_before_and_nothing_more_of_it_is_staged(repo: Repo) -> None:
    """A snapshot has ignored files and new ones, too: staged, the next commit would have them."""
    repo.sh("mkdir d; echo .env >.gitignore; echo 1 >d/a; echo 1 >d/b; echo 1 >d/old; git add .; git commit -qm Folder")
    repo.sh("git rm -q d/old; echo 1 >d/since; git add .; git commit -qm Later")
    repo.sh("echo part >d/a; git add d/a; echo all >d/a; echo mine >d/b; echo key >d/.env; echo new >d/new")
    seen = "git status -s --ignored; git ls-files --stage; head -v d/* d/.env"
    before = repo.sh(seen)
    told = repo.runner.call(git_checkout, target="HEAD~", path="d")
    assert not told.is_error
    assert repo.sh("cat d/a d/b d/old") == "1\n1\n1\n"
    repo.runner.take_back()
    assert repo.sh(seen) == before
    repo.sh("git checkout -q HEAD -- d; echo later >d/new; git add d/new")
    (snapshot,) = re.findall(r"refs/marvin/snapshots/[\w-]+", told.text)
    assert not repo.runner.call(git_checkout, target=snapshot, path="d").is_error
    assert repo.sh("cat d/a d/b d/new; git status -s d") == "all\nmine\nnew\nMM d/a\n M d/b\nAM d/new\n"
    assert repo.sh("git show :d/new; git show :d/a") == "later\npart\n"


def test_a_restored_folder_is_taken_back_though_it_has_newer_files(repo: Repo) -> None:
    repo.sh("mkdir d; echo 1 >d/a; echo 1 >d/old; git add .; git commit -qm Folder; git rm -q d/old; echo 2 >d/a")
    repo.sh("echo 1 >d/since; git add .; git commit -qm Later")
    seen = "git status -s; head -v d/*"
    before = repo.sh(seen)
    repo.runner.call(git_checkout, target="HEAD~", path="d")
    repo.sh("echo mine >d/mine")
    assert len(repo.runner.take_back()) == 1
    repo.sh("rm d/mine")
    assert repo.sh(seen) == before


@pytest.mark.parametrize("delete", ["rm -r d", "git rm -rq d", "rm d/a"])
@pytest.mark.parametrize("path", ["d", "d/a"])
def test_what_was_deleted_before_it_was_restored_is_deleted_again(repo: Repo, delete: str, path: str) -> None:
    repo.sh(f"mkdir d; echo 1 >d/a; echo 1 >d/b; git add .; git commit -qm Folder; {delete}")
    seen = "git status -s; find . -path ./.git -prune -o -type f -print"
    before = repo.sh(seen)
    assert not repo.runner.call(git_checkout, target="HEAD", path=path).is_error
    assert repo.sh(f"ls {path}")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh(seen) == before


def test_leaving_a_branch_whose_name_is_no_utf_8_is_taken_back(repo: Repo) -> None:
    """Neither a call nor its record can name it."""
    repo.sh("git branch other; git switch -qc \"$(printf 'caf\\351')\"")
    before = repo.sh("git symbolic-ref HEAD | od -c")
    assert not repo.runner.call(git_checkout, target="other").is_error
    assert not repo.runner.call(git_checkout, target="-").is_error
    assert len(repo.runner.take_back(2)) == 2
    assert repo.sh("git symbolic-ref HEAD | od -c") == before


def test_a_branch_whose_name_is_no_utf_8_is_not_taken_for_another_one(repo: Repo) -> None:
    repo.sh("git branch other; git branch third; git switch -qc \"$(printf 'caf\\351')\"")
    assert not repo.runner.call(git_checkout, target="other").is_error
    repo.sh("git switch -q third; git switch -q other")
    assert "somebody has switched branches since then" in repo.refused()
    assert repo.sh("git branch --show-current") == "other\n"


def test_leaving_a_branch_whose_name_has_an_invisible_character_is_taken_back_by_its_name(repo: Repo) -> None:
    """As in an emoji of a family, or in words of Persian."""
    repo.sh("git branch other; git branch third; git switch -qc \"$(printf 'a\\342\\200\\215b')\"")
    assert not repo.runner.call(git_checkout, target="other").is_error
    repo.sh("git switch -q third; git switch -q other")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git symbolic-ref HEAD") == "refs/heads/a\u200db\n"


def test_a_file_of_the_name_of_head_is_committed_and_taken_back(repo: Repo) -> None:
    repo.sh("echo 1 >HEAD; echo 2 >a")
    before = repo.state
    assert not repo.runner.call(git_commit, message="Second").is_error
    assert len(repo.runner.take_back()) == 1
    assert repo.state == before


CONFLICT = (
    "git switch -qc other; echo theirs >a; git commit -qam other; git switch -q main; echo 2 >a; git commit -qam m; "
    "git merge other || true; "
)


@pytest.mark.parametrize("path", ["a", "b", "."])
def test_files_in_conflict_are_so_again_once_restoring_is_undone(repo: Repo, path: str) -> None:
    """What is staged beside them stays staged: otherwise a commit would leave out a part of the merge."""
    repo.sh(f"{CONFLICT} echo part >b; git add b; echo all >b")
    before = repo.state, repo.sh("git ls-files --stage; git diff")
    repo.runner.call(git_checkout, target="HEAD", path=path)
    repo.runner.take_back()
    assert (repo.state, repo.sh("git ls-files --stage; git diff")) == before
    assert "conflict markers" in repo.runner.call(git_commit, message="m").text


def test_a_conflict_that_was_resolved_since_stays_so(repo: Repo) -> None:
    repo.sh(CONFLICT)
    repo.runner.call(git_checkout, target="HEAD", path="a")
    repo.sh("echo resolved >a; git add a; echo 2 >a")
    repo.runner.take_back()
    assert repo.sh("git status -s; git show :a") == "MM a\nresolved\n"


def test_a_path_restored_before_the_first_commit_of_a_branch_is_taken_back(repo: Repo) -> None:
    repo.sh("git switch -q --orphan other; echo part >a; git add a; echo all >a")
    before = repo.sh("git ls-files --stage; cat a")
    repo.runner.call(git_checkout, target="main", path="a")
    repo.runner.take_back()
    assert repo.sh("git ls-files --stage; cat a") == before
