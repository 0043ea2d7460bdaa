"""The pager: the transcript of the chat on the terminal's alternate screen."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout, UIContent, UIControl, Window
from prompt_toolkit.output import ColorDepth, Output

from ....util.terminal_text import disarm
from ...drawing.transcript import Line, rows_of
from ...rendering import Measure, Paint
from ..pasting_input import ESCAPE
from ..terminal_quirks import steady

_KEYS = "q returns to the chat; arrows, PgUp, PgDn, Home and End move; /WORD searches, n and N repeat the search"


class Pager(UIControl):
    """Shows lines until q, Esc, Ctrl+O or Ctrl+C is pressed, or `close` is called. It starts at their end.

    Args:
        escape: the seconds to wait for the rest of a key after Escape. Without one, the key is Escape.
    """

    def __init__(self, lines: Sequence[Line], paint: Paint, measure: Measure, output: Output, escape: float) -> None:
        self._lines = lines
        self._paint = paint
        self._measure = measure
        self._output = output
        self._escape = escape
        self._width = 0
        self._rows: Sequence[Line] = ()
        self._top = 0
        self._wanted: str | None = None
        self._found = ""
        self._place = -1
        self._told = ""
        self._application: Application[None] | None = None

    async def run(self, keys_from: Input) -> None:
        """Show the lines; the keys come from the same terminal, Escape as `ESCAPE`."""
        self._fit(self._output.get_size().columns)
        self._move(len(self._rows))
        window = Window(self, always_hide_cursor=True)
        footer = Window(_Footer(self), height=1)
        self._application = Application(
            layout=Layout(HSplit([window, footer])),
            key_bindings=self._bindings(),
            full_screen=True,
            mouse_support=False,
            color_depth=None if self._paint.color else ColorDepth.DEPTH_1_BIT,
            input=keys_from,
            output=self._output,
        )
        self._application.ttimeoutlen = self._escape
        with suppress(EOFError):  # the terminal is gone, which the chat will also notice
            await self._application.run_async(set_exception_handler=False, handle_sigint=False)

    def close(self) -> None:
        """Return to the chat."""
        application = self._application
        if application is not None and application.is_running and not application.is_done:
            application.exit(result=None)

    # --- what is shown -----------------------------------------------------------------------------

    def create_content(self, width: int, height: int) -> UIContent:
        """The visible rows."""
        if width != self._width:
            self._fit(width)
        self._move(self._top)
        count = len(self._rows[self._top : self._top + height])
        return UIContent(get_line=lambda number: self._painted(self._top + number), line_count=count, show_cursor=False)

    def is_focusable(self) -> bool:
        """It receives the keys."""
        return True

    def footer(self, width: int) -> str:
        """The last row: the position, the keys, and the search text."""
        if self._wanted is not None:
            return f"/{self._wanted}"[-width:]
        last = min(len(self._rows), self._top + self._height())
        return f"{self._told or _KEYS}  ({last:,} of {len(self._rows):,} rows)"[:width]

    def _painted(self, place: int) -> StyleAndTextTuples:
        row = self._rows[place]
        text = steady(row.text)
        if place == self._place:
            return [("reverse", text)]
        return to_formatted_text(ANSI(self._paint(row.role, text) if row.role else text))

    def _fit(self, width: int) -> None:
        """Fold the lines for this width; the first visible line stays about where it is."""
        share = self._top / len(self._rows) if self._rows else 0.0
        self._width = width
        self._rows = rows_of(self._lines, max(10, width), self._measure)
        self._top = int(share * len(self._rows))
        self._place = -1

    def _height(self) -> int:
        return max(1, self._output.get_size().rows - 1)

    def _move(self, top: int) -> None:
        self._top = max(0, min(top, len(self._rows) - self._height()))

    # --- keys --------------------------------------------------------------------------------------

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        typing = Condition(lambda: self._wanted is not None)

        def moves(by: int, *names: str, pages: bool = False) -> None:
            for name in names:
                keys.add(name, filter=~typing)(
                    lambda event: self._move(self._top + by * (max(1, self._height() - 1) if pages else 1))
                )

        moves(-1, "up", "k", "c-p")
        moves(1, "down", "j", "enter", "c-n")
        moves(-1, "pageup", "b", "c-b", pages=True)
        moves(1, "pagedown", " ", "c-f", pages=True)
        for name in ("home", "g"):
            keys.add(name, filter=~typing)(lambda event: self._move(0))
        for name in ("end", "G"):
            keys.add(name, filter=~typing)(lambda event: self._move(len(self._rows)))
        for name in ("q", ESCAPE, "c-o"):
            keys.add(name, filter=~typing)(lambda event: self.close())
        keys.add("c-c")(lambda event: self.close())
        keys.add("c-d")(lambda event: self.close())
        keys.add("/", filter=~typing)(lambda event: self._ask())
        keys.add("n", filter=~typing)(lambda event: self._find(1))
        keys.add("N", filter=~typing)(lambda event: self._find(-1))
        keys.add("enter", filter=typing)(lambda event: self._search())
        keys.add(ESCAPE, filter=typing)(lambda event: self._drop())
        keys.add("backspace", filter=typing)(lambda event: self._shorten())
        keys.add(Keys.Any, filter=typing)(self._typed)
        keys.add(Keys.BracketedPaste, filter=typing)(self._typed)
        return keys

    def _ask(self) -> None:
        self._wanted, self._told = "", ""

    def _drop(self) -> None:
        self._wanted = None

    def _shorten(self) -> None:
        self._wanted = self._wanted[:-1] if self._wanted else None

    def _typed(self, event: KeyPressEvent) -> None:
        if self._wanted is not None:
            self._wanted += disarm(event.data).replace("\n", " ")

    def _search(self) -> None:
        self._found, self._wanted = (self._wanted or self._found).lower(), None
        self._place = self._top + self._height()
        self._find(-1)

    def _find(self, step: int) -> None:
        """Go to the next row with the search text; case is ignored."""
        if not self._found:
            return
        rows = self._rows
        places = range(self._place + 1, len(rows)) if step > 0 else range(min(self._place, len(rows)) - 1, -1, -1)
        place = next((place for place in places if self._found in rows[place].text.lower()), None)
        if place is None:
            self._told = f"No {'later' if step > 0 else 'earlier'} row has {self._found!r}."
            return
        self._told, self._place = "", place
        if not self._top <= place < self._top + self._height():
            self._move(place - self._height() // 2)


class _Footer(UIControl):
    """The row below."""

    def __init__(self, pager: Pager) -> None:
        self._pager = pager

    def create_content(self, width: int, height: int) -> UIContent:
        """The one row."""
        text = steady(self._pager.footer(width))
        return UIContent(get_line=lambda number: [("reverse", text)], line_count=1, show_cursor=False)
