"""Detects leaks of a test: variables, files, processes and descriptors."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..guard.processes.table import system_table
from .environment import environment

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PYTESTS_OWN = frozenset({"PYTEST_CURRENT_TEST"})
# Files that Python, pytest and its plugins write.
_NOT_THE_TESTS = ("/dev/", "/proc/", "__pycache__", ".pyc", ".pytest_cache", ".hypothesis", ".coverage")
_TARGET_OF = {"os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "sqlite3.connect": 0}


class _Watch:
    """Records the files that this process writes outside of some folders.

    There is one per process, since an audit hook cannot be removed.
    """

    def __init__(self) -> None:
        self._folders: tuple[str, ...] = ()
        self._written: dict[str, None] = {}
        self._hooked = False

    def start(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(os.path.realpath(folder) + os.sep for folder in folders)
        self._written.clear()
        if not self._hooked:
            self._hooked = True
            sys.addaudithook(self._heard)

    def stop(self) -> list[str]:
        """Stop, and return the written files that still exist."""
        self._folders = ()
        return [path for path in self._written if os.path.lexists(path)]

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._folders:
            return
        if event == "open":
            path, _, flags = arguments
            # A folder is opened like this for a file without a name, which leaves nothing behind.
            written = isinstance(flags, int) and flags & _WRITING and not (_is_path(path) and os.path.isdir(path))
        else:
            written = event in _TARGET_OF
            path = arguments[_TARGET_OF[event]] if written else None
        if written and _is_path(path):
            self._note(os.path.realpath(os.fsdecode(path)))

    def _note(self, path: str) -> None:
        if not path.startswith(self._folders) and not any(part in path for part in _NOT_THE_TESTS):
            self._written[path] = None


def _is_path(value: object) -> bool:
    return isinstance(value, (str, bytes, os.PathLike))


_watch = _Watch()


class Guard:
    """The state before a test, for comparison with the state after it.

    Args:
        folders: the folders to which the test may write.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._environment = environment()
        self._folder = Path.cwd()
        self._descendants = _descendants()
        self._descriptors = _descriptors()
        _watch.start(folders)

    def leaks(self) -> list[str]:
        """The leaks of the test, one line each."""
        written = _watch.stop()
        gc.collect()  # objects that wait for garbage collection are not leaks
        if not self._found(written):
            return []
        gc.unfreeze()  # nor are those that were exempt from it when a module was imported
        gc.collect()
        gc.freeze()
        return self._found(written)

    def _found(self, written: Sequence[str]) -> list[str]:
        return [
            *self._changed_variables(),
            *([f"current folder: {Path.cwd()}, was {self._folder}"] if Path.cwd() != self._folder else []),
            *(f"file outside of the test's folders: {path}" for path in written),
            *(f"process still alive: {text}" for key, text in _descendants().items() if key not in self._descendants),
            *(
                f"still open: descriptor {number}, {target}"
                for number, target in _descriptors().items()
                if self._descriptors.get(number) != target
            ),
        ]

    def _changed_variables(self) -> list[str]:
        now, before = environment(), self._environment
        return [
            f"variable {name}: {'unset' if name not in now else 'changed' if name in before else 'set'}"
            for name in sorted((now.keys() | before.keys()) - _PYTESTS_OWN)
            if now.get(name) != before.get(name)
        ]


def _descendants() -> dict[tuple[int, int], str]:
    """The running descendants of this process, by process ID and start time."""
    table = system_table()
    found: dict[tuple[int, int], str] = {}
    for entry in table.values():
        above = table.get(entry.parent)
        while above is not None and above.pid != os.getpid():
            above = table.get(above.parent)
        if above is not None and not entry.gone and entry.parent:
            found[entry.pid, entry.started] = f"{entry.pid} ({_command(entry.pid)})"
    return found


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "its command is not known"
    return " ".join(word.decode("utf-8", "replace") for word in words if word)[:120]


def _descriptors() -> dict[int, str]:
    """The open descriptors, with their targets if the system reports them."""
    found: dict[int, str] = {}
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    for name in os.listdir(folder):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue  # the descriptor that the folder was listed with
        try:
            found[int(name)] = os.readlink(f"{folder}/{name}")
        except OSError:
            found[int(name)] = f"inode {status.st_ino}"
    return found
