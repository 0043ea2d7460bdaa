"""A program on a pseudo-terminal: keys in, what it draws out, and the time of both."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

_ROWS, _COLUMNS = 24, 80
_LIMIT = 60.0
"""Seconds after which something hangs."""
_READ = 64 * 1024
_CTRL_D = b"\x04"


class TerminalError(Exception):
    """The program did not draw what it should."""


class Terminal:
    """A program on a terminal, 24 rows of 80 columns."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._own, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.begun = time.monotonic_ns()
        self._process = subprocess.Popen(
            command, cwd=folder, env=dict(env), stdin=other, stdout=other, stderr=other, start_new_session=True
        )
        os.close(other)
        self.drawn = 0
        """Bytes that the program wrote so far, as far as they were read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        os.close(self._own)

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
        os.write(self._own, keys)
        return begun

    def settle(self, seconds: float) -> None:
        """Read until nothing was drawn for so long."""
        while select.select([self._own], [], [], seconds)[0]:
            self._read(b"")

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
