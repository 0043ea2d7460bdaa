"""The sub-command `marvin packs new`: creates the repository of a new pack."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..run import CommandContext


def new_pack(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Its name, as in dice; the distribution becomes marvin-dice.")],
    folder: Annotated[Path, typer.Option(help="The folder to create it in.")] = Path(),
) -> None:
    """Create the repository of a new pack: a tool, tests, docs and CI. Nothing is overwritten."""
    from ..new_pack.names import pack_names
    from ..new_pack.writing import write_pack

    run: CommandContext = context.obj
    names = pack_names(name)
    made = write_pack(names, folder)
    run.write(
        f"{made} now contains a pack with one tool, {names.tool}. In that folder:\n"
        "  python3 -m venv .venv && . .venv/bin/activate\n"
        '  pip install --editable ".[dev]"\n'
        "  pytest\n"
        f"  python -m marvin_core packs check {names.pack}\n"  # the Marvin of that environment
        "Choose a licence in pyproject.toml; none is set yet.\n"
    )
