"""Tries against others who work in the same repository: a short pause after each, and a time limit for all."""

from __future__ import annotations

import asyncio
import random
import time

_PAUSE = (0.01, 0.1)
"""The shortest and the longest pause in seconds; two pipelines must not lose to each other in step."""


class Tries:
    """The tries of one action, from the first lost one on.

    Args:
        limit: the seconds for all of them.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._end: float | None = None

    async def again(self) -> bool:
        """Pause after a lost try; returns whether there is time for another one. There are at least two."""
        if self._end is None:
            self._end = time.monotonic() + self._limit
        elif time.monotonic() >= self._end:
            return False
        await asyncio.sleep(random.uniform(*_PAUSE))
        return True
