"""The request for a run of the pipeline."""

from __future__ import annotations

from pathlib import Path

from marvin_core import Record


class PipelineRequest(Record):
    """The request for a run, from flags or a tool."""

    prompt: str
    """What to build; empty to continue with the recorded prompt."""
    folder: Path
    """The project's folder, an absolute path."""
    from_phase: str = ""
    """The phase to go back to; empty to continue where the last run ended."""
    until_phase: str = ""
    """The last phase of this run; empty for all."""
    upstream: Path | None = None
    """A folder of documents for agents; None for those of the project."""
    max_time: float | None = None
    """Seconds; None for no limit."""
    yes: bool = False
    """Whether going back to the first phase needs no confirmation."""
