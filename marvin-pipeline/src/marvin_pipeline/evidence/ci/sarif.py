"""Open findings of reviews, and places that gates found, as SARIF 2.1.0 (OASIS standard), for code scanning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from marvin_core import one_line

from ...review.findings import Severity
from ...state import MEANINGS
from ..findings import NotedFinding
from .as_json import json_bytes
from .results import GateResult, Results
from .words import GATE_WORDS

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Mapping[Severity, str] = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}
_RESULTS = 5_000
"""Results of one run that GitHub shows; the worst come first."""
_TEXT = 2_000
_DOCUMENTS = ("spec", "ux", "design")
_ELSEWHERE = ".marvin/design.md"
"""The place of a finding without one: code scanning requires a place."""
_PLACE = re.compile(r"(?P<file>.{1,400}?):(?P<line>[1-9]\d{0,6}): ?(?P<what>.*)")


def sarif_json(results: Results, version: str) -> bytes:
    """The report. It contains open findings only.

    Args:
        version: that of the pipeline.
    """
    found = [*map(_of_finding, results.open_findings), *_of_gates(results.gates)][:_RESULTS]
    ending = results.ending
    code = {} if ending.exit_code is None else {"exitCode": ending.exit_code}
    run = {
        "tool": {
            "driver": {
                "name": "Marvin",
                "semanticVersion": version,
                "rules": _rules(found),
            }
        },
        "automationDetails": {"id": "marvin-pipeline/"},
        "invocations": [{"executionSuccessful": ending.exit_code == 0, **code}],
        "columnKind": "unicodeCodePoints",
        "results": found,
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_bytes(log)


def _rules(found: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    ids = sorted({str(one["ruleId"]) for one in found})
    return [{"id": id, "shortDescription": {"text": _rule_words(id)}} for id in ids]


def _rule_words(id: str) -> str:
    kind, _, name = id.partition("/")
    if kind == "gate":
        return next((f"Not fulfilled: {words}." for gate, words in GATE_WORDS.items() if gate == name), id)
    return f"A finding of the review in phase {name}: {MEANINGS.get(name, name)}."


def _of_finding(finding: NotedFinding) -> dict[str, Any]:
    name = f".marvin/{finding.subject}.md" if finding.subject in _DOCUMENTS else _ELSEWHERE
    evidence = f"\n\nEvidence: {_text(finding.evidence)}" if finding.evidence else ""
    return _result(
        f"review/{finding.phase}",
        _LEVELS[finding.severity],
        f"{_text(finding.claim)}{evidence}",
        _location(finding.file or name, finding.line),
        {"id": finding.id, "severity": finding.severity, "phase": finding.phase, "commit": finding.commit},
    )


def _of_gates(gates: Sequence[GateResult]) -> Iterator[dict[str, Any]]:
    """The places that failed gates found."""
    for one in gates:
        for place in () if one.holds else one.gate.places:
            matched = _PLACE.fullmatch(place)
            file, line, what = (
                (matched["file"], int(matched["line"]), matched["what"]) if matched else ("", None, place)
            )
            about = {"phase": one.gate.phase, "commit": one.gate.commit}
            yield _result(f"gate/{one.gate.name}", "error", _text(what), _location(file or _ELSEWHERE, line), about)


def _result(rule: str, level: str, text: str, location: Mapping[str, Any], about: Mapping[str, str]) -> dict[str, Any]:
    print_of = sha256("\0".join((rule, json.dumps(location, sort_keys=True), text)).encode()).hexdigest()
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": text or rule},
        "locations": [location],
        "partialFingerprints": {"marvinFinding/v1": print_of[:32]},
        "properties": dict(about),
    }


def _location(file: str, line: int | None) -> dict[str, Any]:
    artifact = {"uri": quote(inside(file) or _ELSEWHERE), "uriBaseId": "%SRCROOT%"}
    place: dict[str, Any] = {"artifactLocation": artifact}
    if line is not None:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


def inside(file: str) -> str:
    """A path that an agent wrote, relative to the project; empty if it leads outside."""
    parts = one_line(file).strip("`\"' ").removeprefix("./").split("/")
    return "/".join(parts) if all(part not in ("", ".", "..") for part in parts) and "\\" not in file else ""


def _text(text: str) -> str:
    return one_line(text, _TEXT)
