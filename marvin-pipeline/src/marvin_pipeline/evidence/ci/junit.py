"""The report as JUnit XML: one case for each acceptance criterion, phase and gate, and one for the run as a whole.

A run with exit code 0 has no failure here, and any other run has at least one. What is reported without failing
the run is a skipped case, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from marvin_core import Record, one_line

from ...state import MEANINGS
from .history import PhaseResult
from .matrix import CriterionResult
from .results import GateResult, Results
from .words import GATE_WORDS, proof_words

Verdict: TypeAlias = Literal["passed", "failed", "skipped"]
_TEXT, _DETAIL = 1_000, 200


class Case(Record):
    """One case."""

    suite: str
    name: str
    verdict: Verdict
    text: str = ""
    """Why it failed or was skipped, in a sentence."""
    details: tuple[str, ...] = ()
    """Details, one a line."""
    seconds: float = 0.0


def junit_xml(results: Results) -> bytes:
    """The report, in the format that Jenkins, GitLab and others read."""
    cases = cases_of(results)
    root = Element("testsuites", {"name": "marvin pipeline", "time": f"{results.seconds:.3f}", **_counted(cases)})
    for suite in dict.fromkeys(case.suite for case in cases):
        own = [case for case in cases if case.suite == suite]
        seconds, skipped = sum(case.seconds for case in own), sum(case.verdict == "skipped" for case in own)
        attributes = {"name": f"marvin.{suite}", "time": f"{seconds:.3f}", "skipped": f"{skipped}", **_counted(own)}
        element = SubElement(root, "testsuite", attributes)
        for case in own:
            _add(element, case)
    indent(root, " ")
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode").encode() + b"\n"


def _counted(cases: Sequence[Case]) -> dict[str, str]:
    failed = sum(case.verdict == "failed" for case in cases)
    return {"tests": f"{len(cases)}", "failures": f"{failed}", "errors": "0"}


def _add(suite: Element, case: Case) -> None:
    attributes = {"classname": f"marvin.{case.suite}", "name": case.name, "time": f"{case.seconds:.3f}"}
    element = SubElement(suite, "testcase", attributes)
    text, details = one_line(case.text, _TEXT), [one_line(line, _TEXT) for line in case.details[:_DETAIL]]
    if case.verdict == "failed":
        SubElement(element, "failure", message=text, type="marvin").text = "\n".join([text, *details])
        return
    if case.verdict == "skipped":
        SubElement(element, "skipped", message=text)
        text = ""
    if said := "\n".join(filter(None, [text, *details])):
        SubElement(element, "system-out").text = said


def cases_of(results: Results) -> Sequence[Case]:
    """All cases, first those of the run as a whole."""
    cases = [
        _run(results),
        *map(_criterion, results.criteria),
        *map(_phase, results.history.phases),
        *map(_gate, results.gates),
    ]
    if results.ending.exit_code != 0:
        return cases
    return [_reported(case) for case in cases]


def _reported(case: Case) -> Case:
    """A case of a successful run: failures are shown as skipped."""
    if case.verdict != "failed":
        return case
    return case.replace(verdict="skipped", text=f"Reported, but not counted against the run: {case.text}")


def _run(results: Results) -> Case:
    ending = results.ending
    if ending.exit_code is None:
        return Case(suite="run", name="the run ends", verdict="failed", text="It is still running, or was killed.")
    text = f"{ending.ended}: {ending.reason}".rstrip(": ")
    if ending.exit_code:
        text = f"Exit code {ending.exit_code}. {text}"
    verdict: Verdict = "failed" if ending.exit_code else "passed"
    return Case(suite="run", name="the run ends", verdict=verdict, text=text, seconds=results.seconds)


def _criterion(result: CriterionResult) -> Case:
    name = f"{result.criterion.id}: {one_line(result.criterion.text, _DETAIL)}"
    verdicts: dict[str, Verdict] = {"shown": "passed", "failing": "failed", "pending": "skipped", "untested": "failed"}
    details = [f"{test.file}:{test.line} {test.name} {test.commit[:12]}".rstrip() for test in result.tests]
    text = f"{proof_words(result.proof)} {result.why}"
    return Case(suite="criteria", name=name, verdict=verdicts[result.proof], text=text, details=tuple(details))


def _phase(result: PhaseResult) -> Case:
    name = f"{result.phase}: {MEANINGS[result.phase]}"
    verdict: Verdict = "passed"
    if result.outcome in ("failed", "unfinished"):
        verdict = "failed"
    elif result.outcome in ("skipped", "not_run"):
        verdict = "skipped"
    text = result.reason or {"not_run": "It was not started.", "unfinished": "It did not finish."}.get(
        result.outcome, ""
    )
    lines = (*result.blocking, *result.carried)
    return Case(suite="phases", name=name, verdict=verdict, text=text, details=lines, seconds=result.seconds)


def _gate(result: GateResult) -> Case:
    gate = result.gate
    verdict: Verdict = "passed"
    if not result.holds:
        verdict = "failed"
    elif result.standing in ("not_measured", "settled"):
        verdict = "skipped"
    name = f"{gate.phase}: {GATE_WORDS[gate.name]}"
    text = f"{result.standing.replace('_', ' ')} at {gate.commit[:12]}: {gate.reason}"
    return Case(suite="gates", name=name, verdict=verdict, text=text, details=(*gate.places, *gate.tests))
