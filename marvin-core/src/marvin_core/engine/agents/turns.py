"""Serialises changes of a repository for agents, in this session and across all running Marvins."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .git import GitFailure

if TYPE_CHECKING:
    from ...api.timeouts import Timeouts

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Turns:
    """The turns of one session. The lock is on git's own folder, so no file is left there."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._here = asyncio.Lock()

    @asynccontextmanager
    async def one(self, common: Path) -> AsyncIterator[None]:
        """Wait for a turn in the repository of this folder, and hold it.

        Raises:
            GitFailure: another Marvin does not finish its turn in time.
        """
        async with self._here:
            try:
                descriptor = os.open(common, _FOLDER)
            except OSError:  # git will report the problem
                yield
                return
            try:
                await self._lock(descriptor, common)
                yield
            finally:
                os.close(descriptor)

    async def _lock(self, descriptor: int, common: Path) -> None:
        end = time.monotonic() + self._timeouts.agent_git
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise GitFailure(
                        f"Another Marvin process has been working in {common} for {self._timeouts.agent_git:g} s "
                        "(timeouts.agent_git). Try again when it has ended."
                    ) from None
                await asyncio.sleep(self._timeouts.lock_poll)
            except OSError:  # a file system without locks on folders
                return None
