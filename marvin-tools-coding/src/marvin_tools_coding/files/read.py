"""The tool read_file: numbered lines of text files, images as images, and a budget for both."""

from __future__ import annotations

import os
from typing import Annotated, BinaryIO

from marvin_core import (
    Field,
    Image,
    Text,
    TextSection,
    TextSource,
    ToolContext,
    ToolError,
    ToolResult,
    image_type,
    tool,
)

WHOLE_FILE_LIMIT = 10_240
"""Bytes above which a file is only read by ranges of lines."""

WARN_AT = 200_000
BLOCK_AT = 300_000
"""Characters of read_file's outputs in the live context at which it warns, and at which it stops."""

_IMAGE_LIMIT = 3_750_000  # in base64 just under the 5 MB that model services take
_IMAGE_HEAD = 16
_EXAMPLE_LINES = 200

FirstLine = Annotated[int | None, Field(ge=0, validation_alias="start"), "First line, from 1"]
LastLine = Annotated[int | None, Field(ge=0, validation_alias="end"), "Last line, inclusive"]


@tool(access=["read"], group="files")
async def read_file(
    context: ToolContext,
    path: Annotated[str, "File, relative to the working directory"],
    start_line: FirstLine = None,
    end_line: LastLine = None,
) -> ToolResult:
    """Read a text file as numbered lines, or look at an image. Files over 10 KB need a range of lines."""
    with context.paths.open(path) as file:
        if image_type(file.read(_IMAGE_HEAD)):
            return _image(path, file)
        source = TextSource(path, file)
        if not source.size:
            return ToolResult(content="(The file is empty: 0 bytes.)")
        first, last = start_line or 1, end_line or None
        if last is not None and first > last:
            raise ToolError(f"start_line {first} is after end_line {last}. Swap them: {_example(path, last, first)}.")
        if source.size > WHOLE_FILE_LIMIT and not start_line and not end_line:
            total = (await source.section(limit=0)).total
            raise ToolError(_too_large(path, source.size, total))
        return await _section(context, path, source, (first, last))


async def _section(context: ToolContext, path: str, source: TextSource, wanted: tuple[int, int | None]) -> ToolResult:
    """The lines that were asked for, as far as the budget allows."""
    first, last = wanted
    used = context.session.output_characters("read_file")
    section = await source.section(first, last, limit=BLOCK_AT - used)
    if first > section.total:
        start = max(1, section.total - _EXAMPLE_LINES + 1)
        raise ToolError(
            f"{path!r} has {section.total:,} lines, so none from line {first:,} on. "
            f"Its end: {_example(path, start, section.total)}."
        )
    if not section.lines:
        dumped = await source.section(first, last, limit=BLOCK_AT)
        raise ToolError(_blocked(context, path, dumped, used))
    notes = [*_range_notes(path, section, wanted), *_format_notes(section, source)]
    shown = section.numbered()
    if used + len(shown) >= WARN_AT:
        notes.append(
            f"read_file has used {used + len(shown):,} of {BLOCK_AT:,} characters. Read small ranges, find "
            "places with code_grep, or free space with compact_history."
        )
    return ToolResult(content="\n".join([shown, *(f"[{note}]" for note in notes)]))


def _range_notes(path: str, section: TextSection, wanted: tuple[int, int | None]) -> list[str]:
    first, last = wanted
    if section.is_cut:
        following = section.last + 1
        onward = _example(path, following, following + _EXAMPLE_LINES - 1)
        return [f"Cut after line {section.last:,} of {section.total:,}: the budget is used up. Go on: {onward}."]
    if first == 1 and last is None:
        return []
    note = f"Lines {first:,} to {section.last:,} of {section.total:,}."
    if last is not None and last > section.total:
        note = f"Lines {first:,} to {section.last:,}: the file ends there."
    return [note]


def _format_notes(section: TextSection, source: TextSource) -> list[str]:
    notes = []
    if source.is_utf16:
        notes.append("The file is UTF-16; edits keep that.")
    elif source.has_mark:
        notes.append("The file starts with a byte order mark; edits keep it.")
    if section.is_latin:
        notes.append("The file is not valid UTF-8; it is shown as Latin-1.")
    if section.has_crlf:
        notes.append("Line ends are CRLF; apply_patch keeps them.")
    if section.long_lines:
        notes.append(f"{section.long_lines} long line(s) cut where marked.")
    if section.ends_without_newline:
        notes.append("No newline at the end of the file.")
    return notes


def _example(path: str, first: int, last: int) -> str:
    import json

    arguments = {"path": path, "start_line": first, "end_line": last}
    return f"read_file({json.dumps(arguments, ensure_ascii=False)})"


def _too_large(path: str, size: int, total: int) -> str:
    end = min(total, _EXAMPLE_LINES)
    calls = _example(path, 1, end)
    if total > end:
        calls += f", then {_example(path, end + 1, min(total, 2 * _EXAMPLE_LINES))}"
    return (
        f"{path!r} has {total:,} lines and {size:,} bytes, more than the {WHOLE_FILE_LIMIT:,} that are read "
        f"without a range. Find the place with code_grep, or read a part: {calls}."
    )


def _blocked(context: ToolContext, path: str, section: TextSection, used: int) -> str:
    lines = f"{section.first}-{section.last}"
    try:
        kept = f"Lines {lines} of {path!r} were saved to {_dump(context, path, lines, section)}."
    except ToolError as error:
        kept = f"Nothing was saved ({str(error).splitlines()[0]})"
    return (
        f"read_file has used {used:,} of its {BLOCK_AT:,} characters and shows no more. {kept} "
        "Free space with compact_history and then read smaller ranges, or search with code_grep."
    )


def _dump(context: ToolContext, path: str, lines: str, section: TextSection) -> str:
    """Keep what was asked for in the memory folder; returns where."""
    name = f"dump-{context.paths.locate(path).replace('/', '__')[:150]}-{lines}.txt"
    target = context.session.memory_folder / name
    data = section.plain().encode("utf-8", "replace")
    if target.is_relative_to(context.paths.root):
        # Through the sandbox: a repository may bring a link of that name that leads elsewhere.
        shown = target.relative_to(context.paths.root).as_posix()
        context.paths.replace(shown, data)
        return shown
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    except OSError as error:
        raise ToolError(f"{target} cannot be written: {error.strerror}.") from error
    return str(target)


def _image(path: str, file: BinaryIO) -> ToolResult:
    size = os.fstat(file.fileno()).st_size
    if size > _IMAGE_LIMIT:
        raise ToolError(
            f"{path!r} is an image of {size:,} bytes, and up to {_IMAGE_LIMIT:,} can be shown. "
            "Make a smaller copy first."
        )
    import base64

    file.seek(0)
    data = file.read()
    kind = image_type(data)
    return ToolResult(
        content=(
            Text(text=f"{path}: {kind}, {size:,} bytes"),
            Image(media_type=kind, data=base64.b64encode(data).decode("ascii")),
        )
    )
