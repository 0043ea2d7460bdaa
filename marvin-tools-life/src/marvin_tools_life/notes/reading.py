"""The tools that read notes: read_note, file_read_lines and notes_ls."""

from __future__ import annotations

import time
from typing import Annotated, BinaryIO

from marvin_core import (
    FileInfo,
    TextSection,
    TextSource,
    ToolContext,
    ToolError,
    in_thread,
    one_line,
    place_of,
    tool,
)

from .place import Notes

_LIMIT = 50_000
"""Bytes of a note that one call shows."""
_COMPARED = 1_000_000
"""Bytes of a note whose content is compared before a write. Of a larger one the modification time is compared."""
_ENTRIES = 500
_NAME = 200
_FILE = ("file_path", "filename", "file", "name", "note", "title")


@tool(access=["read"], aliases={"path": _FILE})
async def read_note(path: Annotated[str, "The note, such as ideas/garden"], *, context: ToolContext) -> str:
    """Read a note."""
    notes = await in_thread(lambda: Notes(context))
    section = await _section(notes, path, 1, None)
    if section is None:
        return "(The note is empty.)"
    return section.plain().rstrip("\n") + _rest(section, path)


@tool(
    access=["read"],
    aliases={"path": _FILE, "start": ("start_line", "first", "from_line"), "end": ("end_line", "last", "to_line")},
)
async def file_read_lines(
    path: Annotated[str, "The note"],
    start: Annotated[int, "First line, from 1"] = 1,
    end: Annotated[int, "Last line; 0 means the end"] = 0,
    *,
    context: ToolContext,
) -> str:
    """Read lines of a note with their numbers, which file_apply_patch takes."""
    notes = await in_thread(lambda: Notes(context))
    if start < 0 or end < 0:
        raise ToolError(
            f"start {start} and end {end} are line numbers that start at 1. Leave them out for the whole note."
        )
    first = max(1, start)
    if end and end < first:
        raise ToolError(f"start {first} is after end {end}. Swap them.")
    section = await _section(notes, path, first, end or None)
    if section is None:
        return "(The note is empty.)"
    if not section.lines:
        raise ToolError(f"The note has {section.total:,} lines, so {first:,} does not exist. Read from an earlier one.")
    return section.numbered() + _rest(section, path)


async def _section(notes: Notes, path: str, first: int, last: int | None) -> TextSection | None:
    """Lines of a note, recorded as read; None if it is empty."""
    place = await in_thread(lambda: notes.existing(path))
    with await in_thread(lambda: notes.files.paths.open(place)) as file:
        source = TextSource(place, file)
        if not source.size:
            return None
        content = await in_thread(lambda: _small(file, source))
        section = await source.section(first, last, limit=_LIMIT)
        notes.known.note_lines(place_of(notes.files.paths, place), source.status, content, section)
        return section


def _small(file: BinaryIO, source: TextSource) -> bytes | None:
    """All of a file that is small."""
    if source.size > _COMPARED:
        return None
    file.seek(0)
    return file.read()


def _rest(section: TextSection, path: str) -> str:
    """A note about what a call does not show."""
    if not section.is_cut:
        return ""
    total = f" of {section.total:,}" if section.total is not None else ""
    call = f"file_read_lines(path={path!r}, start={section.last + 1})"
    return f"\n[Lines {section.first:,} to {section.last:,}{total}. Continue with {call}.]"


@tool(access=["read"], aliases={"path": ("folder", "directory", "dir")})
async def notes_ls(path: Annotated[str, "A folder; default: all notes"] = "", *, context: ToolContext) -> str:
    """List the notes and folders in a folder of the notes, with their sizes and when they were changed."""
    return await in_thread(lambda: _listed(context, path))


def _listed(context: ToolContext, path: str) -> str:
    notes = Notes(context)
    folder = notes.folder(path)
    if not path.strip() and not notes.files.paths.exists(folder):
        return f"There are no notes yet in {notes.shown}. Use write_note to create one."
    found = [entry for entry in notes.files.paths.list(folder, _ENTRIES + 2) if not _name(entry).startswith(".")]
    entries = sorted(found, key=lambda entry: (entry.kind != "folder", _name(entry).casefold()))
    if not entries:
        return f"{notes.told(folder) if path.strip() else notes.shown} is empty."
    lines = [_line(entry) for entry in entries[:_ENTRIES]]
    if len(entries) > _ENTRIES:
        lines.append(f"[More than {_ENTRIES}. Give a folder, or find notes with search_notes.]")
    return "\n".join(lines)


def _name(entry: FileInfo) -> str:
    return entry.path.rpartition("/")[2]


def _line(entry: FileInfo) -> str:
    name = one_line(_name(entry), _NAME)
    if entry.kind == "folder":
        return f"{name}/"
    changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.modified))
    return f"{name} ({entry.size:,} bytes, {changed})" if entry.kind == "file" else f"{name} (a {entry.kind})"
