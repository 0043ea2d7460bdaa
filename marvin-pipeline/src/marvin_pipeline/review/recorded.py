"""Restores an interrupted loop from its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..progress import Progress
from .convergence import Convergence, EmptyReviews
from .findings import SEVERITIES, Finding, Review


class Said:
    """The reviews of a round so far.

    Args:
        progress: where they are stored.
        round: the number of the round.
    """

    def __init__(self, progress: Progress, round: int) -> None:
        self._progress = progress
        self._round = round
        self.reviews: dict[str, Review] = {}
        for note in progress.read():
            try:
                if note.get("round") == round:
                    self.reviews[str(note["name"])] = _review(note["said"])
            except (AttributeError, KeyError, TypeError, ValueError):
                continue

    def note(self, name: str, review: Review) -> None:
        """Add a review. Raises `FileFault` if it cannot be stored."""
        self.reviews[name] = review
        if review.verdict != "empty":  # an empty review is requested again
            self._progress.note(round=self._round, name=name, said={**_as_noted(review), "text": review.text})


def as_noted(reviews: Mapping[str, Review]) -> dict[str, Any]:
    """The reviews of a round as plain data."""
    return {name: _as_noted(review) for name, review in reviews.items()}


def _as_noted(review: Review) -> dict[str, Any]:
    return {"verdict": review.verdict, "findings": [finding.as_dict() for finding in review.findings]}


def replay(loop: Convergence, noted: Sequence[Mapping[str, Any]]) -> int:
    """Restore the state of a new loop; returns how many records it used. Invalid ones are ignored."""
    for number, note in enumerate(noted):
        if "said" in note or "fixing" in note:  # part of the next step
            continue
        try:
            if "reviews" in note and loop.decision.step == "review":
                loop.judge({str(name): _review(value) for name, value in note["reviews"].items()})
            elif "changed" in note and loop.decision.step == "fix":
                loop.fixed(changed=note["changed"] is True)
            else:
                return number
        except (EmptyReviews, AttributeError, KeyError, TypeError, ValueError):
            return number
    return len(noted)


def _review(value: Mapping[str, Any]) -> Review:
    verdict = value["verdict"]
    if verdict not in ("passed", "failed", "unclear", "empty"):
        raise ValueError(verdict)
    findings = tuple(_finding(each) for each in value["findings"])
    return Review(verdict=verdict, findings=findings, text=str(value.get("text", "")))


def _finding(value: Mapping[str, Any]) -> Finding:
    severity = next((one for one in SEVERITIES if one == value["severity"]), None)
    if severity is None:
        raise ValueError(value["severity"])
    claim, file, evidence, id = (str(value[name]) for name in ("claim", "file", "evidence", "id"))
    return Finding(severity=severity, claim=claim, file=file, evidence=evidence, id=id)
