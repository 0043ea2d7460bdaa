"""Parses the output of search programs while they write it: matching lines and their context."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ...api.record import Record

OUTPUT_BYTES = 8_000_000
"""The maximum number of bytes of a line in the output."""

# Path, number, then for a match its column and for all lines where they begin in the file. A name may hold line
# breaks, a line holds no NUL. Before it may stand what the program says of a binary file.
_LINE = re.compile(rb"(?:[^\0\n]*: binary file matches[^\0\n]*\n)*([^\0]+)\0(\d+)(?::(\d+):(\d+):|-(\d+)-)([^\n]*)\n")
_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")


class FoundLine(Record):
    """A matching line, or a context line. `column` is the position of the first match in it, from 0."""

    path: str
    number: int
    is_match: bool
    text: str
    column: int = 0


class RawLine(Record):
    """A line of the program's output; `start` is its byte offset in the file, `column` counts bytes."""

    path: bytes
    number: int
    is_match: bool
    data: bytes
    column: int
    start: int

    def line(self) -> FoundLine:
        """The line as text."""
        return FoundLine(
            path=os.fsdecode(self.path).removeprefix("./"),
            number=self.number,
            is_match=self.is_match,
            text=line_text(self.data),
            column=len(line_text(self.data[: self.column])),
        )


def line_text(data: bytes) -> str:
    """The text of a line; in a file that is not UTF-8 each byte is a character of Latin-1."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


class LineReader:
    """Parses the output of a program piece by piece, and says when it has enough.

    Args:
        most: the number of matches to show; one more shows that there are others.
        counts: whether matches of a file count, by its path relative to the root.
    """

    def __init__(self, most: int, counts: Callable[[str], bool]) -> None:
        self.lines: list[RawLine] = []
        self.is_cut = False
        self._left = most + 1
        self._counts = counts
        self._rest: list[bytes] = []
        self._bytes = 0

    def __call__(self, chunk: bytes) -> bool:
        """Parse the next bytes; returns whether no more are needed."""
        self._bytes += len(chunk)
        self._rest.append(chunk)
        if b"\n" in chunk:
            data, end = b"".join(self._rest), 0
            while found := _LINE.match(data, end):
                end = found.end()
                self._take(found)
            self._rest = [data[end:]]
        self.is_cut = self._bytes > OUTPUT_BYTES
        return self.is_enough

    @property
    def has_any(self) -> bool:
        """Whether there was any output."""
        return self._bytes > 0

    @property
    def is_enough(self) -> bool:
        """Whether no more are needed."""
        return self._left <= 0 or self.is_cut

    def _take(self, found: re.Match[bytes]) -> None:
        path, number, column, start, other_start, data = found.groups()
        path = path.removeprefix(b"./")
        if not self._counts(os.fsdecode(path)):
            return
        is_match = column is not None
        self._left -= is_match
        self.lines.append(
            RawLine(
                path=path,
                number=int(number),
                is_match=is_match,
                data=data.removesuffix(b"\r"),
                column=int(column) - 1 if is_match else 0,
                start=int(start if is_match else other_start),
            )
        )


def parsed_counts(output: bytes) -> dict[str, int]:
    """The number of matching lines of each file, by its path relative to the root."""
    return {os.fsdecode(found[1]).removeprefix("./"): int(found[2]) for found in _COUNT.finditer(output)}
