"""Commands for people about language servers: `/diagnostics`, `marvin lsp install` and `marvin lsp status`."""

from __future__ import annotations

import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from marvin_core import CliContext, MarvinError, SessionControl, in_thread

from . import installing, report
from .catalog import KINDS, ServerKind, by_name
from .lookup import found, installed
from .service import language_servers, noted_in
from .status import noted, still_there


async def diagnostics(session: SessionControl, text: str) -> str:
    """What /diagnostics shows: the servers of the session and all their diagnostics."""
    servers = await session.resource(language_servers)
    statuses = servers.statuses()
    said = report.overview(await in_thread(lambda: still_there(statuses)))
    return said or "No language server is running yet: the first edit of a file starts the servers of its language."


def install(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of: {', '.join(kind.name for kind in KINDS)}.")],
) -> None:
    """Install a language server for Marvin alone, into the folder lsp below the configuration folder."""
    run: CliContext = context.obj
    kind = _known(name)
    folder = run.config.config_folder
    commands = installing.steps(kind, folder, lambda program: _outside_of_projects(run, program, outside=True))
    run.warn(f"installing {kind.name} from {kind.source}")
    with installing.Installation(kind, folder) as installation:
        for command in commands:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            if done.returncode != 0:
                said = done.stdout.decode("utf-8", "replace").strip()[-2_000:]
                raise MarvinError(f"{kind.name} was not installed: {said}")
        installation.finish()
    run.write(f"{kind.name} is installed: {installed(kind, folder) or folder}\n")


def status(context: typer.Context) -> None:
    """List the language servers that Marvin knows, where they are, those that run, and all that they found."""
    run: CliContext = context.obj
    which = partial(_outside_of_projects, run)
    for kind in KINDS:
        program = found(kind, run.config.config_folder, which)
        ends = " ".join(kind.languages)
        run.write(f"{kind.name}: {program or f'missing; {kind.way}{_of_a_project(kind)}'} ({ends})\n")
    said = report.overview(still_there(noted(noted_in(run))))
    run.write(f"\n{said or 'No language server runs.'}\n")


def group() -> typer.Typer:
    """The sub-commands below `marvin lsp`."""
    made = typer.Typer(help="Language servers, which report errors in a file after each edit.")
    made.command("install")(install)
    made.command("status")(status)
    return made


def _of_a_project(kind: ServerKind) -> str:
    """Why a server in PATH counts as missing."""
    path = shutil.which(kind.program)
    return f"; {path} belongs to a project, and is not used" if path is not None else ""


def _known(name: str) -> ServerKind:
    kind = by_name(name)
    if kind is None:
        names = ", ".join(one.name for one in KINDS)
        raise MarvinError(f"There is no language server {name!r}. Those that Marvin knows: {names}.")
    return kind


def _outside_of_projects(run: CliContext, program: str, *, outside: bool) -> str | None:
    """The lookup that edits use: nothing in the working directory or in a Python environment counts."""
    path = shutil.which(program)
    if path is None or Path(path).is_relative_to(run.config.working_dir):
        return None
    return None if (Path(path).parent.parent / "pyvenv.cfg").exists() else path
