"""Decides whether two findings say the same, also in other words.

The topic of a claim are its words without those that are common in reviews ("missing", "unclear", "the section"). They
are cut to their first letters, so that "authentication" and "authenticate" are equal: this is the
simplest stemming method, needs no dictionary, and works for most European languages. In
scripts without spaces, pairs of characters are used.

Two claims about one file are the same if most words of the shorter one occur in the other one. Fewer are
enough if both quote the same words of the document. Two sentences that differ in one word are about that word,
and not the same. Nothing is lost by a wrong match: a finding that counts as known
stays open, is shown to the fixer, and stops the run if it is bad enough. It only does not count as news.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .findings import Finding

_TEXT_LIMIT = 4_000
"""Characters of a claim, and of its evidence, that are compared."""
_STEM = 4
"""Letters of a stem."""
_OVERLAP = 0.55
"""The share of the shorter claim's words that must occur in the other one."""
_OVERLAP_IN_PLACE = 0.3
"""The share if the evidence is the same."""
_SHARED = 3
"""Stems that two claims must have in common, unless all of them are the same."""
_QUOTE_OVERLAP = 0.7
_QUOTE_SHARED = 3

_WORD = re.compile(r"[^\W\d_]+|\d+")
_FILE = re.compile(r"[\w./\\-]+")
# Line numbers change from round to round; other numbers distinguish requirements.
_LINE = re.compile(r"\b(?:lines?|L)\s*\d+(?:\s*[-–]\s*\d+)?|(?<=\w):\d+(?:-\d+)?", re.IGNORECASE)
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
# Words that are common in reviews, whatever their topic.
_COMMON = frozenset(
    """
    a an and any are as at be been being but by can cannot could did do does doesn don each either else every for from
    had has have how if in into is isn it its may might more most must neither never no nor not of off on one only or
    other our out over own same shall should so some such than that the their them then there these they this those to
    too under until up very was were what when where which while who why will with within without would yet you your
    absent add added address addressed also ambiguous anywhere clarify clear clearly cover covered covers define
    defined definition defines describe described describes description detail detailed details doc document
    documented documents enough entirely explain explained explicit explicitly finding give given gives
    incomplete insufficient issue lack lacking lacks leaves left mention mentioned mentions missing need needed
    needs nothing nowhere omits omitted problem provide provided provides say says section sections specific
    specification specified specifies specify spec state stated states still undefined unclear underspecified
    undocumented unspecified vague
    """.split()
)


def say_the_same(one: Finding, other: Finding) -> bool:
    """Whether two findings are about the same thing. Symmetric."""
    if one.file and other.file and _name(one.file) != _name(other.file):
        return False
    (words, mine), (others, theirs) = _stems(one.claim), _stems(other.claim)
    if not mine or not theirs:
        return one.claim.split() == other.claim.split()
    if _number_others(mine, theirs) or _differ_in_one_word(words, others):
        return False
    shared, shorter = len(mine & theirs), min(len(mine), len(theirs))
    if shared >= _OVERLAP * shorter and (shared >= _SHARED or mine == theirs):
        return True
    return shared >= _OVERLAP_IN_PLACE * shorter and shared > 0 and _same_quote(one.evidence, other.evidence)


def _differ_in_one_word(words: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Whether two claims are one sentence except for one word: the same complaint about something else."""
    return len(words) == len(others) and sum(one != other for one, other in zip(words, others, strict=True)) == 1


def _same_quote(one: str, other: str) -> bool:
    mine, theirs = _stems(one)[1], _stems(other)[1]
    shared = len(mine & theirs)
    return shared >= _QUOTE_SHARED and shared >= _QUOTE_OVERLAP * min(len(mine), len(theirs))


@lru_cache(maxsize=2_048)
def _name(path: str) -> str:
    """The last part of a path without a line number: reviewers write paths in several ways."""
    found = _FILE.search(path)
    return found[0].replace("\\", "/").rpartition("/")[2].rstrip(".").casefold() if found else ""


def _number_others(mine: frozenset[str], theirs: frozenset[str]) -> bool:
    """Whether both have numbers, and none in common: requirement 3 is not requirement 7."""
    numbers = {stem for stem in mine if stem.isdigit()}
    return bool(numbers) and not numbers & theirs and any(stem.isdigit() for stem in theirs)


@lru_cache(maxsize=2_048)
def _stems(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """The stems of a text in order, without duplicates, and as a set."""
    words = [word for word in _WORD.findall(_LINE.sub(" ", text[:_TEXT_LIMIT]).casefold()) if word not in _COMMON]
    stems: dict[str, None] = {}
    for word in words:
        if _UNSPACED.search(word):
            stems.update(dict.fromkeys(word[at : at + 2] for at in range(max(1, len(word) - 1))))
        elif len(word) > 1 or word.isdigit():
            stems[word[:_STEM] if word.isalpha() else word] = None
    return tuple(stems), frozenset(stems)
