"""The report for programs: `report.json` and `matrix.json`."""

from __future__ import annotations

import json
from typing import Any

from .matrix import CriterionResult
from .results import Results

FORM = 1
"""The version of both formats. Fields may be added; changing or removing one changes the version."""


def report_json(results: Results) -> bytes:
    """The whole report."""
    ending = results.ending
    value = {
        "form": FORM,
        "ended": ending.ended,
        "reason": ending.reason,
        "exit_code": ending.exit_code,
        "next_phase": ending.next_phase,
        "strict": ending.is_strict,
        "commit": results.commit,
        "branch": results.branch,
        "runs": results.history.runs,
        "seconds": round(results.seconds, 3),
        "cost": results.cost,
        "floor": results.floor,
        "phases": [phase.as_dict() for phase in results.history.phases],
        "gates": [{"standing": one.standing, **one.gate.as_dict()} for one in results.gates],
        "criteria": [_criterion(one) for one in results.criteria],
        "findings": [finding.as_dict() for finding in results.findings],
    }
    return json_bytes(value)


def matrix_json(results: Results) -> bytes:
    """Each acceptance criterion with its tests, their commits, and its result."""
    return json_bytes(
        {"form": FORM, "commit": results.commit, "criteria": [_criterion(one) for one in results.criteria]}
    )


def _criterion(result: CriterionResult) -> dict[str, Any]:
    return {
        "id": result.criterion.id,
        "text": result.criterion.text,
        "line": result.criterion.line,
        "proof": result.proof,
        "why": result.why,
        "tests": [test.as_dict() for test in result.tests],
        "findings": [{"phase": one.phase, "subject": one.subject, "id": one.id} for one in result.findings],
    }


def json_bytes(value: object) -> bytes:
    """A value as indented ASCII JSON. Invalid text, such as a lone surrogate, becomes a question mark."""
    sound = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return (json.dumps(sound, indent=1) + "\n").encode()
