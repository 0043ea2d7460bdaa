"""A git repository of a test, and worktrees of agents made from it by a process runner of its own."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from marvin_core.api.timeouts import Timeouts
from marvin_core.engine.agents.worktrees import Worktrees
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders
from tests.support.sandboxes import in_sandbox

T = TypeVar("T")


class TestRepository:
    """A repository in `home/project` with one commit, on the branch main."""

    __test__ = False

    def __init__(self, home: Path, *, sandboxed: bool = False) -> None:
        self.home = home
        self.root = home / "project"
        self.sandboxed = sandboxed
        self.root.mkdir(parents=True)
        (home / ".gitconfig").write_text(
            "[user]\n name = Tess\n email = tess@example.org\n[init]\n defaultBranch = main\n", encoding="utf-8"
        )
        self.git("init", "--quiet")
        self.write("a.txt", "one\n")
        self.write("b.txt", "two\n")
        self.commit("First")

    def write(self, name: str, text: str, at: Path | None = None) -> Path:
        """A file of the repository, or of another folder."""
        path = (at or self.root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def git(self, *arguments: str, at: Path | None = None) -> str:
        """What git says, as a person runs it; it must succeed."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *arguments], cwd=at or self.root, env=environment, capture_output=True, timeout=60
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return os.fsdecode(done.stdout)

    def git_fails(self, *arguments: str) -> None:
        """Have git run into something, as a conflict."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *arguments], cwd=self.root, env=environment, capture_output=True, timeout=60)
        assert done.returncode != 0, (arguments, done.stdout)

    def commit_of(self, name: str, text: str) -> str:
        """Commit a file with this text; the name of the commit."""
        self.write(name, text)
        return self.commit(f"Change {name}")

    def commit(self, message: str, at: Path | None = None) -> str:
        """Commit all that differs; the name of the commit."""
        self.git("add", "--all", at=at)
        self.git("commit", "--quiet", "-m", message, at=at)
        return self.head(at=at)

    def head(self, at: Path | None = None) -> str:
        """The newest commit."""
        return self.git("rev-parse", "HEAD", at=at).strip()

    def branches(self) -> list[str]:
        """All branches."""
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()

    def dirty(self) -> str:
        """What `git status` shows."""
        return self.git("status", "--porcelain")

    def run(self, use: Callable[[ProcessRunner], Awaitable[T]]) -> T:
        """What `use` returns, with a runner that is closed afterwards."""
        if self.sandboxed:
            return in_sandbox(self.home, lambda place: use(place.runner), root=self.root, home=self.home)

        async def go() -> T:
            environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
            runner = ProcessRunner(Folders(root=self.root, base=self.home), environment, Timeouts())
            try:
                return await use(runner)
            finally:
                await runner.close()

        return asyncio.run(go())

    def agent(
        self,
        work: Callable[[Path], object] = lambda folder: None,
        *,
        ticket: str = "t-1",
        answered: bool = True,
        root: Path | None = None,
    ) -> str:
        """What is told of a worktree in which an agent did this, behind what was told when it began."""

        async def go(runner: ProcessRunner) -> str:
            worktrees = Worktrees(runner, Timeouts())
            tree = await worktrees.open(root or self.root, ticket)
            work(tree.place.root)
            return " | ".join([*tree.notes, await worktrees.close(tree, answered=answered)])

        return self.run(go)
