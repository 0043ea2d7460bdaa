"""The interface of non-interactive runs: only the model's text goes to standard output."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, NoReturn

from ..api.config import OutputFormat
from ..api.errors import EXIT_INTERRUPTED, BudgetExceeded, MarvinError, NotActed
from ..api.events import (
    AgentEnd,
    Event,
    MessageEnd,
    MessageUpdate,
    ModelCycle,
    Notice,
    ToolExecutionEnd,
    ToolExecutionUpdate,
)
from ..api.session import SessionControl, TurnResult
from ..usage.meter import UsageMeter
from ..util.failures import told
from ..util.garbage import collect_again
from ..util.signals import ending
from ..util.streams import StandardStreams, silence_packs
from ..util.terminal_text import TerminalFilter, disarm
from ..util.watchdog import Watchdog
from .report import cost_line, costs_of, result_line

if TYPE_CHECKING:
    from ..util.shown import ProgressLines

_UNFINISHED = ("broken", "cancelled")


class TextOutput:
    """Writes text as it arrives, without terminal sequences. Trailing newlines are delayed until more text follows."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._clean = TerminalFilter()
        self._held = ""
        self._in_line = False

    def text(self, delta: str) -> None:
        """Write a piece of the model's text."""
        delta = self._clean(delta)
        body = delta.rstrip("\n")
        if not body:
            self._held += delta
            return
        self._write(self._held + body)
        self._held = delta[len(body) :]
        self._in_line = True

    def tools(self, names: list[str]) -> None:
        """Announce a round of tool calls, on a line of its own."""
        named = disarm(", ".join(names)).replace("\n", " ")
        self._write(("\n" if self._in_line else "") + f"  🔧 {named}\n")
        self._clean = TerminalFilter()
        self._held = ""
        self._in_line = False

    def answered(self) -> None:
        """An answer is complete; a following one, for example after a hook's message, begins on a new line."""
        if self._in_line:
            self._held = self._held or "\n"
            self._clean = TerminalFilter()

    def end(self) -> None:
        """End the output with exactly one newline."""
        if self._in_line:
            self._write("\n")
        self._held = ""
        self._in_line = False


class _StalledError(Exception):
    """The run was interrupted while standard output accepted nothing."""


