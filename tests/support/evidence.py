"""Projects with the logs of runs, and the report that is made of them, without a run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marvin_core import ToolContext, tool
from marvin_core.testing import ToolRunner
from marvin_pipeline.evidence.ci.results import Ending, Results, gather
from marvin_pipeline.evidence.ci.writing import forms_of
from marvin_pipeline.evidence.records import EvidenceLog, Gate
from marvin_pipeline.run.checkpoints import Checkpoints
from marvin_pipeline.run.files import ProjectFiles
from marvin_pipeline.state import PHASES

DONE = Ending(ended="done", exit_code=0)
SPECIFICATION = """# Adder

- AC-1: given two numbers, their sum is printed.
- AC-2: given no number, it says what is missing.
"""
TESTS = """def test_ac_1_adds():
    assert add(2, 3) == 5


# AC-2
def test_says_what_is_missing():
    assert add() == "a number is missing"
"""


class Logged:
    """A project with a commit, and what runs have noted of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "project"
        self.folder.mkdir(parents=True)
        (root / "home").mkdir()
        self.files = ProjectFiles(self.folder)
        self._git("init", "-q", "-b", "main")
        self._git("config", "user.name", "Ada")
        self._git("config", "user.email", "ada@example.com")
        self.commit("begin", {"adder.py": "def add(*numbers):\n    return sum(numbers)\n"})

    def _git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True, check=True).stdout

    def commit(self, message: str, files: Mapping[str, str]) -> str:
        """Commit files; returns the commit."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self._git("add", "-f", *files)
        self._git("commit", "-q", "-m", message)
        return self._git("rev-parse", "HEAD").strip()

    def note(self, *events: Mapping[str, Any]) -> None:
        """Add lines to the journal."""
        for event in events:
            self.files.append("logs/pipeline.jsonl", f"{json.dumps(event)}\n".encode())

    def begin(self, commit: str, phase: str = "1a") -> None:
        """Note that a run begins."""
        self.note({"event": "begin", "request": "r", "phase": phase}, {"event": "base", "commit": commit})

    def finish(self, *phases: str, outcome: str = "passed", **more: Any) -> None:
        """Note that phases were worked on and ended."""
        for phase in phases or PHASES:
            end = {"event": "phase_end", "phase": phase, "outcome": outcome, "reason": "It is so.", "seconds": 1.5}
            self.note({"event": "phase_begin", "phase": phase}, {**end, **more})

    def gate(self, name: Any, phase: str, commit: str, outcome: Any = "passed", **more: Any) -> None:
        """Note a gate."""
        gate = Gate(name=name, phase=phase, outcome=outcome, reason="As it should be.", commit=commit).replace(**more)
        EvidenceLog(self.files).add(gate)

    def review(self, phase: str, subject: str, commit: str, *findings: Mapping[str, str]) -> None:
        """Note what a loop of reviews found."""
        usual = {"id": "R1-1", "severity": "high", "file": "adder.py:2", "claim": "It is wrong.", "evidence": ""}
        noted = [{**usual, "standing": "open", **finding} for finding in findings]
        line = {"phase": phase, "subject": subject, "commit": commit, "findings": noted}
        self.files.append("logs/findings.jsonl", f"\n{json.dumps(line)}\n".encode())

    def results(self, ending: Ending = DONE, floor: Any = "high") -> Results:
        """What is known of it all."""
        found: list[Results] = []

        @tool(access=["exec"])
        async def look(context: ToolContext) -> str:
            """Gather the results."""
            git = Checkpoints(context.paths.root, context.processes, 60)
            found.append(await gather(self.files, git, floor, ending))
            return "done"

        with ToolRunner(self.root / "home", self.folder) as runner:
            outcome = runner.call(look)
        assert found, outcome.text
        return found[0]

    def report(self, ending: Ending = DONE) -> Mapping[str, bytes]:
        """The report, by the names of its files."""
        return forms_of(self.results(ending))


def whole(root: Path) -> tuple[Logged, str]:
    """A project whose runs are done and green, and its newest commit."""
    logged = Logged(root)
    base = logged.commit("The specification", {".marvin/spec.md": SPECIFICATION})
    logged.begin(base)
    logged.finish()
    commit = logged.commit("The tests", {"tests/test_adder.py": TESTS})
    names = ("tests/test_adder.py::test_ac_1_adds", "tests/test_adder.py::test_says_what_is_missing")
    for phase in ("2a", "2b"):
        logged.gate("red", phase, commit, tests=names)
        logged.gate("no_mocks", phase, commit)
    logged.gate("green", "4a", commit, tests=names)
    logged.gate("mutations", "4a", commit)
    for phase in ("2b", "3", "4a", "4b", "4c", "5"):
        logged.gate("unweakened", phase, commit)
    return logged, commit
