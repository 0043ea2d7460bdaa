"""The thinking of a model: dim, with its last rows while it arrives, folded to its first ones afterwards."""

from __future__ import annotations

from ...util.text import counted
from ..rendering import Measure, Paint, clean, shortened, wrapped

_ROWS = 3
"""The number of visible rows."""


class Thinking:
    """Takes the thinking of a model; returns its rows. Empty if it is not to be `shown`."""

    def __init__(self, paint: Paint, measure: Measure, *, shown: bool) -> None:
        self._paint = paint
        self._measure = measure
        self._shown = shown
        self._parts: list[str] = []

    def feed(self, delta: str) -> None:
        """The next part."""
        if self._shown:
            self._parts.append(delta)

    def open_rows(self, width: int, most: int) -> list[str]:
        """The last rows so far."""
        if not self._parts:
            return []
        self._parts = ["".join(self._parts)]
        text = clean(self._parts[0][-2 * _ROWS * width :]).strip("\n")
        rows = wrapped(text, width, self._measure, "").split("\n")[-min(_ROWS, most) :]
        return [self._paint("thinking", row) for row in rows]

    def end(self, width: int) -> list[str]:
        """Its first lines, and the number of all; the next thought starts afresh."""
        text, self._parts = clean("".join(self._parts)).strip(), []
        if not text:
            return []
        lines = [line for line in text.split("\n") if line.strip()]
        rows = [f"Thinking: {lines[0]}", *lines[1:_ROWS]]
        cut = [shortened(row, width, self._measure) for row in rows]
        left = len(lines) - len(rows)
        if left > 0 or cut != rows:
            more = f" {counted(left, 'more line')}." if left > 0 else ""
            cut.append(f"…{more} Ctrl+O shows all.")
        return [self._paint("thinking", row) for row in cut]
