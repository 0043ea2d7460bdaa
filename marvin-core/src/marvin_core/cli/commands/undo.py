"""The sub-command `marvin undo`: undoes the changes of tools in this folder, of any run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...config.program import command_name
from ...ui.commands.undo import listed, taken
from ...util.streams import keep_stdout, silence_packs
from ...util.watchdog import owner_of
from ..run import CommandContext
from ..watched import run_watched

if TYPE_CHECKING:
    from ...engine.session import Session

_LISTED = 100


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    app.command("undo")(undo)


def undo(
    context: typer.Context,
    count: Annotated[
        int, typer.Argument(metavar="N", min=1, max=100, help="How many calls to undo, newest first.")
    ] = 1,
    as_list: Annotated[
        bool, typer.Option("--list", help="List the calls that can be undone, without undoing any.")
    ] = False,
) -> None:
    """Undo what tools did in this folder: changes of files, and whatever else a tool can undo.

    The newest call is undone first. Files that were changed since then stay unchanged, and are listed.
    """
    run: CommandContext = context.obj
    session = run.session()
    keep_stdout(run.streams, owner_of)
    work = _undone(session, count, as_list=as_list)
    run.write(run_watched(run, work, close=session.close, rescue=session.rescue) + "\n")
    silence_packs()


async def _undone(session: Session, count: int, *, as_list: bool) -> str:
    if as_list:
        return listed(await session.undo.listed(_LISTED), f"`{command_name()} undo N`")
    return taken(await session.undo.take_back(count))
