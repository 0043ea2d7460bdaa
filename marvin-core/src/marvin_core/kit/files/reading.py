"""Reading text files of any size by their lines."""

from __future__ import annotations

import os
from io import BytesIO
from typing import BinaryIO

from ...api.errors import ToolError
from .encodings import HEAD_BYTES, has_utf8_mark, refuse_binary, utf16_codec
from .sections import TextSection, scan

_UTF16_LIMIT = 20_000_000
"""Bytes of a UTF-16 file, which is read as a whole."""


class TextSource:
    """A text file that is open for reading; `size` is in bytes.

    `is_utf16` and `has_mark` (a byte order mark of UTF-8) tell how it is encoded.

    Args:
        path: how it is called in errors.
        file: as `ToolContext.paths.open` gives it; whoever opened it closes it.

    Raises:
        ToolError: it is no text; the error names what it is.
    """

    def __init__(self, path: str, file: BinaryIO) -> None:
        self.size = os.fstat(file.fileno()).st_size
        file.seek(0)
        head = file.read(HEAD_BYTES)
        refuse_binary(path, head, self.size)
        codec = utf16_codec(head)
        self.is_utf16 = codec is not None
        self.has_mark = has_utf8_mark(head)
        self._text = file
        if codec is not None:
            if self.size > _UTF16_LIMIT:
                raise ToolError(f"{path!r} has {self.size:,} bytes of UTF-16, too many. Convert it to UTF-8 first.")
            file.seek(0)
            self._text = BytesIO(file.read()[len(codec.mark) :].decode(codec.name, "replace").encode())

    async def section(self, first: int = 1, last: int | None = None, *, limit: int) -> TextSection:
        """Some lines, as far as they fit.

        Args:
            first, last: their numbers, from 1 on; without `last` up to the end.
            limit: the most characters that they may have, their numbers included.
        """
        return await scan(self._text, first, last, limit=limit)
