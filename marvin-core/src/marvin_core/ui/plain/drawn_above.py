"""The terminal of the chat: text is written once, above a line that stays at the bottom."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TextIO, TypeVar, cast

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.output import Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from ...util.terminal_text import disarm
from .pasting_input import PastingInput
from .terminal_output import TerminalOutput

_Result = TypeVar("_Result")


class Lent(Protocol):
    """A temporary user of the terminal that the chat can end."""

    async def run(self, keys_from: Input) -> None:
        """Use the terminal until it is done."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class DrawnAbove:
    """`write` puts text above; `live` are the rows between it and the line, `status` is the last of them.

    Subclasses set `_app`, which draws them and the line.
    """

    _app: Application[Any]

    def __init__(self, redraw: float) -> None:
        self._redraw = redraw
        self._waiting: list[str] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._away = 0
        self._paged: Lent | None = None
        self.live: Sequence[str] = ()
        self.refresh: Callable[[], None] = lambda: None
        """Called before `live` is drawn, to set it."""
        self.status: Callable[[], str] = str
        self._terminal = TerminalOutput()
        self._output = Vt100_Output.from_pty(cast("TextIO", self._terminal))
        self._output.enable_cpr = False  # not every terminal answers, and the answer is not needed here

    @property
    def is_away(self) -> bool:
        """Whether another program uses the terminal."""
        return bool(self._away) and self._paged is None

    @property
    def width(self) -> int:
        """The number of columns for text."""
        return max(10, self._output.get_size().columns - 1)

    @property
    def height(self) -> int:
        """The number of rows of the window."""
        return self._output.get_size().rows

    @staticmethod
    def measure(text: str) -> int:
        """The number of columns of a text."""
        return get_cwidth(text)

    def write(self, text: str) -> None:
        """Write a line above; lines in quick succession are written together."""
        self._waiting.append(text)
        self.update()

    def update(self) -> None:
        """Redraw changes soon."""
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(self._redraw, self.flush)

    def flush(self) -> None:
        """Redraw changes now."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._away:
            return  # pending text is written below, once the alternate screen is closed
        self.refresh()
        if self._waiting:
            text = "\n".join(self._waiting).replace("\n", "\r\n")
            self._waiting.clear()
            if self._app.is_running:
                self._app.renderer.erase()
                self._output.enable_bracketed_paste()  # `erase` disabled it: a paste may arrive right now
            self._output.write_raw(text + "\r\n")
            self._output.flush()
        self._app.invalidate()

    async def lend(self, use: Callable[[], Awaitable[_Result]]) -> _Result:
        """Lend the terminal; text that arrives meanwhile is written afterwards."""
        self.leave_pager()
        self.flush()
        self._away += 1
        try:
            async with in_terminal():
                self._lent(is_lent=True)
                try:
                    return await use()
                finally:
                    self._lent(is_lent=False)
        finally:
            self._away -= 1
            self._returned()
            self.flush()

    async def page(self, make: Callable[[Output], Lent]) -> None:
        """Show a pager, or another part of the chat, until it is closed."""
        if self._away:
            return
        self._paged = pager = make(self._output)
        try:
            # It has its own key input: otherwise the line would take the rest of an incomplete key from the pager.
            await self.lend(lambda: pager.run(PastingInput(sys.stdin)))
        finally:
            self._paged = None
        if self._app.is_running:  # keys that arrived together with the one that closed it
            self._app.key_processor.feed_multiple(get_typeahead(self._app.input))
            self._app.key_processor.process_keys()

    def leave_pager(self) -> None:
        """Close the pager if it is open: the chat needs the screen."""
        if self._paged is not None:
            self._paged.close()

    def signal(self, sequence: str) -> None:
        """Write a sequence of Marvin's own that moves no cursor and draws nothing."""
        if not self.is_away:
            self._terminal.write(sequence)

    def tell_while_held(self, text: str) -> None:
        """Write a text below, from another thread, while the event loop is blocked; nothing else is drawn meanwhile."""
        self._terminal.write(f"\r\n\x1b[J{disarm(text)}\r\n")

    def draw_anew(self) -> None:
        """The event loop continues: draw the line below the text written meanwhile."""
        if self._app.is_running:
            self._app.renderer.reset()
            self._output.enable_bracketed_paste()
            self._app.invalidate()

    def _lent(self, *, is_lent: bool) -> None:
        """The terminal is lent from now on, or no longer."""

    def _returned(self) -> None:
        """The terminal was lent, and has been returned."""
