"""Tickets and agents in any order: no ticket and no work is lost, the cost adds up, and nothing is left running."""

from __future__ import annotations

import json
import subprocess
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from marvin_core.testing import calls, error, hang, text
from tests.e2e.support_e2e import PROGRAM, Marvin
from tests.support.agents import AgentModels, processes_in
from tests.support.examples import examples
from tests.support.money import usage

pytestmark = pytest.mark.slow

CONFIG = """\
prices: {qwen/qwen3-32b: {input: 1.0, output: 1.0}}
timeouts: {agent_build: 5, retry_backoff: [0.05]}
"""
ROUND, LAST = 0.0011, 0.00011
"""What a round with calls costs, and an answer at the end (USD)."""
SPENT, SPENT_LAST = usage(1_000, 100), usage(100, 10)


class Team(RuleBasedStateMachine):
    """One project with its tickets; each agent works on one of them, alone."""

    warm: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.models = AgentModels().__enter__()
        self.marvin = Marvin(Path(self.folder.name), self.models, self.warm)
        self.marvin.config(CONFIG)
        self.marvin.make_repository()
        (self.marvin.project / ".gitignore").write_text(".marvin/\n.tickets/\n")
        self.marvin.git("add", ".")
        self.marvin.git("commit", "-q", "-m", "Ignore")
        self.tickets: dict[str, tuple[str, str]] = {}
        """Status and parent of each."""
        self.files: set[str] = {".gitignore", "total.py"}
        self.number = 0

    def teardown(self) -> None:
        self.models.close()
        self.folder.cleanup()

    def tk(self, *words: str) -> str:
        """What the ticket program prints."""
        argv = [*PROGRAM, "tk", *words]
        done = subprocess.run(
            argv, cwd=self.marvin.project, env=self.marvin.env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def ticket(self, which: int) -> str:
        """One of the tickets."""
        return sorted(self.tickets)[which % len(self.tickets)]

    def launched(self, ticket: str, isolation: str, *script: Any) -> tuple[str, float]:
        """What the model is told of an agent that is answered so, and what all of it cost."""
        call = {"ticket_id": ticket, "prompt": "Build it.", "isolation": isolation}
        last = text("Done.", usage=SPENT_LAST)
        self.models.scripts = {
            "Do": deque([calls(("launch_agent", call), usage=SPENT), last]),
            "You" if isolation else "Build": deque(script),
        }
        done = self.marvin.ask("--output-format", "stream-json", "--max-cost", "1")
        assert done.code == 0, done.said
        (output,) = [event for event in done.events() if event["type"] == "tool_execution_end"]
        assert processes_in(self.marvin.home) == []
        return output["text"], done.cost()["session_cost"]

    def with_ticket(self, parent: str, *further: Any) -> list[Any]:
        """The answers of an agent that creates its ticket, refused once, and then goes on."""
        line = f"create 'Part of it' --parent {parent} -d 'Why' --acceptance 'It is there'"
        create = calls(("tk", {"args": line}), usage=SPENT)
        return [create, create, *further]

    def found(self, parent: str) -> None:
        """Take note of the one ticket that there is more than before."""
        (new,) = {path.stem for path in (self.marvin.project / ".tickets").glob("*.md")} - self.tickets.keys()
        self.tickets[new] = ("open", parent)

    @rule()
    def create(self) -> None:
        """A person makes a ticket."""
        self.tickets[self.tk("create", "Something to do")] = ("open", "")

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 9), command=st.sampled_from(["start", "close", "reopen"]))
    def change(self, which: int, command: str) -> None:
        """And changes one."""
        ticket = self.ticket(which)
        self.tk(command, ticket)
        status = {"start": "in_progress", "close": "closed", "reopen": "open"}[command]
        self.tickets[ticket] = (status, self.tickets[ticket][1])

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 9), isolation=st.sampled_from(["", "worktree"]), commits=st.booleans())
    def an_agent_builds(self, which: int, isolation: str, commits: bool) -> None:
        """It makes a ticket and a file; what it does not commit, its parent does."""
        ticket, name = self.ticket(which), f"new-{self.number}.txt"
        self.number += 1
        steps = [calls(("create_file", {"path": name, "content": "new\n"}), usage=SPENT)]
        if commits:
            steps.append(calls(("git_commit", {"message": f"{ticket}: Add {name}"}), usage=SPENT))
        script = self.with_ticket(ticket, *steps, text("Built.", usage=SPENT_LAST))
        said, cost = self.launched(ticket, isolation, *script)
        assert said.startswith("Built."), said
        assert cost == pytest.approx((len(script)) * ROUND + 2 * LAST), "those of the agent, and those of its parent"
        self.found(ticket)
        self.files.add(name)

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 9), isolation=st.sampled_from(["", "worktree"]))
    def an_agent_forgets_its_ticket(self, which: int, isolation: str) -> None:
        """Nothing of it is written."""
        write = calls(("create_file", {"path": "never.txt", "content": "x"}), usage=SPENT)
        said, _ = self.launched(self.ticket(which), isolation, write, text("I tried.", usage=SPENT_LAST))
        assert said.startswith("I tried."), said

    @precondition(lambda self: self.tickets)
    @rule(which=st.integers(0, 9), isolation=st.sampled_from(["", "worktree"]), hangs=st.booleans())
    def an_agent_ends_early(self, which: int, isolation: str, hangs: bool) -> None:
        """Its service refuses it, or never answers: there is its ticket, and nothing else of it."""
        ticket = self.ticket(which)
        end = hang() if hangs else error(400, "no")
        said, _ = self.launched(ticket, isolation, *self.with_ticket(ticket, end))
        assert "did not finish" in said, said
        there = {path.stem for path in (self.marvin.project / ".tickets").glob("*.md")}
        if there - self.tickets.keys():  # a busy machine may not even come so far within the time-out
            self.found(ticket)

    @invariant()
    def tickets_are_as_they_were_left(self) -> None:
        """Each has its status and its parent, and there is no other."""
        if not self.tickets:
            return
        listed = [json.loads(line) for line in self.tk("query").splitlines()]
        assert {one["id"]: (one["status"], one.get("parent", "")) for one in listed} == self.tickets

    @invariant()
    def work_is_committed(self) -> None:
        """What agents built is in the current branch, and nothing else lies about."""
        assert set(self.marvin.git("ls-tree", "-r", "--name-only", "HEAD").split()) == self.files
        assert self.marvin.git("status", "--porcelain") == ""
        assert self.marvin.git("branch", "--format=%(refname:short)").split() == ["main"]


def test_tickets_and_agents_in_any_order(warm_cache: Path) -> None:
    machine = type("WarmTeam", (Team,), {"warm": warm_cache})
    run_state_machine_as_test(machine, settings=examples(8, stateful_step_count=6))
