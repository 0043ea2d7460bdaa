"""`marvin pipeline`: looking at the pipeline of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .state import MEANINGS, PHASES, PipelineState

pipeline = typer.Typer(no_args_is_help=True, help="The design-first pipeline of a project.")


@pipeline.callback()
def _group() -> None:
    """Keeps `status` a sub-command while it is the only one."""


@pipeline.command()
def status(
    working_dir: Annotated[Path, typer.Option(exists=True, file_okay=False, help="The project's folder.")] = Path("."),
) -> None:
    """Show which phases are finished, and which one is next."""
    state = PipelineState(working_dir)
    last, following = state.last_finished(), state.next_phase()
    finished = PHASES[: PHASES.index(last) + 1] if last else ()
    for phase in PHASES:
        mark = "done" if phase in finished else "next" if phase == following else ""
        typer.echo(f"{phase:10} {mark:5} {MEANINGS[phase]}".rstrip())
