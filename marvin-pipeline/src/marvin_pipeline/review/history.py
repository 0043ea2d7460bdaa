"""The history of a loop for people and agents: `.marvin/review-history-NAME.md`. Agents' tools cannot write to it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from marvin_core import output_text

from ..run.files import ProjectFiles
from .convergence import Convergence, Decision
from .findings import Review
from .texts import REASONS, line_of

_TEXT_LIMIT = 20_000
"""Characters of a review that are kept."""


class History:
    """The history of the reviews of one subject.

    Args:
        files: the pipeline's own files of the project.
        name: of the subject, such as `spec`.
    """

    def __init__(self, files: ProjectFiles, name: str) -> None:
        self._files = files
        self.name = f"review-history-{name}.md"

    def round(self, phase: str, number: int, reviews: Mapping[str, Review]) -> None:
        """Add the reviews of a round. Raises `FileFault` if it cannot be written."""
        parts = [f"## Round {number} ({phase}), {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"]
        for name, review in reviews.items():
            parts.append(f"### {name}: {review.verdict}, {_count(len(review.findings))}")
            if review.text:
                parts.append(_quoted(review.text))
        self._add(parts)

    def decision(self, loop: Convergence, decision: Decision) -> None:
        """Add the decision of a round."""
        if decision.step == "review":
            self._add(["There is nothing to fix yet, so the reviewers are asked again."])
            return
        ending = decision.ending
        head = "For the fixer:" if ending is None else f"The loop ended ({ending}). {REASONS[ending]}"
        if ending and decision.findings:
            head += " Open are:"
        lines = [f"- {finding.id} {line_of(finding)}{self._before(loop, finding.id)}" for finding in decision.findings]
        self._add([f"### Round {loop.round}, outcome", head, "\n".join(lines)])

    def fix(self, number: int, ended: str, *, changed: bool) -> None:
        """Add the result of a fix."""
        what = "It changed files for its findings." if changed else "It changed nothing."
        self._add([f"### Fix of round {number}: {ended}", what])

    def _before(self, loop: Convergence, id: str) -> str:
        return " (an earlier fix did not resolve it)" if id in loop.tried_before else ""

    def _add(self, parts: list[str]) -> None:
        self._files.append(self.name, ("\n\n".join(part for part in parts if part) + "\n\n").encode())


def _quoted(text: str) -> str:
    """A review as a quotation, whose lines cannot be mistaken for the history's own."""
    shown = output_text(text[:_TEXT_LIMIT].encode("utf-8", "replace"))
    if len(text) > _TEXT_LIMIT:
        shown += "\n[The text continues.]"
    return "\n".join(f"> {line}" for line in shown.splitlines())


def _count(number: int) -> str:
    return "1 finding" if number == 1 else f"{number} findings"
