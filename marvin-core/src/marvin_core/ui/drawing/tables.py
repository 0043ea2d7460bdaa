"""Tables of an answer: aligned columns, with wide content wrapped in its cell, and no padding after the last column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from ..rendering import Measure, Paint
from .inline import Span, folded, painted, spans, width_of

_GAP = 2
_NARROWEST = 6
"""The minimum width of a cell in columns; a narrower table is written unformatted."""
_PIECES = re.compile(r"(?P<code>(?P<ticks>`+)[^`]*(?P=ticks))|(?P<bar>\|)|(?:\\.|.)", re.DOTALL)


def table_rows(lines: Sequence[str], width: int, paint: Paint, measure: Measure) -> list[str] | None:
    """The rows of the table in these lines; None if its columns do not fit in the width."""
    heads, delimiters, *body = map(_cells, lines)
    count = len(delimiters)
    table = [[spans(text, ("bold",)) for text in _filled(heads, count)]]
    table += [[spans(text) for text in _filled(row, count)] for row in body]
    natural = [max(width_of(row[column], measure) for row in table) for column in range(count)]
    widths = _widths(natural, width)
    if widths is None:
        return None
    right = [delimiter.endswith(":") and not delimiter.startswith(":") for delimiter in delimiters]
    rows: list[str] = []
    for number, row in enumerate(table):
        cells = [folded(cell, room, measure) for cell, room in zip(row, widths, strict=True)]
        rows += [_row(parts, widths, right, paint, measure) for parts in zip_longest(*cells, fillvalue=())]
        if not number:
            rows.append(paint("rule", (" " * _GAP).join("─" * room for room in widths)))
    return rows


def _cells(line: str) -> list[str]:
    """The texts between the bars; a bar within code does not count."""
    line = line.strip()
    parts = [""]
    for piece in _PIECES.finditer(line[line.startswith("|") :]):
        if piece["bar"]:
            parts.append("")
        else:
            parts[-1] += piece[0]
    if not parts[-1].strip() and len(parts) > 1:
        parts.pop()
    return [part.strip().replace("\\|", "|") for part in parts]


def _filled(row: Sequence[str], count: int) -> list[str]:
    """As many cells as columns; extra cells are joined to the last one, so that no text is lost."""
    cells = [*row, *[""] * (count - len(row))]
    return [*cells[: count - 1], " | ".join(cells[count - 1 :])]


def _widths(natural: Sequence[int], width: int) -> list[int] | None:
    """Widths of columns that fit side by side: the widest shrink first. None if they would be too narrow."""
    room = width - _GAP * (len(natural) - 1)
    natural = [max(1, each) for each in natural]
    most = max(natural)
    while sum(min(each, most) for each in natural) > room:
        most -= 1
        if most < _NARROWEST:
            return None
    return [min(each, most) for each in natural]


def _row(
    parts: Sequence[Sequence[Span]], widths: Sequence[int], right: Sequence[bool], paint: Paint, measure: Measure
) -> str:
    """One row of the screen; spaces only before other text."""
    row, missing = "", 0
    for part, room, to_the_right in zip(parts, widths, right, strict=True):
        space = max(0, room - width_of(part, measure))
        if part:
            row += " " * (missing + (space if to_the_right else 0)) + painted(part, paint)
            missing = 0 if to_the_right else space
        else:
            missing += room
        missing += _GAP
    return row
