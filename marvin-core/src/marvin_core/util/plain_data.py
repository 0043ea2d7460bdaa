"""Converts values of packs to JSON data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .text import storable

_DEPTH = 100
_VALUES = 100_000
"""Values are converted in the event loop, which is blocked for up to about a tenth of a second meanwhile."""
_LARGEST_INT_BITS = 1_024
"""Most JSON readers do not support larger numbers, and Python refuses to write them."""


def plain(value: Any) -> Any:
    """The value as JSON data; anything that JSON does not support becomes text.

    Raises:
        ValueError: it contains itself, or is nested too deeply or too large to be written.
    """
    return _Plain().of(value, _DEPTH)


class _Plain:
    """Converts one value. It counts the parts, since a small value may contain another one many times."""

    def __init__(self) -> None:
        self._left = _VALUES
        self._around: set[int] = set()

    def of(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"it holds more than {_VALUES:,} values")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return storable(value)
        if isinstance(value, int):
            return int(value) if value.bit_length() <= _LARGEST_INT_BITS else f"{value:#x}"
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else str(float(value))
        if isinstance(value, (Mapping, list, tuple)):
            return self._inside(value, depth)
        return as_text(value)

    def _inside(self, value: Any, depth: int) -> Any:
        if id(value) in self._around:
            raise ValueError("it contains itself")
        if not depth:
            raise ValueError(f"it is nested more than {_DEPTH} deep")
        self._around.add(id(value))
        try:
            if isinstance(value, Mapping):
                return {_key(name): self.of(inner, depth - 1) for name, inner in value.items()}
            return [self.of(inner, depth - 1) for inner in value]
        finally:
            self._around.discard(id(value))


def _key(name: Any) -> str:
    return storable(name) if isinstance(name, str) else as_text(name)


def as_text(value: Any) -> str:
    """The value as text by its own class; if that fails, its type."""
    try:
        return storable(str(value))
    except Exception:  # a third-party class; only its name is left to show
        return f"a {type(value).__name__}"
