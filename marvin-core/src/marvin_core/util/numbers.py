"""Numbers that come from outside: of services, of config.yaml, of state files."""

from __future__ import annotations

import math
from typing import Any

from ..api.messages import Usage

_MOST = 10**12
"""Beyond it nothing is meant here. Sums of what is below stay finite, and its whole numbers exact."""
_DOLLARS = ("cost", "estimate")


def amount(value: Any) -> float | None:
    """The value as a number, where it is a finite one from 0 on; None for all else, true, false and text among it."""
    if type(value) not in (int, float) or not 0 <= value <= _MOST:
        return None
    return float(value) + 0.0  # minus zero becomes zero


def count(value: Any) -> int:
    """The value as a whole number, rounded up; 0 if it is none."""
    if type(value) is int and 0 <= value <= _MOST:
        return value
    found = amount(value)
    return 0 if found is None else math.ceil(found)


def count_at(data: Any, *path: str) -> int:
    """The whole number at a place in nested objects; 0 if there is none."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return count(data)


def sound(usage: Usage) -> Usage:
    """The usage with nothing in it but numbers from 0 on."""
    given = usage.as_dict()
    if all(
        (type(value) is int and 0 <= value <= _MOST) or (value is None and name in _DOLLARS)
        for name, value in given.items()
    ):
        return usage  # as nearly all are, and each round asks several times
    checked: dict[str, Any]
    checked = {name: amount(value) if name in _DOLLARS else count(value) for name, value in given.items()}
    is_same = all(type(value) is type(given[name]) and value == given[name] for name, value in checked.items())
    return usage if is_same else Usage(**checked)  # false equals 0, and is none
