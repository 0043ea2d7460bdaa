"""Writes the file of a cassette: line by line, readable by its owner only, with a maximum size."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..api.errors import UsageError
from ..util.json_lines import record_line
from ..version import __version__

VERSION = 1
LARGEST = 64 * 1024 * 1024
"""The maximum size of a cassette in bytes; the recording ends there, with a note."""
LONGEST = 16 * 1024 * 1024
"""The maximum size of a line in bytes."""
_HEAD = b'{"type":"cassette"'
_ADD = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class CassetteFile:
    """Appends records to a cassette. Several processes may append: each line is written in one operation.

    A full disk ends the recording only; `warn` is called.

    Raises:
        UsageError: the file exists and is not the cassette of this run, or cannot be created.
    """

    def __init__(self, path: Path, warn: Callable[[str], None], *, joins: bool) -> None:
        self._path = path
        self._warn = warn
        self._descriptor: int | None = self._opened(joins)

    def _opened(self, joins: bool) -> int:
        try:
            if joins and self._path.exists():
                return self._joined()
            descriptor = os.open(self._path, _ADD | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise UsageError(
                f"--record: {self._path} already exists. Name another file, or remove that one first."
            ) from None
        except OSError as error:
            raise UsageError(f"--record: {self._path} cannot be written: {error.strerror}.") from None
        return self._begun(descriptor)

    def _begun(self, descriptor: int) -> int:
        """The new file with its header; it is removed again if the disk is full."""
        head, why = record_line({"type": "cassette", "version": VERSION, "marvin": __version__}), "the disk is full"
        try:
            if os.write(descriptor, head) == len(head):
                return descriptor
        except OSError as error:
            why = error.strerror or why
        os.close(descriptor)
        self._path.unlink(missing_ok=True)
        raise UsageError(f"--record: {self._path} cannot be written: {why}.")

    def _joined(self) -> int:
        """The cassette of the run that started this agent."""
        descriptor = os.open(self._path, _ADD | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and os.pread(descriptor, len(_HEAD), 0) == _HEAD:
            return descriptor
        os.close(descriptor)
        raise UsageError(f"--record: {self._path} is not a cassette, so nothing is added to it.")

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a record."""
        if self._descriptor is None:
            return
        line = record_line(record)
        if len(line) > LONGEST:
            line = record_line({"type": "left_out", "c": record.get("c"), "of": record["type"], "bytes": len(line)})
        try:
            if os.fstat(self._descriptor).st_size + len(line) > LARGEST:
                os.write(self._descriptor, record_line({"type": "full", "c": record.get("c")}))
                self._end(f"The cassette {self._path} is full at {LARGEST:,} bytes. The session goes on unrecorded.")
            elif os.write(self._descriptor, line) != len(line):
                self._end(f"The cassette {self._path} is cut: the disk is full. The session goes on unrecorded.")
        except OSError as error:
            self._end(f"The cassette {self._path} is cut: {error.strerror}. The session goes on unrecorded.")

    def _end(self, why: str) -> None:
        self.close()
        self._warn(why)

    def close(self) -> None:
        """Stop writing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
