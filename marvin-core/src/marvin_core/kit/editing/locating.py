"""Locates a change in a file: an exact match, or bounded leniency in a fixed order; the place must be unique."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from ...api.errors import ToolError
from ...api.record import Record
from .document import Document, Span
from .headings import Headings
from .likeness import FoldedText, Indentation, folded
from .line_keys import LineKeys
from .line_shapes import merged, parted, shapes
from .patch import Hunk

PLACES = 20
"""The number of matches after which the search ends if one match is expected."""
_LENIENT_LINES = 1_000_000
"""The maximum number of lines of a file that is searched line by line for inexact matches."""
_TELLING_LINES = 3
"""The number of lines that are enough to identify a place, whatever heading was given."""
_COMPARED = 20_000_000
"""The maximum number of comparisons of lines, for one text."""
_MARK = "\ufeff"
"""A byte order mark, which is not part of the text."""


class NotFound(ToolError):
    """The text to be replaced does not occur."""


class Ambiguous(ToolError):
    """The text occurs more than once.

    `lines` are some of the matches, `count` their minimum number, `wanted` the expected number if it is not one.
    """

    def __init__(self, text: str, lines: Sequence[int] = (), count: int = 0, wanted: int = 0) -> None:
        super().__init__(text)
        self.lines = tuple(lines)
        self.count = count
        self.wanted = wanted


class Match(Record):
    """The place of a change. `how` names the differences; it is empty for an exact match."""

    spans: tuple[Span, ...]
    how: str = ""

    @property
    def end(self) -> int:
        """The end of the place."""
        return self.spans[-1].end


Key = Callable[[str], str]
_LAST_END = "the newline at its end"
_HEADING = "the heading after @@"
_LEVELS: tuple[tuple[str, Key, bool], ...] = (
    ("", str, False),
    ("blanks at the ends of lines", str.rstrip, False),
    ("indentation", str.strip, True),
    ("punctuation or composed letters", lambda line: folded(line).rstrip(), False),
    ("indentation, and punctuation or composed letters", lambda line: folded(line).strip(), True),
)
"""The levels of leniency, from the strictest on: the allowed difference, the key for comparing lines, and whether the
new text is indented as the old one is in the file. The first level is for a file that
ends without a newline.
"""
_FOLDING = 3
"""The level before which the text is also searched for in the middle of lines."""


class Locator:
    """Locates changes in one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._keys: dict[int, LineKeys] = {}
        self._headings = Headings(document)

    def find(self, hunk: Hunk, after: int = 0) -> Match:
        """Locate a change.

        Args:
            after: the end of the previous change, for changes in order.

        Raises:
            NotFound: there is no match.
            Ambiguous: there are several matches.
        """
        if hunk.old.startswith(_MARK) and _MARK not in self._document.text:
            hunk = hunk.replace(old=hunk.old.removeprefix(_MARK), new=hunk.new.removeprefix(_MARK))
        old, new = hunk.old.replace("\r\n", "\n"), hunk.new
        if "\n" in self._document.text:  # else there are no line ends to follow
            new = new.replace("\r\n", "\n")
        if hunk.every:
            return self._every(hunk, old)
        if hunk.by_lines and not old:
            return self._insertion(hunk, new, after)
        exact = self._exact(hunk, old, after)
        if exact:
            start = self._chosen(hunk, exact, after, len(old))
            end = min(start + len(old), len(self._document.text))
            how = self._beside_heading(hunk, start, end)
            return Match(spans=(Span(start=start, end=end, new=self._closed(hunk, hunk.new, end)),), how=how)
        return self._lenient(hunk, old, new, after)

    # What is exactly there.

    def _exact(self, hunk: Hunk, old: str, after: int) -> list[int]:
        """The first matches, including overlapping ones: any of them may be the intended one."""
        look = self._exact_lines if hunk.by_lines else self._exact_text
        found = look(old)
        if len(found) >= PLACES:
            for start, limit in self._landmarks(hunk, after, len(old)):
                found += look(old, start, limit)
        return sorted(set(found))

    def _landmarks(self, hunk: Hunk, after: int, size: int) -> Iterator[tuple[int, int]]:
        """The places near which to look if there are many matches, and the number of matches to look for there."""
        starts = self._document.starts
        if hunk.in_order and after:
            yield after, PLACES
        for line in self._headings.lines(hunk.headings)[:PLACES]:
            yield starts[line], 1
        if 0 < hunk.line < len(starts):
            yield starts[hunk.line - 1], 1
        if hunk.at_end:
            yield max(0, len(self._document.text) - size), 1

    def _exact_text(self, old: str, start: int = 0, limit: int = PLACES) -> list[int]:
        found: list[int] = []
        text = self._document.text
        position = text.find(old, start)
        while position >= 0 and len(found) < limit:
            found.append(position)
            position = text.find(old, position + 1)
        return found

    def _exact_lines(self, old: str, start: int = 0, limit: int = PLACES) -> list[int]:
        text = self._document.text
        found: list[int] = []
        position = text.find(old, start)
        while position >= 0 and len(found) < limit:
            if position == 0 or text[position - 1] == "\n":
                found.append(position)
            position = text.find(old, position + 1)
        tail = len(text) - len(old) + 1  # a last line without a newline is a line as well
        if text and text[-1] != "\n" and tail >= 0 and text.endswith(old[:-1]) and (not tail or text[tail - 1] == "\n"):
            found.append(tail)
        return found

    def _every(self, hunk: Hunk, old: str) -> Match:
        if not old:  # which is everywhere
            raise NotFound("is empty")
        text = self._document.text
        starts = [found.start() for found in re.finditer(re.escape(old), text)]
        if not starts:
            raise NotFound("does not occur")
        if hunk.times and len(starts) != hunk.times:
            lines = [self._document.line_at(start) for start in starts[:PLACES]]
            raise Ambiguous("occurs a different number of times", lines, len(starts), hunk.times)
        return Match(spans=tuple(Span(start=start, end=start + len(old), new=hunk.new) for start in starts))

    # Which of several places.

    def _chosen(self, hunk: Hunk, places: list[int], after: int, size: int) -> int:
        """The one match that the heading, line number or order of the change selects."""
        if hunk.at_end:
            ending = [place for place in places if place + size >= len(self._document.text)]
            places = ending or places
        if hunk.headings:
            below = self._below(hunk.headings, places)
            if len(below) == 1:
                return below[0]
            places = below or places
        if len(places) > 1 and hunk.in_order:
            places = [place for place in places if place >= after] or places
        if len(places) > 1 and hunk.line:
            stated = [place for place in places if self._document.line_at(place) == hunk.line]
            places = stated or places
        if len(places) > 1:
            raise self._ambiguous(places, hunk.old)
        return places[0]

    def _below(self, headings: Sequence[str], places: list[int]) -> list[int]:
        """The first match below each line of the headings."""
        starts = [self._document.starts[line] for line in self._headings.lines(headings)]
        places = sorted(set(places))
        headed = [bisect_right(starts, place) for place in places]
        return [place for place, count, before in zip(places, headed, (0, *headed), strict=False) if count > before]

    def _beside_heading(self, hunk: Hunk, start: int, end: int) -> str:
        """The note on the only match of a change if it is not below its heading.

        Raises:
            NotFound: the text is too short to identify a place without the heading.
        """
        lines = self._headings.lines(hunk.headings)
        if not hunk.headings or any(self._document.starts[line] < max(end, start + 1) for line in lines):
            return ""
        if sum(bool(line.strip()) for line in hunk.old.split("\n")) < _TELLING_LINES:
            where = "no line" if not lines else f"line {lines[0] + 1:,}"
            raise NotFound(f"does not occur below its heading {hunk.headings[-1]!r}, which is {where}")
        return _HEADING

    def _ambiguous(self, places: Sequence[int], old: str = "") -> Ambiguous:
        lines = sorted({self._document.line_at(place) for place in places})
        count = self._document.text.count(old) if old and len(places) >= PLACES else 0
        return Ambiguous("occurs more than once", lines, max(len(places), count))

    def _insertion(self, hunk: Hunk, new: str, after: int) -> Match:
        """The place for lines that are only added: below their heading, at the given line, or at the end."""
        text = self._document.text
        if not hunk.in_order:
            raise NotFound("is empty")
        place = len(text)
        if hunk.headings:
            found = self._headings.lines(hunk.headings)
            if len(found) != 1:
                problem = "has no line" if not found else "has several lines"
                raise NotFound(f"{problem} {hunk.headings[-1]!r} below which lines could be added")
            place = self._document.starts[found[0] + 1]
        elif hunk.line:
            starts = self._document.starts
            if hunk.line > len(starts):
                raise NotFound(f"has no line {hunk.line} at which lines could be added")
            place = starts[hunk.line - 1]
        if place and text[place - 1 : place] != "\n":
            new = f"\n{new}" if hunk.closes_file or hunk.open_end else f"\n{new.removesuffix(chr(10))}"
        return Match(spans=(Span(start=place, end=place, new=new),))

    def _closed(self, hunk: Hunk, new: str, end: int) -> str:
        """The new text of lines at the end of a file, which may end without a newline."""
        text = self._document.text
        if not hunk.by_lines or end < len(text) or text.endswith("\n") or hunk.closes_file or hunk.open_end:
            return new
        return new.removesuffix("\n").removesuffix("\r")

    # Text that is present except for small differences.

    def _lenient(self, hunk: Hunk, old: str, new: str, after: int) -> Match:
        document = self._document
        if not old.strip() or document.text.count("\n") > _LENIENT_LINES:
            raise NotFound("does not occur")
        for given, fresh, how in shapes(hunk, old, new):
            for level, (difference, key, indents) in enumerate(_LEVELS):
                match = None
                if level == _FOLDING and not how and not hunk.by_lines:
                    match = self._by_folding(old, hunk.new)
                match = match or self._at_level(hunk, (given, fresh), (level, key, indents), after)
                if match is not None:
                    beside = self._beside_heading(hunk, match.spans[0].start, match.end)
                    said = ", ".join(filter(None, (match.how or difference, how, beside)))
                    return match.replace(how=said or _LAST_END)
        return self._around_ellipses(hunk, old, new, after)

    def _by_folding(self, old: str, new: str) -> Match | None:
        """The place of a text that differs in punctuation or composed letters; it may be in the middle of a line."""
        if self._document.text.isascii() and old.isascii():
            return None
        plain = folded(old)
        text = self._folded
        places = [found.start() for found in re.finditer(re.escape(plain), text.text)][: PLACES + 1] if plain else []
        if not places:
            return None
        if len(places) > 1:
            raise self._ambiguous([text.original(place) for place in places])
        start, end = text.original(places[0]), text.original(places[0] + len(plain))
        found = self._document.text[start:end].split("\n")
        lines = merged(old.split("\n"), new.replace("\r\n", "\n").split("\n"), found)
        fitted = "\n".join(line for line, _ in lines)
        return Match(spans=(Span(start=start, end=end, new=fitted),), how="punctuation or composed letters")

    @cached_property
    def _folded(self) -> FoldedText:
        return FoldedText(self._document.text)

    def _at_level(
        self, hunk: Hunk, texts: tuple[list[str], list[str]], how: tuple[int, Key, bool], after: int
    ) -> Match | None:
        level, key, indents = how
        given, fresh = texts
        places = self._same_lines(given, level, key)
        if len(places) >= PLACES:
            for start, limit in self._landmarks(hunk, after, sum(map(len, given)) + len(given)):
                places += self._same_lines(given, level, key, self._document.line_at(start) - 1, limit)
            places = sorted(set(places))
        if indents:
            size = len(given)
            found = self._document.lines
            places = [place for place in places if Indentation(given, found[place : place + size]).fits]
        if not places:
            return None
        line = self._chosen_line(hunk, places, after, len(given))
        return self._lines_match(hunk, given, fresh, line, "")

    def _chosen_line(self, hunk: Hunk, lines: list[int], after: int, size: int) -> int:
        starts = self._document.starts
        if hunk.at_end:
            lines = [line for line in lines if line + size == len(starts) - 1] or lines
        places = {starts[line]: line for line in lines}
        return places[self._chosen(hunk.replace(at_end=False), list(places), after, 0)]

    def _same_lines(self, given: list[str], level: int, key: Key, first: int = 0, limit: int = PLACES) -> list[int]:
        """The line numbers, from 0 on, at which the given lines begin. Lines are compared by a key, from the first line
        on.
        """
        of_lines, wanted = self._keys_at(level), [key(line) for line in given]
        telling = of_lines.rarest(wanted)
        if telling is None:
            return []
        keys, offset = of_lines.all, wanted.index(telling)
        found: list[int] = []
        budget = _COMPARED
        for place in _positions(keys, telling, first + offset):
            start = place - offset
            budget -= len(wanted)
            if start >= 0 and keys[start : start + len(wanted)] == wanted:
                found.append(start)
                if len(found) >= limit:
                    break
            if budget < 0:
                raise Ambiguous("is similar to too many places. Add a line that occurs nowhere else")
        return found

    def _keys_at(self, level: int) -> LineKeys:
        if level >= _FOLDING and self._document.text.isascii():
            level -= _FOLDING - 1  # there is nothing to fold
        if level not in self._keys:
            self._keys[level] = LineKeys(self._document.lines, _LEVELS[level][1])
        return self._keys[level]

    def _lines_match(self, hunk: Hunk, given: list[str], fresh: list[str], line: int, how: str) -> Match:
        """The change for lines that were found; kept lines stay as they are in the file."""
        document = self._document
        found = document.lines[line : line + len(given)]
        indentation = Indentation(given, found)
        made: list[str] = []
        for text, kept in merged(given, fresh, found):
            if kept:
                made.append(text)
                continue
            fitted = indentation.of(text) if indentation.fits else text
            if fitted is None:
                raise NotFound("differs in its indentation, and that of the new text cannot be determined")
            made.append(fitted)
        start, end = document.starts[line], document.starts[line + len(given)]
        new = "".join(f"{text}\n" for text in made)
        if hunk.open_end or (not hunk.closes_file and document.text[end - 1 : end] != "\n"):
            new = new.removesuffix("\n")
        return Match(spans=(Span(start=start, end=end, new=new),), how=how)

    def _around_ellipses(self, hunk: Hunk, old: str, new: str, after: int) -> Match:
        """The places of the parts of a text with ellipses. The new text has to have the same ellipses."""
        olds, news = parted(old), parted(new)
        if len(olds) < 2 or [mark for _, mark in olds] != [mark for _, mark in news]:
            raise NotFound("does not occur")
        spans: list[Span] = []
        for (part, _), (fresh, _) in zip(olds, news, strict=True):
            if not part.strip() and not fresh.strip():
                continue
            if not part.strip():
                raise NotFound("does not occur")
            if part == fresh:
                found = self.find(hunk.replace(old=part, new=fresh, by_lines=True, headings=(), every=False), after)
            else:
                found = self.find(hunk.replace(old=part, new=fresh, by_lines=True, every=False), after)
            if spans and found.spans[0].start < spans[-1].end:
                raise NotFound("does not occur in this order")
            spans += found.spans
            after = found.end
        if not spans:
            raise NotFound("has no line besides '...'")
        return Match(spans=tuple(spans), how="lines omitted at '...'")


def _positions(keys: list[str], wanted: str, start: int) -> Iterator[int]:
    at = start - 1
    while True:
        try:
            at = keys.index(wanted, at + 1)
        except ValueError:
            return
        yield at
