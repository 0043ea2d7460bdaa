"""Texts of others in rows that nobody can take for Marvin's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..util.text import counted
from .rendering import Measure, Paint, Role

_BEGIN, _GO_ON = "  | ", "  : "
"""Before what is quoted, and before a row that goes on with it: nothing quoted can look like Marvin's own words."""
_DIFF_ROLES: Mapping[str, Role] = {"+": "added", "-": "removed", "@": "place"}


class Quoting:
    """Quotes texts for a screen of so many columns."""

    def __init__(self, paint: Paint, width: int, measure: Measure) -> None:
        self._paint = paint
        self._width = max(20, width)
        self._measure = measure

    def rows(self, text: str, most: int = 0, *, diff: bool = False) -> Iterator[str]:
        """A text, every character of it; where it has more than `most` rows it is cut, and marked. 0 is all."""
        rows = [row for line in text.expandtabs(4).split("\n") for row in self._folded(line, diff)]
        if not most or len(rows) <= most:
            yield from rows
            return
        head = most * 2 // 3
        tail = most - head
        left = len(rows) - most
        yield from rows[:head]
        yield self._paint("error", f"  … {counted(left, 'row')} left out here; view shows them")
        yield from rows[-tail:]

    def _folded(self, line: str, diff: bool) -> Iterator[str]:
        role: Role | None = None
        if diff:
            role = "faint" if line.startswith(("---", "+++")) else _DIFF_ROLES.get(line[:1])
        sign, room = _BEGIN, self._width - len(_BEGIN)
        while True:
            row = _beginning(line, room, self._measure)
            yield f"{sign}{self._paint(role, row) if role else row}"
            line, sign = line[len(row) :], _GO_ON
            if not line:
                return


def _beginning(line: str, room: int, measure: Measure) -> str:
    """As much of a line as there is room for; at least one character, and nothing is taken away."""
    if len(line) * 2 <= room:
        return line
    used = 0
    for index, character in enumerate(line[: room + 1]):
        used += measure(character)
        if used > room:
            return line[: max(1, index)]
    return line[: room + 1]
