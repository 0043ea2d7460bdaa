"""The findings of reviewers: severity, location and evidence."""

from __future__ import annotations

from typing import Literal, TypeAlias

from marvin_core import Record

Severity: TypeAlias = Literal["critical", "high", "medium", "low"]
"""The severity of a finding.

critical: whoever builds on it loses data, money or safety, or cannot build at all. high: a requirement
is missing, wrong or contradicts something else. medium: two people would build different things from it. low: wording.
"""
SEVERITIES: tuple[Severity, ...] = ("critical", "high", "medium", "low")
"""From the worst on."""
WEIGHTS: dict[Severity, int] = {"critical": 8, "high": 4, "medium": 2, "low": 1}
"""The weight of a finding in comparisons of rounds."""

Verdict: TypeAlias = Literal["passed", "failed", "unclear", "empty"]
"""The verdict of a review.

passed: the pass keyword, on a line of its own. failed: it has findings, or says that the review failed. unclear:
text without a verdict. empty: no text.
"""


class Finding(Record):
    """A problem that a reviewer found."""

    severity: Severity
    claim: str
    """The problem, in one or a few sentences."""
    file: str = ""
    """Relative to the project's folder; empty if the reviewer gave none."""
    evidence: str = ""
    """A quotation from the document, or a location in the code."""
    id: str = ""
    """Its id in the loop, such as `R1-3`: the third of round one. Reviewers use it to repeat an earlier finding."""
    reviewers: tuple[str, ...] = ()
    """The reviewers that reported it."""

    def is_at_least(self, floor: Severity) -> bool:
        """Whether it has this severity, or a worse one."""
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(floor)


class Review(Record):
    """A reviewer's answer in one round."""

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    text: str = ""
    """The full text."""

    @property
    def has_answered(self) -> bool:
        """Whether it has a verdict or findings."""
        return self.verdict in ("passed", "failed")


def worst(severities: list[Severity]) -> Severity:
    """The worst of some severities."""
    return min(severities, key=SEVERITIES.index)


def weight(findings: tuple[Finding, ...]) -> int:
    """The total weight of some findings."""
    return sum(WEIGHTS[finding.severity] for finding in findings)
