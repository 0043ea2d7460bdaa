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
            said.append(sh(root, f"{new}; sleep 0.05", check=False))

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
    old, new = (tmp_path / ".git" / f"marvin-index-{name}" for name in ("old", "new"))
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    with checkpoints(tmp_path) as (made, loop):
        loop.run(made.prepare())
    assert (old.exists(), new.exists()) == (False, True)


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
