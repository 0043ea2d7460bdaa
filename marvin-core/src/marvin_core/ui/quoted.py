"""Third-party texts in rows that cannot be mistaken for Marvin's own words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..util.text import counted
from .rendering import Measure, Paint, Role

_BEGIN, _GO_ON = "  | ", "  : "
"""The marks before a quoted row and before its continuation: no quoted text can look like Marvin's own words."""
_DIFF_ROLES: Mapping[str, Role] = {"+": "added", "-": "removed", "@": "place"}


class Quoting:
    """Quotes texts for a screen of this width in columns."""

    def __init__(self, paint: Paint, width: int, measure: Measure) -> None:
        self._paint = paint
        self._width = max(20, width)
        self._measure = measure

    def rows(self, text: str, most: int = 0, *, diff: bool = False) -> Iterator[str]:
        """A text with every character; if it has more than `most` rows, it is cut and marked. 0 means no limit."""
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
    """As much of a line as fits; at least one character."""
    if len(line) * 2 <= room:
        return line
    used = 0
    for index, character in enumerate(line[: room + 1]):
        used += measure(character)
        if used > room:
            return line[: max(1, index)]
    return line[: room + 1]
