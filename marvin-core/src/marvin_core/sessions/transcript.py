"""The session file: an append-only tree of records, one JSON object per line.

The first record is the header. Every other record names its parent. Going back to an earlier point starts a new branch,
and never rewrites the file. A compaction replaces the earlier messages of its branch, which stay in the file.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ..api.errors import SessionError
from ..api.messages import Message, to_dict
from ..api.timeouts import Timeouts
from ..util.json_lines import lines_forwards
from ..util.state_files import acquire, make_private_folder
from ..util.untrusted_json import parse_json
from .records import LARGEST_LINE, Header, header_line, header_of, kind_of, line_of

if TYPE_CHECKING:
    from .reader import LoadedSession


_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class Transcript:
    """Writes one session file. No file is created before the first `append`, or `claim`."""

    def __init__(self, path: Path, header: Header, timeouts: Timeouts, largest: int = LARGEST_LINE) -> None:
        self.path = path
        self._name = str(path)
        self.header = header
        self.patient = True
        """Whether to wait for another process that holds the file."""
        self._timeouts = timeouts
        self._largest = largest
        self._begun = False
        self._leaf = self._before_last = header.id
        self._compacted: Sequence[Message] | None = None
        self._pending: Sequence[Message] | None = None
        self._descriptor: int | None = None
        self._written = 0
        # The known part of the file: up to this offset, with this number of messages. Others may have written since.
        self._known, self._count = 0, 0
        self._ended = 0
        """The end of the last record that this writer wrote, which needs no look for its newline."""
        # A part of each record's id: many processes write one session, and even process ids are reused.
        self._writer = os.urandom(6).hex()

    @classmethod
    def resumed(cls, path: Path, loaded: LoadedSession, timeouts: Timeouts, largest: int = LARGEST_LINE) -> Self:
        """A writer that continues at the end of a loaded session."""
        transcript = cls(path, loaded.header, timeouts, largest)
        transcript._begun = True
        transcript._leaf, transcript._before_last = loaded.leaf, loaded.before_last
        transcript._compacted = loaded.compacted
        transcript._known, transcript._count = loaded.size, loaded.count
        return transcript

    @property
    def leaf(self) -> str:
        """The parent of the next record; the session's id before the first one."""
        return self._leaf

    def claim(self) -> bool:
        """Create the file to reserve its name; False if it exists."""
        with suppress(OSError):  # an error is reported when the first message is saved
            make_private_folder(self.path.parent)
            try:
                self._descriptor = os.open(self.path, _FLAGS | os.O_EXCL, 0o600)
            except FileExistsError:
                return not self.path.parent.is_dir()
        return True

    def append(self, *messages: Message, at: float | None = None, origin: str = "") -> None:
        """Add messages after the newest one of this writer, in one write.

        Args:
            at: their time in seconds since the epoch; by default now.
            origin: their sender, if they stand for the user but do not come from the user.

        Raises:
            SessionError: if the file cannot be written.
        """
        said: dict[str, Any] = {} if at is None else {"time": _stamp(at)}
        said |= {"origin": origin} if origin else {}
        self._append([("message", {**said, "message": to_dict(message)}) for message in messages])

    def append_earlier(self, messages: Sequence[Message], times: Sequence[float]) -> None:
        """Add messages of another session, each with its time, 0 if unknown. Raises as `append` does."""
        said = zip(messages, times, strict=True)
        self._append([("message", {"time": _stamp(time), "message": to_dict(message)}) for message, time in said])

    def append_state(self, state: Mapping[str, Any]) -> None:
        """Add the session state of packs; the newest state applies. Raises as `append` does."""
        self._append([("state", {"state": state})])

    def append_compaction(self, messages: Sequence[Message], state: Mapping[str, Any] | None = None) -> None:
        """Replace everything before on this branch by these messages. Raises as `append` does.

        Args:
            state: the session state of packs, so that no earlier record has to be read for it.
        """
        self._pending = None
        # With the header, so that a newer title or model need not be searched further up.
        self._append([_compaction(messages, state)], {})
        self._compacted = messages

    def change_header(self, **fields: str) -> None:
        """Change fields of the header; before the first message they are not written. Raises as `append` does.

        Changes of other processes are kept.
        """
        if any(getattr(self.header, name) != value for name, value in fields.items()):
            if self._begun:
                self._append([], fields)
            else:
                self.header = self.header.replace(**fields)

    def add_spent(self, dollars: float) -> None:
        """Add to the cost of the session. Additions of other processes are kept. Raises as `append` does."""
        if self._known or self._descriptor is not None:
            self._append([], {}, spent=dollars)
        else:
            self.header = self.header.replace(spent=self.header.spent + dollars)

    def step_back(self) -> None:
        """Go back to before the last message; the next append starts another branch beside it."""
        if self._compacted is not None:
            # The last message belongs to a compaction: the other branch begins with the remaining ones.
            self._pending, self._compacted = self._compacted[:-1], None
        self._leaf = self._before_last

    def sync(self) -> None:
        """Sync the file to disk. Blocks: call it in a thread."""
        if self._descriptor is not None:
            getattr(os, "fdatasync", os.fsync)(self._descriptor)

    def close(self) -> None:
        """Close the file; appending opens it again. A file that was only claimed is removed."""
        if self._descriptor is not None:
            status = os.fstat(self._descriptor)
            if not self._begun and not status.st_size and self._is_at_path(status):
                with suppress(OSError):
                    self.path.unlink()
            os.close(self._descriptor)
            self._descriptor = None

    def _append(
        self,
        records: list[tuple[str, Mapping[str, Any]]],
        header_fields: Mapping[str, str] | None = None,
        spent: float = 0.0,
    ) -> None:
        """Add records. Unless the fields are None, also add the header with these changes and with `spent` added."""
        if self._pending is not None and records:
            records = [_compaction(self._pending), *records]
        lines = []
        leaf, before_last, compacted = self._leaf, self._before_last, self._compacted
        for kind, data in records:
            self._written += 1
            identity = f"{self._writer}.{self._written}"
            record = {"type": kind, "id": identity, "parent": leaf, "time": _stamp(time.time()), **data}
            lines.append(line_of(record, self._largest))
            if kind == "message":
                before_last, compacted = leaf, None
            leaf = identity
        said = sum(kind == "message" for kind, _ in records)
        try:
            with self._locked() as (descriptor, end):
                if header_fields is not None:
                    self._catch_up(descriptor, end)
                    self.header = self.header.replace(**header_fields, spent=self.header.spent + spent)
                    if end:  # else it is written anyway, as the first line
                        lines.append(header_line(self.header, self._count + said))
                self._write(descriptor, end, lines, said)
        except OSError as error:
            raise SessionError(
                f"The session cannot be saved to {self.path}: {error.strerror}. Free space or make the folder "
                "writable. Until then, the conversation is not saved."
            ) from error
        self._leaf, self._before_last, self._compacted = leaf, before_last, compacted
        if records:
            self._pending = None

    @contextmanager
    def _locked(self) -> Iterator[tuple[int, int]]:
        """The open file and its end, under its lock."""
        while True:
            descriptor = self._open()
            limit = self._timeouts.lock if self.patient else 0.0
            acquire(descriptor, limit, self._timeouts.lock_poll, self._name)
            status = os.fstat(descriptor)
            if self._is_at_path(status):
                break
            self.close()  # while waiting, a repaired copy replaced it, or it was removed
            self._known = self._count = self._ended = 0
        try:
            yield descriptor, status.st_size
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _is_at_path(self, status: os.stat_result) -> bool:
        """Whether the path still leads to the file with this status."""
        try:
            return os.path.samestat(status, os.stat(self._name))
        except FileNotFoundError:
            return False

    def _write(self, descriptor: int, end: int, lines: Iterable[bytes], said: int) -> None:
        data = b"".join(lines)
        if not end:
            data = header_line(self.header) + data
        elif end != self._ended and os.pread(descriptor, 1, end - 1) != b"\n":
            data = b"\n" + data
        if os.write(descriptor, data) < len(data):
            os.ftruncate(descriptor, end)
            raise OSError(28, "the disk is full")
        self._begun = True
        self._ended = end + len(data)
        if self._known == end:
            self._known, self._count = end + len(data), self._count + said

    def _catch_up(self, descriptor: int, end: int) -> None:
        """Read the header that another process wrote meanwhile, and count its messages."""
        begin = max(0, self._known - 1)
        lines = lines_forwards(descriptor, begin, end, self._largest)
        # The first line is the rest of one that was counted.
        for line, _ in islice(lines, 1 if self._known else 0, None):
            kind = kind_of(line)
            if kind == b"message":
                self._count += 1
            elif kind == b"session":
                try:
                    self.header = header_of(parse_json(line))
                except (ValueError, SessionError):  # incomplete; the previous one applies
                    continue
        self._known = end

    def _open(self) -> int:
        if self._descriptor is None:
            make_private_folder(self.path.parent)
            self._descriptor = os.open(self.path, _FLAGS, 0o600)
        return self._descriptor


def _stamp(seconds: float) -> float:
    """A time as stored in a record, with milliseconds."""
    return round(seconds, 3)


def _compaction(messages: Iterable[Message], state: Mapping[str, Any] | None = None) -> tuple[str, Mapping[str, Any]]:
    data: dict[str, Any] = {"messages": [to_dict(message) for message in messages]}
    return "compaction", {**data, "state": state} if state else data


def new_session_id(now: float, title: str) -> str:
    """The id of a session, which is also its file name: the time in UTC and a slug of the title."""
    from datetime import UTC, datetime

    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in title.lower()).split()
    return f"{stamp}-{'-'.join(words[:6])[:40].strip('-') or 'session'}"
