"""Which agents may write at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager


class Writers:
    """The agents of a session that write in its folder.

    An agent that may write anything works alone. Agents limited to certain files work in parallel if no two of them
    share a file.
    """

    def __init__(self) -> None:
        self._at_work: list[frozenset[str] | None] = []
        self._waiting: list[asyncio.Future[None]] = []

    @asynccontextmanager
    async def turn(self, files: Sequence[str] | None) -> AsyncIterator[None]:
        """Wait for a turn, and hold it until the block ends.

        Args:
            files: the files that the agent may write, as normalized paths of one folder; None for any.
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
                if not free.done():  # otherwise the waiting call was cancelled
                    free.set_result(None)


def _clash(one: frozenset[str] | None, other: frozenset[str] | None) -> bool:
    return one is None or other is None or not one.isdisjoint(other)
