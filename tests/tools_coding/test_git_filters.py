"""Files that filters convert, such as that of Git LFS: only what the working directory has is shown and committed.

The filters are in the settings of the user: those of a repository are switched off for tools that read.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from marvin_tools_coding.git.committing import git_commit
from marvin_tools_coding.git.inspecting import git_diff
from marvin_tools_coding.git.switching import git_checkout

from .support_shell import Folder

pytestmark = pytest.mark.slow

AUTHOR = {"GIT_AUTHOR_NAME": "A U Thor", "GIT_AUTHOR_EMAIL": "a@example.org"}
AUTHOR |= {"GIT_COMMITTER_NAME": "A U Thor", "GIT_COMMITTER_EMAIL": "a@example.org"}
UPPER = "tr a-z A-Z"
DATED = "date +%s%N; cat"
"""A filter that makes something else each time."""


@pytest.fixture
def repo(tmp_path: Path) -> Folder:
    """A repository whose user has two filters: `up` is the same each time, `dated` never is."""
    root = tmp_path / "project"
    root.mkdir()
    folder = Folder(root, **AUTHOR)
    folder.sh(f"git config --global filter.up.clean '{UPPER}'; git config --global filter.dated.clean '{DATED}'")
    folder.sh("git init -qb main; printf 'one\\ntwo\\n' > a.txt; echo b > b.txt; git add .; git commit -qm first")
    return folder


def given(repo: Folder, attributes: str) -> None:
    repo.sh(f"echo '{attributes}' > .gitattributes; git add --renormalize .; git add .; git commit -qm attributes")


# Diffs


@pytest.mark.parametrize("ref", [None, "HEAD"])
def test_a_diff_shows_what_a_filter_of_the_user_makes(repo: Folder, ref: str | None) -> None:
    given(repo, "a.txt filter=up")
    repo.sh("echo mine >> a.txt; echo more >> b.txt")
    got = repo.call(git_diff, ref=ref)
    assert " TWO\n+MINE\n" in got
    assert "+more" in got
    assert "left out" not in got
    assert not list((repo.root / ".git").glob("marvin*"))


def test_a_diff_of_a_file_that_is_not_confirmed_leaves_its_lines_out(repo: Folder) -> None:
    """What cannot be compared with the file may come from elsewhere. Other files are shown."""
    given(repo, "a.txt filter=dated")
    repo.sh("echo mine >> a.txt; echo more >> b.txt")
    got = repo.call(git_diff)
    assert "diff --git a/a.txt b/a.txt\n[The lines of this file are left out: its filter" in got
    assert "mine" not in got
    assert "@@ -1 +1,2 @@\n b\n+more\n" in got


def test_a_long_diff_shows_nothing_that_was_not_compared(repo: Folder) -> None:
    """Lines that are left out make no room for lines that nobody looked at."""
    repo.sh("seq 20000 > a.txt; seq 20000 > z.txt; git add .; git commit -qm long")
    given(repo, "[ad].txt filter=dated")
    repo.sh("seq 6000 > a.txt; seq 30000 60000 > z.txt")
    got = repo.call(git_diff)
    assert "are left out" in got
    assert "bytes omitted. Pass path to see one file or folder.]" in got
    assert len(got) < 50_100
    assert "-16000" not in got


def test_a_diff_with_conflicts_shows_what_a_filter_of_the_user_makes(repo: Folder) -> None:
    given(repo, "a.txt filter=up")
    repo.sh(
        "git switch -qc o; echo o > a.txt; git commit -qam o; git switch -q main; echo m > a.txt; git commit -qam m"
    )
    repo.sh("git merge -q o > out.txt 2>&1 || true")
    assert "++=======" in repo.call(git_diff)


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="needs Git LFS")
@pytest.mark.parametrize("paths", [None, ["f.bin"]], ids=["all", "paths"])
def test_files_of_git_lfs_are_shown_committed_and_restored(repo: Folder, paths: list[str] | None) -> None:
    repo.sh("git lfs install --skip-repo; head -c 3000000 /dev/zero > f.bin; : > empty.bin")
    given(repo, "*.bin filter=lfs diff=lfs merge=lfs -text")
    repo.sh("printf x >> f.bin")
    got = repo.call(git_diff)
    assert "-size 3000000\n" in got
    assert "+size 3000001\n" in got
    assert "Committed" in repo.call(git_commit, message="m", paths=paths)
    assert "size 3000001" in repo.sh("git show HEAD:f.bin")
    repo.sh("printf y > f.bin")
    assert "were saved" in repo.call(git_checkout, target="HEAD~1", path="f.bin")
    assert (repo.root / "f.bin").stat().st_size == 3_000_000


# Commits


@pytest.mark.parametrize("paths", [None, ["c.txt"]], ids=["all", "paths"])
def test_a_filter_that_only_the_index_names(repo: Folder, paths: list[str] | None) -> None:
    """git takes attributes from the index if the working directory lacks their file, as in a sparse checkout."""
    given(repo, "*.txt filter=up")
    repo.sh("rm .gitattributes; git update-index --skip-worktree .gitattributes; echo mine > c.txt; echo a >> a.txt")
    assert "+A" in repo.call(git_diff)
    assert "Committed" in repo.call(git_commit, message="m", paths=paths)
    assert repo.sh("git show HEAD:c.txt") == "MINE\n"


@pytest.mark.parametrize("paths", [None, ["w.txt"]], ids=["all", "paths"])
def test_a_filtered_file_that_is_stored_with_other_line_ends(repo: Folder, paths: list[str] | None) -> None:
    """git keeps the line ends of a file that was stored with CRLF before `text=auto`."""
    repo.sh("printf 'A\\r\\nB\\r\\n' > w.txt; git add .; git commit -qm w")
    repo.sh("echo '*.txt text=auto filter=up' > .gitattributes; git add .gitattributes; git commit -qm attributes")
    repo.sh("printf 'c\\r\\n' >> w.txt")
    assert "+C" in repo.call(git_diff)
    assert "Committed" in repo.call(git_commit, message="m", paths=paths)
    assert repo.sh("git show HEAD:w.txt") == "A\r\nB\r\nC\r\n"


# Snapshots


def test_a_file_is_saved_before_a_checkout_whatever_its_filter_makes(repo: Folder) -> None:
    given(repo, "a.txt filter=dated")
    repo.sh("echo mine > a.txt; chmod +x a.txt")
    told = repo.call(git_checkout, target="HEAD", path="a.txt")
    assert "mine" not in (repo.root / "a.txt").read_text()
    saved = told.partition("target='")[2].partition("'")[0]
    assert repo.sh(f"git show {saved}:a.txt").splitlines()[1:] == ["mine"]
    repo.call(git_checkout, target=saved, path="a.txt")
    assert "mine" in (repo.root / "a.txt").read_text()
    assert (repo.root / "a.txt").stat().st_mode & 0o100


# Other objects


@pytest.mark.parametrize("paths", [None, ["a.txt"]], ids=["all", "paths"])
def test_a_relative_folder_of_objects(repo: Folder, paths: list[str] | None) -> None:
    """As a user may set it, and as `child_env:` hands it on."""
    given(repo, "a.txt filter=up")
    repo.env["GIT_OBJECT_DIRECTORY"] = ".git/objects"
    repo.sh("echo mine > a.txt; git add .")
    assert "+MINE" in repo.call(git_diff, staged=True)
    repo.sh("echo again > a.txt")
    assert "+AGAIN" in repo.call(git_diff)
    repo.call(git_commit, message="m", paths=paths)
    assert repo.sh("git show HEAD:a.txt") == "AGAIN\n"


# Filters that use git themselves


RECORDING = """made=$(date +%s%N | git commit-tree $(git mktree < /dev/null))
git update-ref refs/seen $made 2> /dev/null
tr a-z A-Z
"""


def test_a_filter_may_keep_records_of_its_own_in_the_repository(repo: Folder) -> None:
    """As git-annex does. No ref leads to an object that is gone."""
    (repo.root / ".git" / "record").write_text(RECORDING)
    repo.sh("git config --global filter.annex.clean 'sh .git/record'")
    given(repo, "a.txt filter=annex text=auto")
    repo.sh("echo mine >> a.txt")
    assert "+MINE" in repo.call(git_diff)
    assert repo.sh("git fsck 2>&1 | grep -v ^dangling || true") == ""
    assert "Committed" in repo.call(git_commit, message="m")
    assert repo.sh("git fsck 2>&1 | grep -v ^dangling || true") == ""
    repo.sh("echo more >> a.txt")
    repo.call(git_checkout, target="HEAD", path="a.txt")
    assert repo.sh("git fsck 2>&1 | grep -v ^dangling || true") == ""
    repo.sh("git log refs/seen")
