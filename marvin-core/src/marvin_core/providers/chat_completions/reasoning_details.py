"""OpenRouter's `reasoning_details`: the reasoning behind an answer, which the model's own service wants back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_GROWING = ("text", "summary", "data")


class ReasoningDetails:
    """Puts the entries together that a stream sends in pieces. `all` is what goes back, in the order of the stream.

    Consecutive pieces of one type and index belong together: their texts are joined, and what else they say
    (a signature, an id) is kept.
    """

    def __init__(self) -> None:
        self.all: list[dict[str, Any]] = []

    def add(self, pieces: Iterable[Mapping[str, Any]]) -> None:
        """Take the pieces of one chunk."""
        for piece in pieces:
            last = self.all[-1] if self.all else None
            if last is None or any(last.get(name) != piece.get(name) for name in ("type", "index")):
                self.all.append(dict(piece))
                continue
            for name, value in piece.items():
                if name in _GROWING and isinstance(value, str) and isinstance(last.get(name), str):
                    last[name] += value
                elif value is not None:
                    last[name] = value
