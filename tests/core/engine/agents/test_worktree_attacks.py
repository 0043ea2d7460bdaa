"""Repositories that are made to run something, or to lead elsewhere, when a worktree is made of them."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from marvin_core.api.errors import ToolError
from tests.support.repositories import TestRepository
from tests.support.swapping import swapped


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    """A repository."""
    return TestRepository(tmp_path / "home")


def test_no_hook_and_no_monitor_runs(repository: TestRepository, tmp_path: Path) -> None:
    """Whatever hooks there are, of the repository or where its settings say, and whatever watches its files."""
    sign = tmp_path / "ran"
    script = f"#!/bin/sh\necho $0 >> {sign}\n"
    names = "pre-commit commit-msg post-commit post-checkout post-merge pre-merge-commit reference-transaction"
    for folder in (repository.root / ".git/hooks", repository.home / "hooks"):
        for name in [*names.split(), "prepare-commit-msg", "post-index-change", "pre-auto-gc"]:
            path = repository.write(name, script, folder)
            path.chmod(0o755)
    monitor = repository.write("monitor", script, repository.home)
    monitor.chmod(0o755)
    for setting in (f"core.hooksPath={repository.home}/hooks", f"core.fsmonitor={monitor}", f"gpg.program={monitor}"):
        repository.git("config", *setting.split("=", 1))
    repository.git("config", "commit.gpgSign", "true")
    repository.git("config", "core.sshCommand", str(monitor))

    def work(folder: Path) -> None:
        (folder / "a.txt").write_text("changed\n")
        (repository.root / "b.txt").write_text("main\n")
        settings = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false")
        repository.git(*settings, "commit", "--quiet", "-am", "Main")
        sign.unlink(missing_ok=True)

    assert "merged into main" in repository.agent(work)
    assert not sign.exists()


def test_names_that_are_meant_to_be_options_or_patterns(repository: TestRepository) -> None:
    """Each is a name; also behind a newline, in another encoding, or with a space at its end."""
    names = ["-rf", "--help", ":(top)x", "*.txt", "a\nb", "tab\there", " lead", "trail ", "ü", '"quoted"', "x\x1b[31m"]

    def work(folder: Path) -> None:
        for name in names:
            (folder / name).write_text("x")
        (folder / b"bad\xff".decode("utf-8", "surrogateescape")).write_text("x")

    told = repository.agent(work)
    assert "merged into main" in told
    assert "\n" not in told
    assert all((repository.root / name).read_text() == "x" for name in names)
    assert repository.dirty() == ""


def test_links_that_stand_where_worktrees_go(repository: TestRepository, tmp_path: Path) -> None:
    """A link in the place of a folder of Marvin's is not followed."""
    away = tmp_path / "away"
    away.mkdir()
    (repository.root / ".marvin").mkdir()
    (repository.root / ".marvin/worktrees").symlink_to(away)
    with pytest.raises(ToolError, match="No worktree can be created in"):
        repository.agent()
    (repository.root / ".marvin/worktrees").unlink()
    (repository.root / ".marvin").rmdir()
    (repository.root / ".marvin").symlink_to(away)
    with pytest.raises(ToolError, match="No worktree can be created in"):
        repository.agent()
    assert list(away.iterdir()) == []


@pytest.mark.parametrize("setting", ["core.worktree", "core.bare"])
def test_a_repository_that_keeps_its_files_elsewhere(repository: TestRepository, tmp_path: Path, setting: str) -> None:
    """It is refused: its files are not those of the working directory."""
    away = tmp_path / "away"
    away.mkdir()
    repository.git("config", setting, str(away) if setting == "core.worktree" else "true")
    with pytest.raises(ToolError, match="not possible here"):
        repository.agent()


def test_a_git_file_that_leads_to_another_repository(repository: TestRepository, tmp_path: Path) -> None:
    """Where that one does not lead back, it belongs to somebody else."""
    clone = tmp_path / "home/clone"
    clone.mkdir()
    (clone / ".git").write_text(f"gitdir: {repository.root}/.git\n")
    with pytest.raises(ToolError, match="not possible here"):
        repository.agent(root=clone)


