"""Reading text files of any size by their lines."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from ...api.errors import ToolError
from ...util.threads import in_thread
from .encodings import HEAD_BYTES, UTF8, Codec, codec_of, refuse_binary, utf16_codec
from .sections import (
    RawSection,
    Wanted,
    as_text,
    collect,
    count_lines_of,
    is_utf8,
    part_of_line,
    seek_line,
    whole_lines,
)

if TYPE_CHECKING:
    from .sections import LinePart, Stopped, TextSection

T = TypeVar("T")

_LOOKED_AT = 1_000_000
"""Bytes from which the encoding of a larger file is told."""
_GLANCED_AT = 65_536
"""Bytes from which that of a very large one is told, which is not looked at as a whole in any case."""
_CONVERTED = 20_000_000
"""Bytes of a file that is looked at as a whole, and made UTF-8 in memory, where it is in another encoding."""
_COUNTED = 64_000_000
"""Bytes of a file whose lines are all counted; those of a larger one are not, unless somebody asks for its end."""
_AT_ONCE = 262_144
"""Bytes of a file that is read without a thread."""
_PLAIN = ("utf-8", "strict")
_SHOWN = "backslashreplace"
"""How bytes that are no text in the encoding are shown: as `\\xff`."""
_ANY_NUMBER = 1_000_000_000


class TextSource:
    """A text file that is open for reading; `size` is in bytes.

    `codec` tells how it is encoded, None where that is not certain. Of a large file that is told from its beginning
    and from what was read of it so far.

    Args:
        path: how it is called in errors.
        file: as `ToolContext.paths.open` gives it; whoever opened it closes it.

    Raises:
        ToolError: it is no text; the error names what it is.
    """

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.size = os.fstat(file.fileno()).st_size
        file.seek(0)
        refuse_binary(path, file.read(HEAD_BYTES), self.size)
        self._path = path
        self._file = file
        self._text: BinaryIO | None = None
        self._whole: str | None = None
        """All of a small file in UTF-8."""
        self._encoding = _PLAIN
        self.codec: Codec | None = UTF8

    async def section(
        self, first: int = 1, last: int | None = None, *, limit: int, most: int = _ANY_NUMBER
    ) -> TextSection:
        """Some lines, as far as they fit.

        The rest of the file is not read, where it is large: then nobody knows the number of its lines.

        Args:
            first, last: their numbers, from 1 on; without `last` up to the end.
            limit: the most bytes of UTF-8 that they may have, their numbers included.
            most: the most lines.
        """
        return await self._run(lambda stopped: self._section(Wanted(first, last, limit, most), stopped))

    async def part(self, number: int, column: int, *, limit: int) -> LinePart | None:
        """A part of a long line, from a character on, counted from 1; None where there is no such line.

        Args:
            limit: the most bytes of UTF-8.
        """
        return await self._run(lambda stopped: self._part(number, column, limit, stopped))

    async def lines(self) -> tuple[int, bool]:
        """How many lines there are, and whether they were counted: of a large file the number is an estimate."""
        return await self._run(self._lines)

    async def _run(self, work: Callable[[Stopped], T]) -> T:
        """Do what reads, off the event loop where it may take long; it stops soon where nobody waits any more."""
        if self.size <= _AT_ONCE and self._is_quick():
            return work(lambda: False)
        stop = threading.Event()
        try:
            return await in_thread(lambda: work(stop.is_set))
        except asyncio.CancelledError:
            stop.set()
            raise

    def _is_quick(self) -> bool:
        """Whether the encoding is known, or easily told: else a library looks at what the bytes may mean."""
        if self._text is not None:
            return True
        self._file.seek(0)
        data = self._file.read(_AT_ONCE)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return False
        self._text = self._look(data)
        self._whole = text if self._text is self._file and len(data) == self.size else None
        return True

    def _section(self, wanted: Wanted, stopped: Stopped) -> TextSection:
        text = self._open()
        found = whole_lines(self._whole, wanted) if self._whole is not None else None
        if found is not None:
            return found
        total = seek_line(text, wanted.first, stopped)
        if total is not None:
            return as_text(wanted, RawSection(lines=()), total, self._encoding)
        raw = collect(text, wanted, stopped)
        if text is self._file and self._encoding == _PLAIN and not all(map(is_utf8, raw.lines)):
            self._look_again(b"\n".join(bytes(line.kept) for line in raw.lines))
            return self._section(wanted, stopped)
        if raw.at_end and not raw.is_cut:
            total = wanted.first + len(raw.lines) - 1
        elif self.size <= _COUNTED:
            total = self._lines(stopped)[0]
        return as_text(wanted, raw, total, self._encoding)

    def _part(self, number: int, column: int, limit: int, stopped: Stopped) -> LinePart | None:
        text = self._open()
        if text is self._file and _LOOKED_AT < self.size <= _CONVERTED:  # it may not be what it begins as
            text.seek(0)
            text = self._text = self._look(text.read())
        if seek_line(text, number, stopped) is not None:
            return None
        name = self._encoding[0]
        encoding = ("utf-8-sig" if name == "utf-8" and number == 1 else name, _SHOWN)
        for part in part_of_line(text, column, limit, encoding):
            if part is not None or stopped():
                return part
        return None

    def _lines(self, stopped: Stopped) -> tuple[int, bool]:
        text = self._open()
        lines, size = count_lines_of(text, _COUNTED, stopped)
        if text is not self._file or size >= self.size:
            return lines, True
        return round(lines * self.size / size), False

    def _open(self) -> BinaryIO:
        """The file, or its text as UTF-8, which lies in memory."""
        if self._text is None:
            self._file.seek(0)
            data = self._file.read(_LOOKED_AT if self.size <= _CONVERTED else _GLANCED_AT)
            self._text = self._look(data if self.size <= len(data) else _whole_lines(data))
        return self._text

    def _look(self, data: bytes) -> BinaryIO:
        """Tell the encoding, from the whole file where its beginning is not UTF-8."""
        self.codec = codec = codec_of(data)
        if codec is not None and codec.name == "utf-8":
            return self._file
        if len(data) < self.size <= _CONVERTED:
            self._file.seek(0)
            return self._look(self._file.read())
        if codec is not None and len(data) == self.size:
            return BytesIO(codec.decode(data).encode())
        if utf16_codec(data) is not None:
            raise ToolError(f"{self._path!r} has {self.size:,} bytes of UTF-16, too many. Convert it to UTF-8 first.")
        self._encoding = (codec.name if codec is not None else "utf-8", _SHOWN)
        return self._file

    def _look_again(self, lines: bytes) -> None:
        """What was taken for UTF-8 from its beginning is not."""
        self._file.seek(0)
        self._text = self._look(self._file.read() if self.size <= _CONVERTED else lines)
        if self._text is self._file and self._encoding == _PLAIN:
            self.codec, self._encoding = None, ("utf-8", _SHOWN)


def _whole_lines(data: bytes) -> bytes:
    """The beginning of a file without a line or a character that was cut in two."""
    end = data.rfind(b"\n") + 1
    if end:
        return data[:end]
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return data[: len(data) - len(decoder.getstate()[0])]
