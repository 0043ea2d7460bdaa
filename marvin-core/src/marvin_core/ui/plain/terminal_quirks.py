"""Where the library and a terminal may not agree about rows and columns: folded rows, joined characters."""

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
"""Terminals that cut their rows when they get narrower. The others fold them, so that a row becomes several."""
_TMUX = ("tmux", "screen")
"""What tmux calls itself. What is erased from the first row of the window on goes into its history, and the empty rest
of a row that once was wider is folded, too."""
GNU_SCREEN = "screen/GNU"
FORGETS = frozenset({GNU_SCREEN})
"""Those that have no other screen, if nobody set them to: what the pager covers is gone."""
_NON_JOINER = 0x200C
_STEADY = {0x200D: _NON_JOINER, 0xFE0F: _NON_JOINER}
_STEADY |= {0x1F1E6 + number: 0xFF21 + number for number in range(26)}  # two of these letters make a flag
_STEADY |= dict.fromkeys(range(0x1F3FB, 0x1F400), 0x3000)  # the colour of the skin
_STEADY |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD)  # reorders what is pasted


def steady(text: str) -> str:
    """The text in characters that take as many columns in every terminal, for rows that are drawn again and again.

    Some terminals draw several characters as one where others do not, and the library adds their columns up, so
    that it would look for what it drew in the wrong place. The length stays.
    """
    return text.translate(_STEADY)


def is_text(typed: str) -> bool:
    """Whether all of it is text; the library keeps bytes that are no UTF-8 as halves of surrogate pairs."""
    return typed.isascii() or not any("\ud800" <= character <= "\udfff" for character in typed)


@lru_cache(maxsize=2)
def steady_ansi(text: str) -> ANSI:
    """The same of a text with colours, taken apart; the library asks for it several times each time that it draws."""
    return ANSI(steady(text))


class SteadyInput(Processor):
    """Shows what is typed as `steady` has it."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """One line of it."""
        return Transformation([(style, steady(text)) for style, text, *_ in transformation_input.fragments])


class FoldingRenderer(Renderer):
    """Knows that rows wider than the window have become several; the library would leave the upper ones behind.

    Args:
        current: the window that has the cursor.
        terminal: what kind of terminal it is (TERM).
    """

    def __init__(self, style: BaseStyle, output: Output, current: Callable[[], Window], terminal: str) -> None:
        super().__init__(style, output)
        self._current = current
        self._folds = terminal not in NEVER_FOLD
        self._is_tmux = terminal.startswith(_TMUX) and terminal != GNU_SCREEN
        self._widest: dict[int, int] = {}
        """By row, the most columns that were drawn in it since all was erased."""
        self._columns = 0
        """The width that was drawn for."""
        self.is_lent = False
        """Whether something else draws. The library erases at each change of the size all the same."""

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        """Draw; in a window of another width, without what was drawn before."""
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
        """Take away what was drawn."""
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
        """Empty each row by itself, so that there is nothing left to be kept."""
        count = screen.height + sum(folds(self._drawn(screen, row), columns) for row in range(screen.height))
        above = f"\x1b[{up}A" if up else ""
        emptied = "\x1b[2K\x1b[B" * count
        self.output.write_raw(f"\x1b7\r{above}{emptied}\x1b8")

    def _rows_more(self, screen: Screen, cursor: Point, columns: int) -> int:
        """How many rows more there are above the cursor than were drawn."""
        if not self._folds:
            return 0
        above = [self._drawn(screen, row) for row in range(cursor.y)]
        before = (_widths(screen.data_buffer[cursor.y]) + [1] * cursor.x)[: cursor.x]
        return sum(folds(row, columns) for row in [*above, before])

    def _drawn(self, screen: Screen, number: int) -> list[int]:
        """The columns that each character of a row takes, and in tmux what is left of wider ones before them."""
        widths = _widths(screen.data_buffer[number])
        return widths + [1] * (self._widest.get(number, 0) - sum(widths))


def _widths(cells: Mapping[int, Char]) -> list[int]:
    """The columns that each character of a row takes, without the space at its end."""
    used = max((column for column, cell in cells.items() if cell.char.strip()), default=-1)
    return [cells[column].width for column in range(used + 1)]


def folds(widths: Sequence[int], columns: int) -> int:
    """How often a row is folded at this width; a wide character is never cut in two."""
    count = used = 0
    for width in widths:
        if used + width > columns:
            count += 1
            used = 0
        used += width
    return count
