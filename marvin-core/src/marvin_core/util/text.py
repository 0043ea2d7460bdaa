"""Short texts: one line, cut, near names, JSON on one line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

RECEIVED_LIMIT = 200
"""Characters of what was received that an error shows."""

_NAMES_LISTED = 20
_NAMES_COMPARED = 2_000
_NAME_COMPARED = 64
"""The characters of a name that are compared: what is asked may be any text."""
_WORDS_COMPARED = 8
_SHORTEST = 4
"""Letters of the shortest name that a word may be a slip of."""
_SHORT = 5
"""Letters of a name that is so short that one letter in the place of another makes a word of its own."""
FAINTLY_LIKE = 0.4
"""How alike names must be where some are listed anyway, and the likeliest come first."""
_LIKE_ENOUGH = 0.6
"""How alike two names are of which one may be meant for the other; 1 is the same."""
_ALIKE_ANYWHERE = 0.7
"""How alike the letters of two names must be that begin with different ones: those of `nope` and `openai` are 0.6."""
_WORD_LIKE_ENOUGH = 0.8
_WORDS_COUNT = 1.15
"""How much more shared words say than as many letters here and there."""
# Of parserHTTPError: parser, HTTP, Error. What is neither a letter nor a digit only parts words.
_WORD = r"[A-Z]+(?![a-z])|[A-Z]?[^\W_A-Z]+|[A-Z]+"


def one_line(text: str, limit: int | None = None) -> str:
    """The text on one line, without what a terminal would take for a command.

    Args:
        limit: the most characters of it, from 1 on; an ellipsis, which is one of them, marks a cut.
    """
    line = " ".join(text.split())
    if not line.isprintable():
        from .terminal_text import without_sequences

        line = " ".join("".join(c if c.isprintable() else " " for c in without_sequences(text)).split())
    return line if limit is None or len(line) <= limit else f"{line[: limit - 1]}…"


def cut(text: str, limit: int = RECEIVED_LIMIT) -> str:
    """The text up to the limit (in characters), without lone surrogates; an ellipsis marks a cut."""
    return storable(text if len(text) <= limit else text[:limit] + "…")


def shortened(named: Sequence[str], most: int = 3) -> str:
    """The first of several in a line, and how many more there are."""
    more = len(named) - most
    return ", ".join(named[:most]) + (f" and {more:,} more" if more > 0 else "")


def local_time(seconds: float) -> str:
    """A moment in local time, to the minute."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "unknown time"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence saying that there is no such tool or parameter, and which names are near."""
    names = list(known)
    hint = did_you_mean(near_names(name, names))
    if not hint and len(names) <= _NAMES_LISTED:
        hint = f"Available: {storable(', '.join(names)) or 'none'}."
    return f"Unknown {kind} {cut(name)!r}. {hint}".rstrip()


def hint_at(asked: str, known: Iterable[str], otherwise: str = "") -> str:
    """Which known names may be meant by one that is unknown; where none is near, `otherwise`, or all that there are."""
    names = list(known)
    return did_you_mean(near_names(asked, names)) or otherwise or f"Available: {', '.join(names)}."


def did_you_mean(names: Sequence[str]) -> str:
    """The question whether one of these names is meant; nothing if there are none."""
    if not names:
        return ""
    *others, last = map(repr, names)
    return f"Did you mean {', '.join(others)} or {last}?" if others else f"Did you mean {last}?"


def near_names(asked: str, known: Iterable[str], most: int = 3, *, enough: float = _LIKE_ENOUGH) -> list[str]:
    """The known names that may be meant by one that is unknown, the likeliest first.

    Two names are as alike as their letters are, or as their words are in any order, whichever is more. A name that
    differs in case only comes first. What is compared is bounded: the beginning of a name, some of its words, and some
    thousand names.

    Args:
        most: how many to give at most.
        enough: how alike they must be; 1 is the same.
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
    """Whether a word is a name with one slip of the keys, and not rather a word of its own.

    A slip is a letter too many, too few, wrong, or in the place of its neighbour. Short names have many words as
    neighbours, so that less counts there: of `help`, `hlep` and `hellp` are slips, `hell` and `heap` are not.
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
    """What two texts are between the beginning and the end that they have in common."""
    begin = next((i for i, (one, other) in enumerate(zip(word, name, strict=False)) if one != other), None)
    begin = min(len(word), len(name)) if begin is None else begin
    rest, meant = word[begin:], name[begin:]
    while rest and meant and rest[-1] == meant[-1]:
        rest, meant = rest[:-1], meant[:-1]
    return rest, meant


def _comparison() -> Callable[[str, str, float], float]:
    """How alike two short texts are, from 0 to 1: difflib's ratio, or 0 if that cannot be enough."""
    # Only errors come here, and difflib costs milliseconds to import.
    from difflib import SequenceMatcher
    from functools import cache

    @cache
    def matcher(text: str) -> SequenceMatcher[str]:
        return SequenceMatcher(None, "", text, autojunk=False)

    @cache
    def alike(text: str, other: str, enough: float) -> float:
        found = matcher(text)
        found.set_seq1(other)
        # Most names are unlike, and these bounds are cheap.
        may_be = found.real_quick_ratio() >= enough and found.quick_ratio() >= enough
        return found.ratio() if may_be else 0.0

    return alike


def _words(name: str) -> list[str]:
    """The words of a name: of `ring_bell`, `Ring-Bell` and `ringBell` they are the same."""
    return [found.casefold() for found in re.findall(_WORD, name[:_NAME_COMPARED])][:_WORDS_COMPARED]


def _shared(words: Sequence[str], others: Sequence[str], alike: Callable[[str, str, float], float]) -> float:
    """How much of two names is words of both, by their letters; a misspelled word counts less.

    A name of which every word is in the other one is like enough.
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
    """A count and what is counted, as in `1 model` and `1,024 models`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def listed(value: Any) -> str:
    """A value of a preference, as people and models read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def to_json(value: Any) -> str:
    """The value as JSON on one line, and as whatever Python shows where JSON cannot hold it."""
    try:
        return storable(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def storable(text: str) -> str:
    """The text with lone surrogates, which cannot be encoded, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
