"""The event loop of a sub-command that runs code of packs."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, NoReturn, TypeVar

from ..api.errors import EXIT_INTERRUPTED, MarvinError
from ..util.failures import told
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
    """Run `work` in an event loop of its own. What of a pack holds that loop is named, and the first signal ends it.

    Args:
        close: awaited behind the work, also where that was interrupted. What it raises is told.
        rescue: called where what holds the loop does not end, before the program leaves without it.

    Raises:
        KeyboardInterrupt: where a signal asked to end.
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
        """What the work returns."""
        for number in ending():
            signal.signal(number, self._interrupt)  # asyncio's own is handled by the loop, which may be held
        try:
            result = asyncio.run(self._main())
        except (asyncio.CancelledError, MarvinError) as error:
            if not self._interrupted:
                raise
            if isinstance(error, MarvinError):
                self._tell(str(error))  # what came of the interruption
            raise KeyboardInterrupt from None
        finally:
            end_like_ctrl_c()
        if self._interrupted:
            raise KeyboardInterrupt  # the work took the interruption for an error of its own
        return result

    async def _main(self) -> T:
        loop = asyncio.get_running_loop()
        with self._watchdog.watching(loop):
            self._task = loop.create_task(self._work)
            if self._interrupted:  # before there was a task to cancel
                self._task.cancel()
            try:
                return await self._task
            finally:
                self._task = None  # done, so that there is nothing to cancel
                await self._closed()

    async def _closed(self) -> None:
        """Close what the work used; what fails there is told, and what the work found counts."""
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
        """Leave without waiting for anything, and without leaving anything behind."""
        self._rescue()
        os._exit(EXIT_INTERRUPTED)
