"""Short texts: one line, cut, near names, JSON on one line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def one_line(text: str) -> str:
    """The text on one line, without what a terminal would take for a command."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def local_time(seconds: float) -> str:
    """A moment in local time, to the minute."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, ValueError, OSError):
        return "unknown time"


RECEIVED_LIMIT = 200
"""Characters of what was received that an error shows."""


_NAMES_LISTED = 20


_NAME_COMPARED = 64


_LIKE_ENOUGH = 0.6


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence saying that there is no such tool or parameter, and which names are nearest."""
    names = list(known)
    near = [repr(other) for other in nearest(name, names)]
    if near:
        hint = f" Did you mean {' or '.join(near)}?"
    elif len(names) <= _NAMES_LISTED:
        hint = f" There is {', '.join(names) or 'none'}."
    else:
        hint = ""
    return f"Unknown {kind} {cut(name)!r}.{hint}"


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of the known names that are most like this one, the best first."""
    # Only errors come here, and difflib costs milliseconds to import.
    from difflib import SequenceMatcher

    asked = name[:_NAME_COMPARED].lower()
    words = set(asked.split("_"))

    def likeness(other: str) -> float:
        shared = len(words & set(other.lower().split("_")))
        return SequenceMatcher(None, asked, other.lower()).ratio() + 0.2 * shared

    ranked = sorted(((likeness(other), other) for other in known), key=lambda pair: (-pair[0], pair[1]))
    return [other for score, other in ranked[:3] if score >= _LIKE_ENOUGH]


def to_json(value: Any) -> str:
    """The value as JSON on one line, and as whatever Python shows where JSON cannot hold it."""
    try:
        return storable(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"


def storable(text: str) -> str:
    """The text with lone surrogates, which cannot be encoded, written as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def cut(text: str, limit: int = RECEIVED_LIMIT) -> str:
    """The text up to the limit (in characters), without lone surrogates; an ellipsis marks a cut."""
    return storable(text if len(text) <= limit else text[:limit] + "…")
