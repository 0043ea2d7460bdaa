"""What is reviewed, and by whom."""

from __future__ import annotations

from collections.abc import Mapping

from marvin_core import Record

from .convergence import Rules


class Reviewer(Record):
    """One of those who review side by side."""

    name: str
    role: str
    """As of `run.roles`: it gives the tier and the prompt."""
    focus: str = ""
    """What it looks at above all, where several have one prompt."""


class Subject(Record):
    """A document, or the code of a phase."""

    name: str
    """As in `review-history-NAME.md`."""
    phase: str
    reviewers: tuple[Reviewer, ...]
    rules: Rules
    fixer: str
    """The role of who mends it."""
    path: str = ""
    """The document, relative to the project; empty for code."""
    keyword: str
    """What a reviewer ends with that finds nothing any more."""
    values: Mapping[str, str]
    """What prompts are filled with for it."""


MISSING = (
    "gaps: required behaviour that is not described, errors, empty and full states, limits, concurrent use, lost "
    "data, and attacks"
)
CONTRADICTIONS = (
    "inconsistencies: statements that contradict each other, the request or the upstream documents, names that "
    "change, numbers that do not add up, and parts that cannot be built as described"
)
DOCUMENT_REVIEWERS = (
    Reviewer(name="main", role="reviewer"),
    Reviewer(name="aux-1", role="aux_reviewer", focus=MISSING),
    Reviewer(name="aux-2", role="aux_reviewer", focus=CONTRADICTIONS),
    Reviewer(name="quality", role="quality_reviewer"),
)
CODE_REVIEWERS = (Reviewer(name="main", role="code_reviewer"),)
DOCUMENT_KEYWORD, CODE_KEYWORD, FAILED = "SPEC_VERIFIED", "CODE_VERIFIED", "REVIEW_FAILED"
TEST_PHASES = ("2a", "2b")
"""The phases that write tests alone: what they test is not there yet, as it should be."""
