"""Checkpoints while others use the repository: the user, an editor, another Marvin, and one that was killed."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest

from marvin_core import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_pipeline.jobs.places import Place
from marvin_pipeline.jobs.records import ReviewOrder
from marvin_pipeline.run.checkpoints import Checkpoints
from marvin_pipeline.run.git.locks import set_free
from marvin_pipeline.run.git.project_git import GitFault
from tests.support.folders import Folders
from tests.support.swapping import lasting

ENV = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/"}
SECONDS = 8
BEGIN = "git init -qb main .; git config user.name Ada; git config user.email ada@example.com; mkdir -p part other; "
BEGIN += "echo 0 > shared; echo 0 > part/shared; echo 0 > part/a; echo 0 > other/a; git add .; git commit -qm Begin"


def sh(folder: Path, script: str, *, check: bool = True) -> str:
    """What a script prints."""
    done = subprocess.run(["sh", "-ec", script], cwd=folder, env=ENV, check=check, capture_output=True, timeout=60)
    return os.fsdecode(done.stdout)


@contextmanager
def checkpoints(folder: Path, lock: float = 5.0) -> Iterator[tuple[Checkpoints, asyncio.Runner]]:
    """Those of a folder, and what runs them."""
    with asyncio.Runner() as loop:
        runner = ProcessRunner(Folders(root=folder, base=folder), ENV, Timeouts())
        try:
            yield Checkpoints(folder, runner, 60, Timeouts(lock=lock)), loop
        finally:
            loop.run(runner.close())


def test_what_is_staged_and_in_no_file_is_kept(tmp_path: Path) -> None:
    sh(tmp_path, f"{BEGIN}; echo staged > part/a; echo new > part/n; git add .; echo file > part/a; rm part/n")
    sh(tmp_path, "echo 2 > other/a; git add other/a; echo 3 > shared")
    with checkpoints(tmp_path) as (made, loop):
        loop.run(made.checkpoint("The pipeline starts"))
        (kept,) = made.kept
        assert kept.files == ["part/a", "part/n"]
        loop.run(made.checkpoint("The next one"))
        assert len(made.kept) == 1
    assert sh(tmp_path, f"git show HEAD:part/a; git show {kept.ref}:part/a; git show {kept.ref}:part/n") == (
        "file\nstaged\nnew\n"
    )
    assert sh(tmp_path, f"git rev-parse {kept.ref}^") == sh(tmp_path, "git rev-parse HEAD^")


def test_what_a_checkpoint_leaves_out_is_known_and_told_once(tmp_path: Path) -> None:
    sh(tmp_path, f"{BEGIN}; mkdir -p env node_modules/x rust/target source/env .marvin/logs")
    names = "env/pyvenv.cfg env/m.py node_modules/x/y rust/Cargo.toml rust/target/x source/env/m.py .marvin/logs/l"
    sh(tmp_path, f"for name in {names}; do echo 1 > $name; done; echo '-----BEGIN PRIVATE KEY' > test.py")
    sh(tmp_path, "echo 1 > part/a.sqlite; git add -f part/a.sqlite; echo 1 > b.sqlite; echo 1 > git~1")
    with checkpoints(tmp_path) as (made, loop):
        loop.run(made.checkpoint("One"))
        told = made.newly_left_out()
        sh(tmp_path, "echo 1 > c.sqlite; git add b.sqlite")
        loop.run(made.checkpoint("Two"))
        assert made.newly_left_out() == "c.sqlite (a database)"
        assert list(made.left_out) == ["c.sqlite", "env/", "node_modules/", "rust/target/", "test.py", "git~1"]
    assert told == (
        "b.sqlite (a database), env/ (usually ignored), node_modules/ (usually ignored), "
        "rust/target/ (usually ignored), test.py (it contains a private key), git~1 (git refuses its name)"
    )
    new = sh(tmp_path, "git diff --name-only --diff-filter=A HEAD~2 HEAD").split()
    assert new == ["b.sqlite", "part/a.sqlite", "rust/Cargo.toml", "source/env/m.py"]


def test_conflicts_are_told_by_the_checkpoint(tmp_path: Path) -> None:
    sh(tmp_path, f"{BEGIN}; echo 1 > shared; git stash -q; echo 2 > shared; git commit -qam Two; git stash pop || true")
    with checkpoints(tmp_path) as (made, loop):
        with pytest.raises(GitFault, match="conflicts that are not resolved: shared"):
            loop.run(made.checkpoint("The pipeline starts"))


def test_what_is_staged_during_a_run_is_kept_too(tmp_path: Path) -> None:
    sh(tmp_path, BEGIN)
    with checkpoints(tmp_path) as (made, loop):
        loop.run(made.checkpoint("The pipeline starts"))
        sh(tmp_path, "echo staged > shared; git add shared; echo file > shared")
        loop.run(made.checkpoint("After an agent"))
        (kept,) = made.kept
    assert sh(tmp_path, f"git show {kept.ref}:shared; git show HEAD:shared") == "staged\nfile\n"


def test_before_the_first_commit_it_is_kept_too(tmp_path: Path) -> None:
    sh(tmp_path, "git init -qb main .; echo staged > a; git add a; echo file > a")
    with checkpoints(tmp_path) as (made, loop):
        loop.run(made.checkpoint("The pipeline starts"))
        (kept,) = made.kept
    assert sh(tmp_path, f"git show {kept.ref}:a; git show HEAD:a") == "staged\nfile\n"


def many_checkpoints(folder: Path) -> None:
    """Make them, each of a change."""
    with checkpoints(folder) as (made, loop):
        for number in range(15):
            (folder / "a").write_text(f"{number + 1}\n")
            loop.run(made.checkpoint(f"Number {number}"))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["", "part"])
def test_no_commit_of_the_user_is_reverted(tmp_path: Path, part: str) -> None:
    """Neither new files nor new content of a file, which a checkpoint may have read before."""
    sh(tmp_path, BEGIN)
    root, stop, said = tmp_path / part, threading.Event(), list[str]()

    def commit() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            how = ("git add shared; git commit", "git commit -a", f"git commit shared u{number}")[number % 3]
            new = f"echo {number} > shared; echo > u{number}; git add u{number}; {how} -m {number}"
            said.append(sh(root, new, check=False))
            stop.wait(min(0.05 * 1.1**number, 5))  # at last, no checkpoint takes longer

    def committed() -> set[str]:
        return set(re.findall(r"^\[main ([0-9a-f]+)\]", "\n".join(said), re.MULTILINE))

    def shared() -> list[int]:
        shown = sh(root, "git log --reverse --format= -p -U0 -- shared | sed -n 's/^+\\([0-9]\\)/\\1/p'")
        return [int(line) for line in shown.splitlines()]

    user = threading.Thread(target=commit)
    user.start()
    try:
        with checkpoints(root) as (made, loop):
            for _ in lasting(SECONDS, lambda: len(shared()) > 9 and committed()):
                (root / "a").write_text(f"{time.monotonic()}\n")
                loop.run(made.checkpoint("Marvin's"))
    finally:
        stop.set()
        user.join()
    assert committed()
    assert committed() <= set(sh(tmp_path, "git log --format=%h").split())
    assert sh(tmp_path, "git log --format= --diff-filter=D --name-only") == ""
    assert len(shared()) > 9
    assert shared() == sorted(shared())


@pytest.mark.slow
def test_several_marvins_in_one_repository_make_all_of_their_checkpoints(tmp_path: Path) -> None:
    sh(tmp_path, BEGIN)

    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(many_checkpoints, (tmp_path / "part", tmp_path / "other")))
    assert len(sh(tmp_path, "git log --format=%s").splitlines()) == 31
    assert sh(tmp_path, "git show HEAD:part/a HEAD:other/a; git status --porcelain") == "15\n15\n"


def test_the_lock_of_a_program_that_is_no_git_is_left(tmp_path: Path) -> None:
    """An editor takes it again and again, by a library. One that stays is a killed git's."""
    sh(tmp_path, BEGIN)
    lock, stop = tmp_path / ".git/index.lock", threading.Event()
    lock.touch()

    def lock_again() -> None:
        while not stop.is_set():
            (tmp_path / "new").touch()
            (tmp_path / "new").rename(lock)
            time.sleep(0.01)

    editor = threading.Thread(target=lock_again)
    editor.start()
    assert set_free(lock, tmp_path / ".git", tmp_path, Timeouts(lock=0.2))
    stop.set()
    editor.join()
    assert lock.exists()
    assert set_free(lock, tmp_path / ".git", tmp_path, Timeouts(lock=0.2))
    assert not lock.exists()


