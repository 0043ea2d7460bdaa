"""The sub-command `marvin packs`: the installed packs, their contents and their problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ...plugins.model import Pack
from ...util.text import counted
from ..run import CommandContext, group
from .pack_check import check_pack
from .pack_new import new_pack

if TYPE_CHECKING:
    from ...plugins.manager import Census

_SLOW = 0.2
"""The seconds of a start from which a pack is reported as slow."""


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    packs = group("The installed packs and their problems.", list_packs)
    packs.command("list")(list_packs)
    packs.command("new")(new_pack)
    packs.command("check")(check_pack)
    packs.command("refresh")(refresh_packs)
    app.add_typer(packs, name="packs")


def list_packs(context: typer.Context) -> None:
    """List the installed packs. Exits with 1 if one of them has a problem."""
    run: CommandContext = context.obj
    plugins = run.app().plugins
    found = plugins.census()
    for entry in found:
        _write(run, entry)
    for pack in plugins.switched_off:
        run.write(f"{label(pack)}, disabled (packs.off in config.yaml)\n")
    if any(entry.pack.problems for entry in found):
        raise typer.Exit(1)


def refresh_packs(context: typer.Context) -> None:
    """Reload all packs and list them. A pack that could not be loaded is tried again."""
    from ...plugins.index import forget

    run: CommandContext = context.obj
    forget(run.config.cache_folder)
    list_packs(context)


def label(pack: Pack) -> str:
    """A pack's name, distribution and version."""
    return f"{pack.name}  {pack.distribution} {pack.version}".rstrip()


def contents(entry: Census) -> str:
    """The contents of a pack, as `1 tool, 2 hooks`."""
    if entry.pack.left_out:
        return (
            "left out; it may contain a hook that guards calls, so calls are blocked"
            if entry.pack.guards
            else "left out"
        )
    return ", ".join(counted(count, kind) for kind, count in entry.counts.items()) or "nothing"


def slowness(entry: Census) -> str:
    """A note on the time that a pack adds to each start; empty if it is not slow."""
    return f"takes {entry.start:.1f} s of each start" if entry.start >= _SLOW else ""


def _write(run: CommandContext, entry: Census) -> None:
    run.write(f"{label(entry.pack)}, {contents(entry)}\n")
    notes = [note for note in (slowness(entry), *entry.notes) if note]
    for kind, texts in (("problem", entry.pack.problems), ("note", notes)):
        for text in texts:
            run.write(f"  {kind}: {text}\n".replace("\n", "\n    ").rstrip(" "))
    if entry.pack.traceback:
        run.write("".join(f"    {line}\n" for line in entry.pack.traceback.splitlines()))
