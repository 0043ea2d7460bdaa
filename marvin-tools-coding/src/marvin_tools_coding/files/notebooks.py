"""What read_file shows of Jupyter notebooks: cells with their outputs."""

from __future__ import annotations

import base64
import json
from typing import Any

from marvin_core import Image, Text, TextSection, ToolError, ToolResult, image_flaw, image_type

from .documents import fitting, room
from .reading import Range, ReadCall

NOTEBOOK_LIMIT = 50_000_000
"""Bytes of a notebook that is shown by cells; a larger one is read as text."""

_OUTPUT = 2_000
"""Characters of one output of a cell."""

_PICTURES = 3
_PICTURE = 5_000_000
"""Characters of an image in base64 that model services accept."""


def notebook(call: ReadCall, data: bytes, wanted: Range) -> tuple[ToolResult, TextSection] | None:
    """The cells of a Jupyter notebook with their outputs, and which these are; None if the file is not one."""
    try:
        content = json.loads(data)
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "")
        cells = [_cell(number, cell, language) for number, cell in enumerate(content["cells"], 1)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not cells:
        return None
    first = wanted.first or 1
    if first > len(cells):
        raise ToolError(f"{call.path!r} has {len(cells):,} cells, so {first:,} does not exist.")
    chosen = cells[first - 1 : wanted.last]
    limit = room(call, wanted)
    texts = [text for text, _ in chosen]
    shown, last = fitting(call, texts, (first, len(cells), "cells"), limit)
    fits = texts[: last - first + 1]
    is_cut = sum(len(text.encode("utf-8", "replace")) + 1 for text in fits) > limit  # the first one is too long
    counted = TextSection(
        first=first, lines=tuple(fits), total=len(cells), is_cut=is_cut, long_lines=(first,) if is_cut else ()
    )
    pictures = [picture for _, held in chosen[: last - first + 1] for picture in held][:_PICTURES]
    if call.tool.edits:
        shown += "\n[The file is JSON; apply_patch changes that text, which code_grep shows.]"
    return ToolResult(content=(Text(text=shown), *pictures) if pictures else shown), counted


def _cell(number: int, cell: dict[str, Any], language: str) -> tuple[str, list[Image]]:
    """A cell as text, and the images among its outputs."""
    kind = f"{cell['cell_type']}{f', {language}' if language and cell['cell_type'] == 'code' else ''}"
    lines = [f"--- cell {number:,} ({kind}) ---", _joined(cell["source"])]
    pictures: list[Image] = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        text = _joined(output.get("text") or data.get("text/plain") or output.get("traceback") or "")
        if output.get("ename"):
            text = f"{output['ename']}: {output.get('evalue', '')}"
        if text:
            lines += ["--- output ---", text[:_OUTPUT]]
        if len(text) > _OUTPUT:
            lines.append(f"[... cut, {len(text) - _OUTPUT:,} more characters]")
        for media_type in ("image/png", "image/jpeg"):
            encoded = _joined(data.get(media_type, "")).replace("\n", "")
            if encoded and len(encoded) <= _PICTURE and _is_picture(encoded, media_type):
                pictures.append(Image(media_type=media_type, data=encoded))
    return "\n".join(lines), pictures


def _is_picture(encoded: str, media_type: str) -> bool:
    """Whether the data is the image it claims to be. A service refuses every request of a conversation with an invalid
    one."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except ValueError:
        return False
    return image_type(data) == media_type and not image_flaw(data)


def _joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)