@contextmanager
def repeated(work: Callable[[], None]) -> Iterator[None]:
    """Somebody who does this again and again meanwhile."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.slow
def test_a_lock_that_is_always_taken_again_ends_a_checkpoint_soon(tmp_path: Path) -> None:
    sh(tmp_path, BEGIN)

    def lock() -> None:
        (tmp_path / "new").touch()
        (tmp_path / "new").rename(tmp_path / ".git/index.lock")
        time.sleep(0.01)

    (tmp_path / ".git/index.lock").touch()
    with repeated(lock), checkpoints(tmp_path, lock=1.0) as (made, loop):
        (tmp_path / "a").write_text("1")
        begun = time.monotonic()
        with pytest.raises(GitFault, match=r"index\.lock"):
            loop.run(made.checkpoint("Marvin's"))
        assert time.monotonic() - begun < 15


@pytest.mark.slow
@pytest.mark.parametrize("part", ["", "part"])
def test_beside_a_program_that_commits_all_the_time_a_checkpoint_is_made_between_two_commits_or_says_so(
    tmp_path: Path, part: str
) -> None:
    """One that is made all the same could revert what was committed."""
    sh(tmp_path, BEGIN)
    tree = sh(tmp_path, "git write-tree").strip()

    def commit() -> None:
        sh(tmp_path, f"git update-ref HEAD $(git commit-tree {tree} -p HEAD -m $(date +%N))")

    with repeated(commit), checkpoints(tmp_path / part, lock=0.5) as (made, loop):
        (tmp_path / part / "a").write_text("1")
        said = ""
        try:
            loop.run(made.checkpoint("Marvin's"))
        except GitFault as error:
            said = str(error)
    assert not said or re.search("commits in .* all the time|update-ref", said)
    kept = sh(tmp_path, "git log --format=%s --diff-filter=DM --name-only").split()
    assert not kept or kept[0] == "Marvin's"


def test_what_a_killed_marvin_left_in_the_repository_is_removed(tmp_path: Path) -> None:
    sh(tmp_path, BEGIN)
    old, new = (tmp_path / ".git" / f"marvin-checkpoint-{name}" for name in ("old", "new"))
    of_a_commit = tmp_path / ".git" / "marvin-index-old"  # it has the time of the index that it is a copy of
    for path in (old, new, of_a_commit):
        path.touch()
    for path in (old, of_a_commit):
        os.utime(path, (0, 0))
    with checkpoints(tmp_path) as (made, loop):
        loop.run(made.prepare())
    assert [path.exists() for path in (old, new, of_a_commit)] == [False, True, True]


@pytest.mark.slow
def test_a_very_large_repository(tmp_path: Path) -> None:
    """A list of its files, most of which are not checked out, has more than 20 MB."""
    sh(tmp_path, BEGIN)
    blob, long = sh(tmp_path, "git rev-parse :shared").strip(), "n" * 200
    names = "".join(f"not-here/{number}{long}\n" for number in range(80_000))
    lines = "".join(f"100644 {blob}\t{name}\n" for name in names.splitlines())
    for what, given in (("--index-info", lines), ("--skip-worktree --stdin", names)):
        words = ["git", "update-index", *what.split()]
        subprocess.run(words, cwd=tmp_path, env=ENV, input=given.encode(), check=True, timeout=60)
    sh(tmp_path, "git commit -qm Large; echo 1 > shared; echo 1 > new")
    with checkpoints(tmp_path) as (made, loop):
        loop.run(made.checkpoint("Marvin's"))
    assert sh(tmp_path, "git show --format= --name-only HEAD").split() == ["new", "shared"]


@pytest.mark.parametrize("part", ["", "part"])
def test_a_copy_of_a_project_is_the_project_alone(tmp_path: Path, part: str) -> None:
    """Also where it is a part of a repository: mutations are tried in a copy."""
    sh(tmp_path, BEGIN)
    (tmp_path / "copy").mkdir()
    with checkpoints(tmp_path / part) as (made, loop):
        copy = loop.run(made.copy_to(tmp_path / "copy"))
    tracked = sh(tmp_path / part, "git ls-files").split()
    assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()) == sorted(tracked)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["", "part"])
def test_beside_a_user_who_switches_branches_each_checkpoint_has_its_own_changes_only(
    tmp_path: Path, part: str
) -> None:
    """Not those of the branch that was left in the meantime, even if HEAD is where it was."""
    sh(tmp_path, BEGIN + "; git switch -qc other; echo 1 > part/shared; echo 1 > shared; git commit -qam Other")
    pauses = iter(range(1_000_000))

    def switch() -> None:
        sh(tmp_path, "git switch -q main; git switch -q other", check=False)
        time.sleep(min(0.05 * 1.1 ** next(pauses), 5))

    said: list[str] = []
    with repeated(switch), checkpoints(tmp_path / part, lock=1.0) as (made, loop):
        for number in lasting(SECONDS, lambda: "" in said):
            (tmp_path / part / "mine").write_text(f"{number}\n")
            try:
                loop.run(made.checkpoint("Marvin's"))
                said.append("")
            except GitFault as error:
                said.append(str(error))
    assert "" in said
    own = "git log --all --reflog --author=Ada --grep=Marvin --format= --name-only"
    assert set(sh(tmp_path, own).split()) == {f"{part}/mine".lstrip("/")}


FIRST = "[ -e TOP/reading ] || { touch TOP/reading; until [ -e TOP/go-on ]; do sleep 0.05; done; }; cat"


@pytest.mark.parametrize("part", ["", "part"])
@pytest.mark.parametrize(
    "start",
    ["git merge other", "git merge --no-commit --no-ff clean", "git rebase other", "git stash pop"],
    ids=["merge", "clean", "rebase", "stash"],
)
def test_what_the_user_begins_during_a_checkpoint_is_left_to_him(tmp_path: Path, part: str, start: str) -> None:
    """A merge is not ended by it, and no file counts as resolved."""
    top = tmp_path / "top"
    (top / part).mkdir(parents=True)
    sh(top, BEGIN)
    branches = "echo '*.slow filter=slow' > .git/info/attributes; "
    branches += "git switch -qc clean; echo > clean; git add .; git commit -qm Clean; git switch -qc other main; "
    branches += "echo 1 > shared; echo 1 > part/shared; git commit -qam Other; git switch -q main; "
    branches += "echo 3 > shared; echo 3 > part/shared; git stash -q; "
    sh(top, f"{branches} echo 2 > shared; echo 2 > part/shared; git commit -qam Mine")
    subprocess.run(["git", "config", "filter.slow.clean", FIRST.replace("TOP", str(tmp_path))], cwd=top, check=True)
    (top / part / "x.slow").write_text("x")
    before = sh(top, "git rev-parse HEAD")

    def begin() -> None:
        while not (tmp_path / "reading").exists():
            time.sleep(0.01)
        sh(top, start, check=False)
        (tmp_path / "go-on").touch()

    user = threading.Thread(target=begin)
    user.start()
    with checkpoints(top / part) as (made, loop), pytest.raises(GitFault, match=r"conflict|not finished"):
        loop.run(made.checkpoint("Marvin's"))
    user.join()
    left = sh(top, "git rev-parse -q --verify MERGE_HEAD || true; ls -d .git/rebase* || true; git ls-files -u")
    assert left
    assert "Marvin's" not in sh(top, "git log --all --format=%s")
    assert ("clean" in start) != bool(sh(top, "git ls-files -u"))
    assert "rebase" in start or sh(top, "git rev-parse HEAD") == before


@pytest.mark.parametrize("part", ["", "part"])
def test_a_commit_that_git_has_not_ended_yet_is_not_reverted(tmp_path: Path, part: str) -> None:
    """git moves HEAD first, and then the index, which it has locked."""
    sh(tmp_path, BEGIN)
    moved = tmp_path / ".git/moved"
    hook = tmp_path / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f'#!/bin/sh\n[ "$1" != committed ] || {{ touch {moved}; sleep 2; }}\n')
    hook.chmod(0o755)
    (tmp_path / part / "shared").write_text("user\n")
    user = threading.Thread(target=lambda: sh(tmp_path, "git commit -qam User"))
    user.start()
    while not moved.exists():
        time.sleep(0.01)
    (tmp_path / part / "new").touch()
    with checkpoints(tmp_path / part) as (made, loop):
        loop.run(made.checkpoint("Marvin's"))
    user.join()
    assert sh(tmp_path, "git log --format=%s; git show HEAD:./" + f"{part}/shared".lstrip("/")).split() == [
        *("Marvin's", "User", "Begin", "user"),
    ]


@pytest.mark.parametrize("part", ["", "part"])
def test_changes_that_git_cannot_compare_are_no_absence_of_changes(tmp_path: Path, part: str) -> None:
    sh(tmp_path, BEGIN + "; rm .git/objects/$(git rev-parse HEAD^{tree} | sed 's,..,&/,')")
    (tmp_path / part / "new").touch()
    with checkpoints(tmp_path / part) as (made, loop), pytest.raises(GitFault, match="tree"):
        loop.run(made.checkpoint("Marvin's"))


def test_a_short_lock_does_not_end_a_long_checkpoint_that_had_to_wait_before(tmp_path: Path) -> None:
    """What it did in between was no wait."""
    sh(tmp_path, BEGIN)
    add, lock = f"git -C {tmp_path} add other/new", tmp_path / ".git/index.lock"
    first = f"touch {tmp_path}/.git/first; touch {tmp_path}/other/new; env -u GIT_DIR -u GIT_INDEX_FILE {add}"
    second = f"sleep 1; : > {lock}; (sleep 0.1; rm {lock}) > /dev/null 2>&1 &"
    clean = f"if [ -e {tmp_path}/.git/first ]; then {second} else {first}; fi; cat"
    (tmp_path / ".git/info/attributes").write_text("*.slow filter=slow\n")
    subprocess.run(["git", "config", "filter.slow.clean", clean], cwd=tmp_path, check=True)
    (tmp_path / "x.slow").touch()
    with checkpoints(tmp_path, lock=0.15) as (made, loop):
        loop.run(made.checkpoint("Marvin's"))
    assert "x.slow" in sh(tmp_path, "git show --format= --name-only HEAD")


def test_a_lock_in_a_folder_with_a_quote_in_its_name_is_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "it's"
    root.mkdir()
    sh(root, BEGIN)
    (root / ".git/index.lock").touch()
    (root / "new").touch()
    with checkpoints(root, lock=0.1) as (made, loop):
        loop.run(made.checkpoint("Marvin's"))
    assert sh(root, "git status --porcelain") == ""


@pytest.mark.parametrize("kind", ["link", "file", "damaged"])
def test_no_repository_is_made_where_there_is_one_that_cannot_be_used(tmp_path: Path, kind: str) -> None:
    """Nor outside, where a link leads; and the branch of a damaged one is unknown."""
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    if kind == "link":
        (root / ".git").symlink_to(outside)
    elif kind == "file":
        (root / ".git").write_text(f"gitdir: {outside}\n")
    else:
        sh(root, BEGIN + "; git switch -qc other; : > .git/HEAD")
    with checkpoints(root) as (made, loop), pytest.raises(GitFault, match=r"\.git is no repository that can be used"):
        loop.run(made.prepare())
    assert not outside.exists()
    assert kind != "damaged" or (root / ".git/HEAD").read_text() == ""


@pytest.mark.parametrize("is_late", [False, True])
def test_the_branch_of_a_review_that_has_a_commit_is_not_removed_as_empty(tmp_path: Path, is_late: bool) -> None:
    """The user may commit there, too."""
    sh(tmp_path, BEGIN)

    async def work() -> ReviewOrder:
        runner = ProcessRunner(Folders(root=tmp_path, base=tmp_path), ENV, Timeouts())
        try:
            place = Place(tmp_path, runner, 60)
            order = await place.open(await place.base(), "", "", 1)
            if is_late:
                sh(Path(order.tree), "echo 1 > shared; git commit -qam Late")
            await place.remove(order, with_branch=True)
            return order
        finally:
            await runner.close()

    order = asyncio.run(work())
    assert not Path(order.tree).exists()
    assert sh(tmp_path, f"git log --format=%s main..{order.branch} || true", check=False) == "Late\n" * is_late
    assert (order.branch in sh(tmp_path, "git branch --list")) == is_late


@pytest.mark.slow
def test_a_branch_that_takes_too_long_to_move_is_told(tmp_path: Path) -> None:
    """Nothing would be committed."""
    sh(tmp_path, BEGIN + "; git config core.filesRefLockTimeout 300000; touch .git/refs/heads/main.lock new")
    with asyncio.Runner() as loop:
        runner = ProcessRunner(Folders(root=tmp_path, base=tmp_path), ENV, Timeouts())
        try:
            with pytest.raises(GitFault, match="update-ref took too long"):
                loop.run(Checkpoints(tmp_path, runner, 10).checkpoint("Marvin's"))
        finally:
            loop.run(runner.close())


@pytest.mark.parametrize("has_branch", [False, True])
def test_a_review_whose_commits_no_branch_has_keeps_its_worktree(tmp_path: Path, has_branch: bool) -> None:
    sh(tmp_path, BEGIN)

    async def work() -> ReviewOrder:
        runner = ProcessRunner(Folders(root=tmp_path, base=tmp_path), ENV, Timeouts())
        try:
            place = Place(tmp_path, runner, 60)
            order = await place.open(await place.base(), "", "", 1)
            sh(Path(order.tree), "git switch -q --detach; echo 1 > shared; git commit -qam Apart; echo 1 > new")
            if has_branch:
                sh(Path(order.tree), "git branch theirs")
            await place.remove(order, with_branch=True)
            return order
        finally:
            await runner.close()

    assert Path(asyncio.run(work()).tree).exists() != has_branch
