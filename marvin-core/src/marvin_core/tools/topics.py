"""Finds the section of the documentation that a question is about, by the words that such questions contain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import log

from ..api.record import Record
from .routing.words import ASKING_WORDS, STOP_WORDS, stem, words

_MARVIN = "@marvin"
_NAMES = frozenset("you your yours yourself marvin".split())
_TELLING = frozenset("where who why".split())
"""Words of questions that say what is asked for."""
_WEAK = frozenset(
    "able accept actually again already also always anything available both but can't cant do doe don't dont"
    " either else even ever every exactly explain for get go got happen hello here hey hi i'd i'm i've im isn't"
    " isnt it's ive just like look lot marvin me mean need now ok one please possible really recommend simple so"
    " something still support supported tell thanks that's thats thing try turn use used using want way well went"
    " what's whatever whats when where's won't work yes yet you're you've".split()
)
_COMMON = (STOP_WORDS | ASKING_WORDS | _WEAK) - _TELLING
"""Words that identify no section."""
_SAME = """
delete remove erase wipe rid purge
save store keep kept stored saved live
where location path located
make made add create write wrote written build built develop define
change switch alter adjust choose pick customise customize
stop abort interrupt cancel end halt
off disable deactivate
colour color
licence license licensed
connect plug link integrate
config configuration configure settings setting
send sent transmit
show display
update upgrade newest latest
internet network online
picture image photo screenshot
cost price spend money budget billed
limit ceiling cap
environment env
variable var
ask confirm confirmation approval approve asking
session conversation chat
internet offline web
script scripts automation
continue resume
error failure
computer machine laptop
line lines
exit quit
authentication auth
"""
"""Groups of words that mean the same in questions about Marvin."""
_OF_NAMED, _OF_OTHER, _OF_ENOUGH = 0.4, 0.5, 0.25
"""The least fraction of the words of a question that a section knows: if it names Marvin, if not, and if the words of
the section are enough."""
_ASKING = re.compile(
    r"\W*(?:(?:hi|hello|hey|please|and|so|but|ok|well|marvin)\W+)*(?:how|where|what|which|when|why|who|can|could|may"
    r"|does|do|is|are|tell|explain|should|will|would|did)(?:['’]?s)?\b|.*\b(?:how (?:do|can|to)|where (?:do|is))\b"
    r"|.*\?\W*$",
    re.IGNORECASE | re.DOTALL,
)
_JOINED = re.compile(r"(?<=\w)_(?=\w)")
"""Within a name such as LEGACY_MODE, which is one word."""
_STATE = r"i have|did i|have i|do i have|am i"
OWN = re.compile(rf"\b(?:my|our|{_STATE})\b", re.IGNORECASE)
"""Words of questions about what a tool knows: `what notes do I have`."""
_OWN_STATE = re.compile(rf"\b(?:{_STATE})\b", re.IGNORECASE)
"""Those that no question about Marvin has, unless it names Marvin."""


class Section(Record):
    """A section of a page of the documentation."""

    page: str
    heading: str


class Topics:
    """The words of questions, by section."""

    def __init__(self, topics: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
        """`topics` are the words of questions, by page and heading; `!` stands before those that are enough."""
        listed = [
            (Section(page=page, heading=heading), patterns)
            for page, sections in topics.items()
            for heading, patterns in sections.items()
        ]
        self._patterns = [
            (meaning(pattern), section, pattern.startswith("!")) for section, patterns in listed for pattern in patterns
        ]
        self._holders = Counter(word for pattern, *_ in self._patterns for word in pattern)

    def section(self, text: str, *, is_strict: bool = False) -> Section | None:
        """The section that a question is about, if enough of its words are known there.

        Args:
            is_strict: for a text that means a tool: only a question that names Marvin, all of whose words are known.
        """
        if not _ASKING.match(text):
            return None
        asked = meaning(text)
        if _MARVIN not in asked and _OWN_STATE.search(text):
            return None
        found = list(self._matching(text, asked, is_strict))
        if not found:
            return None
        support = Counter(section for _, section in found)
        return max(found, key=lambda one: (round(self._weight(one[0]), 3), support[one[1]]))[1]

    def _matching(self, text: str, asked: frozenset[str], is_strict: bool) -> Iterator[tuple[frozenset[str], Section]]:
        content = _content(asked)
        is_named = _MARVIN in asked
        least = 1.0 if is_strict else _OF_NAMED if is_named else _OF_OTHER
        if is_strict and not is_named:
            return
        for pattern, section, is_enough in self._patterns:
            known = len(_content(pattern))
            if not pattern <= asked or known < (_OF_ENOUGH if is_enough and not is_strict else least) * len(content):
                continue
            if is_named or is_enough or known > 1 or (known == len(content) and not OWN.search(text)):
                yield pattern, section

    def _weight(self, pattern: frozenset[str]) -> float:
        return sum(log(1 + len(self._patterns) / self._holders[word]) for word in pattern)


def meaning(text: str) -> frozenset[str]:
    """The significant words of a text, in one form for words that mean the same."""
    return frozenset(filter(None, map(_meaning, words(_JOINED.sub("", text)))))


def _content(asked: frozenset[str]) -> frozenset[str]:
    return asked - _TELLING - {_MARVIN}


@cache
def _meaning(word: str) -> str:
    if word in _NAMES:
        return _MARVIN
    if word in _COMMON:
        return "off" if word == "off" else ""
    return _same().get(word) or _same().get(stem(word)) or stem(word)


@cache
def _same() -> dict[str, str]:
    """The first word of its group for each word, and for its stem unless that is a word of another group."""
    groups = [line.split() for line in _SAME.strip().splitlines()]
    same = {word: group[0] for group in groups for word in group}
    return {**{stem(word): group[0] for group in groups for word in group if word != "setting"}, **same}
