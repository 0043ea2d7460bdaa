"""The sub-commands of packs, added one by one: an invalid or conflicting one is left out alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import typer
from typer.models import CommandInfo, TyperInfo

from ..util.failures import told


class SubCommand(NamedTuple):
    """A sub-command or group in an application; `fault` says why it cannot be used, if so."""

    info: CommandInfo | TyperInfo
    fault: str = ""


def sub_commands(app: typer.Typer) -> dict[str, SubCommand]:
    """The sub-commands of an application, by name."""
    found: dict[str, SubCommand] = {}
    for info in _added(app):
        try:
            names = list(_commands_of(info))
        except Exception as error:  # Typer's errors about annotations name neither the function nor the pack
            if isinstance(info, TyperInfo) and info.typer_instance is not None and not _name_of(info):
                found.update(sub_commands(info.typer_instance))
            else:
                found[_name_of(info)] = SubCommand(info, f"{told(error)}{_place(info)}")
            continue
        if len(names) == 1 or isinstance(info, CommandInfo) or info.typer_instance is None:
            found.update(dict.fromkeys(names, SubCommand(info)))
        else:  # a group without a name: its sub-commands are added directly
            found.update(sub_commands(info.typer_instance))
    return found


def take_over(added: typer.Typer, names: Collection[str], app: typer.Typer) -> dict[str, str]:
    """Add sub-commands with these names from another application, and nothing else of it.

    Returns the reasons, by name, why others of these cannot be used.
    """
    faults = {}
    for name, (info, fault) in sub_commands(added).items():
        if name not in names:
            continue
        if fault:
            faults[name] = fault
        elif isinstance(info, CommandInfo):
            app.registered_commands.append(info)
        else:
            app.registered_groups.append(info)
    return faults


def _added(app: typer.Typer) -> list[CommandInfo | TyperInfo]:
    return [*app.registered_commands, *app.registered_groups]


def _commands_of(info: CommandInfo | TyperInfo) -> Collection[str]:
    alone = typer.Typer()
    alone.callback()(lambda: None)
    if isinstance(info, CommandInfo):
        alone.registered_commands.append(info)
    else:
        alone.registered_groups.append(info)
    return tuple(getattr(typer.main.get_command(alone), "commands", ()))


def _name_of(info: CommandInfo | TyperInfo) -> str:
    """The name of an object that typer cannot make a command of."""
    name = info.name
    if isinstance(info, TyperInfo) and not isinstance(name, str) and info.typer_instance is not None:
        name = info.typer_instance.info.name
    if isinstance(name, str) and name:
        return name
    return typer.main.get_command_name(getattr(info.callback, "__name__", "")) if info.callback else ""


def _place(info: CommandInfo | TyperInfo) -> str:
    """The place of the function whose parameters cannot be used, if it can be found."""
    code = next((getattr(inspect.unwrap(each), "__code__", None) for each in _culprits(info)), None)
    return f" (in {code.co_name}, {code.co_filename}, line {code.co_firstlineno})" if code is not None else ""


def _culprits(info: CommandInfo | TyperInfo) -> Iterator[Callable[..., Any]]:
    if isinstance(info, CommandInfo):
        if info.callback is not None:
            yield info.callback
        return
    for inner in _added(info.typer_instance) if info.typer_instance is not None else ():
        try:
            _commands_of(inner)
        except Exception:  # the error itself was reported before
            yield from _culprits(inner)
