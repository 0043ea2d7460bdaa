"""Which agents may write at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager


class Writers:
    """The agents of a session that write in its folder.

    One that may write anything works alone. Those that are held to files work side by side, where no two of them have
    a file in common.
    """

    def __init__(self) -> None:
        self._at_work: list[frozenset[str] | None] = []
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def turn(self, files: Sequence[str] | None) -> AsyncIterator[None]:
        """Wait for a turn, and have it until the block ends.

        Args:
            files: what the agent may write, as normal paths of one folder; None for anything.
        """
        wanted = None if files is None else frozenset(files)
        while any(_clash(wanted, other) for other in self._at_work):
            free = asyncio.get_running_loop().create_future()
            self._waiting.append(free)
            await free
        self._at_work.append(wanted)
        try:
            yield
        finally:
            self._at_work.remove(wanted)
            waiting, self._waiting = self._waiting, []
            for free in waiting:
                if not free.done():  # else whoever waited was cancelled
                    free.set_result(None)


def _clash(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    return one is None or other is None or not one.isdisjoint(other)
