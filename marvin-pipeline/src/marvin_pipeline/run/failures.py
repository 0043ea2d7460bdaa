"""Why a run stops before its last phase, each with the exit code that a CI job acts on."""

from __future__ import annotations

from collections.abc import Mapping

from marvin_core import MarvinError

from .ends import Cause


class PipelineFailed(MarvinError):
    """The run stopped before its last phase; the text says why."""


class FindingsLeft(PipelineFailed):
    """Findings of a review that weigh enough to stop it are left."""

    exit_code = 4


class RedTests(PipelineFailed):
    """The tests, or what tries the program, fail, or are not worth what they should be."""

    exit_code = 5


FAILURES: Mapping[Cause, type[PipelineFailed]] = {"": PipelineFailed, "findings": FindingsLeft, "tests": RedTests}
"""By the cause for which a phase failed."""
