"""Background jobs: what a command left running, and the file that its output goes to."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from ...api.errors import ToolError
from ...api.tool_context import Job
from ...util.state_files import make_private_folder
from .child import Child

LOG_LIMIT = 10_000_000
"""The size in bytes at which a log loses its older half."""
_CUT_NOTE = b"[the older part of this log was dropped]\n"


class JobLog:
    """A log of bounded size. Its lock is held as long as the session lives, since a second Marvin in the
    same folder must not take a file that is still being read here."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size = 0

    def add(self, chunk: bytes) -> None:
        """Append; a full disk costs the log, not the job."""
        if self._descriptor < 0:
            return
        try:
            if self._size + len(chunk) > LOG_LIMIT:
                self._drop_older_half()
            self._size += os.write(self._descriptor, chunk)
        except OSError:
            self.close()

    def _drop_older_half(self) -> None:
        kept = os.pread(self._descriptor, LOG_LIMIT // 2, max(0, self._size - LOG_LIMIT // 2))
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._size = os.write(self._descriptor, _CUT_NOTE + kept[kept.find(b"\n") + 1 :])

    def close(self) -> None:
        """No more output; the file stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def open_log(folder: Path, number: int) -> tuple[int, JobLog]:
    """Make the log of the first job number, from this one on, that no other running Marvin uses here.

    Raises:
        ToolError: where the folder does not take files.
    """
    try:
        make_private_folder(folder)
        while True:
            path = folder / f"job-{number}.log"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                number += 1
                continue
            os.ftruncate(descriptor, 0)
            return number, JobLog(path, descriptor)
    except OSError as error:
        raise ToolError(
            f"The command left processes running, but no log can be written in {folder} ({error.strerror}), "
            "so they were ended. Make that folder writable, or run the command in the foreground."
        ) from error


class KeptJob:
    """A job and what is needed to look after it."""

    def __init__(self, job_id: str, command: str, child: Child, log: JobLog) -> None:
        self.id = job_id
        self.child = child
        self.log = log
        self._command = command
        self._over = False

    def look(self) -> Job:
        """The job as of now."""
        if not self._over and self.child.family.is_gone():
            self._over = True
            self.child.close()
        return Job(
            id=self.id,
            command=self._command,
            log=self.log.path,
            pid=self.child.family.pid,
            running=not self._over,
        )
