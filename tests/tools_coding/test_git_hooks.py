"""Commits whose hooks stage something: it is committed only if the files have it, whatever the call staged itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marvin_core import ToolError, ToolResult
from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.history import git_show
from marvin_tools_coding.git.inspecting import git_diff
from marvin_tools_coding.git.switching import git_checkout

from .support_shell import Folder

AUTHOR = {"GIT_AUTHOR_NAME": "A U Thor", "GIT_AUTHOR_EMAIL": "a@example.org"}
AUTHOR |= {"GIT_COMMITTER_NAME": "A U Thor", "GIT_COMMITTER_EMAIL": "a@example.org"}
ELSEWHERE = "git update-index --add --cacheinfo 100644,$(echo elsewhere | git hash-object -w --stdin),b.txt"
"""A hook stages what no file has, as one does whose `git add` reads another folder."""
CONFLICT = (
    "git switch -qc o; echo o > a.txt; git commit -qam o; git switch -q main; echo m > a.txt; git commit -qam m; "
)
CONFLICT += "git merge -q o > out.txt 2>&1 || echo both > a.txt; rm out.txt"
CLEAN = "git switch -qc o; echo o > o.txt; git add .; git commit -qm o; git switch -q main; echo m > m.txt; git add ."
CLEAN += "; git commit -qm m; git merge -q --no-commit o"
PICK = CONFLICT.replace("git merge -q o", "git cherry-pick o")


@pytest.fixture
def repo(tmp_path: Path) -> Folder:
    """A repository with one commit of two files."""
    root = tmp_path / "project"
    root.mkdir()
    folder = Folder(root, **AUTHOR)
    folder.sh("git init -qb main; printf 'one\\ntwo\\n' > a.txt; echo b > b.txt; git add .; git commit -qm first")
    return folder


def hook(repo: Folder, script: str, name: str = "pre-commit") -> None:
    file = repo.root / ".git" / "hooks" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_what_a_hook_stages_from_elsewhere_is_not_committed_with_what_was_staged(repo: Folder) -> None:
    hook(repo, ELSEWHERE)
    repo.sh("echo x > a.txt; git add a.txt; echo y > a.txt")
    head = repo.sh("git rev-parse HEAD")
    told = repo.error(git_commit, message="m", add_all=False)
    assert "The commit was undone: git stored other content of b.txt than is there." in told
    assert repo.sh("git rev-parse HEAD") == head
    assert repo.sh("git status --porcelain") == "MM a.txt\n"
    assert repo.sh("git show :a.txt") == "x\n"


@pytest.mark.parametrize("name", ["pre-commit", "post-commit"])
def test_a_hook_commits_in_another_repository(repo: Folder, name: str) -> None:
    """With an index of its own for the call, git would use that there, too."""
    repo.sh("git init -q ../other; git -C ../other commit -q --allow-empty -m first; echo part > b.txt; git add b.txt")
    hook(repo, "cd ../other; echo x > x; git add x; git commit -qm theirs", name)
    assert "Committed" in repo.call(git_commit, message="m")
    assert repo.sh("git status -s; git -C ../other status -s; git -C ../other log --format=%s") == "theirs\nfirst\n"


def test_a_commit_that_somebody_else_makes_right_after_is_not_undone(repo: Folder) -> None:
    hook(repo, ELSEWHERE)
    theirs = '[ -n "$THEIRS" ] || THEIRS=1 git commit -q --allow-empty --no-verify -m theirs'
    hook(repo, theirs, "post-commit")
    repo.sh("echo x > a.txt")
    told = repo.error(git_commit, message="ours")
    assert "was made, but git stored other content of b.txt than is there." in told
    assert repo.sh("git log --format=%s") == "theirs\nours\nfirst\n"
    assert repo.sh("git reflog --format=%gs | head -1") == "commit: theirs\n"


@pytest.mark.parametrize("is_first", [False, True], ids=["later", "first"])
def test_a_commit_that_was_undone_is_not_shown_by_the_reflog(repo: Folder, *, is_first: bool) -> None:
    """It has what git read elsewhere, and the reflog names it."""
    repo.sh(
        f"{'rm -rf .git; git init -qb main' if is_first else 'git switch -qc topic'}; echo x > a.txt; git add a.txt"
    )
    hook(repo, ELSEWHERE)
    assert "The commit was undone" in repo.error(git_commit, message="m", add_all=False)
    (repo.root / ".git/hooks/pre-commit").unlink()
    assert "Committed" in repo.call(git_commit, message="m")
    for ref in ("HEAD@{1}", "HEAD@{2}", "main@{1}", "topic@{1}", "topic@{2}", "@{1}", "@{2}"):
        try:
            told = repo.call(git_show, ref=ref)
        except ToolError as error:
            told = str(error)
        assert "elsewhere" not in told
    assert "elsewhere" not in repo.sh("git log --patch --all --reflog")


def test_what_a_hook_formats_and_stages_is_committed_with_what_was_staged(repo: Folder) -> None:
    hook(repo, "tr a-z A-Z < a.txt > n; mv n a.txt; git add a.txt; git rm -q --cached b.txt; echo n > n; git add n")
    repo.sh("echo x > a.txt; git add a.txt")
    assert "Committed" in repo.call(git_commit, message="m", add_all=False)
    assert repo.sh("git show HEAD:a.txt HEAD:n; git ls-files") == "X\nn\na.txt\nn\n"


@pytest.mark.parametrize("arguments", [{}, {"paths": ["x.py"]}, {"add_all": False}], ids=["all", "paths", "staged"])
def test_a_hook_finds_files_by_patterns(repo: Folder, arguments: dict[str, Any]) -> None:
    hook(repo, "git diff --cached --name-only -- '*.py'; exit 1")
    repo.sh("echo x > x.py; git add x.py; echo y > y.txt")
    assert "x.py" in repo.error(git_commit, message="m", **arguments).partition("Files:")[0]


def test_a_hook_puts_aside_what_is_not_staged(repo: Folder) -> None:
    hook(repo, "git stash push -q --keep-index --include-untracked; git reset -q --hard; git stash pop -q --index")
    repo.sh("echo staged > a.txt; git add a.txt; echo more >> a.txt; echo new > new.txt")
    assert "Committed" in repo.call(git_commit, message="m", add_all=False)
    assert repo.sh("git stash list; git status --porcelain; cat a.txt") == " M a.txt\n?? new.txt\nstaged\nmore\n"


@pytest.mark.parametrize("name", ["*.txt", ":(top)a.txt", ":!a.txt"])
def test_a_path_is_no_pattern(repo: Folder, name: str) -> None:
    repo.sh(f"echo 2 > a.txt; echo new > '{name}'")
    assert "Committed" in repo.call(git_commit, message="m", paths=[name])
    assert repo.sh("git status --porcelain") == " M a.txt\n"
    repo.sh(f"echo 2 > '{name}'")
    assert "Restored" in repo.call(git_checkout, target="HEAD", path=name)
    assert repo.sh("git status --porcelain") == " M a.txt\n"


def test_an_error_names_the_path_as_it_was_given(repo: Folder) -> None:
    told = repo.error(git_commit, message="m", paths=["missing.txt"])
    assert "pathspec 'missing.txt' did not match" in told


def test_what_a_hook_formats_of_some_paths_is_not_staged_as_reverted(repo: Folder) -> None:
    hook(repo, "sed -i 's/ *$//' b.txt; git add b.txt")
    repo.sh("echo part > a.txt; git add a.txt; echo more >> a.txt; echo 'blank  ' > b.txt")
    result = repo.run(lambda: repo.called(git_commit, message="m", paths=["b.txt"]))
    assert isinstance(result, ToolResult)
    assert "not staged any more" not in str(result.content)
    assert repo.sh("git status --porcelain; git show HEAD:b.txt") == "MM a.txt\nblank\n"
    assert result.undo is not None
    repo.call(git_commit, **result.undo.arguments)
    assert repo.sh("git status --porcelain; git show :a.txt; cat b.txt") == "MM a.txt\n M b.txt\npart\nblank\n"


def test_what_a_hook_stages_beside_some_paths_is_not_staged_as_reverted(repo: Folder) -> None:
    """It has an index of its own, and the next commit of what is staged would take both files back."""
    hook(repo, "echo built > b.txt; echo new > new.txt; git add b.txt new.txt")
    repo.sh("echo part > c.txt; git add .; git commit -qm c --no-verify; echo x > c.txt; git add c.txt; echo y > c.txt")
    repo.sh("echo 2 > a.txt")
    result = repo.run(lambda: repo.called(git_commit, message="m", paths=["a.txt"]))
    assert isinstance(result, ToolResult)
    assert repo.sh("git status --porcelain; git show HEAD:b.txt HEAD:new.txt :c.txt") == "MM c.txt\nbuilt\nnew\nx\n"
    assert result.undo is not None
    repo.call(git_commit, **result.undo.arguments)
    assert repo.sh("git status --porcelain") == " M a.txt\n M b.txt\nMM c.txt\n?? new.txt\n"


FORMAT_STAGED = """git diff > .git/rest; git checkout -q -- a.txt
sed -i 's/  */ /g' a.txt; git add a.txt
git apply --unidiff-zero --recount .git/rest"""


def test_what_a_hook_formats_of_a_file_staged_in_part_is_committed(repo: Folder) -> None:
    """As lint-staged does it: it puts aside what is not staged, formats, stages, and applies the rest again."""
    repo.sh("git config diff.context 0; printf '1\\n2\\n3\\n4\\n' > a.txt; git commit -qam numbers")
    hook(repo, FORMAT_STAGED)
    repo.sh("printf 'one   1\\n2\\n3\\n4\\n' > a.txt; git add a.txt; printf 'one   1\\n2\\n3\\nlast\\n' > a.txt")
    staged = repo.sh("git show :a.txt")
    result = repo.run(lambda: repo.called(git_commit, message="m", add_all=False))
    assert isinstance(result, ToolResult)
    assert repo.sh("git show HEAD:a.txt; git status --porcelain") == "one 1\n2\n3\n4\n M a.txt\n"
    assert repo.sh("cat a.txt") == "one 1\n2\n3\nlast\n"
    assert result.undo is not None
    repo.call(git_commit, **result.undo.arguments)
    assert repo.sh("git show :a.txt") == staged


@pytest.mark.parametrize("change", ["echo elsewhere >> a.txt", "rm a.txt; ln -s 2 a.txt"], ids=["lines", "link"])
def test_what_a_hook_adds_to_a_file_staged_in_part_is_not_committed(repo: Folder, change: str) -> None:
    hook(repo, f"cp a.txt .git/kept; {change}; git add a.txt; rm a.txt; cp .git/kept a.txt")
    repo.sh("echo staged > a.txt; git add a.txt; echo 2 >> a.txt")
    assert "The commit was undone" in repo.error(git_commit, message="m", add_all=False)
    assert repo.sh("git show :a.txt; git status --porcelain; cat a.txt") == "staged\nMM a.txt\nstaged\n2\n"


def test_what_is_staged_in_part_is_committed_beside_a_hook(repo: Folder) -> None:
    hook(repo, "git add b.txt")
    repo.sh("echo staged > a.txt; git add a.txt; echo more >> a.txt; echo x > b.txt")
    assert "Committed" in repo.call(git_commit, message="m", add_all=False)
    assert repo.sh("git show HEAD:a.txt HEAD:b.txt") == "staged\nx\n"


@pytest.mark.parametrize("add_all", [True, False], ids=["all", "staged"])
@pytest.mark.parametrize("script", [CONFLICT, CLEAN, PICK], ids=["conflict", "clean", "cherry-pick"])
def test_what_a_hook_stages_from_elsewhere_is_not_merged(repo: Folder, script: str, *, add_all: bool) -> None:
    """The merge is still in progress then, and can be completed."""
    repo.sh(f"{script}; {'true' if add_all else 'git add .'}")
    head = repo.sh("git rev-parse HEAD")
    for name in ("pre-commit", "pre-merge-commit"):
        hook(repo, ELSEWHERE, name)
    assert "The commit was undone" in repo.error(git_commit, message="m", add_all=add_all)
    assert repo.sh("git rev-parse HEAD") == head
    assert "elsewhere" not in repo.sh("git diff HEAD; git diff --cached")
    repo.sh("rm .git/hooks/*")
    assert "Committed" in repo.call(git_commit, message="m")
    assert len(repo.sh("git show -s --format=%P").split()) == (1 if script is PICK else 2)
    assert repo.sh("git status --porcelain") == ""


@pytest.mark.parametrize("add_all", [True, False], ids=["all", "staged"])
def test_what_a_hook_stages_from_elsewhere_does_not_stay_staged(repo: Folder, *, add_all: bool) -> None:
    """Also if it refuses the commit, and if it runs after it."""
    hook(repo, f"{ELSEWHERE}; exit 1")
    repo.sh("echo x > a.txt; git add a.txt")
    repo.error(git_commit, message="m", add_all=add_all)
    assert "elsewhere" not in repo.call(git_diff, staged=True)
    assert repo.sh("git show :a.txt") == "x\n"
    (repo.root / ".git/hooks/pre-commit").unlink()
    hook(repo, ELSEWHERE, "post-commit")
    repo.call(git_commit, message="m", add_all=add_all)
    assert "elsewhere" not in repo.call(git_diff, staged=True)


def test_what_is_in_no_commit_is_not_shown(repo: Folder) -> None:
    """What git read elsewhere stays among its objects after a commit was undone."""
    hook(repo, ELSEWHERE)
    repo.sh("echo x > a.txt; git add a.txt")
    repo.error(git_commit, message="m", add_all=False)
    name = repo.sh("echo elsewhere | git hash-object --stdin").strip()
    assert repo.sh(f"git cat-file blob {name}") == "elsewhere\n"
    for ref in (name, f"{name}^{{blob}}", f"{name}..HEAD"):
        assert "elsewhere" not in repo.error(git_diff, ref=ref)
    for ref in (name, f"{name}^{{blob}}", ":b.txt", "HEAD:b.txt"):
        assert "elsewhere" not in repo.error(git_show, ref=ref)
