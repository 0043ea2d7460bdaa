"""Several Marvins at work in one repository, and people who commit there meanwhile."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marvin_core.api.errors import ToolError
from marvin_core.api.timeouts import Timeouts
from marvin_core.engine.agents.worktrees import Worktrees
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders
from tests.support.repositories import TestRepository

TAKES_IT = """#!/bin/sh
case "$*" in *"worktree add"*) {git} -C "{main}" branch marvin/t-1;; esac
exec {git} "$@"
"""
COMMITS_FIRST = """#!/bin/sh
case "$*" in *--ff-only*)
  if mkdir "{sign}" 2>/dev/null; then
    {git} -C "{main}" commit --quiet --allow-empty --no-verify -m "Person"
  fi;;
esac
exec {git} "$@"
"""
"""A git before which somebody commits in the main folder, at the worst moment and once."""


@pytest.fixture
def repository(tmp_path: Path) -> TestRepository:
    """A repository."""
    return TestRepository(tmp_path / "home")


def runner_of(repository: TestRepository, *first: Path) -> ProcessRunner:
    """What starts programs in a session of its own."""
    path = os.pathsep.join([*map(str, first), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(repository.home), "GIT_CONFIG_NOSYSTEM": "1"}
    return ProcessRunner(Folders(root=repository.root, base=repository.home), environment, Timeouts())


@pytest.mark.slow
def test_sessions_that_make_and_merge_worktrees_at_once(repository: TestRepository) -> None:
    """For one ticket: each gets a branch of its own, and all that was done is merged."""

    async def agent(worktrees: Worktrees, name: str) -> str:
        tree = await worktrees.open(repository.root, "t-1")
        (tree.place.root / name).write_text("x\n")
        return await worktrees.close(tree, answered=True)

    async def go() -> list[str]:
        runners = [runner_of(repository) for _ in range(3)]
        try:
            agents = [
                agent(Worktrees(runner, Timeouts()), f"{number}.txt") for number, runner in enumerate(runners * 2)
            ]
            return await asyncio.gather(*agents)
        finally:
            for runner in runners:
                await runner.close()

    told = asyncio.run(go())
    assert ["merged into main" in one for one in told] == [True] * 6, told
    assert sorted(path.name for path in repository.root.glob("?.txt")) == sorted(
        ["a.txt", "b.txt", *(f"{number}.txt" for number in range(6))]
    )
    assert repository.branches() == ["main"]
    assert repository.dirty() == ""


def test_a_commit_of_a_person_in_the_middle_of_a_merge(repository: TestRepository, tmp_path: Path) -> None:
    """It is merged as well: there is no conflict, only bad luck."""
    program = repository.write("bin/git", "", tmp_path)
    git = shutil.which("git")
    program.write_text(COMMITS_FIRST.format(sign=tmp_path / "sign", git=git, main=repository.root))
    program.chmod(0o755)

    async def go() -> str:
        runner = runner_of(repository, tmp_path / "bin")
        try:
            worktrees = Worktrees(runner, Timeouts())
            tree = await worktrees.open(repository.root, "t-1")
            (tree.place.root / "new.txt").write_text("x\n")
            return await worktrees.close(tree, answered=True)
        finally:
            await runner.close()

    told = asyncio.run(go())
    assert (tmp_path / "sign").is_dir(), "nobody committed in the middle"
    assert "merged into main" in told
    subjects = repository.git("log", "--format=%s").splitlines()
    assert "Person" in subjects
    assert (repository.root / "new.txt").is_file()


def test_a_branch_that_somebody_makes_at_that_moment_stays(repository: TestRepository, tmp_path: Path) -> None:
    program = repository.write("bin/git", TAKES_IT.format(git=shutil.which("git"), main=repository.root), tmp_path)
    program.chmod(0o755)

    async def go() -> None:
        runner = runner_of(repository, tmp_path / "bin")
        try:
            await Worktrees(runner, Timeouts()).open(repository.root, "t-1")
        finally:
            await runner.close()

    with pytest.raises(ToolError, match=r"already exists.*Try again"):
        asyncio.run(go())
    assert repository.branches() == ["main", "marvin/t-1"]
    assert not (repository.root / ".git/marvin-worktree.json").exists()


def test_another_marvin_that_does_not_come_to_an_end(repository: TestRepository) -> None:
    """It is waited for no longer than git is."""
    held = os.open(repository.root / ".git", os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_EX)

    async def go() -> None:
        runner = runner_of(repository)
        try:
            await Worktrees(runner, Timeouts(agent_git=0.5)).open(repository.root, "t-1")
        finally:
            await runner.close()

    try:
        with pytest.raises(ToolError, match=r"Another Marvin process has been working in .* Try again"):
            asyncio.run(go())
    finally:
        os.close(held)


KILLED = """
import asyncio, os, sys
from pathlib import Path
from marvin_core.api.timeouts import Timeouts
from marvin_core.engine.agents.worktrees import Worktrees
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders

root = Path(sys.argv[1])
environment = {"PATH": os.environ["PATH"], "HOME": str(root.parent), "GIT_CONFIG_NOSYSTEM": "1"}
runner = ProcessRunner(Folders(root=root, base=root.parent), environment, Timeouts())
asyncio.run(Worktrees(runner, Timeouts()).open(root, "t-1"))
"""


def test_a_marvin_that_is_killed_while_it_makes_a_worktree(repository: TestRepository) -> None:
    """Whatever of it is there by then, the next one removes it: no agent has begun in it."""
    sign = repository.home / "begun"
    repository.write(".gitattributes", "*.slow filter=slow\n")
    repository.write("x.slow", "x\n")
    repository.commit("Slow")
    os.mkfifo(sign)
    repository.git("config", "filter.slow.smudge", f"echo > '{sign}'; sleep 1; cat")
    with subprocess.Popen([sys.executable, "-c", KILLED, str(repository.root)]) as making:
        sign.read_text()
        making.kill()
    sign.unlink()
    repository.git("config", "filter.slow.smudge", "cat")
    deadline = time.monotonic() + 60
    while (repository.root / ".git/worktrees/t-1/locked").exists() and time.monotonic() < deadline:
        time.sleep(0.05)  # git itself goes on where nothing ends it
    told = repository.agent(lambda folder: (folder / "new.txt").write_text("x\n"))
    assert "merged into main" in told
    assert "t-1-2" not in told
    assert repository.branches() == ["main"]
    assert os.listdir(repository.root / ".marvin/worktrees") == [".gitignore"]
    assert not (repository.root / ".git/marvin-worktree.json").exists()


def test_a_note_of_somebody_else_removes_nothing(repository: TestRepository) -> None:
    """Only what lies where Marvin makes worktrees is taken for one of its own."""
    mine = repository.home / "mine"
    repository.git("worktree", "add", "--quiet", "-b", "mine", str(mine))
    note = {"root": str(repository.root), "path": str(mine), "branch": "mine", "base": repository.head()}
    for text in (json.dumps({**note, "into": "", "ticket": ""}), "[]", "{" * 300, "\0"):
        (repository.root / ".git/marvin-worktree.json").write_text(text)
        assert "removed" in repository.agent()
    assert mine.is_dir()
    assert "mine" in repository.branches()
