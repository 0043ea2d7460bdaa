"""The sub-commands that packs add, taken over one by one, so that a name that is taken costs its pack one command."""

from __future__ import annotations

from collections.abc import Collection

import typer
from typer.models import CommandInfo, TyperInfo


def sub_commands(app: typer.Typer) -> dict[str, CommandInfo | TyperInfo]:
    """What was added to an application, by the name that it is called by."""
    found: dict[str, CommandInfo | TyperInfo] = {}
    added: list[CommandInfo | TyperInfo] = [*app.registered_commands, *app.registered_groups]
    for info in added:
        names = list(_commands_of(info))
        if len(names) == 1 or isinstance(info, CommandInfo) or info.typer_instance is None:
            found.update(dict.fromkeys(names, info))
        else:  # without a name of its own: what is in it counts as if it were added itself
            found.update(sub_commands(info.typer_instance))
    return found


def take_over(added: typer.Typer, names: Collection[str], app: typer.Typer) -> None:
    """Have an application offer those of another one's sub-commands that have these names, and nothing else of it."""
    for name, info in sub_commands(added).items():
        if name in names and isinstance(info, CommandInfo):
            app.registered_commands.append(info)
        elif name in names and isinstance(info, TyperInfo):
            app.registered_groups.append(info)


def _commands_of(info: CommandInfo | TyperInfo) -> Collection[str]:
    alone = typer.Typer()
    alone.callback()(lambda: None)
    if isinstance(info, CommandInfo):
        alone.registered_commands.append(info)
    else:
        alone.registered_groups.append(info)
    return tuple(getattr(typer.main.get_command(alone), "commands", ()))
