"""Runs the event loop of a sub-command that calls code of packs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, NoReturn, TypeVar

from ..api.errors import EXIT_INTERRUPTED, MarvinError
from ..util.failures import told
from ..util.garbage import collect_again
from ..util.signals import end_like_ctrl_c, ending
from ..util.watchdog import Watchdog
from .run import CommandContext

T = TypeVar("T")


def run_watched(
    run: CommandContext,
    work: Coroutine[Any, Any, T],
    *,
    close: Callable[[], Awaitable[None]] | None = None,
    rescue: Callable[[], None] = lambda: None,
) -> T:
    """Run `work` in a new event loop. A pack that blocks the loop is reported, and the first signal ends the run.

    Args:
        close: awaited after the work, also after an interruption. Its errors are reported.
        rescue: called before the program exits without cleanup, since the loop stays blocked.

    Raises:
        KeyboardInterrupt: a signal ended the run.
    """
    return _Watched(run, work, close, rescue).result()


class _Watched(Generic[T]):
    def __init__(
        self,
        run: CommandContext,
        work: Coroutine[Any, Any, T],
        close: Callable[[], Awaitable[None]] | None,
        rescue: Callable[[], None],
    ) -> None:
        self._run = run
        self._work = work
        self._close = close
        self._rescue = rescue
        self._watchdog = Watchdog(run.timeouts, self._tell, self._leave)
        self._task: asyncio.Task[T] | None = None
        self._interrupted = False

    def result(self) -> T:
        """Run the work, and return its result."""
        for number in ending():
            signal.signal(number, self._interrupt)  # asyncio's own handlers need the loop, which may be blocked
        collect_again()
        try:
            result = asyncio.run(self._main())
        except (asyncio.CancelledError, MarvinError) as error:
            if not self._interrupted:
                raise
            if isinstance(error, MarvinError):
                self._tell(str(error))  # the result of the interruption
            raise KeyboardInterrupt from None
        finally:
            end_like_ctrl_c()
        if self._interrupted:
            raise KeyboardInterrupt  # the work handled the interruption as an error
        return result

    async def _main(self) -> T:
        loop = asyncio.get_running_loop()
        with self._watchdog.watching(loop):
            self._task = loop.create_task(self._work)
            if self._interrupted:  # the signal came before there was a task to cancel
                self._task.cancel()
            try:
                return await self._task
            finally:
                self._task = None  # done, so that there is nothing to cancel
                await self._closed()

    async def _closed(self) -> None:
        """Close the resources of the work. Errors are reported, and do not change the result."""
        try:
            if self._close is not None:
                await self._close()
        except Exception as error:  # of a pack
            self._tell(f"While closing: {told(error)}")

    def _interrupt(self, *_: object) -> None:
        if self._interrupted:
            self._end()
        self._interrupted = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
        self._watchdog.interrupted()

    def _tell(self, text: str) -> None:
        self._run.warn(f"marvin: {text}")

    def _leave(self, held: str) -> NoReturn:
        self._tell(f"{held or 'something'} does not stop, so the command ends without waiting for it.")
        self._end()

    def _end(self) -> NoReturn:
        """Exit at once, after `rescue` has cleaned up."""
        self._rescue()
        os._exit(EXIT_INTERRUPTED)
