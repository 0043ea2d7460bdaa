"""Cases in which the library and a terminal may disagree about rows and columns: folded rows, joined characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.screen import Char, Screen
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle

NEVER_FOLD = frozenset({"xterm", "linux"})
"""Terminals that cut off their rows when they become narrower. All others fold a row into several."""
_TMUX = ("tmux", "screen")
"""The TERM values of tmux. Its history receives text that is erased from the first row of the window on. It also folds
the empty rest of a row that was once wider.
"""
GNU_SCREEN = "screen/GNU"
FORGETS = frozenset({GNU_SCREEN})
"""Terminals without a second screen by default: the text that the pager covers is lost."""
_NON_JOINER = 0x200C
_STEADY = {0x200D: _NON_JOINER, 0xFE0F: _NON_JOINER}
_STEADY |= {0x1F1E6 + number: 0xFF21 + number for number in range(26)}  # two of these letters make a flag
_STEADY |= dict.fromkeys(range(0x1F3FB, 0x1F400), 0x3000)  # the colour of the skin
_STEADY |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)  # reorders what is pasted


def steady(text: str) -> str:
    """The text in characters that have the same width in every terminal, for rows that are redrawn.

    Some terminals draw several characters as one, and the library adds up their single widths. It would then look for
    its own output in the wrong place. The length of the text stays the same.
    """
    return text.translate(_STEADY)


def is_text(typed: str) -> bool:
    """Whether all of it is text; the library represents bytes that are no UTF-8 as single surrogates."""
    return typed.isascii() or not any("\ud800" <= character <= "\udfff" for character in typed)


@lru_cache(maxsize=2)
def steady_ansi(text: str) -> ANSI:
    """The same for a text with colors, in parts; the library calls this several times for each redraw."""
    return ANSI(steady(text))


class SteadyInput(Processor):
    """Shows the edited text as `steady` returns it."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Transform one line of the text."""
        return Transformation([(style, steady(text)) for style, text, *_ in transformation_input.fragments])


class FoldingRenderer(Renderer):
    """Accounts for rows that a narrower window has folded into several; the library would leave the upper ones behind.

    Args:
        current: returns the window with the cursor.
        terminal: the type of the terminal (TERM).
    """

    def __init__(self, style: BaseStyle, output: Output, current: Callable[[], Window], terminal: str) -> None:
        super().__init__(style, output)
        self._current = current
        self._folds = terminal not in NEVER_FOLD
        self._is_tmux = terminal.startswith(_TMUX) and terminal != GNU_SCREEN
        self._widest: dict[int, int] = {}
        """For each row, the maximum number of columns drawn in it since the last complete erase."""
        self._columns = 0
        """The width of the window at the last drawing."""
        self.is_lent = False
        """Whether another program draws. The library nevertheless erases at each change of the size."""

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        """Draw; after a change of the width, remove the earlier drawing first."""
        if self.last_rendered_screen is not None and self._columns != self.output.get_size().columns:
            self.erase(leave_alternate_screen=False)
        self._columns = self.output.get_size().columns
        super().render(app, layout, is_done)
        screen = self.last_rendered_screen
        if self._is_tmux and screen is not None:
            widths = [sum(_widths(screen.data_buffer[number])) for number in range(screen.height)]
            # A row that was emptied from its beginning on is a new one.
            self._widest = {row: max(width, self._widest.get(row, 0)) for row, width in enumerate(widths) if width}

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Remove the drawing."""
        if self.is_lent:
            return
        screen, columns = self.last_rendered_screen, self.output.get_size().columns
        if screen is not None:
            cursor = screen.get_cursor_position(self._current())
            more = self._rows_more(screen, cursor, columns)
            if more:
                self.output.cursor_up(more)
            if self._is_tmux:
                self._empty_rows(screen, cursor.y, columns)
        super().erase(leave_alternate_screen)
        self._widest.clear()

    def _empty_rows(self, screen: Screen, up: int, columns: int) -> None:
        """Empty each row separately, so that tmux stores none of them."""
        count = screen.height + sum(folds(self._drawn(screen, row), columns) for row in range(screen.height))
        above = f"\x1b[{up}A" if up else ""
        emptied = "\x1b[2K\x1b[B" * count
        self.output.write_raw(f"\x1b7\r{above}{emptied}\x1b8")

    def _rows_more(self, screen: Screen, cursor: Point, columns: int) -> int:
        """The number of additional rows above the cursor, compared with the drawn ones."""
        if not self._folds:
            return 0
        above = [self._drawn(screen, row) for row in range(cursor.y)]
        before = (_widths(screen.data_buffer[cursor.y]) + [1] * cursor.x)[: cursor.x]
        return sum(folds(row, columns) for row in [*above, before])

    def _drawn(self, screen: Screen, number: int) -> list[int]:
        """The width of each character of a row in columns; in tmux, of the remains of wider rows before, too."""
        widths = _widths(screen.data_buffer[number])
        return widths + [1] * (self._widest.get(number, 0) - sum(widths))


def _widths(cells: Mapping[int, Char]) -> list[int]:
    """The width of each character of a row in columns, without trailing spaces."""
    used = max((column for column, cell in cells.items() if cell.char.strip()), default=-1)
    return [cells[column].width for column in range(used + 1)]


def folds(widths: Sequence[int], columns: int) -> int:
    """The number of folds of a row at this width; a wide character is never split."""
    count = used = 0
    for width in widths:
        if used + width > columns:
            count += 1
            used = 0
        used += width
    return count
