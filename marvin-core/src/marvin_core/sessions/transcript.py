"""The session file: an append-only tree of records, one JSON object a line.

The first record is the header. Every other one names its parent, so that going back to an earlier
point and on from there makes a branch and never rewrites anything. A compaction replaces what its
branch held before, which stays in the file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from ..api.errors import SessionError
from ..api.messages import Message, Text, ToolOutput, from_dict, to_dict, tool
from ..api.record import Record
from ..api.timeouts import Waits
from ..util.state_files import acquire
from .records import (
    BackwardReader,
    Header,
    branch_backwards,
    compaction_of,
    header_line,
    header_of,
    kind_of,
    record_line,
)

INTERRUPTED = (
    "This call was interrupted before it had a result. It may have done part of its work: "
    "check, then call it again if it is still needed."
)


class Loaded(Record):
    """What was read from a session file: the live context of the branch that ends in its newest record.

    `leaf` is the id of that record, and `before_last` that of the one which its last message follows.
    `problems` names each line that had to be skipped.
    """

    header: Header
    messages: tuple[Message, ...]
    state: Mapping[str, Any]
    leaf: str
    before_last: str
    compacted: tuple[Message, ...] | None
    """What the branch was compacted to, where nothing was said since."""
    size: int
    """The bytes of the file when it was read."""
    count: int
    """The messages in the file, those of all branches and those before a compaction included."""
    problems: tuple[str, ...]


class Transcript:
    """Writes one session file. Nothing is created before the first `append`."""

    def __init__(self, path: Path, header: Header, waits: Waits) -> None:
        self.path = path
        self.header = header
        self._waits = waits
        self._leaf = self._before_last = header.id
        self._compacted: Sequence[Message] | None = None
        self._pending: Sequence[Message] | None = None
        self._descriptor: int | None = None
        self._written = 0
        # What is known of the file: as far as this offset, that many messages. Others may have written since.
        self._known, self._count = 0, 0
        # Part of each record's id: a session is written by many processes, and even their numbers return.
        self._writer = os.urandom(6).hex()

    @classmethod
    def resumed(cls, path: Path, loaded: Loaded, waits: Waits) -> Self:
        """A writer that goes on where a session that was loaded ends."""
        transcript = cls(path, loaded.header, waits)
        transcript._leaf, transcript._before_last = loaded.leaf, loaded.before_last
        transcript._compacted = loaded.compacted
        transcript._known, transcript._count = loaded.size, loaded.count
        return transcript

    @property
    def leaf(self) -> str:
        """The record that the next one will follow; the session's id before the first."""
        return self._leaf

    def append(self, *messages: Message) -> None:
        """Add messages after the newest one of this writer, in one write.

        Raises:
            SessionError: where the file cannot be written.
        """
        self._append([("message", {"message": to_dict(message)}) for message in messages])

    def append_state(self, state: Mapping[str, Any]) -> None:
        """Add what packs keep in the session; the newest state counts. Raises as `append`."""
        self._append([("state", {"state": state})])

    def append_compaction(self, messages: Sequence[Message], state: Mapping[str, Any] | None = None) -> None:
        """From here on, these messages stand for all that this branch held before. Raises as `append`.

        Args:
            state: what packs keep in the session, so that nothing above has to be read for it.
        """
        self._pending = None
        # With the header, so that nobody has to look for a newer title or model further up.
        self._append([_compaction(messages, state)], {})
        self._compacted = messages

    def change_header(self, **fields: str) -> None:
        """Change fields of the header, which are its own in the file only after the first message. Raises as `append`.

        What other processes changed meanwhile is kept.
        """
        if any(getattr(self.header, name) != value for name, value in fields.items()):
            if self._known or self._descriptor is not None:
                self._append([], fields)
            else:
                self.header = self.header.replace(**fields)

    def step_back(self) -> None:
        """Go back to before the last message; what is appended next becomes another branch beside it."""
        if self._compacted is not None:
            # The last message is one of those that were compacted: the other branch begins with the rest of them.
            self._pending, self._compacted = self._compacted[:-1], None
        self._leaf = self._before_last

    def sync(self) -> None:
        """Have the disk hold what was written. Blocks: call it in a thread."""
        if self._descriptor is not None:
            getattr(os, "fdatasync", os.fsync)(self._descriptor)

    def close(self) -> None:
        """Close the file; appending again opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(
        self, records: list[tuple[str, Mapping[str, Any]]], header_fields: Mapping[str, str] | None = None
    ) -> None:
        """Add records, and the header with these fields changed unless there are none to change."""
        if self._pending is not None and records:
            records = [_compaction(self._pending), *records]
        lines = []
        leaf, before_last, compacted = self._leaf, self._before_last, self._compacted
        for kind, data in records:
            self._written += 1
            identity = f"{self._writer}.{self._written}"
            lines.append(record_line({"type": kind, "id": identity, "parent": leaf, **data}))
            if kind == "message":
                before_last, compacted = leaf, None
            leaf = identity
        said = sum(kind == "message" for kind, _ in records)
        try:
            with self._locked() as (descriptor, end):
                if header_fields is not None:
                    self._catch_up(descriptor, end)
                    self.header = self.header.replace(**header_fields)
                    if end:  # else it is written anyway, as the first line
                        lines.append(header_line(self.header, self._count + said))
                self._write(descriptor, end, lines, said)
        except OSError as error:
            raise SessionError(
                f"The session cannot be saved to {self.path}: {error.strerror}. "
                "Free space or make the folder writable; until then the conversation goes on unsaved."
            ) from error
        self._leaf, self._before_last, self._compacted = leaf, before_last, compacted
        if records:
            self._pending = None

    @contextmanager
    def _locked(self) -> Iterator[tuple[int, int]]:
        """The open file and where it ends, under its lock."""
        while True:
            descriptor = self._open()
            acquire(descriptor, self._waits.lock, self._waits.lock_poll, str(self.path))
            if self._is_current(descriptor):
                break
            self.close()  # a repaired copy took its place while it was waited for, or somebody removed it
            self._known = self._count = 0
        try:
            yield descriptor, os.lseek(descriptor, 0, os.SEEK_END)
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def _write(self, descriptor: int, end: int, lines: Iterable[bytes], said: int) -> None:
        data = b"".join(lines)
        if not end:
            data = header_line(self.header) + data
        elif os.pread(descriptor, 1, end - 1) != b"\n":
            data = b"\n" + data
        if os.write(descriptor, data) < len(data):
            os.ftruncate(descriptor, end)
            raise OSError(28, "the disk is full")
        if self._known == end:
            self._known, self._count = end + len(data), self._count + said

    def _catch_up(self, descriptor: int, end: int) -> None:
        """Take over the header that another process wrote meanwhile, and count its messages."""
        begin = max(0, self._known - 1)
        lines = os.pread(descriptor, max(0, end - begin), begin).split(b"\n")
        for line in lines[1:] if self._known else lines:  # the first one is the rest of one that was counted
            kind = kind_of(line)
            if kind == b"message":
                self._count += 1
            elif kind == b"session":
                try:
                    self.header = header_of(json.loads(line))
                except (ValueError, SessionError):  # torn; the one before it counts
                    continue
        self._known = end

    def _open(self) -> int:
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o600)
        return self._descriptor


def _compaction(messages: Iterable[Message], state: Mapping[str, Any] | None = None) -> tuple[str, Mapping[str, Any]]:
    data: dict[str, Any] = {"messages": [to_dict(message) for message in messages]}
    return "compaction", {**data, "state": state} if state else data


def new_session_id(now: float, title: str) -> str:
    """The id of a session, which is also its file's name: the time in UTC and a slug of the title."""
    from datetime import UTC, datetime

    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in title.lower()).split()
    return f"{stamp}-{'-'.join(words[:6])[:40].strip('-') or 'session'}"


