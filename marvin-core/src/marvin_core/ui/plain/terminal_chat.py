"""The chat on a terminal: the line that is typed stays at the bottom while answers come in above it."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from ...api.errors import EXIT_INTERRUPTED
from ...api.events import (
    Event,
    MessageEnd,
    MessageUpdate,
    ModelCycle,
    Notice,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from ...api.session import SessionControl
from ...util.failures import told
from ...util.signals import ending
from ...util.streams import PackLines, diverted
from ...util.watchdog import Watchdog, owner_of
from ..completion import Completing
from ..rendering import (
    Markdown,
    Paint,
    bounded_output,
    call_rows,
    clean,
    diff_lines,
    outcome_rows,
    shortened,
    shown_rows,
    wrapped,
)
from ..typed_lines import Display, LineInterpreter
from .editor_parts import Handlers, editor_settings
from .line_editor import LineEditor
from .line_history import LineHistory
from .live_rows import echoed, progress, under_way
from .surroundings import Surroundings
from .terminal_questions import TerminalQuestions

_STEER = "/steer "
_BY_HAND = ("person", "typed")
_QUICK = 1.0
"""Seconds; how long a call made by hand took is shown from here on."""


class TerminalChat:
    """Takes lines at any time and carries them out one by one.

    Ctrl+C ends an answer, Ctrl+D leaves. A terminal that is closed ends the chat like Ctrl+D.
    """

    def __init__(self, session: SessionControl) -> None:
        settings = session.chat
        self._session = session
        self._paint = Paint(settings.color)
        self._completing = Completing(session, lambda: self._editor.complete_again())  # noqa: PLW0108  # it comes later
        handlers = Handlers(
            line=self._take,
            answer=self._answered,
            cycle=self._cycle,
            interrupt=self._interrupt,
            escape=self._escape,
            recall=self._recall,
            end=self._end_of_input,
            complete=self._completing.candidates,
            tell=self._say_error,
        )
        history = LineHistory(lambda: session.chat.profile_folder / "history", settings.keep)
        self._editor = LineEditor(handlers, history, editor_settings(settings))
        self._around = Surroundings(session, self._editor, self._paint)
        self._text = Markdown(self._paint, self._editor.measure)
        self._queue: deque[tuple[str, str]] = deque()
        self._arrived = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._activity = ""
        self._since = 0.0
        self._left = False
        self._ended_by_signal = False
        self._questions = TerminalQuestions(self._editor, self._paint, self._questioned, self._take)
        self.ask, self.ask_text = self._questions.ask, self._questions.ask_text
        self.ask_secret, self.permit = self._questions.ask_secret, self._questions.permit
        shown = Display(
            text=self._say,
            output=self._say_output,
            error=self._say_error,
            suggestion=self._suggest,
            confirm=self._questions.ask,
        )
        self._lines = LineInterpreter(session, shown)
        self._watchdog: Watchdog | None = None

    def run(self, greeting: str, prompt: str | None) -> int:
        """Chat until the user leaves; returns the exit code."""
        return asyncio.run(self._run(greeting, prompt))

    async def _run(self, greeting: str, prompt: str | None) -> int:
        loop = asyncio.get_running_loop()
        watchdog = Watchdog(self._session.chat.timeouts, self._editor.tell_while_held, self._leave_held, self._hold)
        self._watchdog, self._loop = watchdog, loop
        for number in ending():
            # Not the loop's own handlers: those never run while code of a pack holds the loop.
            signal.signal(number, self._signalled)
        self._terminal = termios.tcgetattr(0)
        self._printed = PackLines(owner_of, self._print_soon)
        with watchdog.watching(loop), diverted(self._printed):
            return await self._chat(greeting, prompt)

    async def _chat(self, greeting: str, prompt: str | None) -> int:
        self._session.subscribe(self._show)
        self._editor.sign = self._sign()
        self._editor.write(self._wrapped(clean(greeting)))
        self._editor.status = lambda: self._around.row(shell=self._lines.shell)
        self._editor.flush()
        self._around.begin()
        if prompt:
            self._take(prompt, prompt)
        work = asyncio.ensure_future(self._work())
        tick = asyncio.ensure_future(self._tick())
        try:
            await self._editor.run()
        finally:
            self._leave()
            tick.cancel()
            try:
                await asyncio.wait({work})
                await self._around.close()
                await self._completing.close()
            finally:
                await self._session.close()
        self._editor.flush()
        return EXIT_INTERRUPTED if self._ended_by_signal else 0

    async def _work(self) -> None:
        """Carry out the lines in the order in which they came."""
        while not self._left:
            if not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            line, shown = self._queue.popleft()
            self._echo(shown)
            if self._lines.leaves(line):
                break
            self._busy("waiting for an answer")
            self._around.attention.works()
            self._running = asyncio.ensure_future(self._lines.run(line))
            await asyncio.wait({self._running})
            self._ended(self._running)
            if self._session.farewell is not None:
                self._say(self._session.farewell)
                break
        self._left = True
        self._editor.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running = None
        self._activity = ""
        self._around.attention.answered()
        self._printed.finish()
        if self._watchdog is not None and not self._left:
            self._watchdog.calm()
        self._finish_text()
        if task.cancelled():
            self._editor.write(self._paint("notice", "[Cancelled]"))
            self._editor.refill(self._recall())
        elif (error := task.exception()) is not None:
            self._say_error(f"Error: {told(error)}")
        self._editor.sign = self._sign()
        self._editor.follow_history()
        self._update()
        self._editor.flush()

    async def _tick(self) -> None:
        """Keep the seconds of what is waited for current."""
        while True:
            await asyncio.sleep(self._session.chat.timeouts.tick)
            if self._activity:
                self._update()

    # --- keys ------------------------------------------------------------------------------------

    def _take(self, line: str, shown: str) -> None:
        line = line.strip()
        if self._running is not None and line.startswith(_STEER):
            self._session.autonomy.send(line.removeprefix(_STEER))
            steered = self._wrapped(clean(f"(read with the next request) {line.removeprefix(_STEER)}"))
            self._editor.write(self._paint("faint", steered))
        elif line:
            self._queue.append((line, shown.strip()))
            self._arrived.set()
            self._update()

    def _answered(self, line: str) -> None:
        self._questions.answer(line)

    def _cycle(self) -> None:
        """Shift+Tab: the next permission mode, which counts from the next call on."""
        from ...guard.permissions.modes import MEANINGS

        mode = self._session.permissions.cycle()
        self._editor.sign = self._sign()
        self._say(f"Permission mode {mode}: {MEANINGS[mode]}.")

    def _sign(self) -> str:
        """What stands before the line: the permission mode, where it is not the one that asks, and the sign."""
        mode = self._session.permissions.mode
        return f"{'' if mode == 'ask' else f'{mode} '}{'$ ' if self._lines.shell else '> '}"

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self._editor.is_away:
            return  # it was meant for the program that has the terminal
        if number == signal.SIGINT:
            self._loop.call_soon_threadsafe(self._interrupt, False)
        else:
            self._loop.call_soon_threadsafe(self._end)
        if self._watchdog is not None and (self._running is not None or number != signal.SIGINT):
            self._watchdog.interrupted()

    def _hold(self, held: bool) -> None:
        """While code of a pack holds the loop nobody reads keys: Ctrl+C is to be a signal then."""
        with suppress(termios.error):  # the terminal is gone
            state = termios.tcgetattr(0)
            state[3] = state[3] | termios.ISIG if held else state[3] & ~termios.ISIG
            termios.tcsetattr(0, termios.TCSANOW, state)
        if not held:
            self._loop.call_soon_threadsafe(self._editor.draw_anew)

    def _leave_held(self, held: str) -> NoReturn:
        """Leave without the loop; what was said is saved."""
        self._editor.tell_while_held(f"{held or 'something'} does not stop, so the chat ends without it.")
        self._session.rescue()
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, self._terminal)
        os._exit(EXIT_INTERRUPTED)

    def _interrupt(self, typed: bool) -> bool:
        if self._running is not None:
            self._questions.answer(None)
            self._running.cancel()
            return False
        if not typed:
            self._editor.write(self._paint("faint", "(Ctrl+D leaves)"))
        return typed

    def _escape(self) -> None:
        """Escape: ends an answer; what is typed stays."""
        if self._running is not None:
            self._interrupt(False)

    def _recall(self) -> str:
        """Up on an empty line: what waits to be sent comes back, to be changed."""
        waiting, self._queue = self._queue, deque()
        self._update()
        return "\n".join(shown for _, shown in waiting)

    def _end_of_input(self) -> None:
        """Ctrl+D: at a question it says no, and stays."""
        if not self._questions.answer(None):
            self._leave()

    def _end(self) -> None:
        """Asked to end by a signal: the terminal may be gone."""
        self._ended_by_signal = True
        self._leave()

    def _leave(self) -> None:
        self._left = True
        self._queue.clear()
        self._arrived.set()
        if self._running is not None:
            self._running.cancel()
        self._editor.close()

    @contextmanager
    def _questioned(self) -> Iterator[bool]:
        """Nothing is waited for but an answer; gives whether there can be one."""
        self._finish_text()
        activity, self._activity = self._activity, ""
        self._update()
        self._around.attention.asks()
        try:
            yield not self._left
        finally:
            self._around.attention.settled()
            self._editor.sign = self._sign()
            self._busy(activity)

    # --- what is shown -----------------------------------------------------------------------------

    def _show(self, event: Event) -> None:
        self._around.listen(event)
        if isinstance(event, MessageUpdate):
            self._delta(event)
        elif isinstance(event, MessageEnd):
            self._finish_text()
        elif isinstance(event, ToolExecutionStart):
            self._finish_text()
            if event.origin not in _BY_HAND:  # the typed line is seen right above
                rows = call_rows(event, self._editor.width, self._editor.measure)
                self._editor.write(self._paint("tool", rows))
            self._busy(event.name)
        elif isinstance(event, ToolExecutionUpdate):
            self._activity = progress(event)
        elif isinstance(event, ToolExecutionEnd):
            self._outcome(event)
            self._busy("waiting for an answer")
        elif isinstance(event, Notice):
            self._finish_text()
            text = self._wrapped(f"({clean(event.text)})")
            self._editor.write(self._paint("error" if event.level == "error" else "notice", text))
        elif isinstance(event, ModelCycle):
            self._finish_text()
            self._editor.write(self._paint("notice", self._wrapped(f"({clean(event.reason)})")))
        self._update()

    def _outcome(self, event: ToolExecutionEnd) -> None:
        rows = [
            *diff_lines(event.details, self._paint),
            *shown_rows(event.show, self._editor.width, self._editor.measure),
        ]
        if event.origin not in _BY_HAND or event.elapsed >= _QUICK:
            outcome = outcome_rows(event, self._editor.width, self._editor.measure)
            rows.insert(0, self._paint("error" if event.is_error else "faint", outcome))
        if rows:
            self._editor.write("\n".join(rows))

    def _delta(self, event: MessageUpdate) -> None:
        if event.kind == "text":
            self._activity = ""
            for row in self._text.feed(event.delta, self._editor.width):
                self._editor.write(row)
        elif event.kind == "thinking" and self._activity != "thinking":
            self._busy("thinking")

    def _finish_text(self) -> None:
        for row in self._text.end():
            self._editor.write(row)

    def _wrapped(self, text: str) -> str:
        return wrapped(text, self._editor.width, self._editor.measure)

    def _print_soon(self, owner: str, line: str) -> None:
        self._loop.call_soon_threadsafe(self._print_of, owner, line)  # tools print in threads as well

    def _print_of(self, owner: str, line: str) -> None:
        """What code of a pack printed; on the screen itself it would be drawn over."""
        self._finish_text()
        self._editor.write(self._paint("notice", self._wrapped(f"({clean(f'{owner} printed: {line}')})")))
        self._update()

    def _say(self, text: str) -> None:
        self._finish_text()
        self._editor.write(self._wrapped(clean(text)))

    def _say_error(self, text: str) -> None:
        self._finish_text()
        self._editor.write(self._paint("error", self._wrapped(clean(text))))

    def _say_output(self, text: str) -> None:
        """What a tool gave is not broken between words, so that it can be copied."""
        self._finish_text()
        self._editor.write(bounded_output(clean(text).rstrip("\n")))

    def _suggest(self, line: str) -> None:
        if not self._queue:
            self._editor.suggest(line)

    def _echo(self, shown: str) -> None:
        self._editor.write(self._paint("user", echoed(shown, "$ " if self._lines.shell else "> ")))

    def _busy(self, activity: str) -> None:
        self._activity = activity
        self._since = time.monotonic()
        self._update()

    def _update(self) -> None:
        queue = [shown for _, shown in self._queue] if self._running is not None else []
        below = under_way(self._activity, time.monotonic() - self._since, queue)
        width, measure = self._editor.width, self._editor.measure
        rows = [self._paint("faint", shortened(row, width, measure)) for row in below]
        self._editor.live = [self._text.open_row(width), *rows]
        self._editor.update()