class Headless:
    """Runs one prompt, then reports the result.

    `meter` returns the usage. An answer with a `form` is written as a whole, and alone, after it was validated.
    """

    def __init__(
        self, streams: StandardStreams, output_format: OutputFormat, meter: UsageMeter, *, form: bool = False
    ) -> None:
        self._streams = streams
        self._format = output_format
        self._meter = meter
        self._form = form
        self._text = TextOutput(self._out)
        self._task: asyncio.Task[TurnResult] | None = None
        self._session: SessionControl | None = None
        self._answer = ""
        self._interrupted = False
        self._failed = False
        self._writing = False
        self._watchdog: Watchdog | None = None
        self._closed = False
        self._progress: ProgressLines | None = None
        self._seconds = 0.0
        self._led = False

    def run(
        self, session: SessionControl, prompt: str | None, lead: Callable[[], Awaitable[TurnResult]] | None = None
    ) -> int:
        """Run the prompt, or the leader of the session instead; returns the exit code."""
        self._led = lead is not None
        return asyncio.run(self._run(session, lead or (lambda: session.submit(prompt or ""))))

    async def _run(self, session: SessionControl, work: Callable[[], Awaitable[TurnResult]]) -> int:
        self._session = session
        self._seconds = session.chat.timeouts.progress
        self._loop = asyncio.get_running_loop()
        self._watchdog = Watchdog(session.chat.timeouts, self._tell, self._leave_held)
        with self._watchdog.watching(self._loop):
            return await self._watched(session, work)

    async def _watched(self, session: SessionControl, work: Callable[[], Awaitable[TurnResult]]) -> int:
        session.subscribe(self._listen)
        numbers = ending()
        for number in numbers:
            # Not the loop's own handlers: those never run while a write to a stalled reader blocks the loop.
            signal.signal(number, self._interrupt)
        self._task = asyncio.ensure_future(work())
        try:
            result = await self._task
        except asyncio.CancelledError:
            result = TurnResult(text="", cancelled=True)
        except Exception as error:  # errors outside of a prompt; a prompt has its errors in its result
            result = TurnResult(text="", error=error)
        finally:
            await session.close()
        if self._led:
            self._tell_end(result)
        code = self._report(session, result)
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)  # one that came now would take the last line away
        return code

    def _interrupt(self, *_: object) -> None:
        if self._interrupted:
            self._leave()
        self._interrupted = True
        self._loop.call_soon_threadsafe(self._cancel)
        if self._watchdog is not None:
            self._watchdog.interrupted()
        if self._writing and self._streams.is_stalled():
            raise _StalledError  # else the write ends by itself, and nothing of it is lost

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _leave(self) -> NoReturn:
        """After a second interrupt, leave without waiting, and without leaving processes behind."""
        if self._session is not None:
            self._session.rescue()
        silence_packs()
        self._streams.err(cost_line(self._meter.summary()))
        os._exit(EXIT_INTERRUPTED)

    def _leave_held(self, held: str) -> NoReturn:
        self._tell(f"{held or 'something'} does not stop, so the run ends without waiting for it.")
        self._leave()

    def _tell(self, text: str) -> None:
        self._streams.err(f"marvin: {text}")

    def _listen(self, event: Event) -> None:
        try:
            self._show(event)
        except Exception as error:  # what was written is not the whole of it, so the run must not look like a success
            if not self._failed:
                self._failed = True
                self._tell(f"the event {event.type} cannot be written: {told(error)}. The run was ended.")
                self._cancel()

    def _show(self, event: Event) -> None:
        if isinstance(event, MessageEnd) and not gc.isenabled() and event.origin == "model":
            collect_again()  # pydantic, imported during the answer, is exempt, too
        if isinstance(event, Notice):
            self._streams.err(f"marvin: {event.text}")
        elif isinstance(event, ModelCycle):
            self._streams.err(f"marvin: {event.reason}")
        elif isinstance(event, AgentEnd):
            self._answer = event.text
        if self._format == "stream-json":
            from ..util.event_lines import event_line

            self._out(event_line(event) + "\n")
        elif self._format == "text" and not self._form:
            if isinstance(event, MessageUpdate) and event.kind == "text":
                self._text.text(event.delta)
            elif isinstance(event, MessageEnd):
                self._answered(event)
            elif isinstance(event, (ToolExecutionUpdate, ToolExecutionEnd)):
                self._show_beside(event)

    def _answered(self, event: MessageEnd) -> None:
        if event.stop_reason in _UNFINISHED or event.origin != "model":
            return
        names = [call.name for call in event.message.calls]
        if names:
            self._text.tools(names)
        else:
            self._text.answered()

    def _show_beside(self, event: ToolExecutionUpdate | ToolExecutionEnd) -> None:
        """Write what a tool displays, and its progress, to standard error: standard output holds only the answer."""
        if self._progress is None:
            if isinstance(event, ToolExecutionEnd) and not event.show:
                return  # nothing is imported for the many tools that show nothing
            from ..util.shown import ProgressLines

            self._progress = ProgressLines(self._seconds)
        if isinstance(event, ToolExecutionUpdate):
            told = self._progress.line(event)
            if told:
                self._streams.err(f"marvin: {told}")
            return
        self._progress.ended(event.call_id)
        if event.show:
            from ..util.shown import shown_lines

            lines = shown_lines(event.show)
            self._streams.err("\n".join([f"marvin: {disarm(event.name)} shows:", *(f"  {line}" for line in lines)]))

    def _out(self, text: str) -> None:
        if self._interrupted and not self._closed:
            self._closed = self._streams.is_stalled()
        if self._closed:
            return
        self._writing = True
        try:
            self._streams.out(text)
        except _StalledError:
            self._closed = True
        except OSError as error:
            self._closed = True
            self._streams.err(f"marvin: standard output cannot be written: {error.strerror}. The run was ended.")
            self._cancel()
        finally:
            self._writing = False

    def _tell_end(self, result: TurnResult) -> None:
        """A leader reports its own end: as text, or by the event that ends a prompt."""
        if self._format == "text":
            self._text.text(result.text)
        error = "" if result.error is None else self._streams.clean(_told(result.error))
        self._listen(AgentEnd(stop_reason=_stop_reason(result), text=result.text, error=error))

    def _report(self, session: SessionControl, result: TurnResult) -> int:
        self._text.end()
        ended = self._closed or self._failed
        code = 1 if ended else 0
        if self._interrupted:
            code = EXIT_INTERRUPTED
            self._streams.err("marvin: interrupted")
        elif result.error is not None:
            code = result.error.exit_code if isinstance(result.error, MarvinError) else 1
            self._streams.err(f"marvin: {_told(result.error)}")
        elif result.cancelled and not ended:
            code = 1
            self._streams.err("marvin: the run was cancelled by code in Marvin or a pack, not by a signal. Try again.")
        if self._format == "json":
            summary = {**self._meter.summary(), "providers": costs_of(self._meter.by_provider())}
            self._out(result_line(session.id, self._answer, self._meter.tokens(), summary, code, result.output))
        elif self._format == "text" and result.output is not None:
            self._out(f"{result.output}\n")
        return code


def _stop_reason(result: TurnResult) -> Literal["done", "cancelled", "error", "budget"]:
    if result.cancelled:
        return "cancelled"
    if isinstance(result.error, BudgetExceeded):
        return "budget"
    return "done" if result.error is None else "error"


def _told(error: Exception) -> str:
    """The error, and the equivalent shell command if there is one."""
    if isinstance(error, NotActed) and error.shell:
        return f"{error}\nIn a shell: {error.shell}"
    return str(error) if isinstance(error, MarvinError) else f"internal error: {told(error)}"
