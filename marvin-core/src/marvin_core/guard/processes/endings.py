"""Ends children with all their descendants: gently first, then by force."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...api.timeouts import Timeouts
    from .child import Child


class Endings:
    """Ends the children of one runner."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self.running: dict[Child, asyncio.Task[None]] = {}
        """The endings that continue, even if nobody waits for them any more."""

    async def end(self, child: Child) -> None:
        """Make sure that no process of a call is alive. Costs next to nothing if there is none."""
        if child.is_gone():
            child.close()
            return
        if child not in self.running:  # another ending would not leave it the time to clean up
            self.running[child] = asyncio.ensure_future(self._kill(child))
            self.running[child].add_done_callback(lambda _: self.running.pop(child))
        # A second cancellation ends the wait; the killing continues.
        await asyncio.shield(self.running[child])

    async def _kill(self, child: Child) -> None:
        family, timeouts = child.family, self._timeouts
        try:
            if child.let_go():
                await self.until(lambda: child.exited.is_set() and family.is_gone(), child.grace)
            family.ask_to_end()
            with suppress(TimeoutError):  # most programs end at once, before the next check
                await asyncio.wait_for(child.exited.wait(), timeouts.kill_poll)
            await self.until(child.is_gone, timeouts.terminate)
        finally:
            if not child.is_gone():
                family.kill()
            child.close()
        await self.until(lambda: child.is_gone() or child.is_killed(), timeouts.kill_limit)

    async def until(self, reached: Callable[[], bool], limit: float) -> None:
        """Wait until a condition holds, or for this many seconds."""
        deadline = time.monotonic() + limit
        while True:
            if reached() or time.monotonic() > deadline:
                return
            await asyncio.sleep(self._timeouts.kill_poll)
