"""`marvin import`: imports the data of an older Marvin."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from marvin_core import CliContext, UsageError, one_line

_OLDER = "local-finder"
"""The folder name of the older Marvin."""
_SHOWN = 20


def take_over(
    context: typer.Context,
    folder: Annotated[
        Path | None, typer.Argument(help="The folder of the older version of Marvin; default: ~/.config/local-finder.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be imported.")] = False,
) -> None:
    """Import the data of an older version: tickets, bookmarks, places, topics, logins, typed lines. Copies are kept."""
    from .importer import COPIES, Import

    run: CliContext = context.obj
    here = run.config.config_folder
    older = _folder(run, folder)
    work = Import(older, here, here / COPIES / time.strftime("%Y%m%d-%H%M%S"), run.timeouts)
    lines: list[str] = []
    problems: list[str] = []
    for done in work.run(dry_run=dry_run):
        told = [f"{done.taken:,} {'to import' if dry_run else 'imported'}"] if done.taken else []
        told += [f"{done.there:,} already here"] if done.there else []
        told += [f"{len(done.problems):,} left out"] if done.problems else []
        lines.append(f"{done.what:24} {', '.join(told) or 'nothing'}")
        problems += done.problems
    if not lines:
        raise UsageError(
            f"{older} contains no data of an older version of Marvin. Give its folder: marvin import FOLDER"
        )
    run.write("\n".join(lines) + "\n")
    for problem in problems[:_SHOWN]:
        run.warn(f"marvin: left out: {one_line(problem)}")
    if len(problems) > _SHOWN:
        run.warn(f"marvin: {len(problems) - _SHOWN:,} more were left out.")
    if work.copies.exists():
        run.write(f"Copies of the earlier files: {work.copies}\n")
    if problems:
        raise typer.Exit(1)


def _folder(run: CliContext, given: Path | None) -> Path:
    here = run.config.config_folder
    folder = given or (here if here.name == _OLDER else run.config.home / ".config" / _OLDER)
    home = "~/" if str(folder).startswith("~/") else ""
    folder = (run.config.home / str(folder).removeprefix(home) if home else folder).absolute()
    if not folder.is_dir():
        raise UsageError(
            f"The folder {folder} does not exist. Give the folder of the older version of Marvin: marvin import FOLDER"
        )
    return folder
