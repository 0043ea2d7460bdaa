"""What a checkout may change, whatever its hooks and filters do, and what errors of git name."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marvin_core import ToolResult
from marvin_tools_coding.git import write_inside
from marvin_tools_coding.git.here import without_names_elsewhere
from marvin_tools_coding.git.switching import git_checkout

from .support_shell import Folder, text

AUTHOR = {"GIT_AUTHOR_NAME": "A U Thor", "GIT_AUTHOR_EMAIL": "a@example.org"}
AUTHOR |= {"GIT_COMMITTER_NAME": "A U Thor", "GIT_COMMITTER_EMAIL": "a@example.org"}
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is a part of Linux")


@pytest.fixture
def repo(tmp_path: Path) -> Folder:
    """A repository with two branches."""
    root = tmp_path / "project"
    root.mkdir()
    folder = Folder(root, **AUTHOR)
    folder.sh("git init -qb main; echo one > a.txt; git add .; git commit -qm first; git switch -qc other")
    folder.sh("echo two > a.txt; mkdir sub; echo b > sub/b.txt; git add .; git commit -qm second; git switch -q main")
    return folder


def hook(repo: Folder, script: str) -> None:
    file = repo.root / ".git" / "hooks" / "post-checkout"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def failed(folder: Folder, **arguments: str) -> str:
    """What the model reads of a checkout that has done something, and then failed."""
    result = folder.run(lambda: folder.called(git_checkout, **arguments))
    assert isinstance(result, ToolResult)
    assert result.is_error
    return text(result)


def left(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.iterdir())


def test_a_hook_changes_files_here_and_temporary_ones(repo: Folder, tmp_path: Path) -> None:
    hook(repo, 'echo made > made.txt; echo kept > "$TMPDIR/x"; mv "$TMPDIR/x" moved.txt; echo $TMPDIR > where.txt')
    repo.call(git_checkout, target="other")
    assert [(repo.root / name).read_text() for name in ("a.txt", "sub/b.txt", "made.txt")] == ["two\n", "b\n", "made\n"]
    assert (repo.root / "moved.txt").read_text() == "kept\n"
    where = Path((repo.root / "where.txt").read_text().strip())
    assert not where.exists() or sys.platform != "linux"
    assert left(tmp_path) == ["home", "project"]


@on_linux
def test_a_hook_that_changes_other_files_fails_and_the_error_says_what_to_do(repo: Folder, tmp_path: Path) -> None:
    hook(repo, f"echo x > {tmp_path}/elsewhere.txt")
    told = failed(repo, target="other")
    assert "Permission denied" in told
    assert "run_command: git switch, or git checkout" in told
    assert left(tmp_path) == ["home", "project"]


@on_linux
@pytest.mark.parametrize("temporary", ["missing", "relative/folder", "file"])
def test_git_needs_no_folder_for_temporary_files(tmp_path: Path, repo: Folder, temporary: str) -> None:
    (tmp_path / "file").touch()
    given = temporary if temporary.startswith("relative") else str(tmp_path / temporary)
    folder = Folder(repo.root, **AUTHOR, TMPDIR=given)
    folder.call(git_checkout, target="other")
    assert (folder.root / "a.txt").read_text() == "two\n"


@on_linux
def test_a_filter_that_cannot_change_other_files_is_told(repo: Folder, tmp_path: Path) -> None:
    """git goes on without it, with another content."""
    repo.sh(
        f"git config filter.up.smudge 'tee {tmp_path}/elsewhere.txt'; echo 'a.txt filter=up' > .git/info/attributes"
    )
    told = text(repo.call(git_checkout, target="other"))
    assert "git_checkout changes files in the working directory and in .git only" in told
    assert left(tmp_path) == ["home", "project"]


@on_linux
def test_the_way_back_is_told_if_a_hook_fails_after_a_file_was_restored(repo: Folder, tmp_path: Path) -> None:
    hook(repo, "exit 3")
    (repo.root / "a.txt").write_text("work\n")
    told = failed(repo, target="HEAD", path="a.txt")
    assert "a.txt had uncommitted changes, which were saved. To restore them:" in told
    (snapshot,) = repo.sh("git for-each-ref --format='%(refname)' | grep -v heads").split()
    assert snapshot.rpartition("/")[2] in told
    assert repo.sh(f"git show {snapshot}:a.txt") == "work\n"


@on_linux
def test_the_parent_of_a_folder_with_the_name_that_git_uses_for_worktrees_stays_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "parent" / "worktrees"
    root.mkdir(parents=True)
    folder = Folder(root, **AUTHOR)
    folder.sh(
        "git init -qb main; mkdir part; echo 1 > part/a.txt; git add .; git commit -qm first; echo 2 > part/a.txt"
    )
    hook(folder, f"echo x > {tmp_path}/parent/sibling.txt")
    part = Folder(root / "part", **AUTHOR)
    assert "Permission denied" in failed(part, target="HEAD", path="a.txt")
    assert left(tmp_path / "parent") == ["home", "worktrees"]


@on_linux
def test_nothing_is_left_of_a_checkout_that_is_ended(repo: Folder, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program = [sys.executable, "-I", "-S", "-B", str(Path(write_inside.__file__)), str(repo.root), "--"]
    env = {"TMPDIR": str(temporary), "PATH": os.environ["PATH"]}
    with subprocess.Popen([*program, "sh", "-c", "echo ready; sleep 60"], stdout=subprocess.PIPE, env=env) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"ready\n"
        assert len(left(temporary)) == 1
        running.terminate()
        subprocess.run(["pkill", "-P", str(running.pid)], check=False)
    assert left(temporary) == []


@on_linux
def test_a_worktree_is_checked_out_whose_repository_lies_elsewhere(repo: Folder, tmp_path: Path) -> None:
    repo.sh("git worktree add -q ../tree -b third")
    tree = Folder(tmp_path / "tree", **AUTHOR)
    tree.call(git_checkout, target="other")
    assert tree.sh("git status --porcelain --branch") == "## other\n"
    tree.call(git_checkout, target="main~0", path="a.txt")
    assert (tree.root / "a.txt").read_text() == "one\n"


def test_a_part_of_a_repository_is_restored(repo: Folder) -> None:
    repo.sh("git switch -q other; echo changed > sub/b.txt")
    part = Folder(repo.root / "sub", **AUTHOR)
    part.call(git_checkout, target="HEAD", path="b.txt")
    assert (part.root / "b.txt").read_text() == "b\n"


@pytest.mark.parametrize(
    "said",
    [
        'error: open("gone/secret.pem"): No such file or directory',
        "error: unable to index file 'gone/secret.pem'",
        "fatal: unable to stat 'gone/secret.pem': No such file or directory",
        "warning: could not open 'link/secret.pem'",
        "warning: could not open directory 'gone/secret-folder/': Permission denied",
        "error: could not read 'link/it's a secret.pem'",
        "error: unable to index file 'gone/it's: secret.pem'\nfatal: adding files failed",
        "error: 'link/secret/' does not have a commit checked out\nfatal: adding files failed",
        "warning: adding embedded git repository: link/secret place",
        "warning: in the working copy of 'link/secret', LF will be replaced by CRLF the next time Git touches it",
        "error: link/secret pipe: can only add regular files, symbolic links or git-directories",
        'error: readlink("link/secret"): Permission denied',
        "error: short read while indexing gone/secret",
        "fatal: CRLF would be replaced by LF in gone/secret",
        "error: failed to encode 'gone/secret' from UTF-16 to UTF-8",
        "fatal: gone/secret: clean filter 'up' failed",
    ],
)
def test_an_error_names_no_file_that_is_not_here(tmp_path: Path, said: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path.parent)
    told = without_names_elsewhere(tmp_path, said)
    assert "a file that is not here" in told
    assert "secret" not in told


@pytest.mark.parametrize(
    "said",
    [
        'error: open("part/own.txt"): Permission denied',
        "error: unable to index file 'own.txt'",
        "fatal: unable to read 'part'",
        "error: pathspec 'nothing' did not match any file(s) known to git",
        "fatal: Unable to create '/repository/.git/index.lock': File exists.",
        "fatal: could not open '/etc/gitattributes'",
        "error: 'part/' does not have a commit checked out\nfatal: adding files failed",
        "warning: in the working copy of 'own.txt', LF will be replaced by CRLF the next time Git touches it",
        "error: own.txt: can only add regular files, symbolic links or git-directories",
        "fatal: 'topic/new' is already checked out at '/repository'",
        "error: Your local changes to the following files would be overwritten by checkout:\n\tgone.txt",
        "cp: cannot stat 'dist/bundle.js': No such file or directory",
    ],
)
def test_an_error_names_what_is_here_and_what_is_no_file_of_the_folder(tmp_path: Path, said: str) -> None:
    root = tmp_path / "part"
    root.mkdir()
    for name in ("own.txt", "part"):
        (root / name).touch()
    assert without_names_elsewhere(root, said) == said


@on_linux
@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SEGV", 11)])
def test_a_git_that_is_killed_is_told_as_such(repo: Folder, name: str, number: int) -> None:
    hook(repo, f"kill -{name} $PPID")
    told = failed(repo, target="other")
    assert f"ended git (signal {number})" in told
    assert "other is checked out now nevertheless" in told


@on_linux
def test_a_folder_for_temporary_files_that_was_left_is_removed_a_day_later(repo: Folder, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    day_ago = time.time() - 90_000
    for name in ("marvin-git-old", "marvin-git-new", "other-old"):
        (temporary / name / "sub").mkdir(parents=True)
        if name.endswith("old"):
            os.utime(temporary / name, (day_ago, day_ago))
    Folder(repo.root, **AUTHOR, TMPDIR=str(temporary)).call(git_checkout, target="other")
    assert left(temporary) == ["marvin-git-new", "other-old"]
