"""The subjects of reviews, and their reviewers."""

from __future__ import annotations

from collections.abc import Mapping

from marvin_core import Record

from .convergence import Rules


class Reviewer(Record):
    """One of several parallel reviewers."""

    name: str
    role: str
    """A role of `run.roles`, which determines the tier and the prompt."""
    focus: str = ""
    """Its main topic, if several reviewers share a prompt."""


class Subject(Record):
    """A document, or the code of a phase."""

    name: str
    """As in `review-history-NAME.md`."""
    phase: str
    reviewers: tuple[Reviewer, ...]
    rules: Rules
    fixer: str
    """The role of its fixer."""
    path: str = ""
    """The document, relative to the project; empty for code."""
    keyword: str
    """The word with which a reviewer passes it."""
    values: Mapping[str, str]
    """Its values for prompts."""


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
"""The phases that write only tests: the tested code does not exist yet, as intended."""
