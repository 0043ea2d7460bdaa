"""Limits the number of agents. All agents of one run share the limit, at any depth of nesting.

A slot is a lock on one byte of a file, so it is released when its process ends, even if the process is killed. An agent
waits while its sub-agent works, so the two need a single slot: the first sub-agent at a time always starts, and no run
waits for itself.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...api.config import Config

VARIABLE = "MARVIN_AGENT_SLOTS"
"""The variable that tells an agent where the slots of its run begin in the file."""
_FILE = "agents.lock"
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LAST = 1 << 50


class AgentSlots:
    """The slots for the agents of one session. All sessions of a user share the file, which stays empty."""

    def __init__(self, config: Config) -> None:
        given = config.agent_slots
        self.first = int(given) if given.isdecimal() and int(given) < _LAST else int.from_bytes(os.urandom(6))
        self._path = config.data_folder / _FILE
        self._shared = config.limits.agents - 1
        self._pause = config.timeouts.agent_slot
        self._has_own = False
        self._held: set[int] = set()
        self._queue = asyncio.Lock()
        self._freed = asyncio.Event()
        self._descriptor = -1

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a slot, in order of request, and hold it."""
        async with self._queue:
            place = await self._taken()
        try:
            yield
        finally:
            self._release(place)

    async def _taken(self) -> int | None:
        """The number of a slot that is now held; None for an agent that needs no lock."""
        while True:
            self._freed.clear()
            if not self._has_own:
                self._has_own = True
                return None
            for number in range(self._shared):
                if number not in self._held and self._is_locked(number):
                    self._held.add(number)
                    return number
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._freed.wait()

    def _release(self, place: int | None) -> None:
        if place is None:
            self._has_own = False
        else:
            self._held.discard(place)
            with suppress(OSError):
                if not self._held and self._descriptor >= 0:
                    descriptor, self._descriptor = self._descriptor, -1
                    os.close(descriptor)
                elif self._descriptor >= 0:
                    fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, self.first + place)
        self._freed.set()

    def _is_locked(self, number: int) -> bool:
        """Try to lock a slot; returns success. Without support for locks, only this session is counted."""
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, _OPEN, 0o600)
        except OSError:
            return True
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self.first + number)
        except OSError as error:
            return error.errno not in (errno.EAGAIN, errno.EACCES)
        return True
