"""Rows of results: what was measured, how it compares with its goal, and the table of them."""

from __future__ import annotations

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
            return f"met, {1 - self.value / self.goal:.0%} below"
        return f"MISSED by {self.value / self.goal - 1:.0%}"

    def as_dict(self) -> dict[str, Any]:
        """The row as plain values."""
        met = None if self.goal is None else self.value <= self.goal
        return {**self._asdict(), "met": met}


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    cells = [("what", "measured", "goal", "", "how")]
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:.2f} {row.unit}"
        cells.append((row.what, f"{row.value:.2f} {row.unit}", goal, row.verdict, row.how))
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    return "\n".join(
        f"{what:<{widths[0]}}  {value:>{widths[1]}}  {goal:>{widths[2]}}  {verdict:<{widths[3]}}  {how}".rstrip()
        for what, value, goal, verdict, how in cells
    )
