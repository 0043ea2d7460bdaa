"""The undo ledger: one file for each call, readable by this user alone.

A file has two lines of JSON: the data for lists, and the data for the undo. Files are written atomically, so a killed
Marvin leaves no partial file, and several Marvins need no lock. Names sort by time. To undo a call, a Marvin first
renames its file, so that no other one undoes it too. A mark remains of it: if commands run meanwhile in another Marvin,
its files were not changed by them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...api.errors import MarvinError
from ...api.limits import Limits
from ...api.record import Record
from ...util.state_files import make_private_folder, replace_file
from ...util.untrusted_json import parse_json
from ..processes.table import start_of
from .changes import FileState
from .inverses import Inverse, packed, unpacked

_ENDING, _RUNNING, _TAKING, _UNDONE = ".json", ".running.json", ".taking-", ".undone"
_DIGITS = 20
"""The length of the time in the name of a file."""
_HEAD = 100_000
"""The maximum size in bytes of the first line of a file."""
_DAY = 86_400
_BLOCK = 4_096
"""The smallest size in bytes that a file takes on most disks."""
_COARSE = 2_000_000_000
"""The greatest step of the times of folders, in nanoseconds."""
_SHARE = 10
"""Old entries are searched again after this share of the size limit was written."""


UNFINISHED: set[Path] = set()
"""The entries of commands of this process that still run, in whichever session."""
NOT_LISTED = "It is no longer listed; the next /undo applies to the call before it."


class NeverTakenBack(MarvinError):
    """A call can never be undone; its text ends with `NOT_LISTED`."""


class LedgerEntry(Record):
    """A call that can be undone."""

    path: Path
    folder: str = ""
    """The folder in which the call was made."""
    time: float
    """The time of the call, in seconds since the epoch."""
    session: str
    """The session of the call; empty if none had begun."""
    process: tuple[int, int]
    """The process that made the call: its id and its start time."""
    tool: str
    what: str
    """A summary of the call in one line, without secrets."""

    @property
    def is_open(self) -> bool:
        """Whether it is unfinished: its process still works on it."""
        is_own = self.process == this_process()
        return not self.what and (self.path in UNFINISHED if is_own else is_live(self.process))

    @property
    def is_of_another(self) -> bool:
        """Whether it was made by another Marvin that is still running."""
        return self.process[0] != os.getpid() and is_live(self.process)


def is_live(process: tuple[int, int]) -> bool:
    """Whether a process is still running, and its id was not reused."""
    return start_of(process[0]) == process[1]


def this_process() -> tuple[int, int]:
    """The id of this process and its start time."""
    return os.getpid(), start_of(os.getpid()) or 0


class UndoLedger:
    """The calls that were made in one folder. All methods block; they may be called in different threads."""

    def __init__(self, base: Path, folder: Path, limits: Limits) -> None:
        self._base = base
        self._limits = limits
        name = sha256(os.fsencode(folder)).hexdigest()[:24]
        self._folder = base / name
        self._root = str(folder)
        self._unswept = limits.undo_bytes
        self._listed: dict[str, tuple[int, list[str]]] = {}
        """When each folder of entries was last changed, and the names in it."""
        self._lock = threading.Lock()

    def record(self, entry: LedgerEntry, inverse: Inverse) -> Path:
        """Store a call. Its path is chosen here, and returned.

        Raises:
            OSError: if it cannot be written.
        """
        head = entry.replace(path=None, folder=self._root).as_dict() | {"version": 1}
        data = b"\n".join(json.dumps(part).encode() for part in (head, packed(inverse))) + b"\n"
        ending = _ENDING if entry.what else _RUNNING
        path = self._folder / f"{self._stamp()}-{os.urandom(4).hex()}{ending}"
        make_private_folder(self._folder)
        replace_file(path, data)
        self._sweep(len(data))
        return path

    def _stamp(self) -> str:
        """The current time as names begin with it, later than all others; some are later if the clock was set back."""
        newest = max((_time_of(name) for _, names in self._names_by_folder() for name in names), default=0)
        return f"{max(time.time_ns(), newest + 1):0{_DIGITS}}"

    def _names_by_folder(self) -> Iterator[tuple[str, list[str]]]:
        """The names of all entries, whichever folder they are about. If one is unchanged, it is not listed again."""
        with suppress(FileNotFoundError), os.scandir(self._base) as folders:
            for folder in folders:
                with suppress(OSError):
                    changed = folder.stat().st_mtime_ns
                    known, names = self._listed.get(folder.path, (0, []))
                    if known != changed:
                        names = os.listdir(folder.path)
                        if time.time_ns() - changed > _COARSE:  # otherwise a later change may have the same time
                            self._listed[folder.path] = changed, names
                    yield folder.path, names

    def entries(self) -> Iterator[LedgerEntry]:
        """The calls that can be undone, newest first."""
        yield from self._entries(self._folder)

    def _entries(self, folder: Path) -> Iterator[LedgerEntry]:
        for name in sorted(self._names(folder), reverse=True):
            entry = _entry(folder / name)
            if entry is not None:
                yield entry

    def files_of(self, session: str) -> Iterator[FileState]:
        """The files that calls of a session wrote or removed, as far as they are kept; without those of commands."""
        for _, inverse in self.inverses_of(session):
            yield from inverse.files

    def inverses_of(self, session: str) -> Iterator[tuple[LedgerEntry, Inverse]]:
        """The calls of a session, newest first, and how each would be undone, as far as that can be read."""
        for entry in self.entries():
            if entry.session == session:
                with suppress(OSError, ValueError, IndexError):
                    yield entry, inverse_in(entry.path)

    def is_shared_since(self, own: Path, made: Set[Path]) -> bool:
        """Whether another session worked or undid calls in the folder since an entry was made, or is working there now.

        The folder is shared with those of folders in it, and around it.

        Args:
            made: further entries of this session.
        """
        since, passed = _time_of(own.name), {own.name, *(path.name for path in made)}
        for folder, names in self._names_by_folder():
            for name in names:
                is_later = _time_of(name) > since or _is_claimed(name)
                if name in passed or not (is_later or name.endswith(_RUNNING)):
                    continue
                entry = _entry(Path(folder, name))
                if entry is not None and not self._is_near(Path(entry.folder)):
                    break
                if entry is not None and (is_later or entry.is_open):
                    return True
        return False

    def _is_near(self, other: Path) -> bool:
        """Whether a folder is within this one, or around it."""
        this = Path(self._root)
        return other.is_relative_to(this) or this.is_relative_to(other)

    def _names(self, folder: Path) -> list[str]:
        """The files of calls; a file that a Marvin had claimed when it ended is available again."""
        try:
            found = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = []
        for name in found:
            base, taking, _ = name.partition(_TAKING)
            if not taking:
                names.append(name)
            elif not _is_claimed(name):
                with suppress(OSError):
                    os.rename(folder / name, folder / base)
                    names.append(base)
        return [name for name in names if name.endswith(_ENDING)]

    def claim(self, entry: LedgerEntry) -> Claim | None:
        """Claim a call; None if another Marvin claimed it first."""
        pid, started = this_process()
        claimed = entry.path.with_name(f"{entry.path.name}{_TAKING}{pid}-{started}")
        try:
            entry.path.rename(claimed)
        except FileNotFoundError:
            return None
        return Claim(claimed, entry.path, self._stamp)

    def _sweep(self, written: int) -> None:
        """Remove entries above the limits of age and size, now and then."""
        with self._lock:
            self._unswept += written
            if self._unswept * _SHARE < self._limits.undo_bytes:
                return
            self._unswept = 0
        sweep(self._base, self._limits, time.time())


class Claim:
    """A call that this process has claimed to undo; `stamp` returns the beginning of a name."""

    def __init__(self, path: Path, name: Path, stamp: Callable[[], str]) -> None:
        self._path = path
        self._name = name
        self._stamp = stamp

    def inverse(self) -> Inverse:
        """How it is undone.

        Raises:
            ValueError, OSError: if that cannot be read.
        """
        return inverse_in(self._path)

    def complete(self, inverse: Inverse) -> None:
        """Store another way to undo it, which is known only now. Raises OSError."""
        head = self._path.read_bytes().split(b"\n")[0]
        replace_file(self._path, b"\n".join((head, json.dumps(packed(inverse)).encode())) + b"\n")

    def give_back(self) -> None:
        """Release the claim: the call was not undone."""
        with suppress(OSError):
            self._path.rename(self._name)

    def done(self) -> None:
        """Remove the entry but for a mark: the call was undone."""
        with suppress(OSError):
            mark = self._path.with_name(f"{self._stamp()}-{os.urandom(4).hex()}{_UNDONE}")
            self._path.rename(mark)
            with mark.open("r+b") as stream:
                stream.truncate(len(stream.readline(_HEAD)))


_LARGEST = 2**40


def inverse_in(path: Path) -> Inverse:
    """How the call in a file is undone. Raises ValueError or OSError if that cannot be read."""
    _, _, data = path.read_bytes().partition(b"\n")
    return unpacked(parse_json(data, largest=_LARGEST))


def sweep(base: Path, limits: Limits, now: float) -> None:
    """Remove entries that are too old, and the oldest ones while the total is too large."""
    found = []
    with suppress(OSError):
        for folder in base.iterdir():
            with suppress(OSError):
                folder.rmdir()  # an empty one
            with suppress(OSError), os.scandir(folder) as entries:
                found += [(entry.name, entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
    total = 0
    for name, path, status in sorted(found, reverse=True):
        total += max(status.st_size, _BLOCK)
        # Any other name belongs to an entry that is being written, or whose writer was killed.
        made = _time_of(name) / 1e9 or status.st_mtime
        if total > limits.undo_bytes or made < now - limits.undo_days * _DAY:
            with suppress(OSError):
                os.unlink(path)


def _time_of(name: str) -> int:
    """The time in the name of a file, in nanoseconds since the epoch; 0 if there is none."""
    return int(name[:_DIGITS]) if name[:_DIGITS].isdecimal() else 0


def _is_claimed(name: str) -> bool:
    """Whether a file is of a call that is being undone."""
    _, taking, by = name.partition(_TAKING)
    return bool(taking) and is_live(_process(by))


def _process(text: str) -> tuple[int, int]:
    pid, _, started = text.partition("-")
    return (int(pid), int(started)) if pid.isdecimal() and started.isdecimal() else (0, 0)


def _entry(path: Path) -> LedgerEntry | None:
    """The data in a file's first line; None for a file of other origin, or one that was removed meanwhile."""
    try:
        with path.open("rb") as stream:
            head: Any = parse_json(stream.readline(_HEAD))
        pid, started = head["process"]
        texts = {name: str(head[name]) for name in ("session", "tool", "what")} | {
            "folder": str(head.get("folder", ""))
        }
        return LedgerEntry(path=path, time=float(head["time"]), process=(int(pid), int(started)), **texts)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return None
