"""The display of the chat on a terminal: events become rows above the line, and rows for running work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from ...api.events import (
    AgentStart,
    Event,
    MessageEnd,
    MessageUpdate,
    ModelCycle,
    Notice,
    SessionResume,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from ...api.session import SessionControl
from ..drawing.answer import RULE, Answer
from ..drawing.calls import Calls
from ..drawing.thinking import Thinking
from ..drawing.transcript import Transcript
from ..manual_calls import command_of
from ..rendering import Paint, bounded_output, clean, shortened, wrapped
from .line_editor import LineEditor
from .pictures import TerminalPictures
from .terminal_reach import replay
from .typed_rows import echoed, first_line

MARK = "■"
"""The mark before Marvin's text."""
_FEWEST_ROWS = 3
_SHARE = 4
"""The share of the window that an open block may take: one row in so many. A block that is folded in a narrower window
is still completely visible, and can be redrawn.
"""
_RAW = {
    True: "From now on, answers are shown as Markdown source. /raw off renders them again.",
    False: "From now on, answers are rendered.",
}


class ChatView:
    """Writes above the line of an editor. `queued` returns the queued lines as they were typed; they are shown below
    the running work.
    """

    def __init__(self, session: SessionControl, editor: LineEditor, paint: Paint) -> None:
        self._session = session
        self._editor = editor
        self._paint = paint
        self.queued: Callable[[], Sequence[str]] = tuple
        self.raw = not session.chat.preferences.markdown
        self._answer = Answer(paint, editor.measure, lambda: self.raw)
        self._thinking = Thinking(paint, editor.measure, shown=session.chat.preferences.thinking)
        self._calls = Calls(paint, editor.measure, partial(command_of, session))
        self._pictures = TerminalPictures(session, editor)
        self.transcript = Transcript(editor.measure)
        self.activity = ""
        self._since = 0.0
        self._last_answer: list[str] = []
        self._turns = False
        self._prepared = False
        editor.refresh = self._refresh

    # --- events ------------------------------------------------------------------------------------

    def show(self, event: Event) -> None:
        """Show an event of the session."""
        self.transcript.add(event)
        if isinstance(event, MessageUpdate):
            self._delta(event)
        elif isinstance(event, AgentStart):
            self._begin_turn()
        elif isinstance(event, MessageEnd):
            self.finish_text()
        elif isinstance(event, ToolExecutionStart):
            self.finish_text()
            self._write(self._calls.begin(event, self._editor.width))
            self.busy(event.name)
        elif isinstance(event, ToolExecutionUpdate):
            self._calls.update(event)
        elif isinstance(event, ToolExecutionEnd):
            self._write(self._calls.end(event, self._editor.width))
            self._pictures.show(event.show)
            self.busy("waiting for an answer")
        elif isinstance(event, Notice):
            self.pause_text()
            self._tell("error" if event.level == "error" else "notice", event.text)
        elif isinstance(event, ModelCycle):
            self.pause_text()
            self._tell("notice", event.reason)
        elif isinstance(event, SessionResume):
            replay(self._session.sessions.replay(), echo=self.echo, answer=self._say_again, note=self.say_aside)
        self._editor.update()

    def _say_again(self, text: str) -> None:
        """Show an earlier answer as it was drawn then."""
        self._begin_turn()
        self.transcript.answered(text)
        self._delta(MessageUpdate(kind="text", delta=text))
        self.finish_text()
        self._answer.mark = ""

    def _begin_turn(self) -> None:
        self._answer.mark = MARK
        self._last_answer, self._turns = [], True
        if not self._prepared:
            self._prepared = True
            threading.Thread(target=_prepare, args=(self._paint.color,), daemon=True).start()

    def _delta(self, event: MessageUpdate) -> None:
        if event.kind == "text":
            self._write(self._thinking.end(self._editor.width))
            self.activity = ""
            self._last_answer.append(event.delta)
            self._write(self._answer.feed(event.delta, self._editor.width))
        elif event.kind == "thinking":
            self._thinking.feed(event.delta)
            if self.activity != "thinking":
                self.busy("thinking")

    async def close(self) -> None:
        """The chat ends."""
        await self._pictures.close()

    def ended(self) -> None:
        """A typed line is executed now."""
        self.finish_text()
        self._calls.clear()
        self._answer.mark = ""
        self.activity = ""

    def finish_text(self) -> None:
        """Write the remaining text of an answer."""
        self._write(self._thinking.end(self._editor.width))
        self._write(self._answer.end(self._editor.width))

    def pause_text(self) -> None:
        """Write the text held back, before other text is written."""
        self._write(self._answer.pause(self._editor.width))

    # --- texts -------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Show a text of Marvin. An answer may be streaming, and continues below."""
        self.pause_text()
        self.transcript.said(text)
        self._editor.write(self._wrapped(clean(text)))

    def say_error(self, text: str) -> None:
        """Show an error."""
        self.pause_text()
        self.transcript.said(text, "error")
        self._editor.write(self._paint("error", self._wrapped(clean(text))))

    def say_output(self, text: str) -> None:
        """Show the output of a tool without breaking it between words, so that it can be copied."""
        self.pause_text()
        self._editor.write(bounded_output(clean(text).rstrip("\n")))

    def say_aside(self, text: str) -> None:
        """Show a short text of Marvin with little importance."""
        self.pause_text()
        self._editor.write(self._paint("faint", self._wrapped(clean(text))))

    def tell_printed(self, text: str) -> None:
        """Show the printed output of a pack; printed directly, it would be overdrawn."""
        self.pause_text()
        self.transcript.said(f"({text})", "notice")
        self._tell("notice", text)
        self._editor.update()

    def echo(self, shown: str, sign: str = "> ") -> None:
        """Show the line that is executed now."""
        self.transcript.typed(shown)
        if self._turns:
            self._turns = False
            self._editor.write(self._paint("rule", RULE))
        self._editor.write(self._paint("user", echoed(shown, sign)))

    def switch_raw(self, words: str) -> None:
        """`/raw`: show the last answer again, unformatted; `on` and `off` do the same for all later answers."""
        if words in ("on", "off"):
            self.raw = words == "on"
            self.say(_RAW[self.raw])
        elif words:
            self.say_error("Error: Use /raw, /raw on or /raw off.")
        elif text := clean("".join(self._last_answer)).strip("\n"):
            self._editor.write(text)
        else:
            self.say("There is no answer yet.")

    # --- what is under way -------------------------------------------------------------------------

    def busy(self, activity: str) -> None:
        """Show below what the chat is waiting for, and for how long."""
        self.activity = activity
        self._since = time.monotonic()
        self._editor.update()

    def _refresh(self) -> None:
        """Set the rows between the text and the line; called before they are drawn."""
        width, measure = self._editor.width, self._editor.measure
        most = max(_FEWEST_ROWS, self._editor.height // _SHARE)
        rows = [*self._thinking.open_rows(width, most), *self._answer.open_rows(width, most)]
        if self._calls.are_running and self.activity:
            rows += self._calls.live_rows(width)[: 2 * most]
        elif self.activity:
            seconds = int(time.monotonic() - self._since)
            text = f"… {self.activity}, {seconds} s" if seconds else f"… {self.activity}"
            rows.append(self._paint("faint", shortened(clean(text), width, measure)))
        queued = [f"(queued) {first_line(shown)}" for shown in self.queued()]
        self._editor.live = [*rows, *(self._paint("faint", shortened(row, width, measure)) for row in queued)]

    def _tell(self, role: str, text: str) -> None:
        told = self._wrapped(f"({clean(text)})")
        self._editor.write(self._paint("error" if role == "error" else "notice", told))

    def _write(self, rows: Sequence[str]) -> None:
        if rows:
            self._editor.write("\n".join(rows))

    def _wrapped(self, text: str) -> str:
        return wrapped(text, self._editor.width, self._editor.measure)


async def page(view: ChatView, editor: LineEditor, paint: Paint) -> None:
    """Ctrl+O: show the whole transcript on the terminal's alternate screen."""
    from .lent.pager import Pager

    lines = list(view.transcript.lines())
    await editor.page(lambda output: Pager(lines, paint, editor.measure, output, editor.escape))


def _prepare(color: bool) -> None:
    """Import the modules for the first blocks while waiting for the answer."""
    from ..drawing import code, inline

    inline.prepare()
    if color:
        code.prepare()
