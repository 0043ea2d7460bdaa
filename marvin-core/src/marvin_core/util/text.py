"""Short texts: shortening, one line, similar names, JSON on one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

RECEIVED_LIMIT = 200
"""Characters of received data that an error shows."""

_NAMES_LISTED = 20
_NAMES_COMPARED = 2_000
_NAME_COMPARED = 64
"""Characters of a name that are compared: the input may be any text."""
_WORDS_COMPARED = 8
_SHORTEST = 4
"""The minimum length of a name that a typing error may refer to."""
_SHORT = 5
"""Up to this length of a name, one wrong letter makes a different word."""
FAINTLY_LIKE = 0.4
"""The minimum similarity of names in a list whose likeliest names come first; 1 is equal."""
_LIKE_ENOUGH = 0.6
"""The minimum similarity of two names if one may be meant by the other; 1 is equal."""
_ALIKE_ANYWHERE = 0.7
"""The minimum similarity of letters if the names begin with different ones: that of `nope` and `openai` is 0.6."""
_WORD_LIKE_ENOUGH = 0.8
_WORDS_COUNT = 1.15
"""How much more shared words count than the same number of shared letters."""
# The parts of parserHTTPError: parser, HTTP, Error. All characters but letters and digits separate words.
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[^\W_A-Z]+|[A-Z]+"


def one_line(text: str, limit: int | None = None) -> str:
    """The text on one line, without control characters.

    Args:
        limit: the maximum length in characters, at least 1; a shortened text ends with an ellipsis, which counts as one
            of them.
    """
    line = " ".join(text.split())
    if not line.isprintable():
        from .terminal_text import without_sequences

        line = " ".join("".join(c if c.isprintable() else " " for c in without_sequences(text)).split())
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def cut(text: str, limit: int = RECEIVED_LIMIT) -> str:
    """The text up to the limit (in characters), without lone surrogates; a shortened text ends with an ellipsis."""
    return storable(text if len(text) <= limit else text[:limit] + "…")


def shortened(named: Sequence[str], most: int = 3) -> str:
    """The first items on one line, and the number of the others."""
    more = len(named) - most
    return ", ".join(named[:most]) + (f" and {more:,} more" if more > 0 else "")


def local_time(seconds: float) -> str:
    """A time in local time, to the minute."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "unknown time"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence that there is no such tool or parameter, with similar names."""
    names = list(known)
    hint = did_you_mean(near_names(name, names))
    if not hint and len(names) <= _NAMES_LISTED:
        hint = f"Available: {storable(', '.join(names)) or 'none'}."
    return f"Unknown {kind} {cut(name)!r}. {hint}".rstrip()


def hint_at(asked: str, known: Iterable[str], otherwise: str = "") -> str:
    """The known names that may be meant by an unknown one; if none is similar, `otherwise` or all names."""
    names = list(known)
    return did_you_mean(near_names(asked, names)) or otherwise or f"Available: {', '.join(names)}."


def did_you_mean(names: Sequence[str]) -> str:
    """The question whether one of these names is meant; empty if there are none."""
    if not names:
        return ""
    *others, last = map(repr, names)
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"


def near_names(asked: str, known: Iterable[str], most: int = 3, *, enough: float = _LIKE_ENOUGH) -> list[str]:
    """The known names that may be meant by an unknown one, the likeliest first.

    The similarity of two names is that of their letters, or of their words in any order, whichever is higher. A name
    that differs only in case comes first. The comparison is limited: to the beginning of a name, some of its words, and
    some thousand names.

    Args:
        most: the maximum number of names.
        enough: the minimum similarity; 1 is equal.
    """
    folded = asked.casefold()
    begun = folded.lstrip("-")  # the dashes of flags are in all of them
    words = _words(asked)
    alike = _comparison()

    def rank(name: str) -> tuple[bool, float, float, str]:
        other = name.casefold()
        same = other.lstrip("-")
        least = enough if begun[:1] == same[:1] or enough < _LIKE_ENOUGH else max(enough, _ALIKE_ANYWHERE)
        letters = alike(begun[:_NAME_COMPARED], same[:_NAME_COMPARED], least)
        letters = letters if letters >= least else 0.0
        shared = _shared(words, _words(name), alike)
        score = max(letters, shared)
        return other != folded, -score, -letters, name

    ranked = sorted(rank(name) for name in islice(dict.fromkeys(known), _NAMES_COMPARED) if name)
    return [name for _, score, _, name in ranked if -score >= enough][:most]


