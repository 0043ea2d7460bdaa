"""The chat without drawing: it reads lines, and writes text and tool lines. For pipes and screen readers."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stdout, suppress
from typing import NoReturn

from ...api.errors import EXIT_INTERRUPTED
from ...api.events import (
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
from ...api.permissions import Question, Reply
from ...api.session import SessionControl
from ...util.shown import ProgressLines, columns_of
from ...util.signals import ending
from ...util.streams import PackLines, StandardStreams, diverted
from ...util.terminal_text import disarm, exact
from ...util.text import counted, one_line
from ...util.watchdog import Watchdog, owner_of
from ..clipboard import clipboard_sequence
from ..editor_program import run_on_terminal
from ..line_writing import LineWriting, SpokenWriting
from ..manual_calls import command_of
from ..question_prompt import QuestionPrompt
from ..rendering import Paint, columns_at, for_people
from ..text_question import TextQuestion
from ..typed_lines import Display, LineInterpreter
from .standard_input import line_typed, speak_utf8, wait_for_line

_LONGEST_SILENCE = 30.0
"""The maximum number of seconds without output during an answer; then a line says that it is still running."""


class _EndedError(Exception):
    """The program received a signal to end while it waited for a line."""


class SimpleChat:
    """Reads lines between answers. Ctrl+C ends an answer and keeps the chat. Ctrl+D, SIGTERM and SIGHUP end it."""

    def __init__(self, session: SessionControl) -> None:
        self._session = session
        self._lines = LineInterpreter(
            session,
            Display(text=self._say, output=self._line, error=self._say, suggestion=self._suggest, confirm=self.ask),
        )
        self._writing = SpokenWriting() if session.chat.screen_reader else LineWriting()
        self._out = sys.stdout
        self._in_line = False
        self._suggested = ""
        self._typed: deque[str] = deque()
        self._answering: asyncio.Task[None] | None = None
        self._paint = Paint(color=False)
        self._progress = ProgressLines(session.chat.timeouts.progress)
        self._waiting = False
        self._quiet = True
        """Whether there was no output since the last check."""
        self._one = asyncio.Lock()
        self._held: list[Event] | None = None
        self._ended = False
        self._closing = False
        self._watchdog = Watchdog(session.chat.timeouts, StandardStreams().err, self._leave)

    def run(self, greeting: str, prompt: str | None) -> int:
        """Chat until the user leaves; returns the exit code."""
        speak_utf8()
        self._out = sys.stdout
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
            self._print(f"{self._writing.sign}{prompt}")
            self._turn(runner, prompt)
        while self._session.farewell is None and (line := self._read()) is not None:
            if self._lines.leaves(line.strip()):
                break
            line, self._suggested = line.strip() or self._suggested, ""
            if line:
                self._turn(runner, line)

    def _interrupt(self, *_: object) -> None:
        """Ctrl+C: clear the line, or end the answer; pressed again while the chat ends, leave at once."""
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
        """Leave without waiting; the session is saved."""
        if held:
            StandardStreams().err(f"marvin: {held} does not stop, so the chat ends without waiting for it.")
        self._session.rescue()
        os._exit(EXIT_INTERRUPTED)

    def _end(self, *_: object) -> None:
        """End the chat in any state, without leaving processes behind."""
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
            self._out.write(prompt)
            self._out.flush()
            if sys.stdin.isatty():
                wait_for_line()
            return input()
        finally:
            self._waiting = False

    def _read(self) -> str | None:
        """The next line; None at the end of the input. Ctrl+C clears the edited line."""
        while True:
            try:
                if self._typed:
                    line = self._typed.popleft()
                    self._print(f"{self._sign()}{exact(line)}")
                else:
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
        mode = self._session.permissions.mode
        return f"{'' if mode == 'ask' else f'{mode} '}{'$ ' if self._lines.shell else self._writing.sign}"

    def _turn(self, runner: asyncio.Runner, line: str) -> None:
        loop = runner.get_loop()

        def tell(owner: str, text: str) -> None:
            loop.call_soon_threadsafe(self._print_of, owner, text)  # tools print in threads as well

        printed = PackLines(owner_of, tell)
        try:
            with self._watchdog.watching(runner.get_loop()), diverted(printed):
                runner.run(self._answer(line, printed))
        except (KeyboardInterrupt, asyncio.CancelledError):
            self._line("[Cancelled]")

    async def _answer(self, line: str, printed: PackLines) -> None:
        self._answering = asyncio.current_task()
        waiting = asyncio.ensure_future(self._tell_of_waiting())
        try:
            await self._lines.run(line)
        finally:
            waiting.cancel()
        printed.finish()
        await asyncio.sleep(0)  # what was printed last is shown
        self._finish_line()
        await self._session.accounted()  # nothing runs beside the prompt

    async def _tell_of_waiting(self) -> None:
        """Report from time to time that an answer is still running, if there is no other output."""
        begun, seconds = time.monotonic(), self._session.chat.timeouts.progress
        while self._session.chat.screen_reader or self._out.isatty():  # nobody waits at the end of a pipe
            self._quiet = True
            await asyncio.sleep(seconds)
            if self._quiet and self._held is None:
                self._line(f"{self._writing.working}, {counted(int(time.monotonic() - begun), 'second')}.")
                seconds = min(seconds * 2, _LONGEST_SILENCE)

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask on the terminal.

        Any text but a choice or the beginning of one counts as the last choice. So does Ctrl+C, which also ends the
        answer. Lines typed before the question do not answer it.
        """
        async with self._asking():
            self._line(question)
            self._keep_typed()
            sign = one_line(f"[{'/'.join(choices)}]") + " "
            line = await self._answer_line(self._writing.choices(sign)) or ""
            answer = self._writing.chosen(sign, line).strip().lower()
        return next((choice for choice in choices if answer and choice.startswith(answer)), choices[-1])

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Ask on the terminal for free text; Ctrl+C also ends the answer."""
        quoting = self._writing.quoting(self._paint, columns_at(self._out.fileno()), columns_of)
        asked = TextQuestion(question, choices, self._paint, quoting)
        async with self._asking():
            self._finish_line()
            self._print(asked.begin())
            self._keep_typed()
            return asked.answer(await self._answer_line(asked.sign))

    async def permit(self, question: Question) -> Sequence[Reply]:
        """Ask about calls until each has a decision. Ctrl+D denies the remaining ones, Ctrl+C ends the answer."""
        columns = columns_at(self._out.fileno())
        prompt = QuestionPrompt(question, self._paint, columns, columns_of, self._writing.quoting)
        async with self._asking():
            self._finish_line()
            self._print(prompt.begin())
            self._keep_typed()
            while prompt.replies is None:
                line = await self._answer_line(self._writing.choices(prompt.sign))
                if line is None:
                    prompt.refuse()
                elif shown := prompt.take(self._writing.chosen(prompt.sign, line)):
                    self._print(shown)
        return prompt.replies

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """Allow one question at a time; other output is shown after its answer."""
        async with self._one:
            self._held = []
            try:
                yield
            finally:
                held, self._held = self._held, None
                for event in held:
                    self._show(event)

    async def _answer_line(self, sign: str) -> str | None:
        """The next line that answers a question; None if there can be none."""
        try:
            if sys.stdin.isatty():  # other calls continue meanwhile; a pipe has its lines already
                self._print(sign, end="")
                sign = ""
                await line_typed()
            with redirect_stdout(self._out):
                line = self._input(sign)
            line.encode()
        except EOFError:
            self._print("")  # what comes next begins below the question
            return None
        except (_EndedError, UnicodeError):
            return None
        except KeyboardInterrupt:
            if self._answering is not None:
                self._answering.cancel()
            return None
        if not sys.stdin.isatty():
            self._print(exact(line))  # nothing else shows it
        return line

    def _keep_typed(self) -> None:
        """Keep lines typed before a question for later. In a pipe, lines and answers are written in advance."""
        if not sys.stdin.isatty():
            return
        while sys.stdin in select.select([sys.stdin], [], [], 0)[0]:
            line = os.read(sys.stdin.fileno(), 65_536)
            if not line:
                return
            self._typed.append(line.decode("utf-8", "surrogateescape").rstrip("\n"))
            self._print("(What you typed before the question is sent after this answer.)")
        with suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # a line that has only been begun

    async def ask_secret(self, question: str) -> str:
        """Read a line that is not shown; empty if the user gives none. Ctrl+C also ends the answer."""
        from ..hidden_input import without_echo

        try:
            with without_echo(sys.stdin.fileno()):
                self._line(question)
                return self._input("").strip()
        except (EOFError, _EndedError):
            return ""
        except KeyboardInterrupt:
            if self._answering is not None:
                self._answering.cancel()
            return ""
        finally:
            if sys.stdin.isatty():
                self._print("")

    def _show(self, event: Event) -> None:
        if self._held is not None:
            self._held.append(event)
        elif isinstance(event, MessageUpdate):
            if event.kind == "text":
                self._write(event.delta)
        elif isinstance(event, MessageEnd):
            self._finish_line()
        elif isinstance(event, ToolExecutionStart):
            self._line(self._writing.call(event, command_of(self._session, event.name), self._columns()))
        elif isinstance(event, ToolExecutionEnd):
            self._progress.ended(event.call_id)
            self._line(self._writing.outcome(event, self._columns()))
        elif isinstance(event, SessionResume):
            earlier = self._writing.replay(self._session.sessions.replay())
            if earlier and self._out.isatty():  # whoever reads a pipe has what was said
                self._line(earlier)
        elif isinstance(event, ToolExecutionUpdate):
            if told := self._progress.line(event):
                self._line(f"     {told}")
        elif isinstance(event, Notice):
            self._line(f"({event.text})")
        elif isinstance(event, ModelCycle):
            self._line(f"({event.reason})")

    def _columns(self) -> int:
        return columns_at(self._out.fileno())

    def _write(self, text: str) -> None:
        self._put(self._writing.text(text))

    def _put(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
        if text:
            self._in_line, self._quiet = not text.endswith("\n"), False

    def _line(self, text: str) -> None:
        self._finish_line()
        self._print(disarm(text))

    def _say(self, text: str) -> None:
        """Write a text of Marvin."""
        self._line(for_people(text, self._out.fileno()))

    def _finish_line(self) -> None:
        self._put(self._writing.end_text())
        if self._in_line:
            self._print("")
        self._in_line = False

    def copy(self, text: str) -> bool:
        """Copy a text to the clipboard of the terminal, if there is one."""
        sequence = clipboard_sequence(text, self._session.chat.terminal) if self._out.isatty() else ""
        self._out.write(sequence)
        self._out.flush()
        return bool(sequence)

    async def run_editor(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Leave the terminal to a program until it ends; returns its exit code."""
        self._finish_line()
        return await run_on_terminal(command, environment)

    def _print(self, text: str, end: str = "\n") -> None:
        self._quiet = False
        print(text, file=self._out, flush=True, end=end)

    def _print_of(self, owner: str, line: str) -> None:
        self._line(f"({owner} printed: {line})")
