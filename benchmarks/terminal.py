"""A program on a pseudo-terminal: keys in, what it draws out, and the time of both."""

from __future__ import annotations

import fcntl
import os
import pty
import queue
import select
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

_ROWS, _COLUMNS = 24, 80
_LIMIT = 60.0
"""Seconds after which something hangs."""
_READ = 64 * 1024
_CTRL_D = b"\x04"


class TerminalError(Exception):
    """The program did not draw what it should."""


class Line:
    """A line with a delay between two descriptors, as a network has it; all that comes in goes out so much later."""

    def __init__(self, seconds: float, source: int, target: int) -> None:
        self._seconds = seconds
        self._source, self._target = source, target
        self._under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        for work in (self._take, self._give):
            threading.Thread(target=work, daemon=True).start()

    def _take(self) -> None:
        data = b"begin"
        while data:
            try:
                data = os.read(self._source, _READ)
            except OSError:  # how Linux says that the other side is closed
                data = b""
            self._under_way.put((time.monotonic() + self._seconds, data))
        os.close(self._source)

    def _give(self) -> None:
        with suppress(OSError):  # nobody reads any more
            while True:
                due, data = self._under_way.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    break
                os.write(self._target, data)
        os.close(self._target)


class Terminal:
    """A program on a terminal, 24 rows of 80 columns.

    Args:
        delay: seconds of delay in each direction.
    """

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str], delay: float = 0.0) -> None:
        self._own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.begun = time.monotonic_ns()
        self._process = subprocess.Popen(
            command, cwd=folder, env=dict(env), stdin=other, stdout=other, stderr=other, start_new_session=True
        )
        os.close(other)
        self._keys = self._own
        if delay:
            master = self._own
            self._own, drawn = os.pipe()
            keys, self._keys = os.pipe()
            Line(delay, master, drawn)
            Line(delay, keys, os.dup(master))
        self.drawn = 0
        """Bytes that the program wrote so far, as far as they were read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        os.close(self._own)
        if self._keys != self._own:
            os.close(self._keys)

    @property
    def resident(self) -> int:
        """The memory that the program holds, in bytes."""
        shown = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self._process.pid)], capture_output=True, text=True, check=True
        )
        return int(shown.stdout) * 1024

    def until(self, *expected: bytes) -> int:
        """Read until these were drawn, one after the other; returns the moment, in nanoseconds.

        Raises:
            TerminalError: they were not.
        """
        drawn = b""
        while not _in_order(drawn, expected):
            drawn += self._read(drawn)
        return time.monotonic_ns()

    def type(self, keys: bytes) -> int:
        """Press keys; returns the moment before."""
        begun = time.monotonic_ns()
        os.write(self._keys, keys)
        return begun

    def settle(self, seconds: float) -> None:
        """Read until nothing was drawn for so long."""
        while select.select([self._own], [], [], seconds)[0]:
            self._read(b"")

    def read_for(self, seconds: float) -> None:
        """Read what is drawn for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._own], [], [], left)[0]:
                self._read(b"")

    def last_drawn(self, still: float) -> int:
        """Read until nothing was drawn for so many seconds; returns the moment of what was drawn last."""
        last = time.monotonic_ns()
        while select.select([self._own], [], [], still)[0]:
            self._read(b"")
            last = time.monotonic_ns()
        return last

    def leave(self) -> float:
        """Ctrl+D; returns the processor time of the program, in seconds.

        Raises:
            TerminalError: it did not leave, or not in peace.
        """
        self.type(_CTRL_D)
        drawn = b""
        try:
            while piece := self._read(drawn):
                drawn += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        _, status, used = os.wait4(self._process.pid, 0)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        if self._process.returncode:
            raise TerminalError(f"it ended with {self._process.returncode}: {drawn[-2000:]!r}")
        return used.ru_utime + used.ru_stime

    def _read(self, drawn: bytes) -> bytes:
        if not select.select([self._own], [], [], _LIMIT)[0]:
            raise TerminalError(f"nothing more came after {drawn[-2000:]!r}")
        piece = os.read(self._own, _READ)
        self.drawn += len(piece)
        return piece


def _in_order(drawn: bytes, expected: Sequence[bytes]) -> bool:
    place = 0
    for each in expected:
        place = drawn.find(each, place)
        if place < 0:
            return False
        place += len(each)
    return True
