"""The chat on a terminal: the edited line stays at the bottom while answers are written above it."""

from __future__ import annotations

import asyncio
import os
import signal
import termios
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from ...api.errors import EXIT_INTERRUPTED
from ...api.events import Event
from ...api.session import SessionControl
from ...util.failures import told
from ...util.signals import ending
from ...util.streams import PackLines, diverted
from ...util.watchdog import Watchdog, owner_of
from ..completion import Completing
from ..rendering import Paint
from ..themes import Palette
from ..typed_lines import Display, LineInterpreter
from .chat_view import ChatView, page
from .editor_parts import Handlers, editor_settings
from .line_editor import LineEditor
from .line_history import LineHistory
from .surroundings import Surroundings
from .terminal_questions import TerminalQuestions
from .terminal_reach import TerminalReach

_STEER = "/steer "


class TerminalChat:
    """Accepts lines at any time and executes them one by one.

    Ctrl+C ends an answer, Ctrl+D ends the chat. Closing the terminal has the effect of Ctrl+D.
    """

    def __init__(self, session: SessionControl) -> None:
        settings = session.chat
        self._session = session
        palette = Palette(lambda: session.person.theme, settings.config_folder, self._warn)
        self._paint = Paint(settings.color, palette)
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
            page=self._page,
            tell=self._warn,
        )
        history = LineHistory(lambda: session.chat.profile_folder / "history", settings.keep)
        self._editor = LineEditor(handlers, history, editor_settings(settings))
        self.reach = TerminalReach(settings.terminal, self._editor, self._paint)
        self._around = Surroundings(session, self._editor, self._paint)
        self._view = view = ChatView(session, self._editor, self._paint)
        view.queued = self._queued
        self._queue: deque[tuple[str, str]] = deque()
        self._arrived = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._left = False
        self._ended_by_signal = False
        self._questions = TerminalQuestions(self._editor, self._paint, self._questioned, self._take)
        self.ask, self.ask_text = self._questions.ask, self._questions.ask_text
        self.ask_secret, self.permit = self._questions.ask_secret, self._questions.permit
        shown = Display(
            text=view.say,
            output=view.say_output,
            error=view.say_error,
            suggestion=self._suggest,
            raw=view.switch_raw,
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
        self._session.subscribe(self._happened)
        self._editor.sign = self._sign()
        self._view.say(greeting)
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
                await self._view.close()
                await self._completing.close()
            finally:
                await self._session.close()
        self._editor.flush()
        return EXIT_INTERRUPTED if self._ended_by_signal else 0

    async def _work(self) -> None:
        """Execute the lines in the order of their arrival."""
        while not self._left:
            if not self._queue:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            line, shown = self._queue.popleft()
            self._view.echo(shown, "$ " if self._lines.shell else "> ")
            if self._lines.leaves(line):
                break
            self._view.busy("waiting for an answer")
            self._around.attention.works()
            self._running = asyncio.ensure_future(self._lines.run(line))
            await asyncio.wait({self._running})
            self._ended(self._running)
            if self._session.farewell is not None:
                self._view.say(self._session.farewell)
                break
        self._left = True
        self._editor.close()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running = None
        self._around.attention.answered()
        self._printed.finish()
        if self._watchdog is not None and not self._left:
            self._watchdog.calm()
        self._view.ended()
        if task.cancelled():
            self._editor.write(self._paint("notice", "[Cancelled]"))
            self._editor.refill(self._recall())
        elif (error := task.exception()) is not None:
            self._view.say_error(f"Error: {told(error)}")
        self._editor.sign = self._sign()
        self._editor.follow_history()
        self._editor.update()
        self._editor.flush()

    async def _tick(self) -> None:
        """Update the elapsed seconds of the running work."""
        while True:
            await asyncio.sleep(self._session.chat.timeouts.tick)
            if self._view.activity:
                self._editor.update()

    # --- keys ------------------------------------------------------------------------------------

    def _take(self, line: str, shown: str) -> None:
        line = line.strip()
        if self._running is not None and line.startswith(_STEER):
            self._session.autonomy.send(line.removeprefix(_STEER))
            self._view.say_aside(f"(the model reads this with its next request) {line.removeprefix(_STEER)}")
        elif line:
            self._queue.append((line, shown.strip()))
            self._arrived.set()
            self._editor.update()

    def _answered(self, line: str) -> None:
        self._questions.answer(line)

    def _cycle(self) -> None:
        """Shift+Tab: switch to the next permission mode, which applies from the next call on."""
        from ...guard.permissions.modes import MEANINGS

        mode = self._session.permissions.cycle()
        self._editor.sign = self._sign()
        self._view.say(f"Permission mode {mode}: {MEANINGS[mode]}.")

    def _sign(self) -> str:
        """The text before the line: the permission mode if it is not the default one, and the prompt sign."""
        mode = self._session.permissions.mode
        return f"{'' if mode == 'ask' else f'{mode} '}{'$ ' if self._lines.shell else '> '}"

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self._editor.is_away:
            return  # it was meant for the program that has the terminal
        if number == signal.SIGINT and self._left:
            self._leave_at_once()  # what is still to be closed takes too long for somebody
        if number == signal.SIGINT:
            self._loop.call_soon_threadsafe(self._interrupt, False)
        else:
            self._loop.call_soon_threadsafe(self._end)
        if self._watchdog is not None and (self._running is not None or number != signal.SIGINT):
            self._watchdog.interrupted()

    def _hold(self, held: bool) -> None:
        """While a pack's code blocks the event loop, nobody reads keys: let Ctrl+C be a signal then."""
        with suppress(termios.error):  # the terminal is gone
            state = termios.tcgetattr(0)
            state[3] = state[3] | termios.ISIG if held else state[3] & ~termios.ISIG
            termios.tcsetattr(0, termios.TCSANOW, state)
        if not held:
            self._loop.call_soon_threadsafe(self._editor.draw_anew)

    def _leave_held(self, held: str) -> NoReturn:
        self._editor.tell_while_held(f"{held or 'something'} does not stop, so the chat ends without it.")
        self._leave_at_once()

    def _leave_at_once(self) -> NoReturn:
        """Leave without the event loop; the session is saved."""
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
        """Escape: end an answer; the edited text stays."""
        if self._running is not None:
            self._interrupt(False)

    def _recall(self) -> str:
        """Up on an empty line: move the queued lines back into the editor."""
        waiting, self._queue = self._queue, deque()
        self._editor.update()
        return "\n".join(shown for _, shown in waiting)

    def _end_of_input(self) -> None:
        """Ctrl+D: at a question it means no, and the chat continues."""
        if not self._questions.answer(None):
            self._leave()

    def _end(self) -> None:
        """A signal asks the chat to end: the terminal may be gone."""
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
        """Wait only for an answer; returns whether there can be one."""
        self._editor.leave_pager()
        self._view.pause_text()
        activity, self._view.activity = self._view.activity, ""
        self._editor.update()
        self._around.attention.asks()
        try:
            yield not self._left
        finally:
            self._around.attention.settled()
            self._editor.sign = self._sign()
            self._view.busy(activity)

    def _happened(self, event: Event) -> None:
        # One subscriber: the first one gets the earlier events.
        self._around.listen(event)
        self._view.show(event)

    def _queued(self) -> Sequence[str]:
        return [shown for _, shown in self._queue] if self._running is not None else []

    def _suggest(self, line: str) -> None:
        if not self._queue:
            self._editor.suggest(line)

    def _warn(self, text: str) -> None:
        self._view.say_error(text)

    async def _page(self) -> None:
        await page(self._view, self._editor, self._paint)

    def _print_soon(self, owner: str, line: str) -> None:
        # Tools print in threads as well.
        self._loop.call_soon_threadsafe(self._view.tell_printed, f"{owner} printed: {line}")
