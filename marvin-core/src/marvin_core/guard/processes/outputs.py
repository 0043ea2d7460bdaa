"""Additional targets of output: a listener, and a file with the complete output."""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...api.limits import Limits
from ...api.timeouts import Timeouts
from ...util.terminal_text import disarm, folded
from ..files.no_links import own_folder
from .child import Capture, Sink

_REPORTED = 4_000
"""The most bytes of one report."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_PREFIX, _SUFFIX = "output-", ".txt"
_DAY = 86_400


class Reports:
    """Reports output to a listener in whole lines: half a line could contain half a secret, which redaction would miss.

    Args:
        sink: the other target of the output.
        tell: gets the text. Its exceptions are kept for `close`, so that the program continues.
        timeouts: the delay before the first report, and the interval between reports.
    """

    def __init__(self, sink: Sink, tell: Callable[[str], None], timeouts: Timeouts) -> None:
        self._sink = sink
        self._tell = tell
        self._pause = timeouts.output_report
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._begins_whole = True
        self._next = self._loop.time() + timeouts.output_first
        self._timer: asyncio.TimerHandle | None = None
        self._failure: Exception | None = None
        self._closed = False

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._sink.add(chunk)
        if self._closed:
            return
        self._waiting += chunk
        if len(self._waiting) > 2 * _REPORTED:
            del self._waiting[:-_REPORTED]
            self._begins_whole = False
        if self._timer is None and (b"\n" in chunk or b"\r" in chunk):
            self._timer = self._loop.call_later(max(0.0, self._next - self._loop.time()), self._report)

    def _report(self) -> None:
        self._timer = None
        self._next = self._loop.time() + self._pause
        end = max(self._waiting.rfind(b"\n"), self._waiting.rfind(b"\r")) + 1
        lines = bytes(self._waiting[:end]).replace(b"\r\n", b"\n")
        if not self._begins_whole or len(lines) > _REPORTED:
            lines = lines[-_REPORTED:].replace(b"\r", b"\n").partition(b"\n")[2]
        if end:
            del self._waiting[:end]
            self._begins_whole = True
        text = disarm(folded(lines.decode("utf-8", "replace"))).strip("\r\n")
        if not text.strip():
            return
        try:
            self._tell(text)
        except Exception as error:
            self._failure = error
            self._closed = True

    def close(self) -> None:
        """Report the remaining output that is due, as on a busy machine, and nothing after it.

        Raises:
            Exception: the exception of the listener.
        """
        if self._timer is not None:
            self._timer.cancel()
            if self._timer.when() <= self._loop.time():
                self._report()
        self._closed = True
        if self._failure is not None:
            raise self._failure


class KeptOutput:
    """Output in memory, and all of it in a file once it exceeds the memory limit.

    Args:
        capture: the part in memory.
        root: the working directory. If the folder is inside it, links in the path are not followed.
        folder: returns the folder of the file when one is needed; older files of this kind are removed from it.
        limits: the maximum size of one file and of all, and their maximum age.
    """

    def __init__(self, capture: Capture, root: Path, folder: Callable[[], Path], limits: Limits) -> None:
        self._capture = capture
        self._root = root
        self._folder = folder
        self._limits = limits
        self._descriptor = -1
        self._over = False
        self.path: Path | None = None
        self.size = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes; a full disk loses the rest of the file, but does not fail the call."""
        if not self._over and (self._descriptor >= 0 or not self._capture.takes_whole(chunk)):
            try:
                if self._descriptor < 0:
                    self._open()
                    self._write(self._capture.data)
                self._write(chunk)
            except OSError:
                self._over = True
        self._capture.add(chunk)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)[: self._limits.output_file - self.size]
        while rest:
            written = os.write(self._descriptor, rest)
            self.size += written
            rest = rest[written:]
        self._over = self.size >= self._limits.output_file

    def _open(self) -> None:
        folder = self._folder()
        with own_folder(self._root, folder) as opened:
            remove_old(opened, self._limits)
            name = f"{_PREFIX}{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(4).hex()}{_SUFFIX}"
            self._descriptor = os.open(name, _NEW, 0o600, dir_fd=opened)
            self.path = folder / name

    def close(self) -> None:
        """Close the file; it stays."""
        self._over = True
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def remove_old(folder: int, limits: Limits) -> None:
    """Remove kept outputs that are too old, and the oldest ones until there is room for another one.

    Args:
        folder: the descriptor of their folder.
    """
    found = []
    for name in os.listdir(folder):
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            with suppress(OSError):
                known = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISREG(known.st_mode):
                    found.append((known.st_mtime, known.st_size, name))
    oldest = time.time() - limits.output_days * _DAY
    left = limits.output_files - limits.output_file
    for modified, size, name in sorted(found, reverse=True):
        left -= size
        if left < 0 or modified < oldest:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
