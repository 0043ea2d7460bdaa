"""Texts about findings for prompts, reports and the history."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from marvin_core import one_line

from .convergence import Ending, Known
from .findings import Finding

_LINE_LIMIT = 300
_LIST_LIMIT = 60_000
"""Characters of a list of findings."""

REASONS: dict[Ending, str] = {
    "passed": "All reviewers passed it.",
    "below_floor": "The last round found nothing important.",
    "no_findings": "The last round found nothing, although not every reviewer passed it.",
    "no_progress": "The last round only repeated findings that the fixer had already worked on.",
    "diminishing_returns": "The last round found as many problems as the round before.",
    "fix_without_effect": "The fixer changed nothing.",
    "round_limit": "The maximum number of rounds was reached.",
}
"""Why a loop ended, in a sentence."""


def line_of(finding: Finding) -> str:
    """A finding on one line."""
    return one_line(": ".join(part for part in (finding.severity, finding.file, finding.claim) if part), _LINE_LIMIT)


def list_of(findings: Iterable[Finding], tried: Collection[str] = ()) -> str:
    """Findings as a Markdown list, for reviewers and fixers.

    Args:
        tried: the ids of those that a fixer got before.
    """
    parts = []
    for finding in findings:
        head = " ".join(filter(None, (f"**{finding.id}** ({finding.severity})", _code(finding.file))))
        claim = finding.claim.replace("\n", "\n  ")
        parts.append(f"- {head}: {claim}")
        if finding.evidence:
            parts.append(f"  Evidence: {one_line(finding.evidence, 2 * _LINE_LIMIT)}")
        if finding.id in tried:
            parts.append("  An earlier fix did not resolve this. Use a different approach.")
    return "\n".join(_fitting(parts))


def known_list(known: Iterable[Known], round: int) -> str:
    """All findings of earlier rounds with their ids, and the last round of each."""
    lines = []
    for one in known:
        if one.last_round < round:
            given = "given to the fixer" if one.attempts else "not given to the fixer"
            lines.append(f"- **{one.finding.id}** (round {one.last_round}, {given}) {line_of(one.finding)}")
    return "\n".join(_fitting(lines))


def fenced(text: str, language: str = "") -> str:
    """A text in a code fence that it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.strip()}\n{fence}"


def _fitting(lines: list[str]) -> list[str]:
    shown: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > _LIST_LIMIT:
            shown.append(f"[{len(lines) - len(shown):,} further lines are left out.]")
            break
        shown.append(line)
    return shown


def _code(text: str) -> str:
    return f"`{one_line(text, _LINE_LIMIT)}`" if text else ""
