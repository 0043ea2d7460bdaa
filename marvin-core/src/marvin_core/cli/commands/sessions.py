"""The sub-command `marvin sessions`: lists, shows, searches, exports, renames and repairs sessions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...api.errors import MarvinError, SessionError, UsageError
from ...config.program import command_name
from ...guard.kept_texts import KeptTexts
from ...sessions.doctor import Diagnosis, diagnose, repair
from ...sessions.export import as_text
from ...sessions.export_kinds import Kind, exported
from ...sessions.reader import FullTranscript, load_full
from ...sessions.records import title_of
from ...sessions.renaming import rename
from ...sessions.search import entries, search
from ...sessions.store import find, sessions
from ...util.state_files import private
from ...util.text import counted, local_time, one_line
from ..run import group

if TYPE_CHECKING:
    from ...api.controls import SessionEntry
    from ..run import CommandContext

_Id = Annotated[str, typer.Argument(metavar="ID", help="The session's id, or the beginning of it.")]
_Here = Annotated[bool, typer.Option("--here", help="Only sessions of this folder.")]


class Format(StrEnum):
    """The format of an export."""

    MARKDOWN = "md"
    HTML = "html"
    JSON = "json"


_KINDS: Mapping[Format, Kind] = {Format.MARKDOWN: "md", Format.HTML: "html", Format.JSON: "json"}


def extend(app: typer.Typer) -> None:
    """Add the sub-command."""
    sessions = group("Past conversations: list, search, show, export, rename and repair them.", list_sessions)
    for name, function in (
        ("list", list_sessions),
        ("show", show_session),
        ("search", search_sessions),
        ("export", export_session),
        ("rename", rename_session),
        ("doctor", examine_sessions),
    ):
        sessions.command(name)(function)
    app.add_typer(sessions, name="sessions")


def _folder(run: CommandContext) -> Path:
    return run.config.data_folder / "sessions"


def list_sessions(context: typer.Context, here: _Here = False) -> None:
    """List the sessions, the one written last first.

    Each with its id, title, when that was, model, messages and folder.
    """
    run: CommandContext = context.obj
    working_dir = str(run.config.working_dir.resolve()) if here else ""
    damaged = []
    lines = []
    for path, entry in entries(_folder(run), working_dir):
        if entry is None:
            damaged.append(path)
        else:
            lines.append(_line(entry))
    run.say("".join(lines) or "There are no sessions yet. Run `marvin` to start one.\n")
    for path in damaged:
        run.streams.err(
            f"marvin: {path} is damaged: its header cannot be read. See `{command_name()} sessions doctor`."
        )


def _line(entry: SessionEntry) -> str:
    model = one_line("/".join(filter(None, (entry.provider, entry.model)))) or "no model"
    facts = f"{local_time(entry.time)}, {model}, {counted(entry.messages, 'message')}, {one_line(entry.working_dir)}"
    return f"{entry.id}  {entry.title}\n    {facts}\n"


def show_session(context: typer.Context, session_id: _Id) -> None:
    """Show the conversation of a session."""
    run: CommandContext = context.obj
    run.write(as_text(_whole(run, session_id)))


def _whole(run: CommandContext, session_id: str) -> FullTranscript:
    whole = load_full(find(_folder(run), session_id), run.config.limits.session_line)
    for problem in whole.problems:
        run.streams.err(f"marvin: {problem}")
    return whole


def search_sessions(
    context: typer.Context,
    text: Annotated[
        list[str], typer.Argument(metavar="TEXT", help="The text to search for; upper and lower case are equal.")
    ],
) -> None:
    """Find the sessions whose title or messages contain a text. Exits with 1 if there is none."""
    run: CommandContext = context.obj
    wanted = " ".join(text)
    if not wanted.strip():
        raise UsageError("The search text is empty. Give some text.")
    found = False
    for hit in search(_folder(run), wanted, largest=run.config.limits.session_line):
        found = True
        run.write(f"{hit.entry.id}  {hit.entry.title}\n")
        for snippet, time in zip(hit.snippets, hit.times, strict=True):
            run.write(f"    {local_time(time)}  {snippet}\n" if time else f"    {snippet}\n")
        if hit.messages > len(hit.snippets):
            run.write(f"    and in {counted(hit.messages - len(hit.snippets), 'message')} more\n")
    if not found:
        run.streams.err(f"marvin: no session holds {wanted!r}. `{command_name()} sessions list` shows all sessions.")
        raise typer.Exit(1)


def export_session(
    context: typer.Context,
    session_id: _Id,
    kind: Annotated[Format, typer.Option("--format", help="Markdown or HTML for reading, or JSON with all data.")] = (
        Format.MARKDOWN
    ),
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE if it exists.")] = False,
) -> None:
    """Write a session as Markdown, HTML or JSON."""
    run: CommandContext = context.obj
    text = exported(_whole(run, session_id), _KINDS[kind])
    if output is None:
        run.write(text)
        return
    try:
        with open(output, "wb" if force else "xb", opener=private) as stream:
            stream.write(run.redactor.text(text).encode("utf-8", "replace"))
    except FileExistsError as error:
        raise UsageError(f"{output} exists. Choose another file, or overwrite it with --force.") from error
    except OSError as error:
        raise SessionError(f"{output} cannot be written: {error.strerror}. Choose another file.") from error
    run.streams.err(f"marvin: wrote {output}")


def rename_session(
    context: typer.Context,
    session_id: _Id,
    title: Annotated[list[str], typer.Argument(metavar="TITLE", help="The new title.")],
) -> None:
    """Give a session another title; its id stays."""
    run: CommandContext = context.obj
    new = title_of(KeptTexts(run.redactor, lambda text: run.warn(f"marvin: {text}")).text(" ".join(title)))
    path = find(_folder(run), session_id)
    rename(path, new, run.config)
    run.write(f"{path.stem}  {new}\n")


def examine_sessions(
    context: typer.Context,
    session_id: Annotated[str, typer.Argument(metavar="[ID]", help="Check this session only.")] = "",
    mend: Annotated[
        bool, typer.Option("--repair", help="Repair damaged files; each original is kept beside its repaired file.")
    ] = False,
) -> None:
    """Find and repair problems of session files. Nothing is ever deleted.

    Exits with 1 if a problem is left.
    """
    run: CommandContext = context.obj
    folder = _folder(run)
    paths = [find(folder, session_id)] if session_id else sessions(folder)
    left = [path for path in paths if not _examine(run, path, mend=mend)]
    if left:
        hint = "" if mend else f" `{command_name()} sessions doctor --repair` repairs them and keeps the originals."
        run.streams.err(f"marvin: {len(left)} of {_files(len(paths))} have problems.{hint}")
        raise typer.Exit(1)
    run.write(f"{_files(len(paths))} checked. No problems {'are left' if mend else 'were found'}.\n")


def _files(count: int) -> str:
    return f"{count} session file{'' if count == 1 else 's'}"


def _examine(run: CommandContext, path: Path, *, mend: bool) -> bool:
    """Print the problems of a file. Returns whether it has none, or was repaired."""
    kept: Path | None = None
    try:
        largest = run.config.limits.session_line
        if mend:
            found, kept = repair(path, run.config.timeouts, largest)
        else:
            found = diagnose(path, run.config.timeouts, largest)
    except MarvinError as error:
        run.write(f"{path.name}\n    {error}\n")
        return False
    if found.problems:
        run.write(f"{path.name}\n" + "".join(f"    {problem}\n" for problem in found.problems))
        if mend:
            run.write(f"    {_mended(found, kept)}\n")
    return mend or not found.problems


def _mended(found: Diagnosis, kept: Path | None) -> str:
    if kept is None:
        return "It was repaired in place."
    return f"It was {'moved aside' if found.content is None else 'repaired; the original is kept'} as {kept.name}."
