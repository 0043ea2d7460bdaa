"""Compares texts and ignores what models often get wrong: blanks, indentation, punctuation, composed letters."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

_PUNCTUATION = {
    **{ord(one): "'" for one in "\u2018\u2019\u201a\u201b\u2032\u02bc"},
    **{ord(one): '"' for one in "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"},
    **{ord(one): "-" for one in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"},
    **dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
}
_RUN = re.compile(r"[^\x00-\x7f\n]+")
_WITH_BASE = re.compile(r"[\x00-\x7f]?[^\x00-\x7f\n]+")
_RUN_LIMIT = 1_000
"""The maximum length of a run that is composed, in characters: the time is quadratic."""
_COMBINED_LIMIT = 2_000_000
"""The maximum length of a text whose composed letters are compared, in characters."""


def folded(line: str) -> str:
    """A line with normalized punctuation and composed letters."""
    if line.isascii():
        return line
    return _WITH_BASE.sub(_composed, line).translate(_PUNCTUATION)


def _composed(run: re.Match[str]) -> str:
    return run[0] if len(run[0]) > _RUN_LIMIT else unicodedata.normalize("NFC", run[0])


class FoldedText:
    """A text with normalized punctuation and composed letters, and a mapping to the original."""

    def __init__(self, text: str) -> None:
        self._ends: list[int] = []
        self._shifts: list[int] = []
        if text.isascii() or len(text) > _COMBINED_LIMIT:
            self.text = text.translate(_PUNCTUATION) if not text.isascii() else text
            return
        pieces: list[str] = []
        at = size = 0
        for run in _RUN.finditer(text):
            start = max(at, run.start() - 1)  # a combining mark belongs to the letter before it
            if run.end() - start > _RUN_LIMIT or unicodedata.is_normalized("NFC", text[start : run.end()]):
                continue
            pieces.append(text[at:start])
            size += start - at
            for part in _letters(text[start : run.end()]):
                made = unicodedata.normalize("NFC", part)
                pieces.append(made)
                size += len(made)
                if len(made) != len(part):
                    self._ends.append(size)
                    self._shifts.append((self._shifts[-1] if self._shifts else 0) + len(part) - len(made))
            at = run.end()
        pieces.append(text[at:])
        self.text = "".join(pieces).translate(_PUNCTUATION)

    def original(self, position: int) -> int:
        """The position in the original of a position in the folded text."""
        found = bisect_right(self._ends, position)
        return position + (self._shifts[found - 1] if found else 0)


def _letters(run: str) -> list[str]:
    """The letters of a run, each with its combining marks."""
    starts = [i for i, character in enumerate(run) if not i or not unicodedata.combining(character)]
    return [run[start:end] for start, end in pairwise((*starts, len(run)))]


class Indentation:
    """Maps the indentation of the given lines to that of the file."""

    def __init__(self, given: Sequence[str], found: Sequence[str]) -> None:
        pairs = [(_blank(a), _blank(b)) for a, b in zip(given, found, strict=True) if a.strip()]
        self._map = dict(pairs)
        self.fits = all(self._map[a] == b for a, b in pairs) and bool(pairs)
        self._added = self._removed = ""
        if self.fits:
            self._find_shift(pairs)

    def _find_shift(self, pairs: list[tuple[str, str]]) -> None:
        first_given, first_found = pairs[0]
        if first_found.endswith(first_given):
            self._added = first_found[: len(first_found) - len(first_given)]
        elif first_given.endswith(first_found):
            self._removed = first_given[: len(first_given) - len(first_found)]
        shifted = (self._added or self._removed) or first_given == first_found
        self.is_shift = bool(shifted) and all(self._shifted(a) == b for a, b in pairs)
        self._unit = self._unit_of(pairs)
        if not self.is_shift and not self._unit:
            self.fits = self._is_monotonous(pairs)

    @staticmethod
    def _is_monotonous(pairs: list[tuple[str, str]]) -> bool:
        """Whether deeper indentation on one side is deeper on the other as well, as in texts of one structure."""
        depths = sorted((len(given.expandtabs(4)), len(found.expandtabs(4))) for given, found in set(pairs))
        return all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(depths))

    @staticmethod
    def _unit_of(pairs: list[tuple[str, str]]) -> int:
        """The number of blanks on one side that equal a tab on the other; 0 if the texts do not differ in this way."""
        for given, found in pairs:
            tabs, blanks = (given, found) if "\t" in given else (found, given)
            if tabs and blanks and set(tabs) == {"\t"} and set(blanks) == {" "} and not len(blanks) % len(tabs):
                unit = len(blanks) // len(tabs)
                if all(a.replace("\t", " " * unit) == b.replace("\t", " " * unit) for a, b in pairs):
                    return unit
        return 0

    def _shifted(self, indent: str) -> str | None:
        if self._added or not self._removed:
            return self._added + indent
        return indent[len(self._removed) :] if indent.startswith(self._removed) else None

    def of(self, line: str) -> str | None:
        """A line with its indentation in the file; None if that is unknown."""
        if not line.strip():
            return line
        indent = _blank(line)
        made = self._map.get(indent)
        if made is None and self._unit:
            to_tabs = any("\t" in found for found in self._map.values())
            made = indent.expandtabs(self._unit)
            if to_tabs:
                made = "\t" * (len(made) // self._unit) + " " * (len(made) % self._unit)
        elif made is None and self.is_shift:
            made = self._shifted(indent)
        elif made is None:
            made = self._deeper(indent)
        return None if made is None else made + line[len(indent) :]

    def _deeper(self, indent: str) -> str | None:
        """The indentation of a line that is deeper than all known lines. It is unknown between two known lines."""
        nearest = max(self._map, key=len)
        if not indent.startswith(nearest):
            return None
        return self._map[nearest] + indent[len(nearest) :]


def _blank(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
