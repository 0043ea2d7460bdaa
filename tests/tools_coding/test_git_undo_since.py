"""Taking back commits and checkouts after somebody has changed, staged or removed something else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_tools_coding.files.edit import write_file
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.switching import git_checkout

from .test_git_undo import AUTHOR, Repo

pytestmark = pytest.mark.slow


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    made = Repo(tmp_path)
    yield made
    made.runner.close()


@pytest.mark.parametrize("when", ["before", "since"])
def test_what_was_staged_in_part_is_staged_so_again_beside_other_files(repo: Repo, when: str) -> None:
    repo.sh("echo part >a; git add a; echo all >a; echo 2 >b")
    repo.sh("git add b" if when == "before" else "true")
    assert not repo.runner.call(git_commit, message="Second", paths=["a"]).is_error
    repo.sh("git add b")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git show :a; git status -s") == "part\nMM a\nM  b\n"


@pytest.mark.parametrize("since", ["git switch -qc mine", "git switch -q --detach; git branch mine"])
def test_only_the_branch_on_which_the_commit_was_made_is_moved(repo: Repo, since: str) -> None:
    repo.sh("echo 2 >a")
    assert not repo.runner.call(git_commit, message="Second").is_error
    repo.sh(since)
    before = repo.state
    assert "was made on another branch" in repo.refused()
    assert repo.state == before
    repo.sh("git switch -q main")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git log --format=%s main; git log --format=%s mine") == "First\nSecond\nFirst\n"


def test_a_commit_without_a_branch_is_taken_back_where_a_branch_was_created_since(repo: Repo) -> None:
    repo.sh("git switch -q --detach; echo 2 >a")
    assert not repo.runner.call(git_commit, message="Second").is_error
    repo.sh("git branch mine")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git log --format=%s HEAD; git log --format=%s mine") == "First\nSecond\nFirst\n"


def test_a_branch_into_which_the_commit_was_merged_is_not_moved(repo: Repo) -> None:
    repo.sh("git switch -qc topic; echo 2 >a")
    assert not repo.runner.call(git_commit, message="Second").is_error
    repo.sh("git switch -q main; git merge -q topic")
    before = repo.state
    assert "was made on another branch" in repo.refused()
    assert repo.state == before
    repo.sh("git switch -q topic")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git log --format=%s main; git log --format=%s topic") == "Second\nFirst\nFirst\n"


@pytest.mark.parametrize(
    "since", ["git branch -m trunk", "git switch -qc trunk; git branch -D main", "git branch other"]
)
def test_a_commit_is_taken_back_whatever_its_branch_is_called_now(repo: Repo, since: str) -> None:
    repo.sh("echo 2 >a")
    assert not repo.runner.call(git_commit, message="Second").is_error
    repo.sh(since)
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git log --format=%s; git status -s") == "First\n M a\n"


def test_a_new_file_that_is_to_be_added_stays_so_if_a_commit_of_others_is_taken_back(repo: Repo) -> None:
    repo.sh("echo new >n; git add -N n; echo 2 >a")
    assert not repo.runner.call(git_commit, message="Second", paths=["a"]).is_error
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git status -s") == " M a\n A n\n"


@pytest.mark.parametrize("mine", ["echo mine >d/a", "true"], ids=["changed", "clean"])
def test_files_that_were_not_restored_stay_as_they_have_become_since(repo: Repo, mine: str) -> None:
    repo.sh("mkdir d; echo 1 >d/a; git add .; git commit -qm One; echo 2 >d/a; echo 2 >d/b; git add .")
    repo.sh(f"git commit -qm Two; echo draft >d/new; {mine}")
    before = repo.sh("cat d/a")
    assert not repo.runner.call(git_checkout, target="HEAD~", path="d").is_error
    assert repo.sh("cat d/a") == "1\n"
    repo.sh("echo since >d/b; echo since >d/new")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("cat d/a d/b d/new") == f"{before}since\nsince\n"


@pytest.mark.parametrize("mine", ["echo mine >a", "true"], ids=["changed", "clean"])
def test_what_was_restored_and_committed_since_is_not_staged_as_reverted(repo: Repo, mine: str) -> None:
    repo.sh(f"echo 2 >a; git commit -qam Second; {mine}; echo part >b; git add b; echo all >b")
    before = repo.sh("cat a")
    assert not repo.runner.call(git_checkout, target="HEAD~", path=".").is_error
    repo.sh("git commit -qm Third a")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git status -s; cat a; git show :b; cat b") == f" M a\nMM b\n{before}part\nall\n"


def test_a_file_in_place_of_a_restored_folder_is_there_again(repo: Repo) -> None:
    repo.sh("mkdir d; echo 1 >d/x; git add .; git commit -qm Folder; rm -r d; echo mine >d")
    assert not repo.runner.call(git_checkout, target="HEAD", path="d").is_error
    repo.sh("echo since >d/since")
    assert "d/since is new since then" in repo.refused()
    repo.sh("rm d/since")
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("cat d") == "mine\n"


GONE = {
    "left": ("git switch -qc gone", {"target": "main"}, "git branch -D gone"),
    "made": ("true", {"target": "gone", "create_branch": True}, "git switch -q main; git branch -D gone"),
    "saved": (
        "echo mine >a",
        {"target": "HEAD", "path": "a"},
        "git update-ref -d $(git for-each-ref --format='%(refname)' refs/marvin)",
    ),
}


@pytest.mark.parametrize(("before", "arguments", "since"), GONE.values(), ids=GONE)
def test_a_checkout_that_can_never_be_undone_does_not_hold_up_earlier_calls(
    repo: Repo, before: str, arguments: dict[str, object], since: str
) -> None:
    repo.runner.call(write_file, path="c", content="c\n")
    repo.sh(before)
    assert not repo.runner.call(git_checkout, **arguments).is_error
    repo.sh(since)
    told = repo.refused()
    assert "any more" in told
    assert "It is no longer listed" in told
    (line,) = repo.runner.take_back()
    assert line.startswith("write_file")


def test_a_commit_that_is_made_before_its_time_is_up_is_taken_back(tmp_path: Path) -> None:
    """The ledger has it, although the call was stopped during a hook."""
    config = tmp_path / "home/.config/marvin/config.yaml"
    repo = Repo(tmp_path)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("timeouts:\n  tool: 5\n")
    repo.again(env=AUTHOR, answers=["yes"])
    repo.sh(
        "printf '#!/bin/sh\\nexec sleep 300\\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit; echo 2 >a"
    )
    told = repo.runner.call(git_commit, message="Second")
    assert "The call was cancelled once the commit was made." in told.text
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("git log --format=%s; git status -s") == "First\n M a\n"
    repo.runner.close()


@pytest.mark.parametrize("target", ["HEAD", "HEAD~1"])
def test_what_was_appended_to_a_restored_file_is_refused_with_a_diff(repo: Repo, target: str) -> None:
    repo.sh("echo 0 >>a; git commit -qam More; echo wip >a")
    assert not repo.runner.call(git_checkout, target=target, path="a").is_error
    repo.sh("echo USER >>a")
    before = repo.state
    said = repo.refused()
    assert "a was changed since then. Save that change first" in said
    assert "+USER" in said
    assert repo.state == before


@pytest.mark.parametrize(
    ("since", "shown"),
    [
        ("echo USER >>a; echo USER >>b", [" 2\n+USER"]),
        ("seq 100000 >a", ["+1\n", "bytes omitted"]),
        ("printf '\\0' >a", ["Binary files a/a and b/a differ"]),
        ("echo USER >a; git add a", ["+USER"]),
        ("echo USER >n", ["untracked working tree files"]),
    ],
)
def test_switching_back_over_what_was_changed_since_is_refused_with_a_diff(
    repo: Repo, since: str, shown: list[str]
) -> None:
    repo.sh(
        "echo 1 >n; git add n; git commit -qm N; git switch -qc other; git rm -q n; echo 2 >a; git commit -qam Other"
    )
    repo.sh("git switch -q main")
    assert not repo.runner.call(git_checkout, target="other").is_error
    repo.sh(since)
    before = repo.state
    said = repo.refused()
    assert "Nothing was switched" in said
    assert [text for text in shown if text not in said] == []
    assert "a/b" not in said
    assert len(said) < 12_000
    assert repo.state == before


def test_a_file_that_was_brought_back_and_grew_is_not_removed(repo: Repo) -> None:
    repo.sh("mkdir d; echo 1 >d/x; echo 1 >d/y; git add d; git commit -qm D; rm d/x")
    assert not repo.runner.call(git_checkout, target="HEAD", path="d").is_error
    repo.sh("echo USER >>d/x")
    assert "d was changed since then" in repo.refused()
    assert repo.sh("cat d/x") == "1\nUSER\n"


def test_a_repository_in_a_restored_folder_holds_up_no_undo(repo: Repo) -> None:
    """git restores nothing in it, and its files were there before."""
    repo.sh("mkdir f; echo 1 >f/x; git add f; git commit -qm Second; echo 2 >f/x; git init -q f/own")
    repo.sh("cd f/own; echo n >n; git add n; git commit -qm Own")
    assert not repo.runner.call(git_checkout, target="HEAD", path="f").is_error
    assert len(repo.runner.take_back()) == 1
    assert repo.sh("cat f/x f/own/n; git status -s") == "2\nn\n M f/x\n?? f/own/\n"
