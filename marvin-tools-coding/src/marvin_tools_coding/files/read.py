"""The tool read_file: numbered lines of text files, images as images, and limits for both."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated, BinaryIO

from marvin_core import Field, KnownFiles, ToolContext, ToolResult, tool

from .adapters import READ_IGNORED, READ_NAMES, read_arguments
from .reading import Range, ReadCall
from .showing import shown_file

_COMPARED = 1_000_000
"""Bytes of a file whose content is compared before a write. Of a larger file the modification time is compared."""

FirstLine = Annotated[int | None, Field(ge=0, validation_alias="start"), "First line, from 1"]
LastLine = Annotated[int | None, Field(ge=0, validation_alias="end"), "Last line, inclusive"]
Column = Annotated[int | None, Field(ge=1), "With start_line: the character of that long line to continue at"]


@tool(
    known_as=["read", "view", "cat", "open_file", "read_files", "view_file", "view_image"],
    access=["read"],
    group="files",
    aliases=READ_NAMES,
    typed="@",
    unlisted=["column"],
    ignores=READ_IGNORED,
    adapt=read_arguments,
)
async def read_file(
    context: ToolContext,
    path: Annotated[str, "File below the working directory"],
    start_line: FirstLine = None,
    end_line: LastLine = None,
    column: Column = None,
) -> ToolResult:
    """Read text as numbered lines, or look at an image, PDF (lines count pages), notebook (cells) or archive. Without a
    range: the first 10 KB. With one: 50 KB or 2,000 lines at most; the answer says how to read on."""
    call = ReadCall(context=context, files=context, path=path)
    return await shown_file(call, Range(start_line or None, end_line or None), column, partial(_note, call))


def _note(call: ReadCall, file: BinaryIO, status: os.stat_result, content: bytes | None) -> None:
    """Record that the file was read, which writing it as a whole requires. `status` is from before it was read."""
    if content is None and status.st_size <= _COMPARED:
        file.seek(0)
        content = file.read()
    KnownFiles(call.context.state).note(os.path.join(call.context.paths.root, call.located), status, content)
