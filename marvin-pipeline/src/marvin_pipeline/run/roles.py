"""The roles of agents, and the tier of each role's model."""

from __future__ import annotations

from collections.abc import Mapping

from marvin_core import Record


class Role(Record):
    """The role of an agent. `tier` is one of those of `--model TIER=MODEL`."""

    tier: str
    words: str
    """Its task, for tickets and reports."""


ROLES: Mapping[str, Role] = {
    "spec": Role(tier="plan_gen", words="write the specification"),
    "ux": Role(tier="plan_gen", words="write the user experience"),
    "design": Role(tier="plan_gen", words="write the design"),
    "structure": Role(tier="test_writer", words="set up the structure of the project"),
    "tests": Role(tier="test_writer", words="write the functional tests"),
    "integration_tests": Role(tier="test_writer", words="write the integration tests"),
    "implementation": Role(tier="codex", words="implement what the tests require"),
    "reviewer": Role(tier="opus", words="review a document"),
    "aux_reviewer": Role(tier="aux_reviewer", words="review a document in addition"),
    "quality_reviewer": Role(tier="aux_reviewer", words="review the quality of a document"),
    "fixer": Role(tier="codex", words="apply the findings of a review to a document"),
    "code_reviewer": Role(tier="opus", words="review the code of a phase"),
    "code_fixer": Role(tier="codex", words="apply the findings of a review to the code"),
    "diagnosis": Role(tier="opus", words="find the cause of a failure"),
    "debug": Role(tier="plan", words="make the tests pass"),
    "e2e": Role(tier="plan", words="test the program end to end"),
    "frontend": Role(tier="plan", words="check and fix the frontend"),
    "codebase_reviewer": Role(tier="opus", words="review the code base"),
    "codebase_fixer": Role(tier="codex", words="apply the findings of a review to the code base"),
    "qa_reviewer": Role(tier="opus", words="attack the program"),
    "qa_fixer": Role(tier="plan", words="fix what the attack found"),
}
"""The roles by name. The prompt of a role has the same name by default."""
