"""The sub-command `marvin replay`: runs a recorded session again, offline, and reports differences."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from ...api.errors import UsageError
from ...config.program import command_name
from ...recording.cassette import read_cassette
from ...recording.playing import How
from ...util.streams import keep_stdout, silence_packs
from ...util.terminal_text import json_for_terminals
from ...util.watchdog import owner_of
from ..run import CommandContext
from ..watched import run_watched
from .stage import Stage, replayed

_ENDING = ".cassette.jsonl"


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    app.command("replay")(replay)


def replay(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A cassette, as --record wrote it.")],
    tools: Annotated[
        Literal["recorded", "real"],
        typer.Option(help="Whether tools answer as recorded, or do their work in the current folder."),
    ] = "recorded",
    on_ask: Annotated[
        Literal["deny", "allow", "allow-all"],
        typer.Option(help="With --tools real: what happens to calls that need approval."),
    ] = "deny",
    strict: Annotated[
        bool, typer.Option("--strict", help="Count other instructions and other tools as differences, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    as_test: Annotated[
        bool,
        typer.Option("--as-test", help="Copy the cassette to the tests that pytest runs; do not replay it."),
    ] = False,
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder for --as-test. Default: tests, if it exists.")
    ] = None,
) -> None:
    """Run a recorded session again, without a model and without the network, and show the differences.

    The exit code is 0 if nothing differs, and 1 otherwise.
    """
    run: CommandContext = context.obj
    cassette = read_cassette(file)
    if as_test:
        run.write(_made_test(file, to))
        return
    keep_stdout(run.streams, owner_of)
    folder = Path(tempfile.mkdtemp(prefix="marvin-replay-"))
    try:
        stage = Stage(config=run.config, secrets=run.secrets, folder=folder, on_ask=on_ask)
        report = run_watched(run, replayed(cassette, stage, How(real=tools == "real", strict=strict)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        found = {"cassette": str(file), "recorded_by": cassette.marvin, **report.as_json()}
        run.write(json_for_terminals(json.dumps(found, ensure_ascii=False, indent=2)) + "\n")
    else:
        run.write("".join(f"{line}\n" for line in report.lines()))
    silence_packs()
    if not report.same:
        raise typer.Exit(1)


def _made_test(file: Path, to: Path | None) -> str:
    """Copy a cassette to the tests folder. Returns the message to print."""
    folder = to if to is not None else Path("tests") if Path("tests").is_dir() else Path()
    name = file.name.removesuffix(".jsonl").removesuffix(".cassette") + _ENDING
    target = folder / name
    if not (target.exists() and os.path.samefile(target, file)):
        try:
            with open(file, "rb") as content, open(target, "xb") as copy:
                shutil.copyfileobj(content, copy)
        except FileExistsError:
            raise UsageError(f"{target} already exists. Rename the cassette, or choose a folder with --to.") from None
        except OSError as error:
            raise UsageError(f"{target} cannot be written: {error.strerror}.") from None
    return (
        f"{target} is a test now: `pytest {target}` replays it, and fails if anything differs.\n"
        "Read it before you commit it: it contains the whole conversation, except for the secrets that Marvin knows.\n"
        f"Run it by hand with `{command_name()} replay {target}`.\n"
    )
