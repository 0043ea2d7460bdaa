"""Reads a session file from its end, as far as needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from ..api.errors import SessionError
from ..api.messages import Message, from_dict
from ..api.record import Record
from ..util.json_lines import BLOCK, lines_backwards
from ..util.numbers import amount
from ..util.text import counted
from ..util.untrusted_json import parse_json
from .records import LARGEST_LINE, Header, header_of, kind_of

_PROBLEMS = 1_000
"""The number of damaged lines listed individually; the others are counted."""


class BackwardReader:
    """Reads a session file from its end, as far as requested; a context manager.

    Damaged lines, and lines of more than `largest` bytes, are skipped and recorded for `problems`.

    Raises:
        SessionError: at construction, if the file cannot be read.
    """

    def __init__(self, path: Path, largest: int = LARGEST_LINE) -> None:
        self._name = path.name
        self._path = path
        self._largest = largest
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.size = os.fstat(self._descriptor).st_size
            self._lines = lines_backwards(self._descriptor, self.size, largest=largest)
        except OSError as error:
            raise SessionError(f"The session {path} cannot be read: {error.strerror}.") from error
        self.records: dict[str, dict[str, Any]] = {}
        """The records read so far by id, newest first; if two have the same id, the newer one."""
        self._header: Header | None = None
        self._passed = 0
        self._messages: int | None = None
        self._bad: dict[int, str] = {}
        self._more_bad = 0
        self._above: dict[str, str] | None = None
        self._first = self._first_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._descriptor)

    def _first_header(self) -> Header | None:
        try:
            line, _, _ = os.pread(self._descriptor, BLOCK, 0).partition(b"\n")
            return header_of(parse_json(line)) if line.strip() else None
        except ValueError as error:
            self._skip(0, error)
        except (OSError, SessionError):
            pass
        return None

    @property
    def root(self) -> str | None:
        """The parent of the first records: the id of the header, None if no header was found yet."""
        header = self._first or self._header
        return header.id if header else None

    def find(self, identity: str) -> dict[str, Any] | None:
        """The record with this id, reading as far as needed; None if there is none."""
        while identity not in self.records:
            if self.next() is None:
                return None
        return self.records[identity]

    def newest(self) -> str:
        """The id of the newest record; empty if there is none. To be read first."""
        record = self.next()
        return record["id"] if record is not None else ""

    def next(self) -> dict[str, Any] | None:
        """The next record upwards, None at the beginning of the file."""
        for offset, line, whole in self._lines:
            if not line.strip():
                continue
            try:
                record = self._parsed(line, whole)
                if record["type"] != "session":
                    self.records.setdefault(record["id"], record)
                    self._passed += record["type"] == "message"
                    return record
                self._take_header(record)
            except (ValueError, SessionError) as error:
                self._passed += kind_of(line) == b"message"
                self._skip(offset, error)
        return None

    def _parsed(self, line: bytes, whole: bool) -> dict[str, Any]:
        """The record of a line. Raises ValueError if it is invalid."""
        if not whole:
            raise ValueError(f"it is longer than {self._largest:,} bytes")
        record = parse_json(line, self._largest)
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            raise ValueError("it is not a record")
        if record["type"] != "session" and not isinstance(record.get("id"), str):
            raise ValueError("it has no id")
        return record

    def _skip(self, offset: int, error: Exception) -> None:
        if len(self._bad) < _PROBLEMS:
            self._bad[offset] = str(error)
        else:
            self._more_bad += 1

    def read_all(self) -> None:
        """Read the rest."""
        while self.next() is not None:
            pass

    def above(self, identity: str) -> dict[str, Any] | None:
        """The previous record in the file; None for the first one."""
        if self._above is None:
            self.read_all()
            self._above = dict(pairwise(self.records))
        return self.records.get(self._above.get(identity, ""))

    def header(self) -> Header:
        """The newest header, read further up if none was found yet.

        Raises:
            SessionError: if there is none.
        """
        self._look_for_headers(lambda: self._header is not None)
        if self._header is None:
            raise SessionError(f"{self._path} is not a session file: it has no header. Start a new session.")
        return self._header

    def messages(self) -> int:
        """The number of messages in the file, in all branches; reads as far as needed."""
        self._look_for_headers(lambda: self._messages is not None)
        return self._passed if self._messages is None else self._messages

    def _look_for_headers(self, found: Callable[[], bool]) -> None:
        """Continue upwards, decoding headers only."""
        if found():
            return
        for offset, line, whole in self._lines:
            kind = kind_of(line)
            self._passed += kind == b"message"
            if kind == b"session":
                try:
                    self._take_header(self._parsed(line, whole))
                except (ValueError, SessionError) as error:
                    self._skip(offset, error)
                if found():
                    return

    def _take_header(self, record: Any) -> None:
        header = header_of(record)
        self._header = self._header or header
        count = record.get("messages")
        if self._messages is None and isinstance(count, int) and 0 <= count <= self.size:
            self._messages = count + self._passed

    def problems(self) -> list[str]:
        """Each skipped line, by its number, in the order of the file."""
        told = []
        number, position = 1, 0
        for offset, error in sorted(self._bad.items()):
            while position < offset:
                data = os.pread(self._descriptor, min(BLOCK, offset - position), position)
                number += data.count(b"\n")
                position += len(data) or offset - position
            told.append(f"line {number} of {self._name} was skipped: {error}")
        if self._more_bad:
            told.append(f"{counted(self._more_bad, 'more line')} {'was' if self._more_bad == 1 else 'were'} skipped")
        return told


def branch_backwards(reader: BackwardReader, leaf: str, problems: list[str]) -> Iterator[dict[str, Any]]:
    """The records of the branch that ends in `leaf`, newest first; the file is read only as far as they are consumed.

    If a record is missing, the branch continues with the previous one in the file, and `problems` reports it.
    """
    seen: set[str] = set()
    record = reader.find(leaf)
    while record is not None:
        identity = record["id"]
        if identity in seen:
            problems.append(f"record {identity} is its own ancestor; the records before it were left out")
            return
        seen.add(identity)
        yield record
        parent = record.get("parent")
        if parent is not None and parent == reader.root:
            return
        found = reader.find(parent) if isinstance(parent, str) else None
        if found is None and not (isinstance(parent, str) and parent == reader.root):
            problems.append(f"the parent of record {identity} was lost")
            found = reader.above(identity)
        record = found


class Compaction(Record):
    """A compaction of a branch: its position, as the number of messages before it, and its result."""

    before: int
    messages: tuple[Message, ...]


class FullTranscript(Record):
    """All messages of the branch that ends in the newest record, and its compactions."""

    header: Header
    messages: tuple[Message, ...]
    compactions: tuple[Compaction, ...]
    problems: tuple[str, ...]
    times: tuple[float, ...] = ()
    """The time of each message, in the form that `time_of` returns."""


def load_full(path: Path, largest: int = LARGEST_LINE, leaf: str = "") -> FullTranscript:
    """Read everything on the branch that ends in `leaf`, or in the newest record. Raises as `load` does."""
    problems: list[str] = []
    messages: list[Message] = []
    times: list[float] = []
    compactions: list[Compaction] = []
    with BackwardReader(path, largest) as reader:
        branch = list(branch_backwards(reader, leaf or reader.newest(), problems))
        for record in reversed(branch):
            try:
                if record["type"] == "message":
                    messages.append(from_dict(record["message"]))
                    times.append(time_of(record))
                elif record["type"] == "compaction":
                    compactions.append(Compaction(before=len(messages), messages=compaction_of(record)))
            except (ValueError, KeyError, TypeError) as error:
                problems.append(f"record {record.get('id')} was skipped: {error}")
        header = reader.header()
        problems = [*reader.problems(), *problems]
    return FullTranscript(
        header=header,
        messages=tuple(messages),
        compactions=tuple(compactions),
        problems=tuple(problems),
        times=tuple(times),
    )


def time_of(record: Mapping[str, Any]) -> float:
    """The time of a record, in seconds since the epoch; 0 if it has none, as in older files."""
    return amount(record.get("time")) or 0.0


def compaction_of(record: Mapping[str, Any]) -> tuple[Message, ...]:
    """The result of a compaction record.

    Raises:
        ValueError, KeyError, TypeError: if it is not a compaction.
    """
    return tuple(from_dict(message) for message in record["messages"])


class EarlierPrompt(Record):
    """A prompt of the user; `leaf` is the record before it."""

    text: str
    time: float
    leaf: str


class LoadedSession(Record):
    """The content of a session file: the live context of the branch that ends in its newest record.

    `leaf` is the id of that record, and `before_last` is the parent of its last message. `problems` lists each skipped
    line.
    """

    header: Header
    messages: tuple[Message, ...]
    state: Mapping[str, Any]
    leaf: str
    before_last: str
    compacted: tuple[Message, ...] | None
    """The result of a compaction, if no message followed it."""
    size: int
    """The size of the file in bytes when it was read."""
    count: int
    """The number of messages in the file, including all branches and those before a compaction."""
    problems: tuple[str, ...]
    times: tuple[float, ...] = ()
    """The time of each message, in the form that `time_of` returns; 0 for those that a compaction kept."""
    seeded: int = 0
    """The number of messages from earlier chats; they come first."""
    prompts: tuple[EarlierPrompt, ...] = ()
    """The prompts to which a user can go back, oldest first."""


def load(path: Path, leaf: str = "", largest: int = LARGEST_LINE) -> LoadedSession:
    """Read a session from its end to the newest compaction of the branch; damaged lines are skipped and listed.

    Args:
        leaf: the last record of the branch; the newest one by default.
        largest: the maximum size of a line in bytes; a longer one is skipped.

    Raises:
        SessionError: if the file cannot be read or has no valid header.
    """
    live = _Live()
    with BackwardReader(path, largest) as reader:
        leaf = leaf or reader.newest()
        for record in branch_backwards(reader, leaf, live.problems):
            live.take(record)
            if live.complete:
                break
        header = reader.header()
        return LoadedSession(
            header=header,
            messages=(*(live.compacted or ()), *reversed(live.messages)),
            state=live.state or {},
            leaf=leaf or header.id,
            before_last=live.before_last or header.id,
            compacted=None if live.messages else live.compacted,
            size=reader.size,
            count=reader.messages(),
            problems=(*reader.problems(), *live.problems),
            times=(*(0.0 for _ in live.compacted or ()), *reversed(live.times)),
            seeded=len(live.compacted or ()) if live.begins_with == header.id else 0,
            prompts=tuple(reversed(live.prompts)),
        )


class _Live:
    """The live context of a branch, collected from its newest record upwards."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        """The messages since the newest compaction, newest first."""
        self.times: list[float] = []
        self.prompts: list[EarlierPrompt] = []
        self.begins_with = ""
        """The parent of the compaction."""
        self.compacted: tuple[Message, ...] | None = None
        self.state: dict[str, Any] | None = None
        self.before_last = ""
        self.problems: list[str] = []

    @property
    def complete(self) -> bool:
        """Whether no earlier record is needed."""
        return self.compacted is not None and bool(self.before_last)

    def take(self, record: Mapping[str, Any]) -> None:
        """Add the next record upwards."""
        try:
            if record["type"] == "message":
                if self.compacted is None:
                    self._take_message(record, from_dict(record["message"]))
                self.before_last = self.before_last or str(record["parent"])
            elif self.compacted is not None:
                return
            elif record["type"] == "compaction":
                self.compacted = compaction_of(record)
                self.begins_with = str(record.get("parent"))
                self.state = _state_of(record.get("state", {})) if self.state is None else self.state
            elif record["type"] == "state" and self.state is None:
                self.state = _state_of(record["state"])
        except (ValueError, KeyError, TypeError) as error:
            self.problems.append(f"record {record.get('id')} was skipped: {error}")

    def _take_message(self, record: Mapping[str, Any], message: Message) -> None:
        time, parent = time_of(record), record.get("parent")
        self.messages.append(message)
        self.times.append(time)
        # Without its time, it is unknown what happened since then.
        if message.role == "user" and time and isinstance(parent, str) and not record.get("origin"):
            self.prompts.append(EarlierPrompt(text=message.text, time=time, leaf=parent))


def _state_of(kept: Any) -> dict[str, Any]:
    """The state of packs, a mapping for each; other values are damaged."""
    return {name: value for name, value in dict(kept).items() if isinstance(value, dict)}
