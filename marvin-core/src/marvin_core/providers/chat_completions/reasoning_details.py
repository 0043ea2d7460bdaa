"""OpenRouter's `reasoning_details`: the reasoning behind an answer, which the model's own service wants back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_GROWING = ("text", "summary", "data")
_ENTRY_SIZE = 200
"""How many characters an entry counts as that has no text, and each of its other fields."""


class ReasoningDetails:
    """Puts the entries together that a stream sends in pieces. `all` is what goes back, in the order of the stream.

    Consecutive pieces of one type and index belong together: their texts are joined, and what else they say
    (a signature, an id) is kept.
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
        """Take the pieces of one chunk; returns their size in characters, some for each entry."""
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
                texts.setdefault(name, []).append(value)  # joined once, so that many pieces stay linear
                entry.setdefault(name, "")
                size += len(value)
            elif value is not None or name not in entry:
                size += max(0, _size(value) - _size(entry[name])) if name in entry else _size(value) + len(name)
                entry[name] = value
        return size


def _size(value: Any) -> int:
    """How many characters a field counts as."""
    if isinstance(value, str):
        return _ENTRY_SIZE + len(value)
    return _ENTRY_SIZE + (len(str(value)) if isinstance(value, (dict, list)) else 0)
