"""A sub-command: marvin stats."""

import typer

from marvin_core import hookimpl


def stats(words: list[str]) -> None:
    """Count the letters of words."""
    typer.echo(sum(map(len, words)))


@hookimpl
def marvin_extend_cli(app: typer.Typer) -> None:
    """One sub-command."""
    app.command()(stats)
