"""What tools show people, and how far they are, as lines of text: tables, pictures, links, progress."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, zip_longest
from typing import TypeAlias

from ..api.events import ToolExecutionUpdate
from ..api.messages import Cell, Link, Picture, Shown, Table
from .terminal_text import disarm
from .text import counted, one_line

ROWS = 50
"""Rows of a table that a chat shows; the rest is counted."""
WIDTH = 100
"""Columns of a line where it goes to no terminal."""
_GAP = "  "
_CELL = 500
"""Characters of a cell that are looked at."""
_BAR = 10

Measure: TypeAlias = Callable[[str], int]
"""How many columns a text takes."""


def columns_of(text: str) -> int:
    """How many columns a text takes on a terminal: wide characters two, what is drawn over others none."""
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
    """What a tool shows, in lines of this width, without what could steer a terminal. Addresses and paths stay whole.

    Args:
        rows: the most rows of a table.
    """
    lines: list[str] = []
    for item in show:
        if isinstance(item, Table):
            lines += table_lines(item, width, measure, rows)
        else:
            lines.append(picture_text(item) if isinstance(item, Picture) else link_text(item))
    return lines


def link_text(link: Link) -> str:
    """A link on a line: its text, and the address."""
    text, url = _plain(link.text), _plain(link.url)
    return f"{text}: {url}" if text and text != url else url


def picture_text(picture: Picture) -> str:
    """A picture on a line: what is known of it."""
    size = None if picture.size is None else _bytes(picture.size)
    facts = (_plain(picture.alt), _plain(picture.path), _plain(picture.media_type), size)
    return f"[picture: {', '.join(filter(None, facts))}]"


def _bytes(size: int) -> str:
    if size < 1_000:
        return counted(size, "byte")
    return f"{size / 1e3:.1f} KB" if size < 1_000_000 else f"{size / 1e6:.1f} MB"


def table_lines(table: Table, width: int = WIDTH, measure: Measure = columns_of, rows: int = ROWS) -> list[str]:
    """A table in lines: columns aligned, numbers to the right, what is too wide cut, what is too long counted."""
    drawn = table.rows[:rows]
    every = max(map(len, [table.columns, *drawn]), default=0)
    count = min(every, (width + len(_GAP)) // (1 + len(_GAP)))
    texts = [_filled(map(cell_text, islice(row, count)), count) for row in [table.columns, *drawn]]
    numeric = [_are_numbers(column) for column in zip_longest(*(row[:count] for row in drawn))]
    numeric += [False] * (count - len(numeric))
    widths = _widths([max(map(measure, column)) for column in zip(*texts, strict=True)], width)
    lines = [_plain(table.title)] if table.title else []
    for number, row in enumerate(texts):
        if number or any(row):
            cells = [_aligned(*cell, measure) for cell in zip(row, widths, numeric, strict=True)]
            lines.append(_GAP.join(cells).rstrip())
        if not number and any(row):
            lines.append(_GAP.join("-" * each for each in widths))
    left = len(table.rows) - len(drawn) + max(0, table.omitted)
    lines += [f"… {counted(left, 'more row')}"] if left else []
    return [*lines, f"… {counted(every - count, 'more column')}"] if every > count else lines


def cell_text(cell: Cell) -> str:
    """A cell on one line."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return "" if cell is None else _plain(str(cell)[:_CELL])


def _plain(text: str) -> str:
    return one_line(disarm(text))


def _are_numbers(column: Sequence[Cell]) -> bool:
    cells = [cell for cell in column if cell is not None]
    return bool(cells) and all(isinstance(cell, (int, float)) and not isinstance(cell, bool) for cell in cells)


def _filled(row: Iterable[str], count: int) -> list[str]:
    cells = list(row)
    return [*cells, *[""] * (count - len(cells))]


def _widths(natural: list[int], width: int) -> list[int]:
    """The widths of columns that fit side by side: the widest ones give way first."""
    room = width - len(_GAP) * (len(natural) - 1)
    natural = [max(1, each) for each in natural]
    most = max(natural, default=0)
    while sum(min(each, most) for each in natural) > room and most > 1:
        most -= 1
    return [min(each, most) for each in natural]


def _aligned(text: str, width: int, to_the_right: bool, measure: Measure) -> str:
    text = _cut(text, width, measure)
    space = " " * (width - measure(text))
    return space + text if to_the_right else text + space


def _cut(text: str, width: int, measure: Measure) -> str:
    if measure(text) <= width:
        return text
    used = 1  # the ellipsis
    for place, character in enumerate(text):
        used += measure(character)
        if used > width:
            return text[:place] + "…"
    return text


def bar(fraction: float) -> str:
    """How much is done, as a bar and in percent."""
    done = min(_BAR, max(0, int(fraction * _BAR)))
    return f"[{'#' * done}{'.' * (_BAR - done)}] {percent(fraction)}"


def percent(fraction: float) -> str:
    """How much is done, in percent."""
    return f"{int(fraction * 100)} %"


class ProgressLines:
    """How far calls are, for where lines are written one below the other.

    Of each call the first report becomes a line, then one every `seconds` at most. Of several lines it is the last.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next: dict[str, float] = {}

    def line(self, event: ToolExecutionUpdate) -> str:
        """The line for a report; empty where it comes too soon after the one before."""
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
