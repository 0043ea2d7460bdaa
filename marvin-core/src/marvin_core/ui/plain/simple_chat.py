"""The chat without a terminal to draw on: a line in, text and tool lines out. For pipes and screen readers."""

from __future__ import annotations

import asyncio
import io
import os
import select
import signal
import sys
from collections.abc import Sequence
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
from ...util.shown import ProgressLines, columns_of
from ...util.signals import ending
from ...util.streams import StandardStreams
from ...util.terminal_text import TerminalFilter, disarm
from ...util.text import one_line
from ...util.watchdog import Watchdog
from ..rendering import Paint, call_line, columns_at, diff_lines, for_people, outcome_line, shown_rows
from ..typed_lines import Display, LineInterpreter

PROMPT = "> "


class _EndedError(Exception):
    """The program was asked to end while it waited for a line."""


class SimpleChat:
    """Reads lines between answers. Ctrl+C ends an answer and keeps the chat; Ctrl+D, SIGTERM and SIGHUP leave."""

    def __init__(self, session: SessionControl) -> None:
        self._session = session
        self._lines = LineInterpreter(
            session, Display(text=self._say, output=self._line, error=self._say, suggestion=self._suggest)
        )
        self._clean = TerminalFilter()
        self._in_line = False
        self._suggested = ""
        self._answering: asyncio.Task[None] | None = None
        self._paint = Paint(color=False)
        self._progress = ProgressLines(session.chat.timeouts.progress)
        self._waiting = False
        self._ended = False
        self._closing = False
        self._watchdog = Watchdog(session.chat.timeouts, StandardStreams().err, self._leave)

    def run(self, greeting: str, prompt: str | None) -> int:
        """Chat until the user leaves; returns the exit code."""
        _speak_utf8()
        for number in ending():
            signal.signal(number, self._interrupt if number == signal.SIGINT else self._end)
        with asyncio.Runner() as runner:
            try:
                with self._watchdog.watching(runner.get_loop()):
                    runner.run(self._begin(greeting))
                self._chat(runner, prompt)
            except _EndedError:
                self._finish_line()
            finally:
                self._closing = True
                with self._watchdog.watching(runner.get_loop()):
                    runner.run(self._session.close())
        if self._session.farewell:
            self._line(self._session.farewell)
        return EXIT_INTERRUPTED if self._ended else 0

    async def _begin(self, greeting: str) -> None:
        self._session.subscribe(self._show)
        self._say(greeting)
        await asyncio.sleep(0)  # hooks hear that the program is up: nothing runs while a line is waited for

    def _chat(self, runner: asyncio.Runner, prompt: str | None) -> None:
        if prompt and not self._ended:
            self._print(f"{PROMPT}{prompt}")
            self._turn(runner, prompt)
        while self._session.farewell is None and (line := self._read()) is not None:
            if self._lines.leaves(line.strip()):
                break
            line, self._suggested = line.strip() or self._suggested, ""
            if line:
                self._turn(runner, line)

    def _interrupt(self, *_: object) -> None:
        """Ctrl+C: empty the line, or end the answer; asked again while all ends, leave."""
        if self._waiting:
            raise KeyboardInterrupt
        if self._closing:
            self._leave()
        self._cancel()

    def _cancel(self) -> None:
        if self._answering is not None and not self._answering.done():
            self._answering.get_loop().call_soon_threadsafe(self._answering.cancel)
        self._watchdog.interrupted()

    def _leave(self, held: str = "") -> NoReturn:
        """Leave without waiting for anything; what was said is saved."""
        if held:
            StandardStreams().err(f"marvin: {held} does not stop, so the chat ends without it.")
        self._session.rescue()
        os._exit(EXIT_INTERRUPTED)

    def _end(self, *_: object) -> None:
        """Leave from wherever it stands: nothing that was started may stay behind."""
        self._ended = True
        self._cancel()
        if self._waiting:
            self._waiting = False
            raise _EndedError

    def _input(self, prompt: str) -> str:
        self._waiting = True
        try:
            if self._ended:
                raise _EndedError
            sys.stdout.write(prompt)
            sys.stdout.flush()
            if sys.stdin.isatty():
                _wait_for_line()
            return input()
        finally:
            self._waiting = False

    def _read(self) -> str | None:
        """The next line; None at its end. Ctrl+C empties the line that is being typed."""
        while True:
            try:
                line = self._input(self._sign() if sys.stdin.isatty() else "")
                line.encode()
                return line
            except EOFError:
                self._print("")
                return None
            except KeyboardInterrupt:
                self._suggested = ""
                self._print("\n(Ctrl+D leaves)")
            except UnicodeError:
                self._print("That line is not UTF-8, so it was not sent.")

    def _suggest(self, line: str) -> None:
        if sys.stdin.isatty():  # an empty line of a pipe is no answer
            self._say(f"Enter alone sends: {line}")
            self._suggested = line

    def _sign(self) -> str:
        return "$ " if self._lines.shell else PROMPT

    def _turn(self, runner: asyncio.Runner, line: str) -> None:
        try:
            with self._watchdog.watching(runner.get_loop()):
                runner.run(self._answer(line))
        except (KeyboardInterrupt, asyncio.CancelledError):
            self._line("[Cancelled]")

    async def _answer(self, line: str) -> None:
        self._answering = asyncio.current_task()
        await self._lines.run(line)
        self._finish_line()
        await self._session.accounted()  # nothing runs beside the prompt

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask on the terminal; anything but one of the choices, or its first letter, is the last choice.

        Ctrl+C is the last choice, too, and ends the answer.
        """
        self._line(question)
        try:
            answer = self._input(one_line(f"[{'/'.join(choices)}]") + " ").strip().lower()
        except (EOFError, _EndedError):
            return choices[-1]
        except KeyboardInterrupt:
            if self._answering is not None:
                self._answering.cancel()
            return choices[-1]
        return next((choice for choice in choices if answer and choice.startswith(answer)), choices[-1])

    def _show(self, event: Event) -> None:
        if isinstance(event, MessageUpdate):
            if event.kind == "text":
                self._write(event.delta)
        elif isinstance(event, MessageEnd):
            self._finish_line()
        elif isinstance(event, ToolExecutionStart):
            self._line(call_line(event))
        elif isinstance(event, ToolExecutionEnd):
            self._progress.ended(event.call_id)
            shown = shown_rows(event.show, columns_at(sys.stdout.fileno()), columns_of)
            self._line("\n".join([outcome_line(event), *diff_lines(event.details, self._paint), *shown]))
        elif isinstance(event, ToolExecutionUpdate):
            told = self._progress.line(event)
            if told:
                self._line(f"     {told}")
        elif isinstance(event, Notice):
            self._line(f"({event.text})")
        elif isinstance(event, ModelCycle):
            self._line(f"({event.reason})")

    def _write(self, text: str) -> None:
        text = self._clean(text)
        sys.stdout.write(text)
        sys.stdout.flush()
        if text:
            self._in_line = not text.endswith("\n")

    def _line(self, text: str) -> None:
        self._finish_line()
        self._print(disarm(text))

    def _say(self, text: str) -> None:
        """A text of Marvin's own."""
        self._line(for_people(text, sys.stdout.fileno()))

    def _finish_line(self) -> None:
        if self._in_line:
            self._print("")
        self._in_line = False
        self._clean = TerminalFilter()

    def _print(self, text: str) -> None:
        print(text, flush=True)


def _wait_for_line() -> None:
    """Wait until a line was typed, or a signal came: one that comes right before a read would not end that read."""
    own, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.set_wakeup_fd(wake)
    try:
        while sys.stdin not in select.select([sys.stdin, own], [], [])[0]:
            os.read(own, 1)  # its handler runs now, and may raise
    finally:
        signal.set_wakeup_fd(before)
        os.close(own)
        os.close(wake)


def _speak_utf8() -> None:
    """Whatever the locale; bytes that are none come through, and are found line by line."""
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)