def test_the_agent_leads_its_worktree_elsewhere(repository: TestRepository, tmp_path: Path) -> None:
    """What `.git` in the worktree says by then is not looked at: nothing of another repository is touched."""
    other = TestRepository(tmp_path / "other")
    head = other.head()

    def work(folder: Path) -> None:
        (folder / ".git").write_text(f"gitdir: {other.root}/.git\n")
        (folder / "a.txt").write_text("changed\n")

    assert "merged into main" in repository.agent(work)
    assert (repository.root / "a.txt").read_text() == "changed\n"
    assert other.head() == head
    assert other.dirty() == ""


def test_a_link_in_the_place_of_a_worktree_removes_nobodys(repository: TestRepository, tmp_path: Path) -> None:
    """Git would take the worktree that the link leads to for the one that is meant, with what is in it."""
    theirs = tmp_path / "theirs"
    repository.git("worktree", "add", "--quiet", "-b", "theirs", str(theirs))
    (theirs / "work.txt").write_text("mine")

    def work(folder: Path) -> None:
        folder.rename(folder.with_name("away"))
        folder.symlink_to(theirs)

    assert "replaced by a link" in repository.agent(work)
    assert (theirs / "work.txt").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="two names change places in one step on Linux only")
def test_a_folder_that_becomes_a_link_while_the_worktree_is_removed(repository: TestRepository, tmp_path: Path) -> None:
    """I4: what the link leads to stays. No sandbox restricts the removal."""
    outside = tmp_path / "outside"
    outside.mkdir()
    names = [f"{number}.txt" for number in range(300)]
    for name in names:
        (outside / name).write_text("valuable")
    repository.commit_of(".gitignore", "build\nlink\n")
    stack = ExitStack()

    def work(folder: Path) -> None:
        (folder / "build").mkdir()
        for name in names:
            (folder / "build" / name).touch()
        (folder / "link").symlink_to(outside)
        stack.enter_context(swapped(folder / "build", folder / "link", may_be_missing=True))

    told = []
    for _ in range(20):
        with stack:
            told.append(repository.agent(work))
    assert any("The worktree and its branch were removed" in one for one in told)
    assert len(os.listdir(outside)) == len(names)


def test_submodules_and_repositories_within(repository: TestRepository, tmp_path: Path) -> None:
    """A submodule stays unfetched; a repository that the agent made is not committed, and not lost."""
    inner = TestRepository(tmp_path / "inner")
    allowed = ("-c", "protocol.file.allow=always")
    repository.git(*allowed, "submodule", "--quiet", "add", str(inner.root), "sub")
    repository.commit("Submodule")

    def work(folder: Path) -> None:
        assert list((folder / "sub").iterdir()) == []
        repository.write("a.txt", "changed\n", folder)
        repository.git("init", "--quiet", "nested", at=folder)
        repository.write("nested/x.txt", "x\n", folder)
        repository.git("add", "x.txt", at=folder / "nested")
        repository.git("commit", "--quiet", "-m", "Nested", at=folder / "nested")

    told = repository.agent(work)
    assert "merged into main" in told
    assert "nested/ (another repository)" in told
    assert "The worktree was kept" in told
    assert (repository.root / ".marvin/worktrees/t-1/nested/x.txt").read_text() == "x\n"
    assert "removed" in repository.agent(ticket="t-2")


def test_submodules_that_the_agent_fetched(repository: TestRepository, tmp_path: Path) -> None:
    """Their repositories lie with the worktree, and may hold commits that are nowhere else: it stays."""
    inner = TestRepository(tmp_path / "inner")
    allowed = ("-c", "protocol.file.allow=always")
    repository.git(*allowed, "submodule", "--quiet", "add", str(inner.root), "sub")
    repository.commit("Submodule")

    def work(folder: Path) -> None:
        repository.git(*allowed, "submodule", "--quiet", "update", "--init", at=folder)
        repository.write("sub/a.txt", "changed\n", folder)
        repository.git("commit", "--quiet", "-am", "In the submodule", at=folder / "sub")

    told = repository.agent(work)
    assert "merged into main" in told
    assert "The worktree was kept" in told
    assert (repository.root / ".marvin/worktrees/t-1/sub/a.txt").read_text() == "changed\n"


