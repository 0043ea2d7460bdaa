"""Agents and a person at work in one repository in any order: nobody's work is lost, and nobody's is overwritten."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from marvin_core.api.timeouts import Timeouts
from marvin_core.engine.agents.worktrees import Worktree, Worktrees
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.examples import examples
from tests.support.folders import Folders
from tests.support.repositories import TestRepository

T = TypeVar("T")
NAMES = st.sampled_from(["a.txt", "b.txt", "new.txt", "deep/new.txt"])


class AgentsAndAPerson(RuleBasedStateMachine):
    """Every content that is written is one of a kind, so that it can be looked for."""

    @initialize()
    def begin(self) -> None:
        """A repository, and a session in it."""
        self.folder = TemporaryDirectory()
        self.repository = TestRepository(Path(self.folder.name) / "home")
        self.loop = asyncio.new_event_loop()
        self.number = 0
        self.trees: list[Worktree] = []
        self.by_agents: set[str] = set()
        self.by_hand: dict[str, str] = {}
        """What the person has in the main folder and did not commit."""
        self.session()

    def session(self) -> None:
        """Begin a session, as after the last one was killed."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.repository.home), "GIT_CONFIG_NOSYSTEM": "1"}
        self.runner = ProcessRunner(
            Folders(root=self.repository.root, base=self.repository.home), environment, Timeouts()
        )
        self.worktrees = Worktrees(self.runner, Timeouts())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the session."""
        return self.loop.run_until_complete(work)

    def content(self) -> str:
        """A content that nothing else has."""
        self.number += 1
        return f"content {self.number}\n"

    @rule()
    def start_an_agent(self) -> None:
        """It gets a worktree."""
        if len(self.trees) < 3:
            self.trees.append(self.run(self.worktrees.open(self.repository.root, "t-1")))

    @precondition(lambda self: self.trees)
    @rule(which=st.integers(0, 2), name=NAMES, commits=st.booleans())
    def an_agent_writes(self, which: int, name: str, commits: bool) -> None:
        """And commits, or not."""
        tree = self.trees[which % len(self.trees)]
        content = self.content()
        before = tree.place.root / name
        if before.exists():  # what it writes over itself is nobody's loss
            self.by_agents.discard(before.read_text())
        self.repository.write(name, content, tree.place.root)
        self.by_agents.add(content)
        if commits:
            self.repository.commit("Agent", tree.place.root)

    @rule(name=NAMES)
    def the_person_writes(self, name: str) -> None:
        """Without a commit."""
        self.by_hand[name] = self.content()
        self.repository.write(name, self.by_hand[name])

    @rule()
    def the_person_commits(self) -> None:
        """All that is there; as far as agents wrote it, it is in the history by then."""
        if self.repository.dirty():
            self.repository.commit("Person")
        self.by_hand.clear()

    @precondition(lambda self: self.trees)
    @rule(which=st.integers(0, 2), answered=st.booleans())
    def an_agent_ends(self, which: int, answered: bool) -> None:
        """Well or not; where the worktree stays that is said."""
        tree = self.trees.pop(which % len(self.trees))
        told = self.run(self.worktrees.close(tree, answered=answered))
        assert ("The worktree was kept" in told) == tree.place.top.is_dir(), told
        assert tree.place.top.is_dir() == (tree.known.branch in self.repository.branches())

    @rule()
    def the_session_is_killed(self) -> None:
        """Its agents die with it, their worktrees are left to the next session."""
        for tree in self.trees:
            os.close(tree.lock)
        self.trees.clear()
        self.session()

    @invariant()
    def nothing_of_the_person_is_touched(self) -> None:
        """Uncommitted files are what the person made them, and nothing is half merged."""
        if not hasattr(self, "repository"):
            return
        for name, content in self.by_hand.items():
            assert (self.repository.root / name).read_text() == content
        assert not (self.repository.root / ".git/MERGE_HEAD").exists()

    @invariant()
    def nothing_of_an_agent_is_lost(self) -> None:
        """It is in the history of some branch, or in a worktree that is there."""
        if not hasattr(self, "repository") or not self.by_agents:
            return
        history = self.repository.git("log", "--all", "--full-history", "-m", "-p", "--format=%H")
        folders = (self.repository.root / ".marvin/worktrees").glob("*/**/*.txt")
        there = history + "".join(path.read_text() for path in folders)
        assert [content for content in self.by_agents if content not in there] == []

    def teardown(self) -> None:
        """Remove it all."""
        if hasattr(self, "repository"):
            for tree in self.trees:
                os.close(tree.lock)
            self.run(self.runner.close())
            self.loop.close()
            self.folder.cleanup()


TestAgentsAndAPerson = pytest.mark.slow(AgentsAndAPerson.TestCase)
TestAgentsAndAPerson.settings = examples(20, stateful_step_count=12, deadline=None)
