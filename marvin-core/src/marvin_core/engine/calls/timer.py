"""The time-out of one call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self


class CallTimer:
    """Ends what is awaited inside of it after a time, with TimeoutError. It stands still while a question is open."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._timeout = asyncio.timeout(limit)
        self._left = limit
        self._questions = 0
        self._since = 0.0
        self.stood = 0.0
        """For how many seconds it stood still."""

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, traceback)

    @property
    def left(self) -> float:
        """Seconds until the time is up."""
        when = self._timeout.when()
        return self._left if when is None else max(0.0, when - asyncio.get_running_loop().time())

    @property
    def expired(self) -> bool:
        """Whether the time was up."""
        return self._timeout.expired()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Have no time pass meanwhile; several at once may ask for it."""
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
        with suppress(RuntimeError):  # the call is over, and something that it left behind still asks
            self._timeout.reschedule(when)
