"""The files whose content a session knows: it has read them, or written all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

from ...api.record import Record
from ..files.sections import LinePart, TextSection

Standing: TypeAlias = Literal["unknown", "same", "changed"]

_KEY = "read_files"
_MOST = 2_000
"""The maximum number of files; the least recently used ones are forgotten."""


class ReadLines(Record):
    """What was read of a file: ranges of lines in order, and the number of all lines, None if that is unknown.

    `begun` has the lines of which only the beginning was read, and how many characters that were.
    """

    lines: tuple[tuple[int, int], ...] = ()
    total: int | None = None
    begun: tuple[tuple[int, int], ...] = ()

    def with_lines(self, first: int, last: int, total: int | None, begun: Sequence[tuple[int, int]] = ()) -> ReadLines:
        """Add a range that was read, with the lines of it of which only the beginning was read."""
        at, added = first, list(self.lines)
        for number, _ in begun:
            added.append((at, number - 1))
            at = number + 1
        lines = _merged([*added, (at, last)])
        known = {number: size for number, size in (*begun, *self.begun) if not _holds(lines, number)}
        return ReadLines(lines=lines, total=self.total if total is None else total, begun=tuple(known.items()))

    def with_part(self, number: int, first: int, last: int, *, is_cut: bool) -> ReadLines:
        """Add a part of a long line that was read, given by its characters."""
        begun = dict(self.begun)
        if first > begun.get(number, 0) + 1:
            return self
        if not is_cut:
            return self.with_lines(number, number, None)
        begun[number] = max(last, begun.get(number, 0))
        return self.replace(begun=tuple(begun.items()))

    @property
    def unread(self) -> tuple[tuple[int, int], ...]:
        """The ranges of lines that were not read. If the number of lines is unknown, the last one ends with 0."""
        found, at = [], 1
        for first, last in self.lines:
            if at < first:
                found.append((at, first - 1))
            at = last + 1
        if self.total is None or at <= self.total:
            found.append((at, self.total or 0))
        return tuple(found)

    def after(self, before: str, after: str) -> ReadLines:
        """What is known of a text after a change by the session, which knows the lines that it has added."""
        old, new = before.split("\n"), after.split("\n")
        if self.total != len(old) - (not old[-1]):
            return ReadLines()  # these are no lines, but cells of a notebook
        start = _alike(old, new)
        end = min(_alike(old[::-1], new[::-1]), len(old) - start, len(new) - start)
        stop, shift = len(old) - end, len(new) - len(old)
        lines = [(first, min(last, start)) for first, last in self.lines]
        lines += [(max(first, stop + 1) + shift, last + shift) for first, last in self.lines]
        if start == stop or any(first <= start + 1 and stop <= last for first, last in self.lines):
            lines.append((start + 1, len(new) - end))
        return ReadLines(lines=_merged(lines), total=len(new) - (not new[-1]))


class KnownFiles:
    """The known files, in a dictionary that lasts as long as the session.

    Args:
        state: `ToolContext.state`.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._files: dict[str, list[Any]] = state.setdefault(_KEY, {})  # saved with the session as JSON

    def note(
        self, path: str, status: os.stat_result, content: bytes | None = None, read: ReadLines | None = None
    ) -> None:
        """Note that a file was read or written.

        Args:
            path: its real absolute path.
            content: all of it, if available: then a file with the same content is known as well.
            read: what was read of it, as `read_of` returned it and more; None for all of it.
        """
        self._files.pop(path, None)
        kept = None if read is None else [read.lines, read.total, read.begun]
        self._files[path] = [_state(status), _digest(content) if content is not None else "", kept]
        while len(self._files) > _MOST:
            del self._files[next(iter(self._files))]

    def note_lines(
        self,
        path: str,
        status: os.stat_result,
        content: bytes | None,
        section: TextSection,
    ) -> None:
        """Note that lines of a file were read. A line that was cut counts once the rest of it was read too."""
        begun = [(number, section.line_limit) for number in section.long_lines]
        read = self.read_of(path, status, content)
        if read is not None:
            read = read.with_lines(section.first, section.last, section.total, begun)
        self.note(path, status, content, read)

    def note_part(
        self,
        path: str,
        status: os.stat_result,
        content: bytes | None,
        part: LinePart,
        *,
        number: int,
        total: int | None = None,
    ) -> None:
        """Note that a part of a long line was read.

        Args:
            number: that of the line.
            total: the number of all lines, if it is known.
        """
        read = self.read_of(path, status, content)
        if read is not None:
            read = read.with_part(number, part.first, part.last, is_cut=part.is_cut)
            read = read if total is None else read.replace(total=total)
        self.note(path, status, content, read)

    def forget(self, path: str) -> None:
        """Note that a file was deleted."""
        self._files.pop(path, None)

    def standing(self, path: str, status: os.stat_result, content: bytes | None) -> Standing:
        """Whether a file is unchanged since it was last read or written."""
        known = self._files.get(path)
        if known is None:
            return "unknown"
        state, digest, _ = known
        if state == _state(status) or (digest and content is not None and digest == _digest(content)):
            return "same"
        return "changed"

    def read_of(self, path: str, status: os.stat_result, content: bytes | None) -> ReadLines | None:
        """What is known of a file as it is now; None if that is all of it."""
        if self.standing(path, status, content) != "same":
            return ReadLines()
        kept = self._files[path][2]
        if kept is None:
            return None
        lines, total, begun = kept
        return ReadLines(lines=tuple(map(tuple, lines)), total=total, begun=tuple(map(tuple, begun)))


def _state(status: os.stat_result) -> list[int]:
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=12).hexdigest()


def _merged(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if first > last:
            continue
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def _holds(ranges: Sequence[tuple[int, int]], number: int) -> bool:
    return any(first <= number <= last for first, last in ranges)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of the first lines that are the same."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))
