"""Locks for files of a project, so that two Marvins that write one file lose no changes.

The locks are in Marvin's state folder, named by the device and the inode of the file. A lock is held while a file is
checked again and replaced, never across calls. The holder removes the lock: each replacement creates a new inode, so
locks would pile up. The folder of the file is locked, too, where that is possible: a Marvin with another home folder
does not share the state folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ...api.errors import ToolError
from ...api.timeouts import Timeouts
from ...util.state_files import LockTimeout, acquire, make_private_folder

_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class ProjectLocks:
    """The locks of one Marvin.

    Args:
        folder: where the locks are.
    """

    def __init__(self, folder: Path, timeouts: Timeouts) -> None:
        self._folder = folder
        self._limit = timeouts.project_lock
        self._poll = timeouts.lock_poll

    @contextmanager
    def held(self, files: Iterable[os.stat_result], folders: Iterable[int]) -> Iterator[None]:
        """Hold the locks of several files, and of their folders, given by descriptors.

        Raises:
            ToolError: another Marvin holds one for too long, or the folder cannot be written.
        """
        # A fixed order prevents a deadlock between two Marvins that lock the same files or folders.
        names = sorted({f"{file.st_dev:x}-{file.st_ino:x}.lock" for file in files})
        shared = {(status.st_dev, status.st_ino): folder for folder in folders for status in [os.fstat(folder)]}
        deadline = time.monotonic() + self._limit
        with ExitStack() as stack:
            try:
                for name in names:
                    stack.enter_context(self._one(self._folder / name))
            except LockTimeout:
                raise ToolError(
                    f"Another Marvin process has been writing the file for longer than {self._limit:g} s; nothing "
                    "was changed. Read the file again, then try again."
                ) from None
            except OSError as error:
                raise ToolError(
                    f"The lock of the file cannot be made in {self._folder}: {error.strerror}; nothing was changed. "
                    "Ask the user to make that folder writable."
                ) from error
            for key in sorted(shared):
                stack.enter_context(self._folder_locked(shared[key], max(0.0, deadline - time.monotonic())))
            yield

    @contextmanager
    def _folder_locked(self, folder: int, limit: float) -> Iterator[None]:
        """Lock a folder, unless its file system has no locks or another program keeps it locked.

        Marvins with the same home folder share the other locks. For the rest the exchange of files remains, with which
        an edit may be lost only if several exchange the same file at once.
        """
        with ExitStack() as stack:
            with suppress(OSError, LockTimeout):
                descriptor = os.open(".", _FOLDER, dir_fd=folder)
                stack.callback(os.close, descriptor)
                acquire(descriptor, limit, self._poll, "the folder")
            yield

    @contextmanager
    def _one(self, path: Path) -> Iterator[None]:
        make_private_folder(path.parent)
        while True:
            descriptor = os.open(path, _OPEN, 0o600)
            try:
                acquire(descriptor, self._limit, self._poll, path.name)
                if _is_there(path, descriptor):
                    break
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # the previous holder has removed it meanwhile
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(path)
            os.close(descriptor)


def _is_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
