"""A text with separate line endings, so that searches are independent of those of the file."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate

from ...api.record import Record

_CRLF = re.compile("\r\n")


class Span(Record):
    """A part of a document, in characters of its `text`, and its replacement."""

    start: int
    end: int
    new: str


class Document:
    """The text of a file. `text` has LF line endings; `raw` is the original."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self._is_old_mac = "\r" in raw and "\n" not in raw
        self.text = raw.replace("\r", "\n") if self._is_old_mac else raw.replace("\r\n", "\n")

    @cached_property
    def _crlf(self) -> list[int]:
        """The positions in `text` of newlines that are CRLF in the file."""
        if self._is_old_mac or "\r\n" not in self.raw:
            return []
        return [found.start() - number for number, found in enumerate(_CRLF.finditer(self.raw))]

    @cached_property
    def _line_ends(self) -> int:
        return self.text.count("\n")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of `text` without their endings; text after the last line ending is a line if it is not empty."""
        lines = self.text.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    @cached_property
    def starts(self) -> list[int]:
        """The position in `text` of each line, and of a next line after the last."""
        starts = [0, *accumulate(map((1).__add__, map(len, self.lines)))]
        starts[-1] = min(starts[-1], len(self.text))
        return starts

    def line_at(self, position: int) -> int:
        """The line number, from 1 on, of a character of `text`."""
        count = len(self.starts) - (not self.text.endswith("\n"))  # the last of them begins no line
        return bisect_right(self.starts, position, 0, max(1, count))

    def replaced(self, spans: Iterable[Span]) -> str:
        """The original text with the parts replaced.

        New line endings are those of neighbouring lines, if there are any.

        Args:
            spans: in order, without overlap.
        """
        pieces: list[str] = []
        at = 0
        for span in spans:
            pieces += (self._original(at, span.start), self._fitted(span))
            at = span.end
        return "".join((*pieces, self._original(at, len(self.text))))

    def _original(self, start: int, end: int) -> str:
        return self.raw[self._place(start) : self._place(end)]

    def _place(self, position: int) -> int:
        return position + bisect_left(self._crlf, position)

    def _fitted(self, span: Span) -> str:
        if "\n" not in self.text:
            return span.new
        new = span.new.replace("\r\n", "\n")
        if self._is_old_mac:
            return new.replace("\n", "\r")
        if not self._crlf or "\n" not in new:
            return new
        if len(self._crlf) == self._line_ends:
            return new.replace("\n", "\r\n")
        ends = self._ends_for(span, new)
        return "".join(f"{line}{end}" for line, end in zip(new.split("\n"), (*ends, ""), strict=True))

    def _ends_for(self, span: Span, new: str) -> list[str]:
        """The line endings of a new text in a file with both kinds."""
        old = self.text[span.start : span.end]
        known = [self._end_at(span.start + found.start()) for found in re.finditer("\n", old)]
        count = new.count("\n")
        if len(known) == count:
            return known
        if not known:
            return [self._neighbour(span)] * count
        old_lines, new_lines = old.split("\n"), new.split("\n")
        most = min(len(known), count)
        head = next((i for i in range(most) if old_lines[i] != new_lines[i]), most)
        tail = next((i for i in range(most - head) if old_lines[-1 - i] != new_lines[-1 - i]), most - head)
        middle = known[min(head, len(known) - 1)]
        return [*known[:head], *[middle] * (count - head - tail), *known[len(known) - tail :]]

    def _neighbour(self, span: Span) -> str:
        """The line ending of a part of a line; that of the line before if it has none."""
        following = self.text.find("\n", span.end)
        return self._end_at(following if following >= 0 else self.text.rfind("\n", 0, span.start))

    def _end_at(self, position: int) -> str:
        found = bisect_left(self._crlf, position)
        return "\r\n" if found < len(self._crlf) and self._crlf[found] == position else "\n"
