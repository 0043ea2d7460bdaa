"""Rows of results: what was measured, how it compares with its goal, and the table of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One result. `value` and `goal` are in `unit`, less is better; `how` says where the value comes from."""

    what: str
    value: float
    goal: float | None
    unit: str
    how: str

    @property
    def verdict(self) -> str:
        """Whether the goal was met, and by how much it was missed or beaten."""
        if self.goal is None:
            return ""
        if self.value <= self.goal:
            return f"met, {1 - self.value / self.goal:.0%} below" if self.goal else "met"
        return f"MISSED by {self.value / self.goal - 1:.0%}" if self.goal else "MISSED"

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        met = None if self.goal is None else self.value <= self.goal
        return {**self._asdict(), "met": met}


def headline(seconds: float) -> str:
    """On what machine it was measured, and how long that took."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load}; took {seconds:.0f} s."


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    cells = [("what", "measured", "goal", "", "how")]
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:.2f} {row.unit}"
        cells.append((row.what, f"{row.value:.2f} {row.unit}", goal, row.verdict, row.how))
    return aligned(cells, "<>><<")


def aligned(lines: Sequence[Sequence[str]], sides: str) -> str:
    """Lines of cells as text, each column with its cells to the left (`<`) or to the right (`>`)."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)).rstrip()
        for line in lines
    )
