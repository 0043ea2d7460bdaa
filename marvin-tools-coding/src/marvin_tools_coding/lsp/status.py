"""The state and the last diagnostics of the language servers of all sessions, for commands outside of these sessions.

Each session writes them to a folder of its own. It holds the folder's lock until it exits or is killed.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from marvin_core import Record, ToolError, in_thread, is_locked

from .documents import Diagnostic

T = TypeVar("T")

_BEGIN = "session-"
_LOCK = "lock"
_NOTE = "servers.json"
_PAUSE = 0.3
"""Seconds between two writes."""
_FORGOTTEN = 3_600.0
"""The age in seconds after which a folder without a state file is removed: its session was killed while making it."""


class ServerStatus(Record):
    """A language server, its `root` folder, and the diagnostics of files below it by path.

    `pid` is 0 if it does not run. `waiting` are files without diagnostics yet.
    """

    name: str
    state: str
    pid: int
    root: str
    waiting: Sequence[str]
    said: Mapping[str, Sequence[Diagnostic]]


class Notes:
    """Writes the state of a session's servers, for `marvin lsp status`.

    Args:
        statuses: returns the current state of the servers.
    """

    def __init__(self, statuses: Callable[[], Sequence[ServerStatus]]) -> None:
        self._statuses = statuses
        self._note: _Note | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_open = False
        self._is_stale = False

    async def open(self, parent: Callable[[], Path]) -> None:
        """Make the folder, once. If that fails, nothing is written, and edits still work."""
        if self._is_open:
            return
        self._is_open = True
        with suppress(OSError, ToolError):
            self._note = await in_thread(lambda: _Note(parent()), to_the_end=True)
            self.change()

    def change(self) -> None:
        """Schedule a write after a change."""
        self._is_stale = True
        if self._note is not None and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._go_on(self._note))

    async def _go_on(self, note: _Note) -> None:
        while self._is_stale:
            await asyncio.sleep(_PAUSE)
            self._is_stale = False
            with suppress(OSError):
                await in_thread(partial(note.write, self._statuses()), to_the_end=True)

    async def close(self) -> None:
        """Remove the state file."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._note is not None:
            await in_thread(self._note.close, to_the_end=True)


def noted(parent: Path) -> Sequence[ServerStatus]:
    """The servers of all running sessions; what killed sessions left is removed. Blocks."""
    return [status for folder in sorted(parent.glob(f"{_BEGIN}*")) for status in _read(folder)]


def still_there(statuses: Sequence[ServerStatus]) -> Sequence[ServerStatus]:
    """The same without files that were removed by something other than the tools. Blocks."""

    def kept(root: str, said: Mapping[str, T]) -> Mapping[str, T]:
        return {path: found for path, found in said.items() if os.path.lexists(os.path.join(root, path))}

    return [
        one.replace(said=kept(one.root, one.said), waiting=[*kept(one.root, dict.fromkeys(one.waiting))])
        for one in statuses
    ]


class _Note:
    """The state file of one session. All methods block."""

    def __init__(self, parent: Path) -> None:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._folder = Path(tempfile.mkdtemp(prefix=_BEGIN, dir=parent))
        self._lock = os.open(self._folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, statuses: Sequence[ServerStatus]) -> None:
        new = self._folder / "new"
        new.write_text(json.dumps([_as_dict(one) for one in statuses]), encoding="utf-8")
        new.replace(self._folder / _NOTE)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._lock)


def _as_dict(status: ServerStatus) -> Mapping[str, Any]:
    said = {
        path: [(one.line, one.severity, one.message, one.server) for one in found]
        for path, found in status.said.items()
    }
    about = {"name": status.name, "state": status.state, "pid": status.pid, "root": status.root}
    return {**about, "waiting": list(status.waiting), "said": said}


def _read(folder: Path) -> Iterator[ServerStatus]:
    if not is_locked(folder / _LOCK):
        _remove_left(folder)
        return
    try:
        given = json.loads((folder / _NOTE).read_bytes())
        found = [_status(one) for one in given]
    except (OSError, ValueError, TypeError, KeyError):  # not there yet, or damaged
        return
    yield from found


def _status(given: Mapping[str, Any]) -> ServerStatus:
    said = {
        str(path): [
            Diagnostic(line=int(line), severity=str(severity), message=str(message), server=str(server))
            for line, severity, message, server in found
        ]
        for path, found in dict(given["said"]).items()
    }
    return ServerStatus(
        name=str(given["name"]),
        state=str(given["state"]),
        pid=int(given["pid"]),
        root=str(given["root"]),
        waiting=[str(path) for path in given["waiting"]],
        said=said,
    )


def _remove_left(folder: Path) -> None:
    """Remove what killed sessions left. A folder that is being made has no state file yet, and stays."""
    with suppress(OSError):
        if (folder / _NOTE).exists() or time.time() - folder.lstat().st_mtime > _FORGOTTEN:
            shutil.rmtree(folder, ignore_errors=True)
