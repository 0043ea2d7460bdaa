"""The line that is typed at the bottom of a terminal, with what is under way shown above it."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from prompt_toolkit import PromptSession
from prompt_toolkit.application import in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import ANSI, FormattedText
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth

from ...api.record import Record
from ...util.terminal_text import disarm
from ...util.text import one_line
from ..completion import Candidate
from .line_history import LineHistory
from .menu import STYLE, Completions
from .terminal_output import TerminalOutput
from .terminal_quirks import FoldingRenderer, SteadyInput, steady, steady_ansi

if TYPE_CHECKING:
    from .pager import Pager

FOLD_LINES = 20
FOLD_CHARACTERS = 2_000
_HINT = 30
"""Characters of a long line of the history that are shown of it."""


class Handlers(Record):
    """What the keys do; all return at once."""

    line: Callable[[str, str], None]
    """Enter: the text, and the text as it was shown."""
    answer: Callable[[str], None]
    """Enter below a question, on a line that was begun after it."""
    cycle: Callable[[], None]
    """Shift+Tab."""
    interrupt: Callable[[bool], bool]
    """Ctrl+C, told whether something is typed; returns whether that is to be cleared."""
    end: Callable[[], None]
    """Ctrl+D with nothing typed."""
    page: Callable[[], Coroutine[Any, Any, None]]
    """Ctrl+O."""
    complete: Callable[[str], Iterable[Candidate]]


class LineEditor:
    """Reads lines until it is closed. `write` puts text above the line; `live` are the rows in between."""

    def __init__(self, handlers: Handlers, history: LineHistory, *, color: bool, folds: bool, redraw: float) -> None:
        self._handlers = handlers
        self._pastes: dict[str, str] = {}
        self._history = history
        history.fold = self._folded
        self._waiting: list[str] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._redraw = redraw
        self._draft = ""
        self._asking = ""
        self._is_older = self._hidden = False
        self._suggestion = ""
        self.live: Sequence[str] = ()
        self.refresh: Callable[[], None] = lambda: None
        """Called before `live` is drawn, to set it."""
        self._paged: Pager | None = None
        self.sign = "> "
        self._terminal = stdout = TerminalOutput()
        self._output = Vt100_Output.from_pty(
            cast("TextIO", stdout), default_color_depth=None if color else ColorDepth.DEPTH_1_BIT
        )
        self._output.enable_cpr = False  # not every terminal answers, and nothing here needs the answer
        self._prompt: PromptSession[None] = PromptSession(
            self._message,
            multiline=True,
            is_password=Condition(lambda: self._hidden and self._is_answering),
            prompt_continuation="  ",
            placeholder=self._suggested,
            history=self._history,
            completer=Completions(handlers.complete),
            complete_while_typing=False,
            key_bindings=self._keys(),
            style=STYLE,
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
            input=create_input(),
            output=self._output,
            input_processors=[SteadyInput()],
            enable_suspend=True,
            erase_when_done=True,
        )
        if folds:
            app = self._prompt.app
            app.renderer = FoldingRenderer(app.renderer.style, self._output, lambda: app.layout.current_window)
        self._prompt.default_buffer.accept_handler = self._accept
        self._prompt.default_buffer.on_text_changed += lambda buffer: self._changed()
        self._prompt.app.ttimeoutlen = redraw  # a lone Escape; terminals send their sequences in one piece

    @property
    def width(self) -> int:
        """The columns that text may take."""
        return max(10, self._output.get_size().columns - 1)

    @property
    def height(self) -> int:
        """The rows of the window."""
        return self._output.get_size().rows

    @staticmethod
    def measure(text: str) -> int:
        """How many columns a text takes."""
        return get_cwidth(text)

    async def run(self) -> None:
        """Read lines until `close`, or until the terminal is gone."""
        try:
            await self._prompt.prompt_async(set_exception_handler=False, handle_sigint=False)
        except EOFError:
            return

    def close(self) -> None:
        """Write what waits, and end `run`."""
        self.leave_pager()
        self.refresh = lambda: None
        self.live, self.sign, self._asking = (), "", ""
        self._prompt.default_buffer.reset()
        self.flush()
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit(result=None)

    def write(self, text: str) -> None:
        """Put a line above; what comes in quick succession is written together."""
        self._waiting.append(text)
        self.update()

    def update(self) -> None:
        """Show what changed, soon."""
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(self._redraw, self.flush)

    def flush(self) -> None:
        """Show what changed, now."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        if self._paged is not None:
            return  # all that waits is written below, once the other screen is left
        self.refresh()
        if self._waiting:
            text = "\n".join(self._waiting).replace("\n", "\r\n")
            self._waiting.clear()
            if self._prompt.app.is_running:
                self._prompt.app.renderer.erase()
                self._output.enable_bracketed_paste()  # `erase` switched it off: a paste may come right now
            self._output.write_raw(text + "\r\n")
            self._output.flush()
        self._prompt.app.invalidate()

    async def page(self, make: Callable[[Output], Pager]) -> None:
        """Leave the terminal to a pager; what is to be written meanwhile is written afterwards."""
        if self._paged is not None:
            return
        self.flush()
        self._paged = make(self._output)
        try:
            async with in_terminal():
                await self._paged.run(self._prompt.app.input)
        finally:
            self._paged = None
            self.flush()

    def leave_pager(self) -> None:
        """End the pager, if it is open: the chat wants something."""
        if self._paged is not None:
            self._paged.close()

    def tell_while_held(self, text: str) -> None:
        """Write a text below, from another thread, while the event loop stands; nothing else is drawn meanwhile."""
        self._terminal.write(f"\r\n\x1b[J{disarm(text)}\r\n")

    def draw_anew(self) -> None:
        """The event loop goes on: draw the line below what was written meanwhile."""
        if self._prompt.app.is_running:
            self._prompt.app.renderer.reset()
            self._output.enable_bracketed_paste()
            self._prompt.app.invalidate()

    def question(self, sign: str, draft: str = "", *, hidden: bool = False) -> None:
        """Have lines that are begun from now on answer a question; the first of them begins as `draft`.

        A line that was begun before stays what it is, and so do keys that were pressed before: whoever types when a
        question appears has not answered it.

        Args:
            hidden: whether stars stand for the answer while it is typed.
        """
        self._hidden = hidden
        if not self._asking:
            self._take_in()
            self._is_older = bool(self._prompt.default_buffer.text)
        self._asking = sign
        if draft and not self._prompt.default_buffer.text:
            self._prompt.default_buffer.document = Document(draft, len(draft))
        self.flush()

    def answered(self) -> None:
        """The question is over: a line that was put aside comes back."""
        draft, self._draft = self._draft, ""
        self._asking, self._hidden = "", False
        if not self._is_older:
            self._prompt.default_buffer.reset()
        self.refill(draft)

    @property
    def _is_answering(self) -> bool:
        """Whether the line that is typed answers a question."""
        return bool(self._asking) and not self._is_older

    def _holds_up(self) -> bool:
        """Whether a question waits for the line that is typed, which is older, to be done with."""
        return bool(self._asking) and self._is_older

    def _take_in(self) -> None:
        """Have the keys that wait in the terminal do what they do now."""
        app = self._prompt.app
        if app.is_running and not app.is_done:
            app.key_processor.feed_multiple(app.input.read_keys())
            app.key_processor.process_keys()

    def _put_aside(self) -> None:
        """Put the line that is older than the question aside, for an answer."""
        self._draft = self._prompt.default_buffer.text
        self._is_older = False
        self._prompt.default_buffer.reset()

    def _changed(self) -> None:
        if not self._prompt.default_buffer.text:
            self._is_older = False

    def suggest(self, line: str) -> None:
        """Show a line where nothing is typed: Enter sends it, Tab takes it over, anything else drops it."""
        self._suggestion = line
        self.update()

    def _suggested(self) -> FormattedText:
        hint = f"{self._suggestion}  (Enter sends this, Tab changes it)"
        return FormattedText(
            [("class:suggestion", steady(hint))] if self._suggestion and not self._is_answering else []
        )

    def refill(self, text: str) -> None:
        """Put a text before what is being typed."""
        buffer = self._prompt.default_buffer
        text = "\n".join(filter(None, (text, buffer.text)))
        buffer.document = Document(text, len(text))
        self.update()

    def follow_history(self) -> None:
        """Where the profile is another one now: have its lines behind Up and Ctrl+R."""
        if self._history.is_stale:
            self._prompt.default_buffer.reset(self._prompt.default_buffer.document)

    def _message(self) -> ANSI:
        rows = [row for row in self.live if row]
        room = max(1, self._output.get_size().rows // 2)
        if self._holds_up():
            rows.append("(A question waits above. Ctrl+G answers it; this line comes back afterwards.)")
        return steady_ansi("\n".join([*rows[-room:], self._asking if self._is_answering else self.sign]))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        chosen = Condition(self._chosen)
        empty = Condition(lambda: not self._prompt.default_buffer.text)
        editing = ~is_searching  # in a search, Enter takes what was found, and Ctrl+C gives the search up
        keys.add("enter", filter=editing)(lambda event: self._enter(event.current_buffer))
        keys.add("enter", filter=chosen)(lambda event: self._take(event.current_buffer))
        keys.add("tab")(lambda event: self._tab(event.current_buffer))
        keys.add("s-tab", filter=~chosen)(lambda event: self._handlers.cycle())
        keys.add("c-g", filter=Condition(lambda: bool(self._asking) and self._is_older))(
            lambda event: self._put_aside()
        )
        keys.add("c-o")(lambda event: event.app.create_background_task(self._handlers.page()))
        keys.add("c-l")(lambda event: self._clear_screen())
        keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        keys.add("c-c", filter=editing)(self._interrupt)
        keys.add("c-d", filter=empty & editing)(lambda event: self._handlers.end())
        keys.add(Keys.BracketedPaste)(self._paste)
        for report in (Keys.Vt100MouseEvent, Keys.CPRResponse):
            # Nobody asked the terminal for one: it is text with colours that was pasted, which ends the library.
            keys.add(report)(lambda event: None)
        keys.add("backspace", filter=Condition(lambda: self._fold_before_cursor() != ""))(self._erase_fold)
        return keys

    def _clear_screen(self) -> None:
        """Scroll away what is seen. The library would erase it, and the terminal could not scroll back to it."""
        self._prompt.app.renderer.erase()
        self._output.write_raw("\n" * self.height)
        self._output.cursor_goto(0, 0)
        self._output.flush()
        self._prompt.app.invalidate()

    def _chosen(self) -> bool:
        """Whether the menu is open and one of its completions is in the line."""
        state = self._prompt.default_buffer.complete_state
        return state is not None and state.current_completion is not None

    def _tab(self, buffer: Buffer) -> None:
        """Complete what is certain; of several completions show a menu, and go through it."""
        if buffer.complete_state is not None:
            buffer.complete_next()
            return
        if self._hidden and self._is_answering:
            return
        if not buffer.text and self._suggestion:
            buffer.insert_text(self._suggestion)
            return
        found = list(itertools.islice(self._handlers.complete(buffer.document.text_before_cursor), 2))
        if len(found) == 1:
            buffer.delete_before_cursor(found[0].replaces)
            buffer.insert_text(found[0].text)
        else:
            buffer.start_completion(insert_common_part=True)

    def _take(self, buffer: Buffer) -> None:
        """Enter in the menu: the completion is taken, the line is not sent yet."""
        buffer.complete_state = None

    def _enter(self, buffer: Buffer) -> None:
        if self._is_answering:
            answer = self._unfolded(buffer.text)
            buffer.reset()
            if self._hidden:
                self._pastes.clear()
            self._handlers.answer(answer)
            return
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        shown, self._suggestion = buffer.text or self._suggestion, ""
        text = self._unfolded(shown)
        if text.strip():
            self._history.add(shown.strip(), text.strip())
        buffer.reset()
        self._is_older = False
        self._handlers.line(text, shown)

    def _interrupt(self, event: KeyPressEvent) -> None:
        if self._suggestion and not event.current_buffer.text:
            self._suggestion = ""
            self.update()
        elif self._handlers.interrupt(bool(event.current_buffer.text)):
            event.current_buffer.reset()

    def _accept(self, buffer: Buffer) -> bool:
        """What other keys that send a line do, as Ctrl+O does; left to itself the library would end the prompt."""
        self._enter(buffer)
        return True

    def _paste(self, event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(self._folded(text, "pasted"))

    def _folded(self, text: str, what: str = "") -> str:
        """The text, or what stands for a long one in the line; `what` says what it is, else its beginning does."""
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= FOLD_LINES and len(text) <= FOLD_CHARACTERS:
            return text
        what = what or f"{one_line(text[: _HINT * 10])[:_HINT]} …"
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        fold = f"[{what} {size}]"
        if self._pastes.get(fold, text) != text:
            fold = f"[{what} {size}, no. {len(self._pastes) + 1}]"
        self._pastes[fold] = text
        return fold

    def _unfolded(self, shown: str) -> str:
        """The text with what its folds stand for; in one go, as a paste may hold what looks like a fold."""
        if not self._pastes:
            return shown
        return re.sub("|".join(map(re.escape, self._pastes)), lambda fold: self._pastes[fold[0]], shown)

    def _fold_before_cursor(self) -> str:
        before = self._prompt.default_buffer.document.text_before_cursor
        return next((fold for fold in self._pastes if before.endswith(fold)), "")

    def _erase_fold(self, event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(self._fold_before_cursor()))
