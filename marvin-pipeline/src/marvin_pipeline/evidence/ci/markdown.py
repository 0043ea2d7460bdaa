"""The report for people: `summary.md` and `matrix.md`. Texts of agents are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from marvin_core import one_line

from ...run.limits import words_of
from ...state import MEANINGS
from ..findings import NotedFinding
from .matrix import CriterionResult
from .results import GateResult, Results
from .words import GATE_WORDS, proof_words

_CELL, _LISTED = 300, 200
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#|!~&@:$])")
_ENDS = {
    "running": "is still running, or was killed",
    "done": "is done",
    "paused": "ended as planned",
    "failed": "failed",
    "budget": "reached its limit",
    "interrupted": "was interrupted",
}


def plain(text: str, limit: int = _CELL) -> str:
    """A text of an agent on one line, escaped so that it contains no markup, links or mentions."""
    return _MARKUP.sub(r"\\\1", one_line(text, limit))


def summary_markdown(results: Results) -> str:
    """The summary of a run."""
    ending = results.ending
    code = "" if ending.exit_code is None else f" Exit code {ending.exit_code}."
    cost = "cost unknown" if results.cost is None else f"{results.cost:.4f} USD"
    agents = sum(phase.agents for phase in results.history.phases)
    used = f"{_count(results.history.runs, 'run')}, {_count(agents, 'agent')}, {words_of(results.seconds)}"
    lines = [
        f"# The pipeline {_ENDS.get(ending.ended, ending.ended)}",
        "",
        f"{plain(ending.reason, 1_000)}{code}".strip(),
        "",
        f"{used}, {cost}. Commit `{results.commit[:12] or 'none'}`.",
    ]
    if ending.next_phase:
        lines.append(f"The next run starts with {ending.next_phase}.")
    lines += [
        "",
        "## Phases",
        "",
        "| phase | | how it ended | tries | time | cost | why |",
        "|---|---|---|---|---|---|---|",
    ]
    for phase in results.history.phases:
        money = "unknown" if phase.cost is None else f"{phase.cost:.4f}"
        took = words_of(phase.seconds) if phase.tries else ""
        cells = (phase.phase, MEANINGS[phase.phase], phase.outcome.replace("_", " "), phase.tries or "", took, money)
        lines.append(f"| {' | '.join(map(str, cells))} | {plain(phase.reason)} |")
    lines += ["", "## Gates", "", *_gates(results.gates)]
    lines += ["", "## Acceptance criteria", "", *_criteria(results.criteria)]
    lines += ["", "## Open findings", "", *_findings(results.open_findings)]
    return "\n".join(lines) + "\n"


def matrix_markdown(results: Results) -> str:
    """Each acceptance criterion with its tests, their commits, and its result."""
    lines = ["# From requirement to test, commit and finding", ""]
    if not results.criteria:
        return "\n".join([*lines, _NO_CRITERIA, ""])
    lines += ["| criterion | | proof | tests | commits | findings |", "|---|---|---|---|---|---|"]
    for one in results.criteria:
        tests = [f"{plain(test.file)}\\:{test.line} {plain(test.name)}".strip() for test in one.tests]
        commits = dict.fromkeys(test.commit[:12] or "not committed" for test in one.tests)
        found = [f"{plain(f.phase)} {plain(f.id)} {f.severity}, {f.standing}" for f in one.findings]
        cells = (plain(one.criterion.text), f"{proof_words(one.proof)} {plain(one.why)}")
        lists = (_cell(tests), _cell(commits), _cell(found))
        lines.append(f"| {one.criterion.id} | {' | '.join((*cells, *lists))} |")
    return "\n".join(lines) + "\n"


_NO_CRITERIA = "The specification has no acceptance criteria in lines of the form `AC-1: ...`."


def _cell(parts: Iterable[str]) -> str:
    listed = list(parts)
    more = [f"and {len(listed) - _LISTED} more"] if len(listed) > _LISTED else []
    return "<br>".join([*listed[:_LISTED], *more])


def _gates(gates: Sequence[GateResult]) -> Iterator[str]:
    if not gates:
        yield "No gate was recorded."
        return
    yield "| phase | gate | outcome | commit | why |"
    yield "|---|---|---|---|---|"
    for one in gates:
        gate = one.gate
        why = f"{plain(gate.reason)}{f' Accepted by {plain(gate.accepted_by)}.' if gate.accepted_by else ''}"
        standing = one.standing.replace("_", " ")
        yield f"| {plain(gate.phase)} | {GATE_WORDS[gate.name]} | {standing} | `{plain(gate.commit[:12])}` | {why} |"
    for one in gates:
        if not one.holds and one.gate.places:
            yield ""
            yield f"Findings of the gate `{one.gate.name}` of {plain(one.gate.phase)}:"
            yield ""
            yield from _list(one.gate.places)


def _criteria(criteria: Sequence[CriterionResult]) -> Iterator[str]:
    if not criteria:
        yield _NO_CRITERIA
        return
    shown = sum(one.proof == "shown" for one in criteria)
    yield f"{shown} of {len(criteria)} are covered by passing tests; `matrix.md` lists all of them."
    rest = [one for one in criteria if one.proof != "shown"]
    if rest:
        yield ""
        yield from _list(
            f"{one.criterion.id}: {one.criterion.text} ({proof_words(one.proof)} {one.why})" for one in rest
        )


def _findings(findings: Sequence[NotedFinding]) -> Iterator[str]:
    if not findings:
        yield "There are none."
        return
    yield from _list(
        f"{one.severity}, {one.phase} {one.id}"
        f"{f', {one.file}' if one.file else ''}{f' line {one.line}' if one.line else ''}: {one.claim}"
        for one in findings
    )


def _list(lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    yield from (f"- {plain(line)}" for line in listed[:_LISTED])
    if len(listed) > _LISTED:
        yield f"- and {len(listed) - _LISTED} more, in `report.json`"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
