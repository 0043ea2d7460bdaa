"""The traceability matrix: each acceptance criterion with its tests, their commits, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from marvin_core import Record

from ..criteria import Criterion, Mention, named_in
from ..findings import NotedFinding
from ..records import Gate
from .history import PhaseResult

Proof: TypeAlias = Literal["shown", "failing", "pending", "untested"]
"""shown: tests name it, and they pass. failing: one of them fails. pending: their result is not known yet.
untested: no test names it."""
_MARKS = ("::", ".", "> ", "/", " ")
"""Separators before the name of a test in the names that runners print."""


class TracedTest(Record):
    """A test that names a criterion."""

    file: str
    line: int
    name: str
    """The name in its file; empty if the mention belongs to the whole file."""
    commit: str
    """The commit that added the mention; empty if it is not committed."""


class CriterionResult(Record):
    """A criterion and its evidence."""

    criterion: Criterion
    proof: Proof
    tests: tuple[TracedTest, ...]
    findings: tuple[NotedFinding, ...]
    """Those that name it, or that are about a file of its tests."""
    why: str
    """The basis of the result, in a sentence."""


def matrix_of(
    criteria: Sequence[Criterion],
    mentions: Sequence[Mention],
    came: Mapping[str, Mapping[int, str]],
    findings: Sequence[NotedFinding],
    greens: Sequence[Gate],
    phases: Sequence[PhaseResult],
) -> tuple[CriterionResult, ...]:
    """The tests and findings of each criterion.

    Args:
        came: the commits that added the mentions, by file and line.
        greens: the gates that check that tests pass, in the order of the phases.
        phases: the outcomes of the phases.
    """
    by_id: dict[str, list[Mention]] = {}
    for mention in mentions:
        by_id.setdefault(mention.criterion, []).append(mention)
    named = [(finding, named_in(f"{finding.claim}\n{finding.evidence}")) for finding in findings]
    results = []
    for criterion in criteria:
        own = by_id.get(criterion.id, [])
        tests = tuple(
            TracedTest(file=one.file, line=one.line, name=one.test, commit=came.get(one.file, {}).get(one.line, ""))
            for one in own
        )
        files = {one.file for one in own}
        of_it = tuple(one for one, ids in named if criterion.id in ids or (not ids and one.file in files))
        proof, why = _proof(own, greens, phases)
        results.append(CriterionResult(criterion=criterion, proof=proof, tests=tests, findings=of_it, why=why))
    return tuple(results)


def _proof(mentions: Sequence[Mention], greens: Sequence[Gate], phases: Sequence[PhaseResult]) -> tuple[Proof, str]:
    if not mentions:
        return "untested", "No test refers to it."
    if greens:
        return _by_gate(mentions, greens[-1])
    debugged = next((phase for phase in phases if phase.phase == "4a"), None)
    if debugged is not None and debugged.outcome == "passed":
        return "shown", "Phase 4a ended with all tests passing; no report lists the individual tests."
    return "pending", "It is not known yet whether its tests pass."


def _by_gate(mentions: Sequence[Mention], gate: Gate) -> tuple[Proof, str]:
    """The result of the newest gate on passing tests: a failed one names the failing tests, a passed one those that
    pass."""
    place = f"phase {gate.phase}, commit {gate.commit[:12]}"
    named = [name for name in gate.tests if any(is_of(one, name) for one in mentions)]
    if gate.outcome == "not_measured":
        return "pending", f"It is not known whether its tests pass ({place}): {gate.reason}"
    if gate.outcome == "failed":
        if named or not gate.tests:
            return "failing", f"Its tests do not pass ({place})."
        return "pending", f"Other tests do not pass ({place})."
    if named:
        return "shown", f"Its tests pass according to the report of their runner ({place})."
    return "shown", f"All tests pass ({place}); the report does not list these tests."


def is_of(mention: Mention, name: str) -> bool:
    """Whether a test of a report, such as `tests/test_a.py::Case::test_b[1]`, is the one that a mention belongs to."""
    file = PurePosixPath(mention.file)
    is_in_file = f"{file.stem}." in name
    if not mention.test or (file.suffix == ".py" and not is_in_file):  # without a test name, all tests of the file
        return is_in_file and not mention.test
    plain = name.partition("[")[0] if name.endswith("]") else name
    below = (f".{mention.test}/", f"::{mention.test}/")  # a subtest of Go
    return plain.endswith(tuple(f"{mark}{mention.test}" for mark in _MARKS)) or (
        plain == mention.test or plain.startswith(f"{mention.test}/") or any(one in plain for one in below)
    )
