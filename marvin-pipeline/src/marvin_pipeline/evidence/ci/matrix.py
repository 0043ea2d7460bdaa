"""The matrix: each acceptance criterion with its tests, the commits that they came with, and what was found of it."""

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
"""shown: tests name it, and they pass. failing: one of them fails. pending: nothing tells yet whether they pass.
untested: no test names it."""
_MARKS = ("::", ".", "> ", "/", " ")
"""What stands before the name of a test where its runner names what it lies in."""


class TracedTest(Record):
    """A test that names a criterion."""

    file: str
    line: int
    name: str
    """As its file has it; empty where the place belongs to the whole file."""
    commit: str
    """The commit that the place came with; empty where it is in none."""


class CriterionResult(Record):
    """A criterion, and what there is of it."""

    criterion: Criterion
    proof: Proof
    tests: tuple[TracedTest, ...]
    findings: tuple[NotedFinding, ...]
    """Those that name it, or that are of a file of its tests."""
    why: str
    """What the proof rests on, in a sentence."""


def matrix_of(
    criteria: Sequence[Criterion],
    mentions: Sequence[Mention],
    came: Mapping[str, Mapping[int, str]],
    findings: Sequence[NotedFinding],
    greens: Sequence[Gate],
    phases: Sequence[PhaseResult],
) -> tuple[CriterionResult, ...]:
    """Put together what belongs to each criterion.

    Args:
        came: by file and line, the commits that the mentions came with.
        greens: the gates that tell whether tests pass, in the order of the phases.
        phases: how the phases ended.
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
    """What the newest gate on passing tests says: a failed one names those that fail, a passed one those that pass."""
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
    """Whether a test of a report, as `tests/test_a.py::Case::test_b[1]`, is the one that a place belongs to."""
    file = PurePosixPath(mention.file)
    is_in_file = f"{file.stem}." in name
    if not mention.test or (file.suffix == ".py" and not is_in_file):  # without a test, it is of all those in the file
        return is_in_file and not mention.test
    plain = name.partition("[")[0] if name.endswith("]") else name
    below = (f".{mention.test}/", f"::{mention.test}/")  # a test within a test of Go
    return plain.endswith(tuple(f"{mark}{mention.test}" for mark in _MARKS)) or (
        plain == mention.test or plain.startswith(f"{mention.test}/") or any(one in plain for one in below)
    )
