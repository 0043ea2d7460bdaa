"""Detects code that blocks an event loop, and distinguishes it from a busy machine."""

from __future__ import annotations

import asyncio
import threading
import time

_BEATS = 10


class Pulse:
    """Measures until `stop` how long the event loop was blocked.

    A busy machine delays everything: a thread that only waits measures that delay.

    Args:
        limit: in seconds; shorter delays do not count.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: float) -> None:
        self._loop = loop
        self._limit = limit
        self._every = limit / _BEATS
        self._longest = 0.0
        self._machine = 0.0
        self._computed = 0.0
        self._busy = time.thread_time()
        self._due = time.monotonic() + self._every
        self._handle = loop.call_later(self._every, self._beat)
        self._stopped = threading.Event()
        threading.Thread(target=self._wait, daemon=True).start()

    def _beat(self) -> None:
        self._look()
        self._handle = self._loop.call_later(self._every, self._beat)

    def _look(self) -> None:
        now, busy = time.monotonic(), time.thread_time()
        self._longest = max(self._longest, now - self._due)
        self._computed = max(self._computed, busy - self._busy)  # time between awaits does not block the loop
        self._due, self._busy = now + self._every, busy

    def _wait(self) -> None:
        due = time.monotonic() + self._every
        while not self._stopped.wait(self._every):
            now = time.monotonic()
            self._machine = max(self._machine, now - due)
            due = now + self._every

    def stop(self) -> float:
        """Stop, and return the longest time for which the loop was blocked, in seconds; 0 if it is below the limit."""
        self._handle.cancel()
        self._stopped.set()
        self._look()
        blamed = min(self._longest, max(self._longest - self._machine, self._computed))
        return self._longest if blamed > self._limit else 0.0
