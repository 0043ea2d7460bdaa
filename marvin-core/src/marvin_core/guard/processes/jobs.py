"""Background jobs: processes that outlived their command, and their output files."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from ...api.errors import ToolError
from ...api.processes import Job
from ..files.no_links import own_folder
from .child import Child

LOG_LIMIT = 10_000_000
"""The size in bytes at which the older half of a log is dropped."""
_LOG = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_CUT_NOTE = b"[the older part of this log was dropped]\n"


class JobLog:
    """A log of bounded size. Its lock is held for the whole session, since a second Marvin in the same folder must not
    reuse a file that is still read here."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size = 0
        self._total = 0
        self._failed = False

    def add(self, chunk: bytes) -> None:
        """Append; a full disk loses log output, but does not stop the job."""
        if self._descriptor < 0 or self._failed:
            return
        try:
            if self._size + len(chunk) > LOG_LIMIT:
                self._drop_older_half()
            written = os.write(self._descriptor, chunk)
            self._size += written
            self._total += written
        except OSError:
            self._failed = True

    def newest(self, most: int, since: int = 0) -> tuple[bytes, int]:
        """The newest bytes and the total size: at most `most` bytes, without the first `since`.

        Raises:
            ToolError: they cannot be read.
        """
        wanted = max(0, min(most, self._total - since, self._size))
        try:
            return os.pread(self._descriptor, wanted, self._size - wanted), self._total
        except OSError as error:
            raise ToolError(f"The log {self.path} cannot be read: {error.strerror}.") from error

    def _drop_older_half(self) -> None:
        kept = os.pread(self._descriptor, LOG_LIMIT // 2, max(0, self._size - LOG_LIMIT // 2))
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._size = os.write(self._descriptor, _CUT_NOTE + kept[kept.find(b"\n") + 1 :])

    def close(self) -> None:
        """Accept no more output; the file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def open_log(root: Path, place: Callable[[], Path], number: int) -> tuple[int, JobLog]:
    """Create the log of the first job number, from this one on, that no other running Marvin uses here.

    Args:
        root: the working directory. If the folder of the logs is inside it, links in the path are not followed.
        place: creates and returns that folder; it may raise `OSError`.

    Raises:
        ToolError: if no file can be created in the folder.
    """
    folder = root
    try:
        folder = place()
        with own_folder(root, folder) as opened:
            while True:
                name = f"job-{number}.log"
                descriptor = os.open(name, _LOG, 0o600, dir_fd=opened)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(descriptor)
                    number += 1
                    continue
                os.ftruncate(descriptor, 0)
                return number, JobLog(folder / name, descriptor)
    except OSError as error:
        raise ToolError(
            f"Nothing runs in the background, because no log can be written in {folder} ({error.strerror}). Free "
            "space there, make it writable, or run the command in the foreground."
        ) from error


class KeptJob:
    """A job and the objects that manage it."""

    def __init__(self, title: str, child: Child, log: JobLog, *, is_whole: bool) -> None:
        """
        Args:
            is_whole: whether the job includes the child itself, and not only processes that the child left running.
        """
        self.id = log.path.stem.rpartition("-")[2]
        self.child = child
        self.log = log
        self._title = title
        self._is_whole = is_whole
        self._over = False

    def look(self) -> Job:
        """The current state of the job."""
        # Its processes end a moment before its exit code is known.
        if not self._over and self.child.exited.is_set() and self.child.family.is_gone():
            self._over = True
            self.child.close()
        return Job(
            id=self.id,
            command=self._title,
            log=self.log.path,
            pid=self.child.family.pid,
            running=not self._over,
            exit_code=self.child.exit_code if self._over and self._is_whole else None,
        )