@pytest.mark.slow
@pytest.mark.parametrize("sandboxed", [False, True])
def test_filters_and_merge_drivers_of_the_repository(tmp_path: Path, sandboxed: bool) -> None:
    """What git keeps in another form is so in the worktree, in its commits and where they are merged."""
    repository = TestRepository(tmp_path / "home", sandboxed=sandboxed)
    repository.git("config", "filter.rot.clean", "tr a-y b-z")
    repository.git("config", "filter.rot.smudge", "tr b-z a-y")
    repository.git("config", "filter.rot.required", "true")
    repository.write(".gitattributes", "*.rot filter=rot\n")
    repository.write("x.rot", "abc\n")
    repository.commit("Filtered")
    assert repository.git("show", "HEAD:x.rot") == "bcd\n"

    def work(folder: Path) -> None:
        assert (folder / "x.rot").read_text() == "abc\n"
        repository.write("x.rot", "abcabc\n", folder)
        repository.write("b.txt", "main\n")
        repository.git("commit", "--quiet", "-am", "Main")

    assert "merged into main" in repository.agent(work)
    assert (repository.root / "x.rot").read_text() == "abcabc\n"
    assert repository.git("show", "HEAD:x.rot") == "bcdbcd\n"
    assert repository.dirty() == ""


def test_records_that_somebody_wrote(repository: TestRepository, tmp_path: Path) -> None:
    """What a record says of other places is not believed: only worktrees where Marvin makes them are removed."""
    mine = tmp_path / "home/mine"
    repository.git("worktree", "add", "--quiet", "-b", "mine", str(mine))
    record = (
        f'{{"root": "{repository.root}", "path": "{mine}", "branch": "mine", "base": "{repository.head()}", '
        '"into": "", "ticket": ""}'
    )
    places = [repository.root / ".git/worktrees/mine/marvin.json"]
    for number, text in enumerate((record, "[]", "{" * 500, '{"root": 1}', "\0", '{"root": "x", "more": "y"}')):
        folder = repository.root / f".git/worktrees/w{number}"
        folder.mkdir()
        places.append(folder / "marvin.json")
        places[-1].write_text(text)
    places[0].write_text(record)
    (repository.root / ".git/worktrees/pipe").mkdir()
    (repository.root / ".git/worktrees/pipe/marvin.json").symlink_to("/dev/zero")
    assert "removed" in repository.agent()
    assert mine.is_dir()
    assert "mine" in repository.branches()


@pytest.mark.parametrize("instead", ["file", "link", "nothing"])
def test_a_submodule_that_the_agent_removes_stays_in_the_main_folder(
    repository: TestRepository, tmp_path: Path, instead: str
) -> None:
    """git would delete what is uncommitted in it, too."""
    inner = TestRepository(tmp_path / "inner")
    allowed = ("-c", "protocol.file.allow=always")
    repository.git(*allowed, "submodule", "--quiet", "add", str(inner.root), "sub")
    repository.commit("Submodule")
    for name in ("a.txt", "new.txt"):
        repository.write(f"sub/{name}", "valuable\n")

    def work(folder: Path) -> None:
        repository.git("rm", "--quiet", "sub", at=folder)
        if instead == "file":
            (folder / "sub").touch()
        elif instead == "link":
            (folder / "sub").symlink_to("a.txt")

    assert "is not merged: it removes the submodule sub" in repository.agent(work)
    for name in ("a.txt", "new.txt"):
        assert (repository.root / "sub" / name).read_text() == "valuable\n"


@pytest.mark.parametrize("option", ["--squash", "--strategy=ours", "--no-ff", "--autostash"])
def test_options_for_merges_of_the_branch_do_not_hold(repository: TestRepository, option: str) -> None:
    """The agent's commit would be missing, or its changes, and its branch is removed."""
    repository.git("config", "branch.main.mergeOptions", option)

    def work(folder: Path) -> None:
        repository.write("a.txt", "changed\n", folder)
        repository.commit("Changed", folder)

    assert "merged into main" in repository.agent(work)
    assert (repository.root / "a.txt").read_text() == "changed\n"
    assert repository.git("log", "--format=%s").split() == ["Changed", "First"]
    assert repository.dirty() == ""


def test_a_commit_in_the_worktree_while_it_is_merged_is_not_lost(repository: TestRepository) -> None:
    """The user may work there, too."""
    there = f"env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE git -C {repository.root}/.marvin/worktrees/t-1"
    repository.git("config", "filter.late.smudge", f"{there} commit -qm Late --allow-empty; cat")
    repository.write(".git/info/attributes", "late.txt filter=late\n")
    told = repository.agent(lambda folder: repository.write("late.txt", "changed\n", folder))
    assert "merged into main" in told
    assert repository.git("log", "-1", "--format=%s", "marvin/t-1") == "Late\n"
