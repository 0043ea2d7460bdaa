"""Changing text files as a model asks for it: exactly what was given, encodings and line ends kept."""

from __future__ import annotations

import os

from ...api.errors import ToolError
from ...api.record import Record
from ...api.tool_context import Paths
from .diffs import unified_diff
from .encodings import HEAD_BYTES, UTF8, Codec, binary_kind, codecs_of, refuse_binary
from .matching import NoMatch, Replacement, replace_once

_DIFF_LIMIT = 1_000_000
"""Bytes of a file, old or new, beyond which no difference is made."""


class FileChange(Record):
    """A change of one place in a file: its text before and after, the line, and how many lines went and came."""

    path: str
    before: str
    after: str
    line: int
    removed: int
    added: int

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return unified_diff(self.path, self.before, self.after)

    def is_undone_by(self, old: str, new: str) -> bool:
        """Whether replacing `new` by `old` again gives the very text that was there before."""
        if not new:
            return False
        try:
            return replace_once(self.path, self.after, new, old).text == self.before
        except ToolError:
            return False


class WrittenFile(Record):
    """A file that was written as a whole: its bytes now and before, the latter None where there was none.

    `diff` is empty where nothing changed, and where one of the two is too large for it or no text.
    """

    size: int
    old_size: int | None = None
    diff: str = ""


class AppendedText(Record):
    """A text that was appended: its bytes, and those of the whole file now.

    `joins_line` says that the file did not end in a newline, so that its last line goes on with the text;
    `mixes_line_ends` that the file has CRLF line ends and the text LF.
    """

    size: int
    total: int
    joins_line: bool = False
    mixes_line_ends: bool = False


def replace_in_file(paths: Paths, path: str, old: str, new: str) -> FileChange:
    """Replace the one place where `old` occurs in a text file.

    The encoding of the file and its byte order mark stay. In a file with CRLF line ends both texts may be given
    with LF.

    Raises:
        NoMatch: `old` does not occur; the text has the lines that come near.
        ToolError: it occurs more than once, or the file is no text, or cannot be read or written.
    """
    data = _read(paths, path)
    codec, before, change = _replaced(path, data, old, new)
    paths.replace(path, codec.encode(change.text, path))
    return FileChange(
        path=path, before=before, after=change.text, line=change.line, removed=change.removed, added=change.added
    )


def append_to_file(paths: Paths, path: str, text: str) -> AppendedText:
    """Append a text to an existing text file, exactly as it is given, in the encoding of the file.

    Raises:
        ToolError: there is no such file (the cause is a `FileNotFoundError`), it is no text, or cannot be written.
    """
    data = _read(paths, path)
    codec = codecs_of(data)[0]
    addition = codec.replace(mark=b"").encode(text, path)
    paths.replace(path, data + addition)
    return AppendedText(
        size=len(addition),
        total=len(data) + len(addition),
        joins_line=bool(data) and not codec.decode(data).endswith("\n"),
        mixes_line_ends=b"\r\n" in data and "\n" in text.replace("\r\n", ""),
    )


def write_text_file(paths: Paths, path: str, text: str, *, create_only: bool = False) -> WrittenFile:
    """Write a whole text file as UTF-8, its folders made where they are missing.

    Args:
        create_only: it must not exist yet.

    Raises:
        ToolError: it cannot be written, or with `create_only` exists (the cause is then a `FileExistsError`).
    """
    data = UTF8.encode(text, path)
    old_size, old = (None, b"") if create_only else _old(paths, path)
    paths.replace(path, data, create_only=create_only)
    if max(old_size or 0, len(data)) > _DIFF_LIMIT or binary_kind(old) or create_only:
        return WrittenFile(size=len(data), old_size=old_size)
    diff = unified_diff(path, old.decode("utf-8", "replace"), text)
    return WrittenFile(size=len(data), old_size=old_size, diff=diff)


def _old(paths: Paths, path: str) -> tuple[int | None, bytes]:
    """The size of the file that is there, None without one, and as much of it as a difference is made of."""
    try:
        with paths.open(path) as file:
            return os.fstat(file.fileno()).st_size, file.read(_DIFF_LIMIT)
    except ToolError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise
        return None, b""


def _replaced(path: str, data: bytes, old: str, new: str) -> tuple[Codec, str, Replacement]:
    """The change, in the first encoding of the file in which the text occurs."""
    *others, last = codecs_of(data)
    for codec in others:
        try:
            text = codec.decode(data)
            return codec, text, replace_once(path, text, old, new)
        except NoMatch:
            continue
    text = last.decode(data)
    return last, text, replace_once(path, text, old, new)


def _read(paths: Paths, path: str) -> bytes:
    with paths.open(path) as file:
        data = file.read()
    refuse_binary(path, data[:HEAD_BYTES], len(data))
    return data
