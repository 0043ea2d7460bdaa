"""Ranges of lines out of files of any size, read in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import BinaryIO

LINE_LIMIT = 2_000
"""Characters of a line that are shown."""

_CHUNK = 1_000_000
_LINE_BYTES = 4 * LINE_LIMIT + 4  # that many characters, whatever their width in UTF-8


class _Line:
    def __init__(self) -> None:
        self.kept = bytearray()
        self.size = 0

    def extend(self, piece: bytes) -> None:
        self.size += len(piece)
        self.kept += piece[: max(0, _LINE_BYTES - len(self.kept))]


class TextSection:
    """Some lines of a file, as text.

    `total` is the number of lines of the file, `last` the number of the last line held here, and
    `is_cut` says that there was no room for more of what was asked for. `raw` are the lines as bytes, as far as they
    may be shown, each with its whole size.
    """

    def __init__(
        self, first: int, raw: Sequence[tuple[bytes, int]], total: int, *, is_cut: bool, open_end: bool
    ) -> None:
        self.first = first
        self.total = total
        self.is_cut = is_cut
        self.last = first + len(raw) - 1
        self.has_crlf = any(kept.endswith(b"\r") for kept, _ in raw)
        self.is_latin = not all(_is_utf8(*line) for line in raw)
        self.ends_without_newline = open_end and bool(raw) and self.last == total
        self.long_lines = 0
        self.lines = [self._text(*line) for line in raw]
        if first == 1 and self.lines:
            self.lines[0] = self.lines[0].removeprefix("\ufeff")

    def numbered(self) -> str:
        """The lines, each with its number and a tab before it."""
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(self.lines, self.first))

    def plain(self) -> str:
        """The lines as they are."""
        return "".join(f"{line}\n" for line in self.lines)

    def _text(self, kept: bytes, size: int) -> str:
        shown = kept.removesuffix(b"\r")
        text = shown.decode("latin-1") if self.is_latin else shown.decode("utf-8", "ignore")
        if size <= len(kept) and len(text) <= LINE_LIMIT:
            return text
        self.long_lines += 1
        return f"{text[:LINE_LIMIT]} [... cut, the line has {size:,} bytes]"


def _is_utf8(kept: bytes, size: int) -> bool:
    from codecs import getincrementaldecoder

    try:
        # What was cut off in the middle of a character is no mistake of the file.
        getincrementaldecoder("utf-8")().decode(kept, final=size <= len(kept))
    except UnicodeDecodeError:
        return False
    return True


class _Collector:
    """Counts all lines and keeps those of a range, as long as they fit into `limit` characters."""

    def __init__(self, first: int, last: int | None, limit: int) -> None:
        self.first = first
        self.last = last
        self.room = limit
        self.number = 1
        self.kept: list[_Line] = []
        self.is_cut = False

    def feed(self, chunk: bytes) -> None:
        breaks = chunk.count(b"\n")
        beyond = self.last is not None and self.number > self.last
        if self.is_cut or beyond or self.number + breaks < self.first:
            self.number += breaks
            return
        for index, piece in enumerate(chunk.split(b"\n")):
            self.number += index > 0
            if self.number >= self.first and (self.last is None or self.number <= self.last):
                self._keep(piece, is_new=index > 0 or not self.kept)

    def _keep(self, piece: bytes, *, is_new: bool) -> None:
        if self.is_cut:
            return
        if is_new:
            self.kept.append(_Line())
            self.room -= len(str(self.number)) + 2
        line = self.kept[-1]
        before = min(line.size, LINE_LIMIT)
        line.extend(piece)
        self.room -= min(line.size, LINE_LIMIT) - before
        if self.room < 0:
            self.kept.pop()
            self.is_cut = True


async def scan(file: BinaryIO, first: int, last: int | None, *, limit: int) -> TextSection:
    """Read the lines from `first` to `last` (None: the end), as far as they fit into `limit` characters."""
    collector = _Collector(first, last, limit)
    file.seek(0)
    final = b"\n"
    while chunk := file.read(_CHUNK):
        collector.feed(chunk)
        final = chunk[-1:]
        await asyncio.sleep(0)  # let other tasks run
    total = collector.number
    if final == b"\n":  # what begins after it is no line
        total -= 1
        if collector.kept and first + len(collector.kept) - 1 > total:
            collector.kept.pop()
    raw = [(bytes(line.kept), line.size) for line in collector.kept]
    return TextSection(first, raw, total, is_cut=collector.is_cut, open_end=final != b"\n")
