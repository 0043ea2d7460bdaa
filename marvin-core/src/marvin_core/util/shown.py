"""Results and progress of tools as lines of text: tables, pictures, links."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from typing import TypeAlias

from ..api.events import ToolExecutionUpdate
from ..api.messages import Cell, Link, Picture, Shown, Table
from .terminal_text import disarm
from .text import counted, one_line

ROWS = 50
"""Rows of a table in a chat; further ones are only counted."""
WIDTH = 100
"""The width of a line that is not written to a terminal, in columns."""
_GAP = "  "
_CELL = 500
"""Characters of a cell that are shown."""
_NARROWEST = 6
"""If the screen has fewer columns than this, cells are not folded: each row becomes a list instead."""
_LINES = 300
"""Lines of a table in a chat; rows that do not fit are only counted."""
_BAR = 10

Measure: TypeAlias = Callable[[str], int]
"""The width of a text in columns."""


def columns_of(text: str) -> int:
    """The width of a text on a terminal in columns: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def shown_lines(
    show: Sequence[Shown], width: int = WIDTH, measure: Measure = columns_of, rows: int = ROWS
) -> list[str]:
    """What a tool shows, as lines of this width without terminal sequences. Addresses and paths are not broken.

    Args:
        rows: the maximum number of rows of a table.
    """
    lines: list[str] = []
    for item in show:
        if isinstance(item, Table):
            lines += table_lines(item, width, measure, rows)
        else:
            lines.append(picture_text(item) if isinstance(item, Picture) else link_text(item))
    return lines


def link_text(link: Link) -> str:
    """A link on one line: its text and its address."""
    text, url = _plain(link.text), _plain(link.url)
    return f"{text}: {url}" if text and text != url else url


def picture_text(picture: Picture) -> str:
    """A picture on one line: what is known of it."""
    size = None if picture.size is None else _bytes(picture.size)
    facts = (_plain(picture.alt), _plain(picture.path), _plain(picture.media_type), size)
    return f"[picture: {', '.join(filter(None, facts))}]"


def _bytes(size: int) -> str:
    if size < 1_000:
        return counted(size, "byte")
    return f"{size / 1e3:.1f} KB" if size < 1_000_000 else f"{size / 1e6:.1f} MB"


def table_lines(table: Table, width: int = WIDTH, measure: Measure = columns_of, rows: int = ROWS) -> list[str]:
    """A table as lines: aligned columns, numbers on the right, wide cells folded.

    Rows that do not fit are counted. If the columns would become too narrow, each row becomes a list.
    """
    drawn = table.rows[:rows]
    every = max(map(len, [table.columns, *drawn]), default=0)
    count = min(every, (width + len(_GAP)) // (1 + len(_GAP)))
    texts = [_filled(map(cell_text, islice(row, count)), count) for row in [table.columns, *drawn]]
    widths = _widths([max(map(measure, column)) for column in zip(*texts, strict=True)], width)
    lines = [_plain(table.title)] if table.title else []
    if widths is None:
        body = _as_lists(texts[0], texts[1:], width, measure)
    else:
        numeric = [_are_numbers(column) for column in zip_longest(*(row[:count] for row in drawn))]
        numeric += [False] * (count - len(numeric))
        if any(texts[0]):
            lines += [*_row_lines(texts[0], widths, numeric, measure), _GAP.join("-" * each for each in widths)]
        body = iter([_row_lines(row, widths, numeric, measure) for row in texts[1:]])
    shown = 0
    for row in body:
        if shown and len(lines) + len(row) > _LINES:
            break
        lines += row
        shown += 1
    left = len(table.rows) - shown + max(0, table.omitted)
    lines += [f"… {counted(left, 'more row')}"] if left else []
    return [*lines, f"… {counted(every - count, 'more column')}"] if every > count else lines


def cell_text(cell: Cell) -> str:
    """A cell on one line."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    text = "" if cell is None else str(cell)
    return _plain(text) if len(text) <= _CELL else f"{_plain(text[:_CELL])}…"


def _plain(text: str) -> str:
    return one_line(disarm(text))


def _are_numbers(column: Sequence[Cell]) -> bool:
    cells = [cell for cell in column if cell is not None]
    return bool(cells) and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in cells)


def _filled(row: Iterable[str], count: int) -> list[str]:
    cells = list(row)
    return [*cells, *[""] * (count - len(cells))]


def _widths(natural: list[int], width: int) -> list[int] | None:
    """The widths of columns that fit side by side; the widest ones are narrowed first. None if they would be too
    narrow."""
    room = width - len(_GAP) * (len(natural) - 1)
    natural = [max(1, each) for each in natural]
    most = max(natural, default=0)
    while sum(min(each, most) for each in natural) > room:
        most -= 1
        if most < _NARROWEST:
            return None
    return [min(each, most) for each in natural]


def _row_lines(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool], measure: Measure) -> list[str]:
    """A row as lines, as many as its highest cell has."""
    folded = [_folded(cell, room, measure) for cell, room in zip(cells, widths, strict=True)]
    return [
        _GAP.join(_aligned(*part, measure) for part in zip(parts, widths, numeric, strict=True)).rstrip()
        for parts in zip_longest(*folded, fillvalue="")
    ]


def _as_lists(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int, measure: Measure) -> Iterator[list[str]]:
    """Each row as lines of `head: cell`, with an empty line between rows."""
    for number, row in enumerate(rows):
        named = (f"{head}: {cell}" if head else cell for head, cell in zip(heads, row, strict=True) if cell)
        yield [*([""] if number else []), *(line for text in named for line in _folded(text, width, measure))]


def _aligned(text: str, width: int, to_the_right: bool, measure: Measure) -> str:
    space = " " * (width - measure(text))
    return space + text if to_the_right else text + space


def _folded(text: str, width: int, measure: Measure) -> list[str]:
    """The text as lines of this width, broken at spaces if possible; only those spaces are removed."""
    if measure(text) <= width:
        return [text]
    lines: list[str] = []
    begin = used = space = 0
    for place, character in enumerate(text):
        columns = measure(character)
        if used + columns > width and place > begin:
            end = place if character == " " else space if space > begin else place
            lines.append(text[begin:end].rstrip(" "))
            begin = end
            used = sum(map(measure, text[begin:place]))
        if character == " ":
            space = place + 1
            if begin == place:  # a line does not begin with a space
                begin, used = place + 1, 0
                continue
        used += columns
    return [*lines, text[begin:]] if text[begin:] else lines


def bar(fraction: float) -> str:
    """Progress as a bar and a percentage."""
    done = min(_BAR, max(0, int(fraction * _BAR)))
    return f"[{'#' * done}{'.' * (_BAR - done)}] {percent(fraction)}"


def percent(fraction: float) -> str:
    """Progress as a percentage."""
    return f"{int(fraction * 100)} %"


class ProgressLines:
    """The progress of calls, if lines are written one below the other.

    The first report of each call becomes a line, then at most one every `seconds`. Of a report with several lines, the
    last one is shown.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next: dict[str, float] = {}

    def line(self, event: ToolExecutionUpdate) -> str:
        """The line for a report; empty if too little time has passed since the previous one."""
        now = time.monotonic()
        if now < self._next.get(event.call_id, now):
            return ""
        self._next[event.call_id] = now + self._seconds
        share = "" if event.fraction is None else f" ({percent(event.fraction)})"
        last = _plain(event.text.strip().rpartition("\n")[2])
        return f"{_plain(event.name)}: {last}{share}"

    def ended(self, call_id: str) -> None:
        """Forget a call."""
        self._next.pop(call_id, None)
