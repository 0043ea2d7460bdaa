"""The sub-commands `marvin login` and `marvin logout`: the keys of model services, and logins with accounts."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from ...api.errors import UsageError
from ...api.providers import Secret
from ...config.program import command_name
from ..watched import run_watched

if TYPE_CHECKING:
    from ...api.models import KeyPlace
    from ...app import App
    from ...providers.selection.keys import ServiceKeys
    from ..run import CommandContext

_Name = Annotated[
    str, typer.Argument(metavar="[PROVIDER]", help="The service; the sub-command `providers list` lists them all.")
]


class Store(StrEnum):
    """Where a key is stored."""

    KEYRING = "keyring"
    FILE = "file"


_Store = Annotated[
    Store | None,
    typer.Option(
        "--store", help="Where the key is stored: in the system's keyring, or in a file that only you can read."
    ),
]


def extend(app: typer.Typer) -> None:
    """Add the sub-commands."""
    app.command("login")(login)
    app.command("logout")(logout)


def login(context: typer.Context, name: _Name = "", store: _Store = None) -> None:
    """Set the key of a model service, or log in to one that has accounts (codex).

    The key is read without being shown, or from standard input; one free request tries it out.
    """
    run: CommandContext = context.obj
    app = run.app()
    keys = app.keys()
    if not name:
        raise UsageError(f"Which service? {command_name()} login NAME, with one of: {', '.join(_names(app, keys))}.")
    if keys.has_login(name):
        from ...providers.codex.login import login as log_in

        read_line = sys.stdin.readline if run.streams.stdin_is_terminal() else None
        log_in(name, run.config, lambda text: run.write(f"{text}\n"), read_line)
        return
    variable = keys.variable(name)
    key = Secret(_read(run, f"The key of {name} ({variable}), which is not shown: "))
    if not key:
        raise UsageError("No key was given, so nothing was changed.")
    run.say(f"{run_watched(run, keys.try_out(name, key), close=app.models.aclose)}\n")
    run.say(f"{keys.keep(name, key, _place(run, keys, store))}\n")
    run.say(f"Use it: {command_name()} --provider {name}\n")


def logout(context: typer.Context, name: _Name = "") -> None:
    """Delete the stored key or login of a service."""
    run: CommandContext = context.obj
    app = run.app()
    keys = app.keys()
    if not name:
        raise UsageError(f"Which service? {command_name()} logout NAME, with one of: {', '.join(_names(app, keys))}.")
    if keys.has_login(name):
        from ...providers.codex.login import logout as log_out

        run.say(f"{log_out(name, run.config)}\n")
        return
    run.say(f"{keys.forget(name)}\n")


def _names(app: App, keys: ServiceKeys) -> list[str]:
    return [*keys.services(), *(name for name in app.catalog.known if keys.has_login(name))]


def _read(run: CommandContext, question: str) -> str:
    """Read the key from the terminal without echo, or else from standard input."""
    from ...ui.hidden_input import without_echo

    descriptor = run.streams.stdin
    if not os.isatty(descriptor):
        return sys.stdin.readline().strip()
    with without_echo(descriptor):
        run.streams.out(question)
        line = sys.stdin.readline()
    run.streams.out("\n")
    return line.strip()


def _place(run: CommandContext, keys: ServiceKeys, store: Store | None) -> KeyPlace:
    if store is not None:
        return "keyring" if store is Store.KEYRING else "file"
    problem = keys.keyring_problem()
    if problem:
        run.warn(f"marvin: {problem}")
    return "file" if problem else "keyring"
