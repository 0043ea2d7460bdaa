"""OpenRouter's `reasoning_details`: the reasoning before an answer, which the model's own service requires back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_GROWING = ("text", "summary", "data")
_ENTRY_SIZE = 200
"""The size in characters of an entry without text, and of each of its other fields."""


class ReasoningDetails:
    """Joins entries that arrive in parts. `all` are the entries to send back, in the order of the stream.

    Consecutive parts with the same type and index belong together: their texts are joined, and their other fields (a
    signature, an id) are kept.
    """

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []
        self._texts: list[dict[str, list[str]]] = []

    @property
    def all(self) -> list[dict[str, Any]]:
        """The entries so far."""
        return [
            {**entry, **{name: "".join(parts) for name, parts in texts.items()}}
            for entry, texts in zip(self._entries, self._texts, strict=True)
        ]

    def add(self, pieces: Iterable[Mapping[str, Any]]) -> int:
        """Take the parts in one chunk; returns their size in characters, with a minimum for each entry."""
        return sum(self._add(piece) for piece in pieces)

    def _add(self, piece: Mapping[str, Any]) -> int:
        size = 0
        if not self._entries or any(self._entries[-1].get(name) != piece.get(name) for name in ("type", "index")):
            self._entries.append({})
            self._texts.append({})
            size += _ENTRY_SIZE
        entry, texts = self._entries[-1], self._texts[-1]
        for name, value in piece.items():
            if name in _GROWING and isinstance(value, str):
                texts.setdefault(name, []).append(value)  # joined once, so that the work stays linear
                entry.setdefault(name, "")
                size += len(value)
            elif value is not None or name not in entry:
                size += max(0, _size(value) - _size(entry[name])) if name in entry else _size(value) + len(name)
                entry[name] = value
        return size


def _size(value: Any) -> int:
    """The size of a field in characters."""
    if isinstance(value, str):
        return _ENTRY_SIZE + len(value)
    return _ENTRY_SIZE + (len(str(value)) if isinstance(value, (dict, list)) else 0)
