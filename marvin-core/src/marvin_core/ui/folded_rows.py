"""Erasing what was drawn after the terminal has folded it, since its window got narrower."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from prompt_toolkit.layout import Window
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle


class FoldingRenderer(Renderer):
    """Knows that rows wider than the window have become several; the library would leave the upper ones behind."""

    def __init__(self, style: BaseStyle, output: Output, current: Callable[[], Window]) -> None:
        super().__init__(style, output)
        self._current = current

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Take away what was drawn."""
        more = self._rows_more(self.output.get_size().columns)
        if more:
            self.output.cursor_up(more)
        super().erase(leave_alternate_screen)

    def _rows_more(self, columns: int) -> int:
        """How many rows more there are above the cursor than were drawn."""
        screen = self.last_rendered_screen
        if screen is None:
            return 0
        cursor = screen.get_cursor_position(self._current())
        above = [_widths(screen.data_buffer[row]) for row in range(cursor.y)]
        before = (_widths(screen.data_buffer[cursor.y]) + [1] * cursor.x)[: cursor.x]
        return sum(folds(row, columns) for row in [*above, before])


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
