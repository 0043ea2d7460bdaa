"""Values out of what services send, which may hold anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marvin_core import one_line, plain_text

_TEXT = 500
_MARKUP = 4_000
_ADDRESS = 2_000
_DIGITS = 40
_LARGEST = 1e18
"""What is larger counts nothing that services tell of, and would fill a line with its digits."""
_LONG = 10**18
"""Whole numbers from here on are none that a service counts by."""
_MOST = 200
"""Entries of a list: more than any service sends that was asked for its best."""


def inner(value: Any, *path: str | int) -> Any:
    """What lies at a path of names and positions; None where there is nothing."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def text(value: Any, *path: str | int, limit: int = _TEXT) -> str:
    """A text on one line; numbers are written as text, and what is neither is empty."""
    found = inner(value, *path)
    if isinstance(found, (int, float)):
        found = "" if isinstance(found, bool) or number(found) is None else str(found)
    return one_line(found[: 4 * limit], limit) if isinstance(found, str) else ""


def plain(value: Any, *path: str | int, limit: int = _TEXT) -> str:
    """A text that may hold markup, as plain text on one line."""
    found = inner(value, *path)
    return one_line(plain_text(found[:_MARKUP], lines=False), limit) if isinstance(found, str) else ""


def address(value: Any, *path: str | int) -> str:
    """An address of the web; empty where there is none."""
    found = text(value, *path, limit=_ADDRESS)
    return found if found.startswith(("https://", "http://")) and " " not in found else ""


def number(value: Any, *path: str | int) -> float | None:
    """A number, also one that is written as text; None where there is none, or none that anybody counts to."""
    found = inner(value, *path)
    if isinstance(found, bool) or not isinstance(found, (str, int, float)):
        return None
    try:
        result = float(found[:_DIGITS] if isinstance(found, str) else found)
    except (ValueError, OverflowError):
        return None
    return result if abs(result) < _LARGEST else None  # which no NaN is


def whole(value: Any, *path: str | int) -> int | None:
    """A whole number; None where there is none. Numbers of more digits than a fraction can hold stay as they are."""
    given = inner(value, *path)
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < _LONG:
        return given
    found = number(value, *path)
    return None if found is None else int(found)


def objects(value: Any, *path: str | int, most: int = _MOST) -> list[Mapping[str, Any]]:
    """The objects among the first entries of a list; none where there is no list."""
    found = inner(value, *path)
    return [one for one in found[:most] if isinstance(one, Mapping)] if isinstance(found, list) else []


def required(value: Any, *path: str | int, most: int = _MOST) -> list[Any]:
    """The first entries of a list that has to be there.

    Raises:
        ValueError: it is not.
    """
    found = inner(value, *path)
    if not isinstance(found, list):
        raise ValueError(f"there is no list {'.'.join(map(str, path))}")
    return found[:most]
