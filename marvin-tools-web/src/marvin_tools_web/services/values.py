"""Extracts values from answers of services, which may contain anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marvin_core import one_line, plain_text

_TEXT = 500
_MARKUP = 4_000
_ADDRESS = 2_000
_DIGITS = 40
_LARGEST = 1e18
"""Larger numbers are not plausible values, and would fill a line with digits."""
_LONG = 10**18
"""Larger whole numbers are not plausible values."""
_MOST = 200
"""Entries of a list that are read: more than any service sends in answer to our requests."""


def inner(value: Any, *path: str | int) -> Any:
    """The value at a path of keys and indexes; None if there is none."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and -len(value) <= step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def text(value: Any, *path: str | int, limit: int = _TEXT) -> str:
    """A text on one line; numbers become text, and any other value is empty."""
    found = inner(value, *path)
    if isinstance(found, (int, float)):
        found = "" if isinstance(found, bool) or number(found) is None else str(found)
    return one_line(found[: 4 * limit], limit) if isinstance(found, str) else ""


def plain(value: Any, *path: str | int, limit: int = _TEXT) -> str:
    """A text that may contain markup, as plain text on one line."""
    found = inner(value, *path)
    return one_line(plain_text(found[:_MARKUP], lines=False), limit) if isinstance(found, str) else ""


def address(value: Any, *path: str | int) -> str:
    """A web URL; empty if the value is not one."""
    found = text(value, *path, limit=_ADDRESS)
    return found if found.startswith(("https://", "http://")) and " " not in found else ""


def number(value: Any, *path: str | int) -> float | None:
    """A number, also from a text; None for anything else, and for implausible sizes."""
    found = inner(value, *path)
    if isinstance(found, bool) or not isinstance(found, (str, int, float)):
        return None
    try:
        result = float(found[:_DIGITS] if isinstance(found, str) else found)
    except (ValueError, OverflowError):
        return None
    return result if abs(result) < _LARGEST else None  # false for NaN


def whole(value: Any, *path: str | int) -> int | None:
    """A whole number; None for anything else. Numbers with more digits than a float holds stay exact."""
    given = inner(value, *path)
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < _LONG:
        return given
    found = number(value, *path)
    return None if found is None else int(found)


def objects(value: Any, *path: str | int, most: int = _MOST) -> list[Mapping[str, Any]]:
    """The objects among the first entries of a list; none for anything else."""
    found = inner(value, *path)
    return [one for one in found[:most] if isinstance(one, Mapping)] if isinstance(found, list) else []


def required(value: Any, *path: str | int, most: int = _MOST) -> list[Any]:
    """The first entries of a list that must exist.

    Raises:
        ValueError: it is not a list.
    """
    found = inner(value, *path)
    if not isinstance(found, list):
        raise ValueError(f"there is no list {'.'.join(map(str, path))}")
    return found[:most]
