"""The tools that write notes: write_note and notes_mkdir."""

from __future__ import annotations

import os
from typing import Annotated

from marvin_core import (
    FileChanged,
    ToolContext,
    ToolError,
    ToolResult,
    append_to_file,
    call_of,
    in_thread,
    tool,
    write_text_file,
)

from ..undo import check_undo
from .place import Notes

_NAMES = ("file_path", "filename", "file", "name", "title", "note")
_HEAD = 8_192
"""Bytes from which a note's line ends are detected."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""The byte order marks of UTF-16."""
_TEXTS = ("text", "body", "note_content", "contents")


@tool(access=["write"], aliases={"path": _NAMES, "content": _TEXTS})
async def write_note(
    path: Annotated[str, "Name or path, such as ideas/garden"],
    content: Annotated[str, "Markdown"],
    append: Annotated[bool, "Append the text instead of replacing the note"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Write a note, with its folders, in ~/Notes; in coding mode in .marvin/notes of the project."""
    return await in_thread(lambda: _write(context, path, content, append=append), to_the_end=True)


def _write(context: ToolContext, path: str, content: str, *, append: bool) -> ToolResult:
    notes = Notes(context, writing=True)
    place = notes.new(path)
    if not content.strip():
        raise ToolError("The note would be empty. Give its text as content.")
    text = content if content.endswith("\n") else f"{content}\n"
    exists = notes.files.paths.exists(place)
    diff, done = _append(notes, place, text) if append and exists else _replace(notes, place, text)
    return ToolResult(content=f"{done}.", details={"diff": diff} if diff else None)


def _append(notes: Notes, place: str, text: str) -> tuple[str, str]:
    """Append to a note on a new line; returns the difference, and what was done."""
    with notes.files.paths.open(place) as stream:
        head = stream.read(_HEAD)
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - 2))
        tail = stream.read(2)
    is_wide = head.startswith(_WIDE)
    # In UTF-16, the second byte of a line end is not the byte of a line end.
    ends_open = size > 0 and (tail.replace(b"\0", b"") if is_wide else tail[-1:]) != b"\n"
    text = f"\n{text}" if ends_open else text
    plain = head.replace(b"\0", b"") if is_wide else head
    if plain.count(b"\r\n") == plain.count(b"\n") > 0:
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    try:
        appended = append_to_file(notes.files.paths, place, text, known=notes.known)
    except FileChanged:  # it need not be read for this, but does not count as read then
        appended = append_to_file(notes.files.paths, place, text)
    return appended.diff, f"Added to {notes.told(place)}, which has {appended.total:,} bytes now"


def _replace(notes: Notes, place: str, text: str) -> tuple[str, str]:
    """Replace a whole note; returns the difference, and what was done."""
    try:
        known = None if notes.is_asked_by_person else notes.known
        written = write_text_file(notes.files.paths, place, text, known=known)
    except FileChanged as error:
        raise ToolError(f"{error} To keep its content, add to the note with append=true.") from error
    if written.old_size is None:
        return written.diff, f"Wrote the new note {notes.told(place)} ({written.size:,} bytes)"
    before = f"which had {written.old_size:,} bytes"
    return written.diff, f"Replaced {notes.told(place)}, {before}; it has {written.size:,} now"


@tool(access=["write"], aliases={"path": ("folder", "directory", "name", "dir")}, unlisted=["remove"])
async def notes_mkdir(
    path: Annotated[str, "The folder, such as ideas/garden"],
    remove: Annotated[bool, "For /undo only: remove the folder if it is empty"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Make a folder for notes."""
    return await in_thread(lambda: _folder(context, path, remove=remove), to_the_end=True)


def _folder(context: ToolContext, path: str, *, remove: bool) -> ToolResult:
    notes = Notes(context, writing=True)
    place = notes.folder(path)
    if place == notes.folder(""):
        raise ToolError("The path is not a folder name. Give a name such as 'ideas'.")
    if remove:
        check_undo(context, "remove")
        notes.files.paths.remove_folder(place)
        return ToolResult(content=f"Removed the folder {notes.told(place)}.")
    if not notes.files.paths.make_folder(place):
        return ToolResult(content=f"The folder {notes.told(place)} already exists.")
    inverse = call_of(notes_mkdir, path=path, remove=True)
    return ToolResult(content=f"Created the folder {notes.told(place)}.", undo=inverse)
