"""The plain chat: a line in, text and tool lines out. Works in a pipe and for a screen reader."""

from __future__ import annotations

import asyncio
import gc
import io
import signal
import sys
from collections.abc import Sequence

from ..events import Event, MessageEnd, MessageUpdate, Notice, ToolExecutionEnd, ToolExecutionStart
from ..signals import ending
from .base import SessionControl
from .byhand import call_by_hand, help_text

PROMPT = "> "
INTERRUPTED = 130
_LEAVE = frozenset({"exit", "quit", "/exit"})
_SHOWN = 100


class _EndedError(Exception):
    """The program was asked to end while it waited for a line."""


class PlainChat:
    """Reads lines between answers. Ctrl+C ends an answer and keeps the chat; Ctrl+D, SIGTERM and SIGHUP leave."""

    def __init__(self) -> None:
        self._in_line = False
        self._answering: asyncio.Task[None] | None = None
        self._waiting = False
        self._ended = False

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """Chat until the user leaves; returns the exit code."""
        _speak_utf8()
        session.subscribe(self._show)
        self._print(_greeting(session))
        gc.freeze()
        gc.enable()  # the launcher turned it off for the start
        for number in ending():
            if number != signal.SIGINT:
                signal.signal(number, self._end)
        with asyncio.Runner() as runner:
            try:
                self._chat(runner, session, prompt)
            except _EndedError:
                self._finish_line()
            finally:
                runner.run(session.close())
        return INTERRUPTED if self._ended else 0

    def _chat(self, runner: asyncio.Runner, session: SessionControl, prompt: str | None) -> None:
        if prompt:
            self._print(f"{PROMPT}{prompt}")
            self._turn(runner, session, prompt)
        while (line := self._read()) is not None:
            if line.strip() in _LEAVE:
                break
            if line.strip():
                self._turn(runner, session, line.strip())

    def _end(self, *_: object) -> None:
        """Leave from wherever it stands: nothing that was started may stay behind."""
        self._ended = True
        if self._answering is not None and not self._answering.done():
            self._answering.get_loop().call_soon_threadsafe(self._answering.cancel)
        if self._waiting:
            self._waiting = False
            raise _EndedError

    def _input(self, prompt: str) -> str:
        self._waiting = True
        try:
            if self._ended:
                raise _EndedError
            return input(prompt)
        finally:
            self._waiting = False

    def _read(self) -> str | None:
        """The next line; None at its end. Ctrl+C empties the line that is being typed."""
        while True:
            try:
                line = self._input(PROMPT if sys.stdin.isatty() else "")
                line.encode()
                return line
            except EOFError:
                self._print("")
                return None
            except KeyboardInterrupt:
                self._print("\n(Ctrl+D leaves)")
            except UnicodeError:
                self._print("That line is not UTF-8, so it was not sent.")

    def _turn(self, runner: asyncio.Runner, session: SessionControl, line: str) -> None:
        try:
            runner.run(self._answer(session, line))
        except (KeyboardInterrupt, asyncio.CancelledError):
            self._line("[Cancelled]")

    async def _answer(self, session: SessionControl, line: str) -> None:
        self._answering = asyncio.current_task()
        if line in ("/help", "help"):
            self._line(help_text(session))
        elif line.startswith("/"):
            self._line(await self._command(session, line[1:]))
        else:
            result = await session.submit(line)
            if result.error is not None:
                self._line(f"Error: {result.error}")
            self._finish_line()

    async def _command(self, session: SessionControl, line: str) -> str:
        name, _, rest = line.partition(" ")
        command = session.commands.get(name)
        if command is not None:
            return await command.run(session, rest.strip()) or ""
        return (await call_by_hand(session, name, rest)).text

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask on the terminal; anything but one of the choices, or its first letter, is the last choice.

        Ctrl+C is the last choice, too, and ends the answer.
        """
        self._line(question)
        # The loop's own handler only notes a signal, and nothing else runs while this waits.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            answer = self._input(f"[{'/'.join(choices)}] ").strip().lower()
        except (EOFError, _EndedError):
            return choices[-1]
        except KeyboardInterrupt:
            if self._answering is not None:
                self._answering.cancel()
            return choices[-1]
        finally:
            signal.signal(signal.SIGINT, handler)
        return next((choice for choice in choices if answer and choice.startswith(answer)), choices[-1])

    def _show(self, event: Event) -> None:
        if isinstance(event, MessageUpdate):
            if event.kind == "text":
                self._write(event.delta)
        elif isinstance(event, MessageEnd):
            self._finish_line()
        elif isinstance(event, ToolExecutionStart):
            shown = ", ".join(f"{name}={value!r}"[:_SHOWN] for name, value in event.arguments.items())
            self._line(f"  🔧 {event.name}({shown})")
        elif isinstance(event, ToolExecutionEnd):
            first = event.text.strip().partition("\n")[0][:_SHOWN]
            self._line(f"     {'failed' if event.is_error else 'done'} in {event.elapsed:.1f} s: {first}")
        elif isinstance(event, Notice):
            self._line(f"({event.text})")

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()
        if text:
            self._in_line = not text.endswith("\n")

    def _line(self, text: str) -> None:
        self._finish_line()
        self._print(text)

    def _finish_line(self) -> None:
        if self._in_line:
            self._print("")
        self._in_line = False

    def _print(self, text: str) -> None:
        print(text, flush=True)


def _speak_utf8() -> None:
    """Whatever the locale; bytes that are none come through, and are found line by line."""
    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors)


def _greeting(session: SessionControl) -> str:
    if session.configured:
        return (
            f"Marvin, with {session.model or 'the default model'} of {session.provider_name}. /help shows what works."
        )
    return "Marvin. No model is configured, so only tools can be called: /name key=value. /help shows how."
