"""What read_file shows of binary files: names in archives, tables of databases, pages of documents."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

from marvin_core import Image, Text, ToolError, ToolResult

from .reading import BLOCK_AT, CALL_LIMIT, HEAD_LIMIT, Range, ReadCall

_OPENED = 50_000_000
"""Bytes of a file that is inspected at most."""
_NAMES = 200
_PAGES = 20
"""Pages of one call at most."""
_PICTURES = 3
_RESOLUTION = 80
"""Resolution of a page's image, in dots per inch."""
_ANSWER = 10_000_000
_PICTURE_LIMIT = 3_750_000  # in base64 just under the 5 MB that model services accept
_LOOKED_INTO = {
    "a ZIP": "zip",
    "a tar": "tar",
    "a gzip": "tar",
    "a bzip2": "tar",
    "an xz": "tar",
    "an SQLite": "sqlite",
}


class Document:
    """One call that reads a binary file.

    Args:
        kind: as `binary_kind` returns it.
    """

    def __init__(self, call: ReadCall, file: BinaryIO, kind: str) -> None:
        self._call = call
        self._context = call.files
        self._path = call.path
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._kind = kind

    async def described(self, wanted: Range) -> ToolResult:
        """The pages of the file, or its kind and its contents."""
        if self._kind.startswith("a PDF"):
            return await self._pages(wanted)
        what = next((what for start, what in _LOOKED_INTO.items() if self._kind.startswith(start)), "")
        found = await self._look(what, 1, _NAMES, 0) if what else None
        said = f"{self._path!r} is {self._kind} of {self._size:,} bytes, not text."
        if found is None:
            return ToolResult(content=f"{said} A program for this format can show more.")
        names, total = found
        one, held = ("table", "tables") if what == "sqlite" else ("entry", "entries")
        shown = "\n".join(_safe(name) for name in names)
        more = f"\n[The first {len(names):,} of {total:,} {held}.]" if total > len(names) else ""
        return ToolResult(content=f"{said} It has {total:,} {one if total == 1 else held}:\n{shown}{more}"[:CALL_LIMIT])

    async def _look(self, what: str, first: int, last: int, limit: int) -> tuple[list[str], int] | None:
        """Parts of the file and how many there are, from a process of its own; None if it fails."""
        if self._size > _OPENED:
            return None
        self._file.seek(0)
        order = json.dumps({"what": what, "first": first, "last": last, "limit": limit})
        result = await self._context.processes.run(
            [sys.executable, "-P", "-m", f"{__package__}.document_program", order],
            cwd=self._context.paths.root,
            stdin=self._file.read(),
            output_limit=_ANSWER,
        )
        if result.exit_code != 0:
            return None
        found: dict[str, Any] = json.loads(result.output)
        return found["parts"], found["total"]

    async def _pages(self, wanted: Range) -> ToolResult:
        first = wanted.first or 1
        last = min(wanted.last or first + _PAGES - 1, first + _PAGES - 1)
        limit = room(self._call, wanted)
        found = await self._look("pdf", first, last, limit)
        if found is None:
            raise ToolError(
                f"{self._path!r} is a PDF document of {self._size:,} bytes whose text cannot be read: it is damaged, "
                f"encrypted, or has more than {_OPENED:,} bytes. Read another file, or use a program for PDF "
                "documents."
            )
        texts, total = found
        if not texts:
            raise ToolError(f"{self._path!r} has {total:,} pages, so {first:,} does not exist.")
        parts = [f"--- page {number:,} of {total:,} ---\n{text}" for number, text in enumerate(texts, first)]
        shown, last = fitting(self._call, parts, (first, total, "pages"), limit)
        blank = [number for number, text in enumerate(texts, first) if not text.strip() and number <= last]
        numbers = [first] if wanted.first and wanted.first == wanted.last else blank[:_PICTURES]
        pictures = [picture for number in numbers for picture in await self._picture(number)]
        return ToolResult(content=(Text(text=shown), *pictures))

    async def _picture(self, number: int) -> list[Image]:
        """A page as an image, where a program for that is installed."""
        if self._context.processes.which("pdftoppm") is None:
            return []
        self._file.seek(0)
        page = ["-f", str(number), "-l", str(number), "-singlefile"]
        result = await self._context.processes.run(
            ["pdftoppm", "-png", "-r", str(_RESOLUTION), *page, "-"],
            cwd=self._context.paths.root,
            stdin=self._file.read(),
            output_limit=_PICTURE_LIMIT,
        )
        if result.exit_code != 0 or result.omitted or not result.output:
            return []
        return [Image(media_type="image/png", data=base64.b64encode(result.output).decode("ascii"))]


def room(call: ReadCall, wanted: Range) -> int:
    """How many characters of the session's read budget are left.

    Raises:
        ToolError: the budget of all calls is used up.
    """
    used = call.used()
    left = min(CALL_LIMIT if wanted.first or wanted.last else HEAD_LIMIT, BLOCK_AT - used)
    if left <= 0:
        raise ToolError(
            f"{call.tool.name} has used {used:,} of its {BLOCK_AT:,} characters and shows no more. Free space with "
            "compact_history and then read fewer pages or cells."
        )
    return left


def fitting(call: ReadCall, parts: Sequence[str], facts: tuple[int, int, str], limit: int) -> tuple[str, int]:
    """As many parts as fit, how to read on, and the number of the last part.

    Args:
        facts: the number of the first part, how many parts there are, and what they are called.
        limit: bytes of UTF-8 of all parts. The first part is cut if it is longer.
    """
    first, total, name = facts
    shown: list[str] = []
    for part in parts:
        size = len(part.encode("utf-8", "replace")) + 1
        if size > limit:
            if not shown:
                cut = part.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")
                shown.append(f"{cut}\n[... cut, {len(part) - len(cut):,} more characters]")
            break
        limit -= size
        shown.append(part)
    last = first + len(shown) - 1
    counted = f"{call.tool.first} and {call.tool.last} count {name} here"
    note = f"{name.capitalize()} {first:,} to {last:,} of {total:,}; {counted}."
    if last < total:
        note += f" Continue with: {call.example(last + 1, min(total, last + 10))}."
    return "\n".join([*shown, f"[{note}]"]), last


def _safe(name: str) -> str:
    """A name without line breaks and control characters."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in name)[:500]
