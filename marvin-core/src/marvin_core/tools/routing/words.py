"""The words of texts, in normal forms for comparison."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

POLITE_WORDS = frozenset(
    "a am an any are be can could give hello hey hi i is it its just kindly let me my of our please see show so some"
    " tell thank that the their them there these they this those us view want was we were what which will would"
    " you your".split()
)
"""Normalized words that carry no information about the request."""
STOP_WORDS = POLITE_WORDS | frozenset("about and as at by for from if in into not on or than to with".split())
ASKING_WORDS = frozenset("all did do does should have has how long many much there who why".split())
"""Words that belong to a request, but identify no tool."""

# Letters and digits of any script; scripts without spaces give one word per character.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+(?:['’][^\W\d_]+)?")
_PLURAL_FROM = 4
"""The length of the shortest word whose ending -s is treated as a plural."""
LONG_WORD = 7
"""The minimum length of a word that may have an extra letter or a different one."""
_STEM = 3
"""The minimum number of letters that remain after an ending is removed."""


def words(text: str) -> Iterator[str]:
    """The words of a text, normalized, in order."""
    return (normalized(found) for found in _WORD.findall(unicodedata.normalize("NFKC", text)))


def normalized(word: str) -> str:
    """The normal form of a word: without case and plural."""
    word = unicodedata.normalize("NFKC", word).casefold().replace("’", "'").removesuffix("'s")
    if len(word) < _PLURAL_FROM or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") and len(word) > _PLURAL_FROM else word[:-1]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The stem of a word, without common endings: `searching`, `searched` and `search` have the same one.

    The stemmer is light on purpose: endings that form other words, as in `timer` from `time`, stay.
    """
    for ending in ("ing", "ion", "ed", "ly"):
        begin = word.removesuffix(ending)
        if begin != word and len(begin) >= _STEM and not begin.endswith(("e", "th")):
            word = begin
            if len(word) > _STEM and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > _STEM else word


def meaningful(text: str) -> frozenset[str]:
    """The words of a text, normalized, without those that are too common to distinguish tools."""
    return frozenset(words(text)) - STOP_WORDS


def is_misspelling(word: str, known: str) -> bool:
    """Whether an omitted letter or two swapped ones produce the known word; in longer words also other errors.

    Short words of the same length are often different words, such as `order` and `older`.
    """
    at = next((at for at, (one, other) in enumerate(zip(word, known, strict=False)) if one != other), None)
    if at is None:
        return len(word) < len(known)
    if len(word) < len(known):
        return known[at + 1 :] == word[at:]
    if len(word) > len(known):
        return len(known) >= LONG_WORD and word[at + 1 :] == known[at:]
    is_swapped = word[at : at + 2] == known[at : at + 2][::-1] and word[at + 2 :] == known[at + 2 :]
    is_slip = len(word) >= LONG_WORD and at < len(word) - 1  # another ending means another word, or another language
    return is_swapped or (is_slip and word[at + 1 :] == known[at + 1 :])
