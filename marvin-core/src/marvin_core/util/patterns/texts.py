"""Patterns with *, ? and [...], matched against texts that may be partly unknown.

A line may contain marks, which are private-use characters. `GAP` and `GAPS` stand for text that is known only when a
shell runs the line. `STAR`, `ONE` and `SET` stand for wildcards that the shell itself expands. A `FIRM` character
stands for a sign of the shell that no wildcard of a pattern matches.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase

GAP, GAPS, STAR, ONE, SET, HOME, HERE, TILDE = map(chr, range(0xE000, 0xE008))
"""One unknown word, any number of words, unquoted `*`, `?`, `[`, the home folder, the current folder, `~`."""
FIRM = {"=": "\ue008", ">": "\ue009", "<": "\ue00a", "&": "\ue00b", "|": "\ue00c"}
MARKS = re.compile("[\ue000-\ue01f]")
_OPEN = re.compile("[\ue000-\ue006]")
_SHOWN = str.maketrans(
    {GAP: "…", GAPS: "…", STAR: "*", ONE: "?", SET: "[", HOME: "$HOME", HERE: "$PWD", TILDE: "~"}
    | {mark: sign for sign, mark in FIRM.items()}
)
_LONGEST = 4_000
"""Characters of a line with marks that are matched; the rest counts as unknown."""


def shown(line: str) -> str:
    """A line for people: marks become what they stand for, or `…`."""
    return line.translate(_SHOWN)


def is_known(line: str) -> bool:
    """Whether no part of a line depends on expansion by a shell."""
    return _OPEN.search(line) is None


def fold(text: str) -> str:
    """A text in normal form, for file systems that ignore case and the composition of letters in names."""
    return unicodedata.normalize("NFC", text.casefold())


class Pattern:
    """A pattern in which `*` stands for any text, `?` for one character and `[...]` for one of several.

    A pattern that ends with a space and `*` also matches without the rest: `git *` matches `git`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_exact = not set(text) & set("*?[")
        self._spellings = [text, text[:-2]] if text.endswith(" *") and len(text) > 2 else [text]
        self._automata: list[_Automaton] | None = None

    @property
    def folded(self) -> Pattern:
        """The same for texts in the form that `fold` returns."""
        return Pattern(fold(self.text))

    def fits(self, text: str) -> bool:
        """Whether it matches a text without marks."""
        return any(fnmatchcase(text, spelling) for spelling in self._spellings)

    def covers(self, line: str) -> bool:
        """Whether it matches a line whatever its marks stand for."""
        if MARKS.search(line) is None:
            return self.fits(line)
        return len(line) <= _LONGEST and any(one.accepts(line, possible=False) for one in self._compiled())

    def may_fit(self, line: str) -> bool:
        """Whether it matches a line for some of the texts that its marks may stand for."""
        if MARKS.search(line) is None:
            return self.fits(line)
        if len(line) > _LONGEST:
            line = line[:_LONGEST] + GAPS
        return any(one.accepts(line, possible=True) for one in self._compiled())

    def _compiled(self) -> list[_Automaton]:
        if self._automata is None:
            self._automata = [_Automaton(spelling) for spelling in self._spellings]
        return self._automata


class _Automaton:
    """The positions that a match of the pattern may have reached, as the bits of a number."""

    def __init__(self, pattern: str) -> None:
        self._steps = list(_steps(pattern))
        self._stars = sum(1 << at for at, step in enumerate(self._steps) if step == "*")
        self._accepting = 1 << len(self._steps)
        self._by_character: dict[str, int] = {}

    def accepts(self, line: str, *, possible: bool) -> bool:
        places = self._past_stars(1)
        for char in line:
            if char < GAP or char > "\ue01f":
                places = self._take(places, char)
            elif possible and _OPEN.match(char):
                lowest = places & -places
                places = (self._accepting << 1) - lowest
            elif char in (STAR, ONE, SET):
                places = self._take(places, shown(char))
            elif _OPEN.match(char):
                places &= self._stars
            elif possible:
                places = self._take(places, shown(char))
            else:
                places = (places & self._exactly(shown(char)[0])) << 1
            places = self._past_stars(places)
            if not places:
                return False
        return bool(places & self._accepting)

    def _take(self, places: int, char: str) -> int:
        return ((places & self._taking(char)) << 1) | (places & self._stars)

    def _past_stars(self, places: int) -> int:
        while True:
            further = places | ((places & self._stars) << 1)
            if further == places:
                return places
            places = further

    def _taking(self, char: str) -> int:
        if char not in self._by_character:
            fitting = (1 << at for at, step in enumerate(self._steps) if step != "*" and fnmatchcase(char, step))
            self._by_character[char] = sum(fitting)
        return self._by_character[char]

    def _exactly(self, char: str) -> int:
        return sum(1 << at for at, step in enumerate(self._steps) if step == char)


def _steps(pattern: str) -> Iterator[str]:
    """The parts of the pattern: `*`, or something that matches one character."""
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[":
            closing = pattern.find("]", at + 3 if pattern[at + 1 : at + 2] == "!" else at + 2)
            end = closing + 1 if closing > 0 else end
        piece = pattern[at:end]
        yield "[[]" if piece == "[" else piece
        at = end
