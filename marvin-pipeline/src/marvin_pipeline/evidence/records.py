"""What the pipeline can prove of a run: results of tests, gates, and the log that keeps both with their commits."""

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
"""error: the test did not come to its own code, as where its file cannot be imported or a fixture fails."""
GateName: TypeAlias = Literal["red", "green", "unweakened", "no_mocks", "mutations"]
GateOutcome: TypeAlias = Literal["passed", "failed", "accepted", "not_measured"]
"""accepted: a review let stand what the gate found. not_measured: nothing here can tell; the reason says why."""


class TestResult(Record):
    """One test, as its runner reported it."""

    name: str
    """As the runner names it, so that it can be run alone; unique within a report."""
    file: str
    """Relative to the project; empty where the runner does not tell."""
    outcome: TestOutcome
    cause: str = ""
    """The class of the exception that ended it, as `AssertionError`; empty where it passed or nothing is told."""
    missing: str = ""
    """The module that could not be imported, where that is the cause; also the one that lacks an attribute. Of a file
    of JavaScript it is the path, which begins with `./` where that is one of the project."""
    origin: str = ""
    """The file in which it was raised, relative to the project; empty where that lies elsewhere, or is not told."""
    message: str = ""
    """What the exception says: bounded, one line, with the control characters taken out."""


class TestReport(Record):
    """What a runner reported of one run of a test command."""

    command: str
    """As it would be typed."""
    runner: str
    """pytest, unittest, node, jest, vitest, go, cargo; empty where only the exit code tells."""
    exit_code: int | None
    """None where it was ended by a signal or the time limit."""
    results: tuple[TestResult, ...] = ()
    fault: str = ""
    """Why there is no whole report, as a time limit or a broken line; empty where there is one."""

    @property
    def is_structured(self) -> bool:
        """Whether the single tests are known, and not only the exit code."""
        return bool(self.runner) and not self.fault


class Gate(Record):
    """One check of the evidence, at one commit."""

    name: GateName
    phase: str
    outcome: GateOutcome
    reason: str
    """In a sentence, for people and for CI."""
    commit: str
    """The whole id of the commit that was looked at."""
    tests: tuple[str, ...] = ()
    """The tests that it speaks of, by their names in the report."""
    places: tuple[str, ...] = ()
    """What it found, one place a line: `FILE:LINE: what`."""
    accepted_by: str = ""
    """The session of the reviewer that let it stand; empty where none did."""
    faults: tuple[str, ...] = ()
    """Why less is known than was asked for, as where a tool is missing or fails. `--strict` holds that against the run,
    also against a later one that goes on with it."""
    excused: str = ""
    """Why `--strict` does not hold it against the run that it is not measured: the user does without it, or there was
    nothing to measure. Empty where it does."""


class EvidenceLog:
    """The gates of a project's runs, in their order, in `.marvin/logs/evidence.jsonl`. It only ever grows.

    Args:
        files: the pipeline's own files of the project.
    """

    def __init__(self, files: ProjectFiles) -> None:
        self._files = files

    def add(self, gate: Gate) -> None:
        """Note a gate, on a line of its own whatever the last one looks like. Raises `FileFault`."""
        line = {"ts": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", **gate.as_dict()}
        self._files.append(NAME, f"\n{json.dumps(line)}\n".encode())

    def read(self) -> Sequence[Gate]:
        """All gates. A line that a kill cut off, or that is no gate, does not count.

        Raises:
            FileFault: the log cannot be read.
        """
        found = (_gate(line) for line in (self._files.read(NAME, _LARGEST) or b"").splitlines())
        return tuple(gate for gate in found if gate is not None)

    def passed(self, name: GateName, phase: str, commit: str) -> bool:
        """Whether a gate was passed, or accepted, at this commit already. Raises `FileFault`."""
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
