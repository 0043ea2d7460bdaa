"""Numbers from outside: from services, config.yaml and state files."""

from __future__ import annotations

import math
from typing import Any

from ..api.messages import Usage

_MOST = 10**12
"""No larger number makes sense here. Sums of smaller ones stay finite, and integers exact."""
_DOLLARS = ("cost", "estimate")


def amount(value: Any) -> float | None:
    """The value as a number if it is finite and not negative; None for anything else, including booleans and text."""
    if type(value) not in (int, float) or not 0 <= value <= _MOST:
        return None
    return float(value) + 0.0  # minus zero becomes zero


def count(value: Any) -> int:
    """The value as an integer, rounded up; 0 if it is not a number."""
    if type(value) is int and 0 <= value <= _MOST:
        return value
    found = amount(value)
    return 0 if found is None else math.ceil(found)


def count_at(data: Any, *path: str) -> int:
    """The integer at a path in nested objects; 0 if there is none."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return count(data)


def sound(usage: Usage) -> Usage:
    """The usage with only non-negative numbers in it."""
    given = usage.as_dict()
    for name, value in given.items():
        if not ((type(value) is int and 0 <= value <= _MOST) or (value is None and name in _DOLLARS)):
            break
    else:
        return usage  # as nearly all are, and each round asks several times
    checked: dict[str, Any]
    checked = {name: amount(value) if name in _DOLLARS else count(value) for name, value in given.items()}
    is_same = all(type(value) is type(given[name]) and value == given[name] for name, value in checked.items())
    return usage if is_same else Usage(**checked)  # False equals 0, and is not a number
