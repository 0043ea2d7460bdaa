"""The undo ledger: one file for each call, readable by this user alone.

A file has two lines of JSON: the data for lists, and the data for the undo. Files are written atomically, so a killed
Marvin leaves no partial file, and several Marvins need no lock. Names sort by time. To undo a call, a Marvin first
renames its file, so that no other one undoes it too.
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...api.errors import MarvinError
from ...api.limits import Limits
from ...api.messages import Call
from ...api.record import Record
from ...util.state_files import make_private_folder, replace_file
from ...util.untrusted_json import parse_json
from ..processes.table import start_of
from .changes import FileState

_ENDING, _TAKING = ".json", ".taking-"
_DIGITS = 20
"""The length of the time in the name of a file."""
_HEAD = 100_000
"""The maximum size in bytes of the first line of a file."""
_DAY = 86_400
_BLOCK = 4_096
"""The smallest size in bytes that a file takes on most disks."""
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


class Span(Record):
    """The changes of commands: the trees of the snapshots before the first and after the last of them."""

    root: str
    before: str
    after: str = ""
    """Empty until they have finished."""
    is_shared: bool = False
    """Whether another Marvin worked in the folder at the same time. Then some of the changes may come from there."""
    others: Sequence[str] = ()
    """Files that were changed while none of the commands ran."""
    moved: Sequence[str] = ()
    """Files in whose place another one was moved, from a place that no snapshot shows."""
    modes: Mapping[str, int] = MappingProxyType({})
    """The earlier permissions of files that they changed or removed, and of their folders, if those were unusual. Until
    they have finished: of all files and folders."""
    modes_after: Mapping[str, int] | None = None
    """The unusual permissions of the files that they changed, when they had finished; None if they are unknown."""
    chmods: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """The files of which they changed only the permissions, with those before and after."""
    since: int = 0
    """When the snapshot before was begun, in nanoseconds since the epoch; 0 if that is unknown."""
    top: str = ""
    """The folder to which the paths in the trees are relative; empty if that is unknown."""


class Inverse(Record):
    """How a call is undone: by another call, by the earlier files, or by snapshots of a folder."""

    call: Call | None = None
    files: Sequence[FileState] = ()
    span: Span | None = None


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
        self._last: dict[str, tuple[int, str]] = {}
        """When each folder was last changed, and the newest time in it."""
        self._lock = threading.Lock()

    def record(self, entry: LedgerEntry, inverse: Inverse) -> Path:
        """Store a call. Its path is chosen here, and returned.

        Raises:
            OSError: if it cannot be written.
        """
        head = entry.replace(path=None, folder=self._root).as_dict() | {"version": 1}
        data = b"\n".join(json.dumps(part).encode() for part in (head, _packed(inverse))) + b"\n"
        stamp = max(time.time_ns(), self._newest() + 1)  # some are later than now if the clock was set back
        path = self._folder / f"{stamp:0{_DIGITS}}-{os.urandom(4).hex()}{_ENDING}"
        make_private_folder(self._folder)
        replace_file(path, data)
        self._sweep(len(data))
        return path

    def _newest(self) -> int:
        """The greatest time in the names of all entries, whichever folder they are about."""
        with suppress(FileNotFoundError), os.scandir(self._base) as folders:
            for folder in folders:
                with suppress(OSError):
                    changed = folder.stat().st_mtime_ns
                    if self._last.get(folder.path, (0, ""))[0] != changed:
                        times = [name[:_DIGITS] for name in os.listdir(folder.path)]
                        self._last[folder.path] = changed, max(filter(str.isdecimal, times), default="0")
        return max((int(newest) for _, newest in [*self._last.values()]), default=0)

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
                    yield entry, Claim(entry.path, entry.path).inverse()

    def is_shared_since(self, own: Path, made: Set[Path]) -> bool:
        """Whether another session worked in the folder after an entry was made, or is working there now.

        The folder is shared with those of folders in it, and around it.

        Args:
            made: further entries of this session.
        """
        this = Path(self._root)
        for ledger in self._base.iterdir():
            for entry in self._entries(ledger):
                other = Path(entry.folder)
                if not (other.is_relative_to(this) or this.is_relative_to(other)):
                    break
                is_later = entry.path.name > own.name or entry.is_open
                if is_later and entry.path != own and entry.path not in made:
                    return True
        return False

    def _names(self, folder: Path) -> list[str]:
        """The files of calls; a file that a Marvin had claimed when it ended is available again."""
        try:
            found = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        names = []
        for name in found:
            base, taking, by = name.partition(_TAKING)
            if not taking:
                names.append(name)
            elif not is_live(_process(by)):
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
        return Claim(claimed, entry.path)

    def _sweep(self, written: int) -> None:
        """Remove entries above the limits of age and size, now and then."""
        with self._lock:
            self._unswept += written
            if self._unswept * _SHARE < self._limits.undo_bytes:
                return
            self._unswept = 0
        sweep(self._base, self._limits, time.time())


class Claim:
    """A call that this process has claimed to undo."""

    def __init__(self, path: Path, name: Path) -> None:
        self._path = path
        self._name = name

    def inverse(self) -> Inverse:
        """How it is undone.

        Raises:
            ValueError, OSError: if that cannot be read.
        """
        _, _, data = self._path.read_bytes().partition(b"\n")
        return _unpacked(parse_json(data, largest=_LARGEST))

    def complete(self, inverse: Inverse) -> None:
        """Store another way to undo it, which is known only now. Raises OSError."""
        head = self._path.read_bytes().split(b"\n")[0]
        replace_file(self._path, b"\n".join((head, json.dumps(_packed(inverse)).encode())) + b"\n")

    def give_back(self) -> None:
        """Release the claim: the call was not undone."""
        with suppress(OSError):
            self._path.rename(self._name)

    def done(self) -> None:
        """Remove the entry: the call was undone."""
        with suppress(OSError):
            self._path.unlink()


_LARGEST = 2**40


def sweep(base: Path, limits: Limits, now: float) -> None:
    """Remove entries that are too old, and the oldest ones while the total is too large."""
    found = []
    with suppress(OSError):
        for folder in base.iterdir():
            with suppress(OSError), os.scandir(folder) as entries:
                found += [(entry.name, entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
    total = 0
    for name, path, status in sorted(found, reverse=True):
        total += max(status.st_size, _BLOCK)
        # Any other name belongs to an entry that is being written, or whose writer was killed.
        made = int(name[:_DIGITS]) / 1e9 if name[:_DIGITS].isdecimal() else status.st_mtime
        if total > limits.undo_bytes or made < now - limits.undo_days * _DAY:
            with suppress(OSError):
                os.unlink(path)


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


def _packed(inverse: Inverse) -> dict[str, Any]:
    if inverse.call is not None:
        return {"call": inverse.call.as_dict()}
    if inverse.span is not None:
        span = inverse.span
        parts = {
            "modes": dict(span.modes),
            "chmods": dict(span.chmods),
            "others": [*span.others],
            "moved": [*span.moved],
        }
        after = None if span.modes_after is None else dict(span.modes_after)
        return {"span": span.as_dict() | parts | {"modes_after": after}}
    return {"files": [_packed_file(state) for state in inverse.files]}


def _packed_file(state: FileState) -> dict[str, Any]:
    contents = {name: _packed_bytes(content) for name, content in (("before", state.before), ("after", state.after))}
    return {**state.as_dict(), **contents}


def _packed_bytes(content: bytes | None) -> str | None:
    return None if content is None else b64encode(zlib.compress(content, 1)).decode()


def _unpacked(data: Any) -> Inverse:
    try:
        if "call" in data:
            return Inverse(call=Call(name=str(data["call"]["name"]), arguments=dict(data["call"]["arguments"])))
        if "span" in data:
            return Inverse(span=_unpacked_span(data["span"]))
        return Inverse(files=[_unpacked_file(state) for state in data["files"]])
    except (TypeError, KeyError, AttributeError, OverflowError, zlib.error) as error:
        raise ValueError(f"it is damaged: {error}") from error


def _unpacked_file(data: Mapping[str, Any]) -> FileState:
    contents = {name: _unpacked_bytes(data[name]) for name in ("before", "after")}
    return FileState(**{**data, **contents})


def _unpacked_span(data: Mapping[str, Any]) -> Span:
    """The data of commands; what an earlier Marvin did not store is unknown."""
    names = {name: str(data[name]) for name in ("root", "before", "after")}
    others, moved = ([str(name) for name in data.get(kind, ())] for kind in ("others", "moved"))
    after = data.get("modes_after")
    return Span(
        **names,
        is_shared=bool(data.get("is_shared")),
        others=others,
        moved=moved,
        modes=_unpacked_modes(data.get("modes", {})),
        modes_after=None if after is None else _unpacked_modes(after),
        chmods={str(name): (int(old), int(new)) for name, (old, new) in data.get("chmods", {}).items()},
        since=int(data.get("since", 0)),
        top=str(data.get("top", "")),
    )


def _unpacked_modes(data: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(mode) for name, mode in data.items()}


def _unpacked_bytes(text: str | None) -> bytes | None:
    return None if text is None else zlib.decompress(b64decode(text))
