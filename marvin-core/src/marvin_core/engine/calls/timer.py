"""The time-out of one call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from ...api.timeouts import Timeouts
    from ...api.tools import Tool


def limit_of(tool: Tool, values: Mapping[str, Any], timeouts: Timeouts) -> float:
    """The time-out of a call with these arguments, in seconds."""
    declared = tool.timeout
    if callable(declared):
        return declared(values) + timeouts.command_grace
    return declared or timeouts.tool


class CallTimer:
    """Ends the awaited block after a time with TimeoutError. It is paused while a question is open."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._timeout = asyncio.timeout(limit)
        self._left = limit
        self._questions = 0
        self._since = 0.0
        self.stood = 0.0
        """The number of seconds for which it was paused."""

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, traceback)

    @property
    def left(self) -> float:
        """The seconds until the time-out."""
        when = self._timeout.when()
        return self._left if when is None else max(0.0, when - asyncio.get_running_loop().time())

    @property
    def expired(self) -> bool:
        """Whether it timed out."""
        return self._timeout.expired()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Pause the timer while the context lasts; several contexts may overlap."""
        now = asyncio.get_running_loop().time
        if not self._questions:
            self._since = now()
            self._left = (self._timeout.when() or self._since) - self._since
            self._reschedule(None)
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self.stood += now() - self._since
                self._reschedule(now() + self._left)

    def _reschedule(self, when: float | None) -> None:
        with suppress(RuntimeError):  # the call has ended, and a task that it left behind still asks
            self._timeout.reschedule(when)
