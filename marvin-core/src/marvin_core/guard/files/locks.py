"""Locks for the folders of a project, so that two Marvins that write in one wait for each other.

The folder itself is locked, so that Marvins with different home folders, or of different users, share the lock. It is
held while files are checked again and replaced, never across calls.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from ...api.errors import ToolError
from ...api.timeouts import Timeouts
from ...util.state_files import LockTimeout, acquire

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class ProjectLocks:
    """The locks of one Marvin."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._limit = timeouts.project_lock
        self._poll = timeouts.lock_poll

    @contextmanager
    def held(self, folders: Iterable[int]) -> Iterator[None]:
        """Hold the locks of several folders, given by their descriptors.

        A folder without a lock, as on some network file systems, is passed over: files are exchanged safely without it.

        Raises:
            ToolError: another program holds one for too long.
        """
        found = {(status.st_dev, status.st_ino): folder for folder in folders for status in [os.fstat(folder)]}
        with ExitStack() as stack:
            # A fixed order prevents a deadlock between two Marvins that write in the same folders.
            for key in sorted(found):
                try:
                    descriptor = os.open(".", _OPEN, dir_fd=found[key])
                    stack.callback(os.close, descriptor)
                    acquire(descriptor, self._limit, self._poll, "the folder")
                except LockTimeout:
                    raise ToolError(
                        f"Another Marvin process has been writing in the folder for longer than {self._limit:g} s; "
                        "nothing was changed. Read the file again, then try again."
                    ) from None
                except OSError:
                    continue
            yield
