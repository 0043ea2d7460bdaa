"""The entry point that Marvin loads. What a sub-command needs is imported when it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marvin_core import hookimpl

if TYPE_CHECKING:
    import typer


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """Add `marvin pipeline`."""
    from .cli import pipeline

    app.add_typer(pipeline, name="pipeline")
