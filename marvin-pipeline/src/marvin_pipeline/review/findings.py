"""What reviewers find: how bad it is, where it is, and what shows it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from marvin_core import Record

Severity: TypeAlias = Literal["critical", "high", "medium", "low"]
"""How bad a finding is.

critical: whoever builds on it loses data, money or safety, or cannot build at all. high: something that was asked for
is missing, wrong or contradicts something else. medium: two people would build different things from it. low: wording.
"""
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
"""From the worst on."""
WEIGHTS: dict[Severity, int] = {"critical": 8, "high": 4, "medium": 2, "low": 1}
"""What a finding counts where rounds are compared."""

Verdict: TypeAlias = Literal["passed", "failed", "unclear", "empty"]
"""What a reviewer said in the end.

passed: the pass keyword, on a line of its own. failed: it found something, or said that the review failed. unclear:
words without a verdict. empty: nothing at all.
"""


class Finding(Record):
    """One thing that is wrong."""

    severity: Severity
    claim: str
    """What is wrong, in a sentence or some more."""
    file: str = ""
    """Where, relative to the project's folder; empty where the reviewer did not say."""
    evidence: str = ""
    """What shows it: words of the document, or a place in the code."""
    id: str = ""
    """Its name in the loop, as in `R1-3`: the third of round one. A reviewer that means an earlier one repeats it."""
    reviewers: tuple[str, ...] = ()
    """Who said it."""

    def is_at_least(self, floor: Severity) -> bool:
        """Whether it is as bad as that, or worse."""
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(floor)


class Review(Record):
    """What one reviewer said in one round."""

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    text: str = ""
    """Its words, as they were said."""

    @property
    def has_answered(self) -> bool:
        """Whether it says something of the document, and not only words."""
        return self.verdict in ("passed", "failed")


def worst(severities: list[Severity]) -> Severity:
    """The worst of some severities."""
    return min(severities, key=SEVERITIES.index)


def weight(findings: tuple[Finding, ...]) -> int:
    """What some findings count together."""
    return sum(WEIGHTS[finding.severity] for finding in findings)
