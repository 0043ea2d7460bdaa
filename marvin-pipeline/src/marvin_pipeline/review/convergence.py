"""Decides when a review ends: a state machine without agents and files.

Each round ends in one of four ways: the fixer gets the findings, the reviewers are asked again, the loop ends, or it
is aborted because no reviewer answered. A loop always ends, after `Rules.rounds` rounds at the latest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from marvin_core import Record

from .findings import SEVERITIES, Finding, Review, Severity, weight, worst
from .similarity import say_the_same

Step: TypeAlias = Literal["review", "fix", "end"]
Ending: TypeAlias = Literal[
    "passed", "below_floor", "no_findings", "no_progress", "diminishing_returns", "fix_without_effect", "round_limit"
]
"""Why a loop ended. Only `passed` is a pass."""

_CLAIM_LIMIT = 4_000
"""Characters of the merged claims of one finding in a round; longer ones become a finding of their own."""
_FINDINGS_LIMIT = 500
"""The maximum number of findings that a loop keeps, which is more than four rounds of fixes can use. Findings above the
floor are always kept, because each review has a limit of its own."""
_ID = re.compile(r"R\d+-\d+")


class Rules(Record):
    """The limits of a loop."""

    rounds: int = 4
    """The maximum number of rounds."""
    adversarial: int = 1
    """The number of initial rounds in which reviewers cannot pass."""
    floor: Severity = "high"
    """Less severe findings neither continue the loop nor stop the run: they go to the report."""
    attempts: int = 2
    """How often the fixer gets one finding, and how often it is asked again in a round without changes."""


class Decision(Record):
    """The next step."""

    step: Step
    findings: tuple[Finding, ...] = ()
    """For the fixer: the findings to fix. At the end: the open findings."""
    ending: Ending | None = None


class Known(Record):
    """A finding and its history."""

    finding: Finding
    last_round: int
    said: Mapping[str, tuple[int, Severity]]
    """Its reviewers, each with the last round and severity."""
    attempts: int = 0
    """How often the fixer got it."""


class Convergence:
    """One loop of reviews.

    Args:
        rules: the limits.
        reviewers: their names.
    """

    def __init__(self, rules: Rules, reviewers: Sequence[str]) -> None:
        self.rules = rules
        self.round = 1
        """The current round of reviews or fixes."""
        self.active = tuple(reviewers)
        """The reviewers of this round: one that passed is not asked again."""
        self.known: dict[str, Known] = {}
        """All findings by id."""
        self.decision = Decision(step="review")
        """The next step."""
        self._answered: dict[str, int] = {}
        self._weight: int | None = None
        self._without_effect = 0

    @property
    def is_adversarial(self) -> bool:
        """Whether reviewers cannot pass this round."""
        return self.round <= self.rules.adversarial

    @property
    def tried_before(self) -> frozenset[str]:
        """The ids of the findings that the fixer got before this round."""
        return frozenset(id for id, known in self.known.items() if known.attempts)

    def judge(self, reviews: Mapping[str, Review]) -> Decision:
        """Process the reviews of this round, by reviewer; returns the next step.

        Raises:
            EmptyReviews: no reviewer answered.
        """
        given = {name: reviews.get(name, Review(verdict="empty")) for name in self.active}
        if all(review.verdict == "empty" for review in given.values()):
            raise EmptyReviews
        raised = self._register(given)
        blocking = tuple(finding for finding in raised if finding.is_at_least(self.rules.floor))
        for name, review in given.items():
            if review.has_answered:
                self._answered[name] = self.round
            if review.verdict == "passed" and not self.is_adversarial and not self._blocks(review):
                self.active = tuple(other for other in self.active if other != name)
        self.decision = self._next(given, raised, blocking)
        self._weight = weight(blocking)
        if self.decision.step == "review":
            self.round += 1
        return self.decision

    def fixed(self, *, changed: bool) -> Decision:
        """Process a fix; returns the next step.

        Args:
            changed: whether the fixer changed its subject.
        """
        for finding in self.decision.findings:
            known = self.known[finding.id]
            self.known[finding.id] = known.replace(attempts=known.attempts + 1)
        self._without_effect = 0 if changed else self._without_effect + 1
        if changed:
            self.round += 1
            self.decision = Decision(step="review")
        elif self._without_effect >= self.rules.attempts:
            self.decision = self._end("fix_without_effect")
        return self.decision

    def _next(
        self, given: Mapping[str, Review], raised: tuple[Finding, ...], blocking: tuple[Finding, ...]
    ) -> Decision:
        if not self.active:
            return self._end("passed")
        if self.round >= self.rules.rounds:
            return self._end("round_limit")
        if blocking or (raised and self.is_adversarial):
            ending = self._in_vain(blocking)
            return self._end(ending) if ending else Decision(step="fix", findings=raised)
        if self.is_adversarial or any(review.verdict == "empty" for review in given.values()):
            return Decision(step="review")
        return self._end("below_floor" if raised else "no_findings")

    def _in_vain(self, blocking: tuple[Finding, ...]) -> Ending | None:
        """Why further rounds are pointless; empty if they are not."""
        if blocking and all(self.known[finding.id].attempts >= self.rules.attempts for finding in blocking):
            return "no_progress"
        # The first rounds are not comparable: an adversarial round is followed by the first review of a fix.
        if self.round > _EARLY and self._weight and weight(blocking) >= self._weight:
            return "diminishing_returns"
        return None

    def _end(self, ending: Ending) -> Decision:
        return Decision(step="end", ending=ending, findings=self.open_findings())

    def open_findings(self) -> tuple[Finding, ...]:
        """Findings that are not resolved: never given to the fixer, or not reviewed again by all their reviewers."""
        found = (self._as_held(known) for known in self.known.values())
        return tuple(finding for finding in found if finding is not None)

    def _as_held(self, known: Known) -> Finding | None:
        """A finding with the severity of reviewers that have not reviewed it again; None without any."""
        if not known.attempts:
            return known.finding
        held = [severity for name, (round, severity) in known.said.items() if self._answered.get(name, 0) <= round]
        return known.finding.replace(severity=worst(held)) if held else None

    def _blocks(self, review: Review) -> bool:
        return any(finding.is_at_least(self.rules.floor) for finding in review.findings)

    def _register(self, given: Mapping[str, Review]) -> tuple[Finding, ...]:
        """Assign ids to the findings of this round; known findings keep theirs."""
        ids: dict[str, None] = {}
        earlier = frozenset(self.known)
        for name, review in given.items():
            own: set[str] = set()
            for finding in review.findings:
                id = self._known_as(finding, earlier, own) or f"R{self.round}-{len(ids) + 1}"
                own.add(id)
                before = self.known.get(id)
                is_too_much = before is None and len(self.known) >= _FINDINGS_LIMIT
                if is_too_much and not finding.is_at_least(self.rules.floor):
                    continue
                self.known[id] = _merged(before, finding.replace(id=id, reviewers=(name,)), self.round)
                ids[id] = None
        return tuple(sorted((self.known[id].finding for id in ids), key=lambda one: SEVERITIES.index(one.severity)))

    def _known_as(self, finding: Finding, earlier: frozenset[str], own: set[str]) -> str:
        """The id of a known finding, which the reviewer names or whose words are similar.

        Args:
            earlier: the ids of earlier rounds, which reviewers saw.
            own: the ids that this reviewer has used in this round; a reviewer's own findings are never merged.
        """
        named = _ID.search(finding.id.upper())  # as in "r1-3", "#R1-3 (still open)"
        if named and named[0] in earlier and named[0] not in own:
            return named[0]
        alike = (id for id, known in self.known.items() if id not in own and say_the_same(known.finding, finding))
        return next((id for id in alike if self._has_room(id, finding)), "")

    def _has_room(self, id: str, finding: Finding) -> bool:
        known = self.known[id]
        return known.last_round < self.round or len(known.finding.claim) + len(finding.claim) < _CLAIM_LIMIT


_EARLY = 2


class EmptyReviews(Exception):
    """No reviewer of a round answered."""


def _merged(before: Known | None, finding: Finding, round: int) -> Known:
    """A finding merged with another review of it. In a later round the newest text replaces it, in the same round all
    count."""
    said = dict.fromkeys(finding.reviewers, (round, finding.severity))
    if before is None:
        return Known(finding=finding, last_round=round, said=said)
    old = before.finding
    reviewers = (*old.reviewers, *(name for name in finding.reviewers if name not in old.reviewers))
    if before.last_round < round:
        merged = finding.replace(file=finding.file or old.file, reviewers=reviewers)
    else:
        is_new = finding.claim not in old.claim
        merged = old.replace(
            severity=worst([old.severity, finding.severity]),
            claim=f"{old.claim}\n{finding.claim}" if is_new else old.claim,
            evidence=old.evidence or finding.evidence,
            file=old.file or finding.file,
            reviewers=reviewers,
        )
    return before.replace(finding=merged, last_round=round, said={**before.said, **said})
