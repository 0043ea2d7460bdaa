"""Parses the output of search programs while they write it: matching lines and their context."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable

from ...api.record import Record

OUTPUT_BYTES = 8_000_000
"""The maximum number of bytes of a line in the output."""

# Path, number, then for a match its column and for all lines where they begin in the file. ripgrep leaves the column
# out for an empty match at the end of a line. A name may hold line breaks, a line holds no NUL. Before it may stand
# what the program says of a binary file.
_LINE = re.compile(
    rb"(?:[^\0\n]*: binary file matches[^\0\n]*\n)*([^\0]+)\0(\d+)(?::(\d+)(?::(\d+))?:|-(\d+)-)([^\n]*)\n"
)
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

    def without_column(self) -> RawLine:
        """The line if it has no column, and what looks like where it begins is the start of its text."""
        return self.replace(start=self.column + 1, column=0, data=b"%d:%s" % (self.start, self.data))

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
        self._found: list[tuple[bytes, ...]] = []
        self._path = b""
        self._is_counted = False
        self.is_cut = False
        self._left = most + 1
        self._done_at = 0
        self._counts = counts
        self._rest: list[bytes] = []
        self._bytes = 0

    def __call__(self, chunk: bytes) -> bool:
        """Parse the next bytes; returns whether no more are needed."""
        self._bytes += len(chunk)
        self._rest.append(chunk)
        if b"\n" in chunk:
            data, end = b"".join(self._rest), 0
            while self._left > self._done_at and (found := _LINE.match(data, end)):
                end = found.end()
                self._take(found)
            self._rest = [data[end:]]
        self.is_cut = self._bytes > OUTPUT_BYTES
        return self.is_enough

    @property
    def is_enough(self) -> bool:
        """Whether no more are needed."""
        return self._left <= self._done_at or self.is_cut

    @property
    def lines(self) -> list[RawLine]:
        """The lines that were found."""
        return [_raw_line(*parts) for parts in self._found]

    def _take(self, found: re.Match[bytes]) -> None:
        parts = found.groups()
        if parts[0] != self._path:
            self._path = parts[0]
            self._is_counted = self._counts(os.fsdecode(self._path.removeprefix(b"./")))
        if self._is_counted:
            self._left -= parts[2] is not None
            self._found.append(parts)


def _raw_line(
    path: bytes, number: bytes, column: bytes | None, start: bytes | None, other: bytes, data: bytes
) -> RawLine:
    return RawLine(
        path=path.removeprefix(b"./"),
        number=int(number),
        is_match=column is not None,
        data=data.removesuffix(b"\r"),
        column=int(column) - 1 if column is not None and start is not None else 0,
        start=int(start or column or other),
    )


class FewReader(LineReader):
    """Has enough of many matches, and sooner of frequent ones.

    Args:
        most: the maximum number of matches.
        frequent: so many matches show that they are frequent, if they come at once.
        at_once: the number of seconds from the first output that this means.
    """

    def __init__(self, most: int, counts: Callable[[str], bool], frequent: int, at_once: float) -> None:
        super().__init__(most, counts)
        self.full: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when there is enough."""
        self._frequent_at = most + 1 - frequent
        self._at_once = at_once
        self._until = 0.0

    def __call__(self, chunk: bytes) -> bool:
        """As `LineReader` does."""
        now = time.monotonic()
        self._until = self._until or now + self._at_once
        self._done_at = self._frequent_at if now < self._until else 0
        if super().__call__(chunk) and not self.full.done():
            self.full.set_result(None)
        return self.full.done()

    @property
    def is_enough(self) -> bool:
        """Whether no more are needed."""
        return self.full.done() or super().is_enough


def parsed_counts(output: bytes) -> dict[str, int]:
    """The number of matching lines of each file, by its path relative to the root."""
    return {os.fsdecode(found[1]).removeprefix("./"): int(found[2]) for found in _COUNT.finditer(output)}
