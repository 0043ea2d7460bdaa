"""What is shown of a file of any kind: lines of text, an image, or parts of a document."""

from __future__ import annotations

import os
from typing import BinaryIO

from marvin_core import (
    Image,
    KnownFiles,
    Text,
    TextSource,
    ToolError,
    ToolResult,
    binary_kind,
    image_flaw,
    image_type,
    in_thread,
)

from .reading import CALL_LIMIT, HEAD_LIMIT, Range, ReadCall, Reading

_IMAGE_LIMIT = 3_750_000  # in base64 just under the 5 MB that model services accept
_HEAD = 8_192
"""Bytes from which the kind of a file is determined."""

_COMPARED = 1_000_000
"""Bytes of a file whose content is compared before a write. Of a larger file the modification time is compared."""


async def shown_file(call: ReadCall, wanted: Range, column: int | None) -> ToolResult:
    """What one call shows of its file. What it shows of a text is noted in `KnownFiles`.

    Args:
        wanted: the requested lines, pages or cells.
        column: the character at which the first line starts.

    Raises:
        ToolError: there is no such file or range, or the budget of all calls is used up.
    """
    first, last = wanted.first or 1, wanted.last
    if last is not None and first > last:
        names = f"{call.tool.first} {first} is after {call.tool.last} {last}"
        raise ToolError(f"{names}. Swap them: {call.example(last, first)}.")
    with call.open() as file:
        head = file.read(_HEAD)
        if image_type(head):
            return _image(call.path, file)
        kind = binary_kind(head)
        if kind or call.path.endswith(".ipynb"):
            shown = await _document(call, file, (kind, wanted))
            if shown is not None:
                return shown
        source = TextSource(call.path, file)
        if not source.size:
            return ToolResult(content="(The file is empty: 0 bytes.)")
        content = source.content
        if content is None and source.size <= _COMPARED:
            file.seek(0)
            content = file.read()
        reading = Reading(call, source, content)
        if column is not None:
            return ToolResult(content=await reading.long_line(first, column))
        is_head = wanted == (None, None) and source.size > HEAD_LIMIT
        return ToolResult(content=await reading.lines(first, last, HEAD_LIMIT if is_head else CALL_LIMIT))


async def _document(call: ReadCall, file: BinaryIO, facts: tuple[str, Range]) -> ToolResult | None:
    """A binary file or a notebook; None for text.

    Args:
        facts: its kind, as `binary_kind` returns it, and the requested pages or cells.
    """
    kind, wanted = facts
    if kind:
        from .documents import Document

        return await Document(call, file, kind).described(wanted)
    from .notebooks import NOTEBOOK_LIMIT, notebook

    status = os.fstat(file.fileno())
    if status.st_size > NOTEBOOK_LIMIT:
        return None
    file.seek(0)
    data = file.read()
    shown = await in_thread(lambda: notebook(call, data, wanted))
    if shown is None:
        return None
    result, cells = shown
    KnownFiles(call.context.state).note_lines(call.real_path, status, data, cells)
    return result


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
    flaw = image_flaw(data)
    if flaw:
        raise ToolError(f"{path!r} cannot be shown as an image: {flaw}. Look for another copy, or make one.")
    kind = image_type(data)
    return ToolResult(
        content=(
            Text(text=f"{path}: {kind}, {size:,} bytes"),
            Image(media_type=kind, data=base64.b64encode(data).decode("ascii")),
        )
    )
