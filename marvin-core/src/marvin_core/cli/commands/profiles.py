"""The sub-command `marvin profiles`: lists, creates, selects and shows profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ...api.errors import UsageError
from ...config.program import command_name
from ...profiles.chat_log import KEPT
from ...profiles.store import Profiles
from ..run import group

if TYPE_CHECKING:
    from ..run import CommandContext

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.")]


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    profiles = group("Profiles: each has its own preferences, saved places and chat log.", list_profiles)
    profiles.command("list")(list_profiles)
    profiles.command("use")(use_profile)
    profiles.command("new")(new_profile)
    profiles.command("show")(show_profile)
    app.add_typer(profiles, name="profiles")


def _profiles(run: CommandContext) -> Profiles:
    return Profiles(run.config.config_folder, run.config.timeouts, lambda text: run.streams.err(f"marvin: {text}"))


def list_profiles(context: typer.Context) -> None:
    """List the profiles; a star marks the one in use."""
    run: CommandContext = context.obj
    profiles = _profiles(run)
    active = profiles.active
    for name in profiles.names():
        run.write(f"{'*' if name == active else ' '} {name}\n")


def use_profile(context: typer.Context, name: _Name) -> None:
    """Switch to a profile; it is created if it does not exist."""
    run: CommandContext = context.obj
    profiles = _profiles(run)
    is_new = name not in profiles.names()
    meant = profiles.misspelled(name)
    if meant:
        made = f"`{command_name()} profiles new {name}` creates it."
        raise UsageError(f"There is no profile {name!r}. {meant} {made}")
    folder = profiles.switch(name)
    run.write(f"{'Created and selected' if is_new else 'Selected'} the profile {name}: {folder}\n")


def new_profile(context: typer.Context, name: _Name) -> None:
    """Create a profile without switching to it."""
    run: CommandContext = context.obj
    folder = _profiles(run).create(name)
    run.write(f"Created the profile {name}: {folder}\nUse it: {command_name()} profiles use {name}\n")


def show_profile(context: typer.Context) -> None:
    """Show the profile in use: preferences, places and chat log."""
    run: CommandContext = context.obj
    profiles = _profiles(run)
    name = profiles.active
    preferences = profiles.preferences(name)
    places = profiles.saved_places(name)
    lines = [f"{name}  {profiles.folder(name)}", "", f"preferences  {profiles.preferences_file(name)}"]
    lines += [f"  {key}: {value}" for key, value in preferences.items()] or ["  none set; edit the file to set some"]
    lines += ["", f"saved places  {len(places)}"]
    lines += [f"  {place.get('label', '')}: {place.get('address') or place.get('name', '')}" for place in places]
    lines += ["", f"chat log  {len(profiles.chat_log(name).newest(KEPT))} entries"]
    run.write("\n".join(lines) + "\n")
