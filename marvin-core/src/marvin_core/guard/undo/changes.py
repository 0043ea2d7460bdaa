"""The files that a call changes, before it and after it."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ...api.errors import ToolError
from ...api.record import Record
from ..files.sandbox import SandboxPaths


class FileState(Record):
    """A changed file: its content before and after, None if the file did not exist."""

    root: str
    """The folder that the path is relative to."""
    path: str
    before: bytes | None
    after: bytes | None
    mode: int = 0
    """Its permissions before the change."""
    lacks: str = ""
    """Why the change cannot be undone, as in `it was too large`; empty if it can."""

    @property
    def verb(self) -> str:
        """The kind of the change."""
        if self.lacks:
            return "changed"  # the earlier content is unknown
        return "created" if self.before is None else "removed" if self.after is None else "changed"


_OPENED = 32
"""The number of opened files that are reported; a call that opens more is searching."""
_FILES = 4
"""The limit for all contents of a call, before and after it, as a multiple of the largest file."""


class _Seen(Record):
    paths: SandboxPaths
    content: bytes | None
    mode: int
    lacks: str


class Changes:
    """Keeps the contents of files before a call changes them. Thread-safe, as tools may run in threads.

    Args:
        largest: the size in bytes above which the content of a file is not kept; for all files of the call together the
            limit is higher.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._left = _FILES * largest
        self._seen: dict[tuple[Path, str], _Seen] = {}
        self._lock = threading.Lock()
        self._opened: dict[tuple[Path, str], None] = {}
        self._over = False
        self._stopped = False

    def stop(self) -> None:
        """Prevent further changes: the call was abandoned, and a thread of it may still be running."""
        self._stopped = True

    def check(self) -> None:
        """Raise `ToolError` if the call was abandoned."""
        if self._stopped:
            raise ToolError("Nothing was written: this call had already been stopped.")

    def wants(self, root: Path, path: str) -> bool:
        """Whether this file is new to the record."""
        return not self._over and (root, path) not in self._seen

    def opened(self, root: Path, path: str) -> None:
        """Record that a file was opened for reading."""
        if len(self._opened) <= _OPENED:
            self._opened[root, path] = None

    def used(self, root: Path) -> list[str]:
        """The files below a folder that the call read or changed; empty for a call that searched through many."""
        found = dict.fromkeys((*tuple(self._opened), *tuple(self._seen)))
        return [path for base, path in found if base == root] if len(found) <= _OPENED else []

    def before(self, paths: SandboxPaths, path: str, stream: BinaryIO | None, lacks: str = "") -> None:
        """Record a file before its change."""
        content, too_large = self._kept(stream)
        lacks = lacks or too_large
        mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode) if stream is not None else 0
        with self._lock:
            self._seen.setdefault((paths.root, path), _Seen(paths=paths, content=content, mode=mode, lacks=lacks))

    @property
    def any(self) -> bool:
        """Whether a change of a file was announced."""
        return bool(self._seen)

    def _kept(self, stream: BinaryIO | None) -> tuple[bytes | None, str]:
        """The content of a file, or why it is not kept."""
        content = stream.read(self._largest + 1) if stream is not None else None
        if content is None:
            return None, ""
        if len(content) > self._largest:
            return None, f"it is larger than {self._largest:,} bytes (limits.undo_file)"
        with self._lock:
            if len(content) > self._left:
                return None, "the call changed too much to be recorded (limits.undo_file)"
            self._left -= len(content)
        return content, ""

    def result(self) -> Sequence[FileState]:
        """The changed files. The call is over; later changes are not recorded."""
        with self._lock:
            self._over = True
            seen = dict(self._seen)
        found = [self._state(root, path, before) for (root, path), before in seen.items()]
        return [state for state in found if state.lacks or state.before != state.after]

    def _state(self, root: Path, path: str, before: _Seen) -> FileState:
        lacks, after = before.lacks, None
        if not lacks:
            try:
                if before.paths.exists(path):
                    with before.paths.open(path) as stream:
                        after, lacks = self._kept(stream)
            except ToolError:
                lacks = "the result could not be read"
        return FileState(root=str(root), path=path, before=before.content, after=after, mode=before.mode, lacks=lacks)


def content_of(paths: SandboxPaths, path: str, most: int) -> bytes | None:
    """The beginning of a file, None if there is none. Raises `ToolError` if it cannot be read."""
    if not paths.exists(path):
        return None
    with paths.open(path) as stream:
        return stream.read(most)
