"""Reads lines of text files of any size."""

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
"""The size of the sample for the encoding of a large file, in bytes."""
_GLANCED_AT = 65_536
"""The same for a very large file, which is never examined as a whole."""
_CONVERTED = 20_000_000
"""The maximum size of a file that is examined as a whole, and converted to UTF-8 in memory if needed."""
_COUNTED = 64_000_000
"""The maximum size of a file whose lines are all counted; in a larger one only if its end is requested."""
_AT_ONCE = 262_144
"""The maximum size of a file that is read without a thread, in bytes."""
_PLAIN = ("utf-8", "strict")
_SHOWN = "backslashreplace"
"""Bytes that are invalid in the encoding are shown as `\\xff`."""
_ANY_NUMBER = 1_000_000_000


class TextSource:
    """A text file that is open for reading; `size` is in bytes, `status` is from before it was read.

    `codec` is its encoding, None if uncertain. That of a large file is detected from its beginning and from what was
    read so far.

    Args:
        path: its name in errors.
        file: the result of `ToolContext.paths.open`; the caller closes it.

    Raises:
        ToolError: it is not text; the error names its type.
    """

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.status = os.fstat(file.fileno())
        self.size = self.status.st_size
        file.seek(0)
        self._start = file.read(HEAD_BYTES if self.size > _AT_ONCE else _AT_ONCE)
        refuse_binary(path, self._start[:HEAD_BYTES], self.size)
        self._path = path
        self._file = file
        self._text: BinaryIO | None = None
        self._whole: str | None = None
        """The whole text of a small file in UTF-8."""
        self._encoding = _PLAIN
        self.codec: Codec | None = UTF8

    @property
    def content(self) -> bytes | None:
        """The whole file, if it is small and was read at once."""
        return self._start if len(self._start) == self.size else None

    async def section(
        self, first: int = 1, last: int | None = None, *, limit: int, most: int = _ANY_NUMBER
    ) -> TextSection:
        """A range of lines, as far as it fits.

        The rest of a large file is not read, so that the number of its lines is unknown.

        Args:
            first, last: line numbers, from 1 on; by default up to the end.
            limit: the maximum number of bytes in UTF-8, including line numbers.
            most: the maximum number of lines.
        """
        return await self._run(lambda stopped: self._section(Wanted(first, last, limit, most), stopped))

    async def part(self, number: int, column: int, *, limit: int) -> LinePart | None:
        """A part of a long line, from a character on, counted from 1; None if the line does not exist.

        Args:
            limit: the maximum number of bytes in UTF-8.
        """
        return await self._run(lambda stopped: self._part(number, column, limit, stopped))

    async def lines(self) -> tuple[int, bool]:
        """The number of lines, and whether it was counted: that of a large file is an estimate."""
        return await self._run(self._lines)

    async def _run(self, work: Callable[[Stopped], T]) -> T:
        """Read outside of the event loop where it may take long; stops soon after a cancellation."""
        if self.size <= _AT_ONCE and self._is_quick():
            return work(lambda: False)
        stop = threading.Event()
        try:
            return await in_thread(lambda: work(stop.is_set))
        except asyncio.CancelledError:
            stop.set()
            raise

    def _is_quick(self) -> bool:
        """Whether the encoding is known or quick to detect; otherwise a library has to examine the bytes."""
        if self._text is not None:
            return True
        data = self._start
        if os.fstat(self._file.fileno()).st_size != len(data):  # it grows
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
        """Open the file, or its UTF-8 text in memory."""
        if self._text is None:
            self._file.seek(0)
            data = self._file.read(_LOOKED_AT if self.size <= _CONVERTED else _GLANCED_AT)
            self._text = self._look(data if self.size <= len(data) else _whole_lines(data))
        return self._text

    def _look(self, data: bytes) -> BinaryIO:
        """Detect the encoding, from the whole file if its beginning is not UTF-8."""
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
        """Detect the encoding again: the file looked like UTF-8 at its beginning, but is not."""
        self._file.seek(0)
        self._text = self._look(self._file.read() if self.size <= _CONVERTED else lines)
        if self._text is self._file and self._encoding == _PLAIN:
            self.codec, self._encoding = None, ("utf-8", _SHOWN)


def _whole_lines(data: bytes) -> bytes:
    """The beginning of a file without a truncated line or character at its end."""
    end = data.rfind(b"\n") + 1
    if end:
        return data[:end]
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return data[: len(data) - len(decoder.getstate()[0])]