def is_misspelled(word: str, name: str) -> bool:
    """Whether a word is a name with one typing error, and not rather a word of its own.

    A typing error is an additional, missing, wrong or swapped letter. Many words are similar to a short name, so fewer
    errors count there: `hlep` and `hellp` are errors for `help`, `hell` and `heap` are not.
    """
    if word == name or len(name) < _SHORTEST:
        return word == name
    rest, meant = _difference(word, name)
    if len(rest) == len(meant) == 2:
        return rest == meant[::-1]
    if (len(rest), len(meant)) == (1, 0):
        return True
    if (len(rest), len(meant)) == (0, 1):
        return len(name) >= _SHORT
    return len(rest) == len(meant) == 1 and len(name) > _SHORT


def _difference(word: str, name: str) -> tuple[str, str]:
    """The parts of two texts that differ, between their common beginning and their common end."""
    begin = next((i for i, (one, other) in enumerate(zip(word, name, strict=False)) if one != other), None)
    begin = min(len(word), len(name)) if begin is None else begin
    rest, meant = word[begin:], name[begin:]
    while rest and meant and rest[-1] == meant[-1]:
        rest, meant = rest[:-1], meant[:-1]
    return rest, meant


def _comparison() -> Callable[[str, str, float], float]:
    """The similarity of two short texts from 0 to 1: difflib's ratio, or 0 if that cannot be high enough."""
    # Only errors come here, and importing difflib takes milliseconds.
    from difflib import SequenceMatcher
    from functools import cache

    @cache
    def matcher(text: str) -> SequenceMatcher[str]:
        return SequenceMatcher(None, "", text, autojunk=False)

    @cache
    def alike(text: str, other: str, enough: float) -> float:
        found = matcher(text)
        found.set_seq1(other)
        # Most names are not similar, and these bounds are cheap.
        may_be = found.real_quick_ratio() >= enough and found.quick_ratio() >= enough
        return found.ratio() if may_be else 0.0

    return alike


def _words(name: str) -> list[str]:
    """The words of a name; the same for `ring_bell`, `Ring-Bell` and `ringBell`."""
    return [found.casefold() for found in re.findall(_WORD, name[:_NAME_COMPARED])][:_WORDS_COMPARED]


def _shared(words: Sequence[str], others: Sequence[str], alike: Callable[[str, str, float], float]) -> float:
    """The share of two names' letters that belong to words of both; a misspelled word counts less.

    A name is similar enough if the other one has all of its words.
    """
    letters = sum(map(len, words)) + sum(map(len, others))
    left = list(others)
    shared = 0.0
    for word in sorted(words, key=lambda word: word not in others):  # a word that is there is no other one misspelled
        likeness, nearest = max(((alike(word, other, _WORD_LIKE_ENOUGH), other) for other in left), default=(0.0, ""))
        if likeness >= _WORD_LIKE_ENOUGH:
            left.remove(nearest)
            shared += likeness * (len(word) + len(nearest))
    least = _LIKE_ENOUGH if words and others and (set(words) <= set(others) or set(words) >= set(others)) else 0.0
    return max(_WORDS_COUNT * shared / letters, least) if letters else 0.0


def counted(count: int, thing: str) -> str:
    """A number with its noun, as in `1 model` and `1,024 models`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def listed(value: Any) -> str:
    """A value of a preference for people and models."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def to_json(value: Any) -> str:
    """The value as JSON on one line; if JSON does not support it, as Python shows it."""
    try:
        return storable(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def storable(text: str) -> str:
    """The text with escapes for lone surrogates, which cannot be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()
