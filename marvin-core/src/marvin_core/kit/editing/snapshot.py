"""The state of a file before a change: read once, and kept open until it is written."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from functools import cached_property

from ...api.errors import ToolError
from ...api.tool_context import Paths
from ...guard.files.key_files import is_key_file
from ..files.encodings import HEAD_BYTES, Codec, binary_kind, codec_of
from .document import Document
from .known import KnownFiles, ReadLines, Standing

LARGEST = 20_000_000
"""The maximum size of an edited file in bytes; all of it is held in memory."""


class Snapshot:
    """An existing file.

    Args:
        stack: closes it. Until then its inode is not reused.

    Raises:
        ToolError: it does not exist, is not a file, or cannot be read.
    """

    def __init__(self, paths: Paths, path: str, stack: ExitStack) -> None:
        self.path = path
        self._stream = stack.enter_context(paths.open(path))
        self.place = str(paths.root / self._stream.name)
        self.status = os.fstat(self._stream.fileno())

    @cached_property
    def data(self) -> bytes:
        """The content. Raises `ToolError` if it is too large."""
        size = self.status.st_size
        if size > LARGEST:
            raise ToolError(
                f"{self.path!r} has {size:,} bytes, but only files of up to {LARGEST:,} bytes can be edited; "
                "nothing was changed. Change it with a program that reads it in pieces, such as sed."
            )
        self._stream.seek(0)
        return self._stream.read()

    @property
    def content(self) -> bytes | None:
        """The content; None if it is too large."""
        return self.data if self.status.st_size <= LARGEST else None

    @cached_property
    def codec(self) -> Codec:
        """The encoding. Raises `ToolError` if the file is not text, or its encoding is uncertain."""
        data = self.data
        kind = binary_kind(data[:HEAD_BYTES])
        codec = None if kind else codec_of(data)
        if not kind and b"\0" in data and (codec is None or not codec.name.startswith("utf-16")):
            kind = "a binary file"
        if kind:
            raise ToolError(
                f"{self.path!r} is {kind} of {len(data):,} bytes, not text; nothing was changed. "
                "Use a program that knows the format, or another file."
            )
        if codec is None:
            raise ToolError(
                f"{self.path!r} is not UTF-8, and its encoding cannot be determined with certainty; "
                "nothing was changed. Convert it to UTF-8 with iconv first, if the user agrees."
            )
        return codec

    @cached_property
    def document(self) -> Document:
        """Its text."""
        return Document(self.codec.decode(self.data))

    @property
    def is_secret(self) -> bool:
        """Whether the file holds keys, so that no error shows a line of it."""
        return is_key_file(self.path)

    @property
    def other_names(self) -> int:
        """The number of its other hard links."""
        return max(0, self.status.st_nlink - 1)

    def standing(self, known: KnownFiles | None) -> Standing:
        """Whether it is unchanged since the session read it."""
        return "unknown" if known is None else known.standing(self.place, self.status, self.data)

    def read(self, known: KnownFiles) -> ReadLines | None:
        """What the session has read of it; None if that is all of it."""
        if not self.status.st_size:
            return None
        read = known.read_of(self.place, self.status, self.content)
        return None if read is None or not read.unread else read


def note_content(
    paths: Paths, path: str, content: bytes, known: KnownFiles | None, read: ReadLines | None = None
) -> None:
    """Note a file as known that the session has given this content.

    Another program may have changed it since; then the session does not know it.

    Args:
        read: what the session knows of it; None for all of it.
    """
    if known is None:
        return
    with suppress(ToolError), paths.open(path) as stream:
        status = os.fstat(stream.fileno())
        if status.st_size == len(content) and stream.read() == content:
            known.note(str(paths.root / stream.name), status, content, read)


def place_of(paths: Paths, path: str) -> str:
    """The real path of a file, the same for all spellings."""
    return str(paths.root / paths.locate(path))
