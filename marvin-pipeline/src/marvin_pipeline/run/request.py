"""What a run of the pipeline is asked for."""

from __future__ import annotations

from pathlib import Path

from marvin_core import Record


class PipelineRequest(Record):
    """One run as it was asked for, by flags or by a tool."""

    prompt: str
    """What is to be built; empty to go on with what was asked for before."""
    folder: Path
    """The project's folder, an absolute path."""
    from_phase: str = ""
    """The phase to go back to; empty to go on where the last run ended."""
    until_phase: str = ""
    """The last phase of this run; empty for all."""
    upstream: Path | None = None
    """A folder of documents that agents may read; None for what the project has."""
    max_time: float | None = None
    """Seconds that the run may take; None for no limit."""
    yes: bool = False
    """Whether going back to the beginning needs no further question."""
