"""Finds the texts of `error_words` in a service's message, in one pass over a bounded text for each row."""

from __future__ import annotations

from collections.abc import Mapping

from .error_words import WORDS, Kind

SEARCHED = 8 * 1024
"""The number of characters of a service's message that are searched."""
_GAP = 100
_DIGITS = 12
SMALLEST_WINDOW = 256
"""The minimum number that counts as a context window."""
_SEEN_ALIKE: Mapping[int, str | None] = {
    **dict.fromkeys(map(ord, "_-"), " "),
    **dict.fromkeys(map(ord, "'\"`´‘’“”"), None),
}


def plain(text: str) -> str:
    """The beginning of a text in comparable form: lower case, no quotation marks, single spaces."""
    return " ".join(text[:SEARCHED].lower().translate(_SEEN_ALIKE).split())


_PLAIN: Mapping[Kind, tuple[str, ...]] = {kind: tuple(plain(row.words) for row in rows) for kind, rows in WORDS.items()}


def says(kind: Kind, words: str) -> bool:
    """Whether a text in `plain` form contains this."""
    return any(_matched(row, words)[0] for row in _PLAIN[kind])


def window_in(words: str) -> int | None:
    """The context window in tokens that an overflow error names; None if it names none."""
    for row in _PLAIN["overflow"]:
        window = _matched(row, words)[1]
        if window is not None and window >= SMALLEST_WINDOW:
            return window
    return None


def rate_outgrown(words: str) -> int | None:
    """The limit of tokens a minute that this single request exceeds: a shorter request helps, a retry does not.

    OpenAI and Groq report this with the status of a rate limit.
    """
    if "request too large" not in words:
        return None
    limit, requested = _matched("(tpm): limit #", words)[1], _matched("requested #", words)[1]
    return limit if limit is not None and requested is not None and requested > limit >= SMALLEST_WINDOW else None


def _matched(row: str, words: str) -> tuple[bool, int | None]:
    """Whether the words of a row occur, and the number at their end."""
    head, gap, tail = row.removesuffix("#").partition("*")
    at = words.find(head)
    while at >= 0:
        end = at + len(head)
        if gap:
            found = words.find(tail, end, end + _GAP + len(tail))
            end = found + len(tail) if found >= 0 else -1
        if end >= 0:
            number = _number(words[end : end + _DIGITS]) if row[-1] == "#" else None
            if number is not None or row[-1] != "#":
                return True, number
        at = words.find(head, at + 1)
    return False, None


def _number(text: str) -> int | None:
    digits = ""
    for character in text.lstrip():
        if character in "0123456789":
            digits += character
        elif character != ",":
            break
    return int(digits) if digits else None
