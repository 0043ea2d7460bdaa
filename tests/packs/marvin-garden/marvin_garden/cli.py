"""The sub-command of the garden."""

import typer

from marvin_core import CliContext, ToolError

from .settings import GardenSettings


def garden(context: typer.Context, loud: bool = False) -> None:
    """Say how the garden is."""
    run: CliContext = context.obj
    text = f"{run.settings(GardenSettings).litres} litres in {run.config.working_dir.name}"
    run.write(f"{text.upper() if loud else text}\n")
    typer.echo(run.folders.data)
    if run.config.working_dir.name == "fire":
        raise ToolError(f"nobody waters it with {run.secret('GARDEN_KEY')}")
    run.warn(f"without {run.secret('GARDEN_KEY')}")