def sessions(folder: Path) -> list[Path]:
    """The session files of a folder, the one written last first."""
    return sorted(folder.glob("*.jsonl"), key=lambda path: (_written_last(path), path.name), reverse=True)


def _written_last(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # removed meanwhile
        return 0


def read_header(path: Path) -> Header | None:
    """The header that a session file begins with, where that is damaged a later one; None where there is none.

    See `archive.survey` for its newest title.
    """
    try:
        with path.open("rb") as stream:
            return header_of(json.loads(stream.readline()))
    except OSError:
        return None
    except (ValueError, SessionError):
        pass
    try:
        with BackwardReader(path) as reader:
            return reader.header()
    except SessionError:
        return None


def find(folder: Path, session_id: str) -> Path:
    """The file of the session whose id is, or starts with, this one.

    Raises:
        SessionError: where there is none or more than one.
    """
    matches = [path for path in sessions(folder) if path.stem == session_id]
    matches = matches or [path for path in sessions(folder) if path.stem.startswith(session_id)]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise SessionError(f"There is no session {session_id!r}. `marvin sessions` lists them all.")
    names = ", ".join(path.stem for path in matches[:5])
    raise SessionError(f"{session_id!r} fits {len(matches)} sessions: {names}. Give more of the id.")


def newest_of(folder: Path, working_dir: str) -> Path:
    """The file of the session of a working directory that was written last.

    Raises:
        SessionError: where there is none.
    """
    for path in sessions(folder):
        header = read_header(path)
        if header is not None and header.working_dir == working_dir:
            return path
    raise SessionError(f"There is no session of {working_dir} to continue. Start one without --continue.")


def load(path: Path, leaf: str = "") -> Loaded:
    """Read a session from its end to the newest compaction of the branch, skipping and naming damaged lines.

    Args:
        leaf: the record that the branch ends in; the newest one by default.

    Raises:
        SessionError: where the file cannot be read or has no usable header.
    """
    live = _Live()
    with BackwardReader(path) as reader:
        leaf = leaf or reader.newest()
        for record in branch_backwards(reader, leaf, live.problems):
            live.take(record)
            if live.complete:
                break
        header = reader.header()
        return Loaded(
            header=header,
            messages=(*(live.compacted or ()), *reversed(live.messages)),
            state=live.state or {},
            leaf=leaf or header.id,
            before_last=live.before_last or header.id,
            compacted=None if live.messages else live.compacted,
            size=reader.size,
            count=reader.messages(),
            problems=(*reader.problems(), *live.problems),
        )


class _Live:
    """The live context of a branch, gathered from its newest record upwards."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """Those since the newest compaction, the newest one first."""
        self.compacted: tuple[Message, ...] | None = None
        self.state: dict[str, Any] | None = None
        self.before_last = ""
        self.problems: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether nothing further up is needed."""
        return self.compacted is not None and bool(self.before_last)

    def take(self, record: Mapping[str, Any]) -> None:
        """Add the next record above."""
        try:
            if record["type"] == "message":
                if self.compacted is None:
                    self.messages.append(from_dict(record["message"]))
                self.before_last = self.before_last or str(record["parent"])
            elif self.compacted is not None:
                return
            elif record["type"] == "compaction":
                self.compacted = compaction_of(record)
                self.state = dict(record.get("state", {})) if self.state is None else self.state
            elif record["type"] == "state" and self.state is None:
                self.state = dict(record["state"])
        except (ValueError, KeyError, TypeError) as error:
            self.problems.append(f"record {record.get('id')} was skipped: {error}")


def heal(messages: Sequence[Message]) -> tuple[tuple[Message, ...], int]:
    """Give every call exactly one output, and drop outputs without a call.

    Returns the messages, and how many calls had no output.
    """
    healed: list[Message] = []
    count = 0
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role == "tool":
            continue  # taken up with the calls it answers, below; on its own it answers none
        healed.append(message)
        calls = message.calls if message.role == "assistant" else ()
        if not calls:
            continue
        outputs: dict[str, ToolOutput] = {}
        while index < len(messages) and messages[index].role == "tool":
            for output in messages[index].outputs:
                outputs.setdefault(output.call_id, output)
            index += 1
        count += sum(call.id not in outputs for call in calls)
        healed.append(tool([outputs.get(call.id) or interrupted(call.id, call.name) for call in calls]))
    return tuple(healed), count


def interrupted(call_id: str, name: str) -> ToolOutput:
    """The output of a call that was interrupted."""
    return ToolOutput(call_id=call_id, name=name, content=(Text(text=INTERRUPTED),), is_error=True)
