"""The edited line at the bottom of a terminal, with running work shown above it."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer, CompletionState
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, emacs_mode, is_searching, vi_insert_mode
from prompt_toolkit.formatted_text import ANSI, FormattedText
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.named_commands import get_by_name
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.search import accept_search

from .drawn_above import DrawnAbove, Lent
from .editor_parts import STYLE, AnswerKey, Completions, EditorSettings, Handlers
from .folds import Folds
from .line_history import LineHistory
from .pasting_input import ESCAPE, PastingInput
from .terminal_quirks import FoldingRenderer, SteadyInput, is_text, steady, steady_ansi
from .waiting_question import WaitingQuestion

if TYPE_CHECKING:
    pass


class LineEditor(DrawnAbove):
    """Reads lines until it is closed."""

    def __init__(self, handlers: Handlers, history: LineHistory, settings: EditorSettings) -> None:
        super().__init__(settings.timeouts.redraw)
        self._handlers = handlers
        self._settings = settings
        self._folds = Folds()
        self._hidden_folds = Folds()
        """The folds of a hidden answer, which are forgotten with the answer."""
        self._history = history
        history.fold = self._folds.fold
        self._editing: asyncio.Task[None] | None = None
        self._drawn: tuple[int, ANSI] | None = None
        self._question = WaitingQuestion(settings.timeouts.answer_key, self._may_answer, self.update)
        self._suggestion = ""
        self.sign = "> "
        self._input = PastingInput(sys.stdin)
        self._input.escapes = not settings.vi
        self._prompt: PromptSession[None] = PromptSession(
            self._message,
            multiline=True,
            is_password=Condition(lambda: self._question.hidden and self._question.is_open),
            prompt_continuation="  ",
            placeholder=self._suggested,
            history=self._history,
            completer=Completions(handlers.complete),
            complete_while_typing=Condition(self._completes),
            key_bindings=self._keys(),
            vi_mode=settings.vi,
            style=STYLE,
            color_depth=None if settings.color else ColorDepth.DEPTH_1_BIT,
            input=self._input,
            output=self._output,
            input_processors=[SteadyInput()],
            enable_suspend=True,
            erase_when_done=True,
        )
        self._app = app = self._prompt.app
        self._renderer = app.renderer = FoldingRenderer(
            app.renderer.style, self._output, lambda: app.layout.current_window, settings.terminal
        )
        self._prompt.default_buffer.accept_handler = self._accept
        app.ttimeoutlen = settings.timeouts.escape
        app.key_processor.before_key_press += lambda _: self._question.key_pressed()

    async def run(self) -> None:
        """Read lines until `close` is called or the terminal disappears."""
        try:
            await self._prompt.prompt_async(set_exception_handler=False, handle_sigint=False)
        except EOFError:
            return

    def close(self) -> None:
        """Write the pending text, and end `run`."""
        self.leave_pager()
        if self._editing is not None:
            self._editing.cancel()  # the library would wait for the program to end by itself
        self.refresh = lambda: None
        self.live, self.status, self.sign = (), str, ""
        self._question.end()
        self._prompt.default_buffer.reset()
        self.flush()
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit(result=None)

    def _lent(self, *, is_lent: bool) -> None:
        """Draw nothing while something else draws."""
        self._renderer.is_lent = is_lent

    async def page(self, make: Callable[[Output], Lent]) -> None:
        """Show a pager until the user leaves it. Text that it would overwrite for good is scrolled away before."""
        if self._settings.forgets and not self._away:
            self._clear_screen()
        await super().page(make)

    def _returned(self) -> None:
        """The user pressed keys elsewhere, and saw no question."""
        self._question.key_pressed()

    @property
    def escape(self) -> float:
        """The number of seconds after Escape in which the rest of a key may follow."""
        return self._settings.timeouts.escape

    @property
    def last_key(self) -> float:
        """The time of the last key, by the monotonic clock."""
        return self._question.last_key

    def question(
        self, sign: str, draft: str = "", *, hidden: bool = False, keys: AnswerKey | None = None, at_once: bool = False
    ) -> None:
        """Let lines that are begun from now on answer a question; the first one begins as `draft`.

        A line that was begun before keeps its meaning. So do keys pressed before the question, and keys in quick
        succession to those: a user who is typing when a question appears does not answer it.

        Args:
            hidden: whether the answer is shown as stars.
            keys: maps a single key to an answer.
            at_once: the question follows from the previous answer, so the user expects it.
        """
        buffer = self._prompt.default_buffer
        if not self._question.sign:
            self._take_in()
        self._question.begin(sign, keys, hidden=hidden, at_once=at_once and not buffer.text)
        if draft and not buffer.text:
            buffer.document = Document(draft, len(draft))
        self.flush()

    @property
    def asked(self) -> str:
        """The text before the line of the answer."""
        return self._question.sign

    def answered(self) -> None:
        """The question is settled: a line that was set aside comes back."""
        if self._question.is_open:
            self._prompt.default_buffer.reset()
        self.refill(self._question.end())

    def _may_answer(self) -> bool:
        """Whether the line can become the answer: the user typed nothing before the question."""
        return not self._prompt.default_buffer.text and self._prompt.app.is_running and not self._away

    def _holds_up(self) -> bool:
        """Whether a question waits because the user is still typing an older line."""
        return self._question.waits and bool(self._prompt.default_buffer.text)

    def _take_in(self) -> None:
        """Process the keys pending in the terminal with their current meaning."""
        app = self._prompt.app
        if app.is_running and not app.is_done and not self._away:
            app.key_processor.feed_multiple([*app.input.read_keys(), *self._input.release()])
            app.key_processor.process_keys()

    def _put_aside(self) -> None:
        """Set aside the line that is older than the question."""
        self._question.put_aside(self._prompt.default_buffer.text)
        self._prompt.default_buffer.reset()

    def _answers_alone(self, event: KeyPressEvent) -> None:
        """Handle a key on an empty line below a question; several keys in quick succession begin a line."""
        line = None if event.app.key_processor.input_queue else self._question.answer_of(event.data)
        if line is None or line.endswith(" "):
            event.current_buffer.insert_text(line or event.data)
        else:
            self._handlers.answer(line)

    async def ask_terminal(self, question: str, answers: re.Pattern[str], last: re.Pattern[str]) -> str:
        """The terminal's reply to a sequence, up to the `last` byte sequence; other keys that arrive are kept."""
        from .lent.asking import answer_of_terminal

        if self._away or not self._prompt.app.is_running:
            return ""
        heard = await self.lend(lambda: answer_of_terminal(sys.stdin.fileno(), question, last))
        self._input.vt100_parser.feed(answers.sub("", heard))
        self._take_in()
        return heard

    def suggest(self, line: str) -> None:
        """Show a suggested line if the line is empty: Enter sends it, Tab inserts it, any other key removes it."""
        self._suggestion = line
        self.update()

    def _suggested(self) -> FormattedText:
        hint = f"{self._suggestion}  (Enter sends this, Tab changes it)"
        return FormattedText(
            [("class:suggestion", steady(hint))] if self._suggestion and not self._question.is_open else []
        )

    def refill(self, text: str) -> None:
        """Insert a text before the edited text."""
        buffer = self._prompt.default_buffer
        text = "\n".join(filter(None, (text, buffer.text)))
        buffer.document = Document(text, len(text))
        self.update()

    def complete_again(self) -> None:
        """There are new completions: show them if the menu opens by itself."""
        buffer = self._prompt.default_buffer
        if self._completes() and not self._chosen() and self._prompt.app.is_running:
            buffer.complete_state = None
            buffer.start_completion(select_first=False)

    def follow_history(self) -> None:
        """Use the history of the current profile for Up and Ctrl+R."""
        if self._history.is_stale:
            self._prompt.default_buffer.reset(self._prompt.default_buffer.document)

    def _message(self) -> ANSI:
        """The text above and before the line. The library calls this about ten times for each redraw."""
        drawing = self._app.render_counter
        if self._drawn is None or self._drawn[0] != drawing or not self._app.is_running:
            self._drawn = drawing, self._rows_and_sign()
        return self._drawn[1]

    def _rows_and_sign(self) -> ANSI:
        rows = [row for row in (*self.live, self.status()) if row]
        room = max(1, self._output.get_size().rows // 2)
        if self._holds_up():
            rows.append("(There is an open question above. Press Ctrl+G to answer; this line is kept.)")
        sign = self._question.sign if self._question.is_open else self.sign
        return steady_ansi("\n".join([*rows[-room:], sign]))

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        chosen, menu = (
            Condition(self._chosen),
            Condition(lambda: self._prompt.default_buffer.complete_state is not None),
        )
        empty = Condition(lambda: not self._prompt.default_buffer.text)
        editing = ~is_searching  # in a search, Enter takes what was found, and Ctrl+C gives the search up
        inserting = emacs_mode | vi_insert_mode
        keys.add("enter", filter=editing)(lambda event: self._enter(event.current_buffer))
        keys.add("enter", filter=chosen)(lambda event: self._take(event.current_buffer))
        keys.add("tab")(lambda event: self._tab(event.current_buffer))
        keys.add("s-tab", filter=~chosen)(lambda event: self._handlers.cycle())
        keys.add("c-o")(lambda event: event.app.create_background_task(self._handlers.page()))
        keys.add("c-l")(lambda event: self._clear_screen())
        keys.add("escape", "enter", filter=emacs_mode)(lambda event: event.current_buffer.insert_text("\n"))
        for arrow, does in (("left", "backward-word"), ("right", "forward-word")):  # as Ctrl with them does
            keys.add("escape", arrow, filter=emacs_mode)(get_by_name(does))
        keys.add("c-c", filter=editing)(self._interrupt)
        keys.add("c-d", filter=empty & editing)(lambda event: self._handlers.end())
        answering = Condition(lambda: self._question.is_open)
        keys.add("up", filter=empty & editing & ~menu & ~answering)(self._recall)  # what waits to be sent is no answer
        shown = Condition(lambda: not self._question.hidden)
        keys.add("c-g", filter=editing & inserting & shown)(self._edit_elsewhere)
        keys.add("c-x", "c-e", filter=editing & emacs_mode & shown)(self._edit_elsewhere)
        keys.add("c-g", filter=Condition(self._holds_up))(lambda event: self._put_aside())
        keys.add(ESCAPE, filter=editing & ~menu)(lambda event: self._handlers.escape())
        keys.add(ESCAPE, filter=editing & menu)(lambda event: event.current_buffer.cancel_completion())
        keys.add(ESCAPE, filter=is_searching)(lambda event: accept_search())
        keys.add(Keys.Any, filter=empty & inserting & answering)(self._answers_alone)
        keys.add(Keys.BracketedPaste)(self._paste)
        for report in (Keys.Vt100MouseEvent, Keys.CPRResponse):
            # Nobody asked the terminal for one: it is text with colours that was pasted, which ends the library.
            keys.add(report)(lambda event: None)
        keys.add("backspace", filter=Condition(lambda: self._fold_before_cursor() != ""))(self._erase_fold)
        return keys

    def _clear_screen(self) -> None:
        """Scroll the screen away. The library would erase it, and the terminal could not scroll back to it."""
        self._prompt.app.renderer.erase()
        self._output.write_raw("\n" * self.height)
        self._output.cursor_goto(0, 0)
        self._output.flush()
        self._prompt.app.invalidate()

    def _recall(self, event: KeyPressEvent) -> None:
        """Up on an empty line: recall queued lines, otherwise an entry of the history."""
        waiting, buffer = self._handlers.recall(), event.current_buffer
        if waiting:
            self.refill(waiting)
        elif buffer.working_index:
            buffer.auto_up()
        else:  # the history is only loaded when the line is drawn, in one step of the event loop
            buffer.load_history_if_not_yet_loaded()
            asyncio.get_running_loop().call_soon(buffer.auto_up)

    def _edit_elsewhere(self, event: KeyPressEvent) -> None:
        """Edit the line in the user's own editor."""
        if not self._away:
            self._editing = event.app.create_background_task(self._edited_elsewhere(event.current_buffer))

    async def _edited_elsewhere(self, buffer: Buffer) -> None:
        from ..editor_program import edited

        text = self._folds.unfold(buffer.text)
        try:
            text = await self.lend(lambda: edited(self._settings.program, text))
        except (OSError, ValueError) as error:
            self._handlers.tell(f"{self._settings.program} could not be used: {error}. Set EDITOR to another program.")
            return
        text = self._folds.fold(text, "edited")
        buffer.document = Document(text, len(text))

    def _completes(self) -> bool:
        """Whether the menu opens by itself: for a command, its arguments, and files after @."""
        text = self._prompt.default_buffer.document.text_before_cursor
        if not self._settings.while_typing or self._question.is_open or "\n" in text:
            return False
        return text.startswith(("/", ":", "!")) or text.rpartition(" ")[2].startswith("@")

    def _chosen(self) -> bool:
        """Whether the menu is open and one of its completions is inserted."""
        state = self._prompt.default_buffer.complete_state
        return state is not None and state.current_completion is not None

    def _tab(self, buffer: Buffer) -> None:
        """Insert the common part of the completions; if there are several, show a menu and step through it."""
        state = buffer.complete_state
        if state is not None and (state.current_completion is not None or len(state.completions) > 1):
            buffer.complete_next()
            return
        if self._question.hidden and self._question.is_open:
            return
        if not buffer.text and self._suggestion:
            buffer.insert_text(self._suggestion)
            return
        found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(found) == 1:
            buffer.delete_before_cursor(-found[0].start_position)
            buffer.insert_text(found[0].text)
        elif found and self._completes():  # a Tab right behind the last letter is there before its menu
            buffer.complete_state = CompletionState(buffer.document, found)
            buffer.complete_next()
        else:
            buffer.start_completion(insert_common_part=True)

    def _take(self, buffer: Buffer) -> None:
        """Enter in the menu: insert the completion without sending the line."""
        buffer.complete_state = None

    def _enter(self, buffer: Buffer) -> None:
        text = self._current_folds.unfold(buffer.text)
        if not is_text(text):  # a terminal that writes another encoding
            self._handlers.tell("That line is not UTF-8, so it was not sent. Type it again, or change it.")
        elif self._question.is_open:
            buffer.reset()
            self._hidden_folds.forget()
            self._handlers.answer(text)
        elif self._question.is_rest(buffer.text):
            buffer.reset()
        elif buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            self._send(buffer)

    def _send(self, buffer: Buffer) -> None:
        shown, self._suggestion = buffer.text or self._suggestion, ""
        text = self._folds.unfold(shown)
        if text.strip():
            self._history.add(shown.strip(), text.strip())
        buffer.reset()
        self._handlers.line(text, shown)

    def _interrupt(self, event: KeyPressEvent) -> None:
        if self._suggestion and not event.current_buffer.text:
            self._suggestion = ""
            self.update()
        elif self._handlers.interrupt(bool(event.current_buffer.text)):
            event.current_buffer.reset()

    def _accept(self, buffer: Buffer) -> bool:
        """Ctrl+O and similar keys send the line like Enter; by default, the library would end the prompt."""
        self._enter(buffer)
        return True

    def _paste(self, event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(self._current_folds.fold(text, "pasted"))

    @property
    def _current_folds(self) -> Folds:
        """The folds of the edited line."""
        return self._hidden_folds if self._question.hidden and self._question.is_open else self._folds

    def _fold_before_cursor(self) -> str:
        return self._current_folds.at_end(self._prompt.default_buffer.document.text_before_cursor)

    def _erase_fold(self, event: KeyPressEvent) -> None:
        event.current_buffer.delete_before_cursor(len(self._fold_before_cursor()))
