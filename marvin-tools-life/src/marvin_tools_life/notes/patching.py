"""The tool file_apply_patch: changes of a note by a patch or by line commands."""

from __future__ import annotations

import os
from typing import Annotated

from marvin_core import (
    FilePatch,
    PatchError,
    TextSource,
    ToolContext,
    ToolError,
    ToolResult,
    count_lines,
    counted,
    edit_files,
    in_thread,
    is_patch,
    place_of,
    read_patch,
    tool,
)

from . import line_commands
from .place import Notes

_LARGEST = 20_000_000
"""Bytes of a note that can be edited."""


@tool(
    access=["write"],
    aliases={"path": ("file_path", "filename", "file", "note"), "patch": ("diff", "commands", "edits")},
)
async def file_apply_patch(
    path: Annotated[str, "The note"],
    patch: Annotated[
        str, "Unified diff, or line commands 'REPLACE 3-5', 'INSERT 7' (after line 7), 'DELETE 2', with text below"
    ],
    dry_run: Annotated[bool, "Only show what would change"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Change a note, after file_read_lines."""
    notes = await in_thread(lambda: Notes(context, writing=not dry_run))
    place = await in_thread(lambda: notes.existing(path))
    by_lines = line_commands.has_commands(patch)
    change = await _by_lines(notes, place, patch) if by_lines else await in_thread(lambda: _by_patch(place, patch))
    known = None if notes.is_asked_by_person else notes.known
    paths = notes.files.paths
    (edited,) = await in_thread(lambda: edit_files(paths, [change], known=known, dry_run=dry_run), to_the_end=True)
    diff = await in_thread(lambda: edited.diff)
    if dry_run:
        return ToolResult(content=f"Nothing was written. The change would be:\n{diff}", details={"diff": diff})
    removed, added = sum(one.removed for one in edited.places), sum(one.added for one in edited.places)
    total = counted(count_lines(edited.after), "line")
    said = f"{counted(removed, 'line')} replaced by {added:,}; it has {total} now"
    return ToolResult(content=f"Changed {notes.told(place)}: {said}.", details={"diff": diff})


def _by_patch(place: str, patch: str) -> FilePatch:
    """The one change of the note; the file name in the patch is ignored."""
    if not is_patch(patch):
        raise PatchError(
            "The patch is neither a unified diff (--- a/NOTE, +++ b/NOTE, @@) nor line commands. Send commands such as "
            "REPLACE 3-5, INSERT 7 or DELETE 2, each with its text on the lines below."
        )
    patches = read_patch(patch, place)
    if len(patches) != 1:
        raise PatchError(f"The patch changes {len(patches)} files. Send one call for each note.")
    if patches[0].kind != "update" or patches[0].move_to:
        raise PatchError(
            "The patch creates, moves or deletes a file, which is not supported. Write a new note with write_note."
        )
    return patches[0].replace(path=place)


async def _by_lines(notes: Notes, place: str, patch: str) -> FilePatch:
    """Line commands as a change of the note, which must be unchanged since it was read: else the line numbers
    differ."""
    with await in_thread(lambda: notes.files.paths.open(place)) as file:
        status = os.fstat(file.fileno())
        if status.st_size > _LARGEST:
            raise ToolError(f"The note has {status.st_size:,} bytes; the limit for edits is {_LARGEST:,}.")
        source = TextSource(place, file)
        await source.lines()
        if source.codec is None:
            raise ToolError(
                "The encoding of the note cannot be determined with certainty. Ask the user to make it UTF-8."
            )
        file.seek(0)
        data = await in_thread(file.read)
        standing = notes.known.standing(place_of(notes.files.paths, place), status, data)
        text = source.codec.decode(data)
    if standing != "same" and not notes.is_asked_by_person:
        why = "has not been read yet" if standing == "unknown" else "was changed after you read it"
        raise ToolError(f"{notes.told(place)} {why}; nothing was changed. Read it with file_read_lines first.")
    lines = text.replace("\r\n", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    return FilePatch(path=place, hunks=line_commands.as_hunks(line_commands.read_commands(patch, len(lines)), lines))
