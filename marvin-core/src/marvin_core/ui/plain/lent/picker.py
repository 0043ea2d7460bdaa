"""A picker for one of many choices with arrow keys, below the text: typing searches; it disappears afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout, UIContent, UIControl, Window
from prompt_toolkit.output import ColorDepth, Output

from ....api.controls import Choice, Picking
from ....api.errors import MarvinError
from ....util.text import one_line
from ...rendering import Measure, Paint, shortened
from ..pasting_input import ESCAPE
from ..terminal_quirks import FoldingRenderer, steady

_KEYS = "Up, Down and Enter choose; type words to search; Ctrl+R renames; Esc leaves"
_MOST = 12
"""The maximum number of visible choices."""
_AROUND = 4
"""The rows in addition to the choices, and one of the text above."""
_PAUSE = 0.2
"""The seconds without a key after which the search starts."""
_LONGEST = 200
"""The maximum length of the search text in characters."""


class Picker(UIControl):
    """Shows choices until one is picked or it is closed; then `picked` has its key, or is empty.

    Args:
        terminal: the type of the terminal (TERM).
    """

    def __init__(self, picking: Picking, paint: Paint, measure: Measure, output: Output, terminal: str) -> None:
        self._picking = picking
        self._paint = paint
        self._measure = measure
        self._output = output
        self._terminal = terminal
        self._choices: Sequence[Choice] = ()
        self._at = self._top = 0
        self._typed = self._found = ""
        self._title: str | None = None
        self._told = ""
        self._looking: asyncio.Task[None] | None = None
        self._application: Application[None] | None = None
        self.picked = ""

    async def run(self, keys_from: Input) -> None:
        """Show the choices; the keys come from the same terminal."""
        app: Application[None] = Application(
            layout=Layout(Window(self, always_hide_cursor=True, dont_extend_height=True)),
            key_bindings=self._bindings(),
            erase_when_done=True,
            mouse_support=False,
            color_depth=None if self._paint.color else ColorDepth.DEPTH_1_BIT,
            input=keys_from,
            output=self._output,
        )
        self._application = app
        app.renderer = FoldingRenderer(
            app.renderer.style, self._output, lambda: app.layout.current_window, self._terminal
        )
        app.ttimeoutlen = 0.05
        self._look(0)
        try:
            with suppress(EOFError):  # the terminal is gone, which the chat will also notice
                await app.run_async(set_exception_handler=False, handle_sigint=False)
        finally:
            if self._looking is not None:
                self._looking.cancel()

    def close(self) -> None:
        """Close it."""
        application = self._application
        if application is not None and application.is_running and not application.is_done:
            application.exit(result=None)

    # --- what is shown -----------------------------------------------------------------------------

    def create_content(self, width: int, height: int) -> UIContent:
        """All rows; never more than the window has."""
        rows = self._rows(width - 1)
        return UIContent(get_line=lambda number: rows[number], line_count=len(rows), show_cursor=False)

    def preferred_height(
        self, width: int, max_available_height: int, wrap_lines: bool, get_line_prefix: object
    ) -> int | None:
        """The number of rows."""
        return len(self._rows(width - 1))

    def is_focusable(self) -> bool:
        """It receives the keys."""
        return True

    def _rows(self, width: int) -> list[StyleAndTextTuples]:
        seen = self._seen()
        self._top = max(min(self._top, self._at), self._at - seen + 1, 0)
        shown = self._choices[self._top : self._top + seen]
        rows = [self._painted("notice", self._picking.title, width)]
        for number, choice in enumerate(shown, self._top):
            text = self._row(choice, width - 2)
            current = number == self._at
            rows.append([("reverse", f"> {text}")] if current else [("", f"  {text}")])
        below = len(self._choices) - self._top - len(shown)
        typed = f"New title: {self._title}_" if self._title is not None else f"Look for: {self._typed}_"
        rows.append(self._painted("faint", f"  … {below:,} more" if below else "", width))
        rows.append([("", steady(self._end_of(typed, width)))])
        rows.append(self._painted("faint", self._told or _KEYS, width))
        return rows

    def _row(self, choice: Choice, room: int) -> str:
        """A choice and its facts, each with its share of the row."""
        facts = shortened(one_line(choice.facts), room // 2, self._measure)
        text = shortened(one_line(choice.text), max(1, room - self._measure(facts) - 2), self._measure)
        return steady(f"{text}  {facts}".rstrip())

    def _end_of(self, text: str, width: int) -> str:
        """The end of a text, as much as fits in a row."""
        while self._measure(text) > width:
            text = text[1:]
        return text

    def _painted(self, role: str, text: str, width: int) -> StyleAndTextTuples:
        row = steady(shortened(one_line(text) if text.strip() else "", width, self._measure))
        return to_formatted_text(ANSI(self._paint("notice" if role == "notice" else "faint", row)))

    def _seen(self) -> int:
        """The number of visible choices."""
        return max(1, min(_MOST, self._output.get_size().rows - _AROUND - 1))

    # --- looking -----------------------------------------------------------------------------------

    def _look(self, pause: float) -> None:
        """Search for the typed text, unless another key arrives before."""
        if self._looking is not None:
            self._looking.cancel()
        self._looking = asyncio.ensure_future(self._looked(pause))

    async def _looked(self, pause: float) -> None:
        await asyncio.sleep(pause)
        words = self._typed.strip()
        self._tell("Looking …" if words else self._told)
        try:
            found = await self._picking.find(words)
        except (MarvinError, OSError) as error:
            self._tell(f"That could not be looked for: {error}")
            return
        self._choices, self._found, self._at, self._top = found, words, 0, 0
        self._tell("" if found else f"Nothing holds {words!r}." if words else "There is nothing yet.")

    async def _rename(self, choice: Choice, title: str) -> None:
        try:
            told = await self._picking.rename(choice.key, title)
            at = self._at
            self._choices = await self._picking.find(self._found)
            self._at = min(at, max(0, len(self._choices) - 1))
        except (MarvinError, OSError) as error:
            told = str(error)
        self._tell(told)

    def _tell(self, text: str) -> None:
        self._told = text
        if self._application is not None:
            self._application.invalidate()

    # --- keys --------------------------------------------------------------------------------------

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        titling = Condition(lambda: self._title is not None)
        steps: Sequence[tuple[Callable[[], int], tuple[str, ...]]] = (
            (lambda: -1, ("up", "c-p", "s-tab")),
            (lambda: 1, ("down", "c-n", "tab")),
            (lambda: -self._seen(), ("pageup",)),
            (self._seen, ("pagedown",)),
            (lambda: -len(self._choices), ("home",)),
            (lambda: len(self._choices), ("end",)),
        )
        for step, names in steps:
            for name in names:
                keys.add(name, filter=~titling)(lambda event, step=step: self._move(step()))
        keys.add("enter", filter=~titling)(lambda event: self._take())
        keys.add("enter", filter=titling)(lambda event: self._take_title())
        keys.add("c-r", filter=~titling)(lambda event: self._begin_title())
        for name in ("escape", ESCAPE):
            keys.add(name)(lambda event: self._escape())
        for name in ("c-c", "c-d"):
            keys.add(name)(lambda event: self.close())
        keys.add("backspace")(lambda event: self._type(lambda text: text[:-1]))
        keys.add("c-u")(lambda event: self._type(lambda text: ""))
        keys.add("c-w")(lambda event: self._type(lambda text: text.rstrip().rpartition(" ")[0]))
        keys.add(Keys.Any)(self._insert)
        keys.add(Keys.BracketedPaste)(self._insert)
        return keys

    def _move(self, by: int) -> None:
        self._at = max(0, min(self._at + by, len(self._choices) - 1))

    def _take(self) -> None:
        """Enter: search for the typed text first, so that no unseen choice is picked."""
        if self._typed.strip() != self._found:
            self._look(0)
        elif self._choices:
            self.picked = self._choices[self._at].key
            self.close()

    def _begin_title(self) -> None:
        if self._choices:
            self._title, self._told = self._choices[self._at].text, "Enter keeps this title, Esc does not"

    def _take_title(self) -> None:
        title, self._title = self._title or "", None
        if self._choices and title.strip():
            self._looking = asyncio.ensure_future(self._rename(self._choices[self._at], title))

    def _escape(self) -> None:
        if self._title is not None:
            self._title, self._told = None, ""
        elif self._typed:
            self._type(lambda text: "")
        else:
            self.close()

    def _insert(self, event: KeyPressEvent) -> None:
        if event.key_sequence[0].key == Keys.BracketedPaste or event.data.isprintable():
            more = " ".join(event.data.split()) if len(event.data) > 1 else event.data
            self._type(lambda text: (text + "".join(filter(str.isprintable, more)))[:_LONGEST])

    def _type(self, change: Callable[[str], str]) -> None:
        if self._title is not None:
            self._title = change(self._title)
        else:
            self._typed = change(self._typed)
            self._look(_PAUSE)
