"""The evidence of a run: test results and gates, and the log that stores both with their commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from marvin_core import Record

from ..run.files import ProjectFiles

NAME = "logs/evidence.jsonl"
_LARGEST = 20_000_000
"""Bytes of the log that are read."""

TestOutcome: TypeAlias = Literal["passed", "failed", "error", "skipped", "expected_failure"]
"""error: the test's own code did not run, for example because its file cannot be imported or a fixture fails."""
GateName: TypeAlias = Literal["red", "green", "unweakened", "no_mocks", "mutations"]
GateOutcome: TypeAlias = Literal["passed", "failed", "accepted", "not_measured"]
"""accepted: a review accepted what the gate found. not_measured: it could not be measured; the reason says why."""


class TestResult(Record):
    """One test, as its runner reported it."""

    name: str
    """The runner's name for it, with which it can be run alone; unique within a report."""
    file: str
    """Relative to the project; empty if the runner does not report it."""
    outcome: TestOutcome
    cause: str = ""
    """The class of the exception that ended it, such as `AssertionError`; empty if it passed or none is reported."""
    missing: str = ""
    """The module that could not be imported, if that is the cause, or that lacks an attribute. For a JavaScript file
    it is the path, which begins with `./` for a file of the project."""
    origin: str = ""
    """The file that raised it, relative to the project; empty if that lies elsewhere, or is not reported."""
    message: str = ""
    """The exception's message: shortened, on one line, without control characters."""


class TestReport(Record):
    """A runner's report of one run of a test command."""

    command: str
    """As it would be typed."""
    runner: str
    """pytest, unittest, node, jest, vitest, go, cargo; empty if only the exit code is known."""
    exit_code: int | None
    """None if it was killed by a signal or the timeout."""
    results: tuple[TestResult, ...] = ()
    fault: str = ""
    """Why the report is incomplete, such as a timeout or a malformed line; empty for a complete one."""

    @property
    def is_structured(self) -> bool:
        """Whether the results of single tests are known, and not only the exit code."""
        return bool(self.runner) and not self.fault


class Gate(Record):
    """A check of the evidence at one commit."""

    name: GateName
    phase: str
    outcome: GateOutcome
    reason: str
    """A sentence for people and for CI."""
    commit: str
    """The full hash of the commit that was checked."""
    tests: tuple[str, ...] = ()
    """The tests that it is about, by their names in the report."""
    places: tuple[str, ...] = ()
    """The places that it found, one a line: `FILE:LINE: what`."""
    accepted_by: str = ""
    """The session of the reviewer that accepted it; empty without one."""
    faults: tuple[str, ...] = ()
    """Why the evidence is incomplete, such as a missing tool. It fails a run with `--strict`,
    also one that continues this run."""
    excused: str = ""
    """Why `--strict` ignores that it was not measured: the user disabled the measurement, or there was
    nothing to measure. Empty if it does not ignore that."""


class EvidenceLog:
    """The gates of a project's runs, in order, in `.marvin/logs/evidence.jsonl`, which is only appended to.

    Args:
        files: the pipeline's own files of the project.
    """

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files

    def add(self, gate: Gate) -> None:
        """Add a gate, on a line of its own even after a truncated line. Raises `FileFault`."""
        line = {"ts": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", **gate.as_dict()}
        self._files.append(NAME, f"\n{json.dumps(line)}\n".encode())

    def read(self) -> Sequence[Gate]:
        """All gates. Truncated and malformed lines are ignored.

        Raises:
            FileFault: the log cannot be read.
        """
        found = (_gate(line) for line in (self._files.read(NAME, _LARGEST) or b"").splitlines())
        return tuple(gate for gate in found if gate is not None)

    def passed(self, name: GateName, phase: str, commit: str) -> bool:
        """Whether a gate was passed, or accepted, at this commit. Raises `FileFault`."""
        same = [one for one in self.read() if (one.name, one.phase, one.commit) == (name, phase, commit)]
        return bool(same) and same[-1].outcome in {"passed", "accepted"}


def _gate(line: bytes) -> Gate | None:
    try:
        value: Any = json.loads(line)
        return Gate(
            name=value["name"],
            phase=value["phase"],
            outcome=value["outcome"],
            reason=value["reason"],
            commit=value["commit"],
            tests=tuple(value["tests"]),
            places=tuple(value["places"]),
            accepted_by=value["accepted_by"],
            faults=tuple(value.get("faults", ())),
            excused=value.get("excused", ""),
        )
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
