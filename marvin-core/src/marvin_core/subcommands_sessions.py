"""The sub-command `marvin sessions`: list, show, search, export and rename what was talked about."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import transcript
from .archive import entries, local_time, one_line, search
from .errors import SessionError, UsageError
from .export import as_json, as_markdown, as_text

if TYPE_CHECKING:
    from .subcommands import Run
    from .ui.base import SessionEntry

_TITLE = 80

_Id = Annotated[str, typer.Argument(metavar="ID", help="The session's id, or the beginning of it.")]
_Here = Annotated[bool, typer.Option("--here", help="Only sessions of this folder.")]


class Format(StrEnum):
    """What an export is written as."""

    MARKDOWN = "markdown"
    JSON = "json"


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    group = typer.Typer(invoke_without_command=True, help="What was talked about: list, search, show, export, rename.")
    group.callback()(_default)
    for name, function in (
        ("list", list_sessions),
        ("show", show_session),
        ("search", search_sessions),
        ("export", export_session),
        ("rename", rename_session),
    ):
        group.command(name)(function)
    app.add_typer(group, name="sessions")


def _default(context: typer.Context) -> None:
    """List the sessions, where nothing else is asked for."""
    if context.invoked_subcommand is None:
        list_sessions(context)


def _folder(run: Run) -> Path:
    return run.config.data_folder / "sessions"


def list_sessions(context: typer.Context, here: _Here = False) -> None:
    """List the sessions, newest first: id, time, model, messages, folder, title."""
    run: Run = context.obj
    working_dir = str(run.config.working_dir.resolve()) if here else ""
    damaged = []
    lines = []
    for path, entry in entries(_folder(run), working_dir):
        if entry is None:
            damaged.append(path)
        else:
            lines.append(_line(entry))
    run.streams.out("".join(lines) or "There are no sessions yet. `marvin` begins one.\n")
    for path in damaged:
        run.streams.err(f"marvin: {path} is damaged: it has no header that can be read. Move it away, or mend it.")


def _line(entry: SessionEntry) -> str:
    model = one_line("/".join(filter(None, (entry.provider, entry.model)))) or "no model"
    facts = f"{local_time(entry.time)}, {model}, {_messages(entry.messages)}, {one_line(entry.working_dir)}"
    return f"{entry.id}  {entry.title}\n    {facts}\n"


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


def show_session(context: typer.Context, session_id: _Id) -> None:
    """Show what was said in a session."""
    run: Run = context.obj
    loaded = _loaded(run, session_id)
    run.streams.out(as_text(loaded.header, loaded.messages))


def _loaded(run: Run, session_id: str) -> transcript.Loaded:
    loaded = transcript.load(transcript.find(_folder(run), session_id))
    for problem in loaded.problems:
        run.streams.err(f"marvin: {problem}")
    return loaded


def search_sessions(
    context: typer.Context,
    text: Annotated[list[str], typer.Argument(metavar="TEXT", help="What to look for; capitals do not matter.")],
) -> None:
    """Find the sessions whose title or messages hold a text. Exits with 1 where there is none."""
    run: Run = context.obj
    wanted = " ".join(text)
    if not wanted.strip():
        raise UsageError("There is nothing to look for. Give some text.")
    found = False
    for hit in search(_folder(run), wanted):
        found = True
        run.streams.out(f"{hit.entry.id}  {hit.entry.title}\n")
        run.streams.out("".join(f"    {snippet}\n" for snippet in hit.snippets))
        if hit.messages > len(hit.snippets):
            run.streams.out(f"    and in {_messages(hit.messages - len(hit.snippets))} more\n")
    if not found:
        run.streams.err(f"marvin: no session holds {wanted!r}. `marvin sessions list` shows what there is.")
        raise typer.Exit(1)


def export_session(
    context: typer.Context,
    session_id: _Id,
    kind: Annotated[Format, typer.Option("--format", help="Markdown to read, or JSON with everything.")] = (
        Format.MARKDOWN
    ),
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write here, not to stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE where it exists.")] = False,
) -> None:
    """Write a session as Markdown or JSON."""
    run: Run = context.obj
    loaded = _loaded(run, session_id)
    text = (as_markdown if kind is Format.MARKDOWN else as_json)(loaded.header, loaded.messages)
    if output is None:
        run.streams.out(text)
        return
    try:
        with output.open("wb" if force else "xb") as stream:
            stream.write(text.encode("utf-8", "replace"))
    except FileExistsError as error:
        raise UsageError(f"{output} exists. Choose another file, or replace it with --force.") from error
    except OSError as error:
        raise SessionError(f"{output} cannot be written: {error.strerror}. Choose another file.") from error
    run.streams.err(f"marvin: wrote {output}")


def rename_session(
    context: typer.Context,
    session_id: _Id,
    title: Annotated[list[str], typer.Argument(metavar="TITLE", help="The new title.")],
) -> None:
    """Give a session another title; its id stays."""
    run: Run = context.obj
    new = one_line(" ".join(title))[:_TITLE]
    if not new:
        raise UsageError("The title is empty. Give some words.")
    path = transcript.find(_folder(run), session_id)
    writer = transcript.Transcript.resumed(path, transcript.load(path), run.config.waits)
    try:
        writer.change_header(title=new)
    finally:
        writer.close()
    run.streams.out(f"{path.stem}  {new}\n")
