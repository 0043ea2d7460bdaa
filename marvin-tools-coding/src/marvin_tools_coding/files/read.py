"""The tool read_file: numbered lines of text files, images as images, and limits for both."""

from __future__ import annotations

from typing import Annotated

from marvin_core import Field, ToolContext, ToolResult, tool

from .adapters import READ_IGNORED, READ_NAMES, read_arguments
from .reading import Range, ReadCall
from .showing import shown_file

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
    return await shown_file(call, Range(start_line or None, end_line or None), column)
