"""The failures of a run, each with an exit code for CI."""

from __future__ import annotations

from collections.abc import Mapping

from marvin_core import MarvinError

from .ends import Cause


class PipelineFailed(MarvinError):
    """The run stopped before its last phase; the text says why."""


class FindingsLeft(PipelineFailed):
    """Findings of a review above the floor are left."""

    exit_code = 4


class RedTests(PipelineFailed):
    """Tests, or the end-to-end test, fail or prove too little."""

    exit_code = 5


FAILURES: Mapping[Cause, type[PipelineFailed]] = {"": PipelineFailed, "findings": FindingsLeft, "tests": RedTests}
"""By the cause of a failed phase."""
