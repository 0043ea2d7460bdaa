"""The records of a session file: the header, the form of a line, and reading lines from the end of the file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from ..api.errors import SessionError
from ..api.messages import Message, from_dict
from ..api.record import Record

VERSION = 1
_KIND = re.compile(rb'\s*\{\s*"type"\s*:\s*"(\w+)"')
_BLOCK = 128 * 1024


class Header(Record):
    """What a session file says of the session."""

    id: str
    title: str
    time: float
    provider: str
    model: str
    working_dir: str
    thinking: str = "off"
    parent: str = ""
    """The session that this one was forked from."""


def header_of(record: Any) -> Header:
    """The header that a record holds.

    Raises:
        SessionError: where it holds none.
    """
    if not isinstance(record, dict) or record.get("type") != "session":
        raise SessionError("not a header")
    try:
        header = Header(**{name: record[name] for name in Header._defaults if name in record})
    except TypeError as error:
        raise SessionError(str(error)) from error
    for name, value in header.as_dict().items():
        if not isinstance(value, (int, float) if name == "time" else str):
            raise SessionError(f"{name} of the header is {value!r}")
    return header


def kind_of(line: bytes) -> bytes:
    """What a line is, as in `message`, without decoding it."""
    found = _KIND.match(line)
    return found[1] if found else b""


def header_line(header: Header, messages: int | None = None) -> bytes:
    """The line of a header. A later one than the first also says how many messages stand above it in the file."""
    count = {} if messages is None else {"messages": messages}
    return record_line({"type": "session", "version": VERSION, **header.as_dict(), **count})


def record_line(record: Mapping[str, Any]) -> bytes:
    """The line of a record, with its newline."""
    try:
        return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes of its own, only an escape
        return (json.dumps(record, separators=(",", ":")) + "\n").encode()


def lines_backwards(descriptor: int, end: int, block: int = _BLOCK) -> Iterator[tuple[int, bytes]]:
    """The lines of a file before the offset `end`, the last one first, each with its own offset.

    Split at newline bytes only, as other line ends may stand inside JSON. The newline is left out.

    Args:
        block: how many bytes are read at a time.
    """
    tail: list[bytes] = []  # of a line whose beginning is not read yet, its last part first
    position = end
    while position:
        size = min(block, position)
        position -= size
        first, *rest = os.pread(descriptor, size, position).split(b"\n")
        while rest:
            line = b"".join([rest.pop(), *reversed(tail)])
            tail = []
            yield end - len(line), line
            end -= len(line) + 1
        tail.append(first)
    yield 0, b"".join(reversed(tail))


class BackwardReader:
    """Reads a session file from its end, as far as is asked for; a context manager.

    Damaged lines are skipped and kept for `problems`.

    Raises:
        SessionError: at construction, where the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.size = os.fstat(self._descriptor).st_size
            self._lines = lines_backwards(self._descriptor, self.size)
        except OSError as error:
            raise SessionError(f"The session {path} cannot be read: {error.strerror}.") from error
        self.records: dict[str, dict[str, Any]] = {}
        """What was read so far by id, the newest first; of two with one id, the newer."""
        self._header: Header | None = None
        self._passed = 0
        self._messages: int | None = None
        self._bad: dict[int, str] = {}
        self._first = self._first_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        os.close(self._descriptor)

    def _first_header(self) -> Header | None:
        try:
            line, _, _ = os.pread(self._descriptor, _BLOCK, 0).partition(b"\n")
            return header_of(json.loads(line)) if line.strip() else None
        except ValueError as error:
            self._bad[0] = str(error)
        except (OSError, SessionError):
            pass
        return None

    @property
    def root(self) -> str | None:
        """What the first records follow: the id of the header, None where none was found yet."""
        header = self._first or self._header
        return header.id if header else None

    def find(self, identity: str) -> dict[str, Any] | None:
        """The record with this id, read on to as far as needed; None where there is none."""
        while identity not in self.records:
            if self.next() is None:
                return None
        return self.records[identity]

    def newest(self) -> str:
        """The id of the newest record; empty where there is none. To be asked first."""
        record = self.next()
        return record["id"] if record is not None else ""

    def next(self) -> dict[str, Any] | None:
        """The next record above, None at the beginning of the file."""
        for offset, line in self._lines:
            if not line.strip():
                continue
            try:
                record: dict[str, Any] = json.loads(line.decode())
                kind = record["type"]
                if kind != "session":
                    self.records.setdefault(record["id"], record)
                    self._passed += kind == "message"
                    return record
                self._take_header(record)
            except (ValueError, KeyError, TypeError, SessionError) as error:
                self._passed += kind_of(line) == b"message"
                self._bad[offset] = str(error)
        return None

    def read_all(self) -> None:
        """Read what is left."""
        while self.next() is not None:
            pass

    def above(self, identity: str) -> dict[str, Any] | None:
        """The record that stands above this one in the file; None for the first one."""
        self.read_all()
        following = iter(self.records)
        for key in following:
            if key == identity:
                return self.records.get(next(following, ""))
        return None

    def header(self) -> Header:
        """The newest header, looked for further up where none was met yet.

        Raises:
            SessionError: where there is none.
        """
        self._look_for_headers(lambda: self._header is not None)
        if self._header is None:
            raise SessionError(f"{self._path} is not a session file: it has no header. Start a new session.")
        return self._header

    def messages(self) -> int:
        """How many messages the file holds, those of all branches; read on for it where that is not known yet."""
        self._look_for_headers(lambda: self._messages is not None)
        return self._passed if self._messages is None else self._messages

    def _look_for_headers(self, found: Callable[[], bool]) -> None:
        """Go on up, decoding nothing but headers."""
        if found():
            return
        for offset, line in self._lines:
            kind = kind_of(line)
            self._passed += kind == b"message"
            if kind == b"session":
                try:
                    self._take_header(json.loads(line))
                except (ValueError, SessionError) as error:
                    self._bad[offset] = str(error)
                if found():
                    return

    def _take_header(self, record: Any) -> None:
        header = header_of(record)
        self._header = self._header or header
        count = record.get("messages")
        if self._messages is None and isinstance(count, int):
            self._messages = count + self._passed

    def problems(self) -> list[str]:
        """Each line that was skipped, by its number, the first in the file first."""
        told = []
        number, position = 1, 0
        for offset, error in sorted(self._bad.items()):
            while position < offset:
                data = os.pread(self._descriptor, min(_BLOCK, offset - position), position)
                number += data.count(b"\n")
                position += len(data) or offset - position
            told.append(f"line {number} of {self._name} was skipped: {error}")
        return told


def branch_backwards(reader: BackwardReader, leaf: str, problems: list[str]) -> Iterator[dict[str, Any]]:
    """The records of the branch that ends in `leaf`, the newest first; no more of the file is read than is taken.

    Where one was lost, the way goes on to the one above it in the file; `problems` then says so.
    """
    seen: set[str] = set()
    record = reader.find(leaf)
    while record is not None:
        identity = record["id"]
        if identity in seen:
            problems.append(f"record {identity} is its own ancestor; what lies before it was left out")
            return
        seen.add(identity)
        yield record
        parent = record.get("parent")
        if parent is not None and parent == reader.root:
            return
        found = reader.find(parent) if isinstance(parent, str) else None
        if found is None and not (isinstance(parent, str) and parent == reader.root):
            problems.append(f"what record {identity} followed was lost")
            found = reader.above(identity)
        record = found


class Compaction(Record):
    """A place where a branch was compacted: before its message with this number, counted from 0, to these."""

    before: int
    messages: tuple[Message, ...]


class Whole(Record):
    """Everything that was said on the branch that ends in the newest record, and where it was compacted."""

    header: Header
    messages: tuple[Message, ...]
    compactions: tuple[Compaction, ...]
    problems: tuple[str, ...]


def load_whole(path: Path) -> Whole:
    """Read everything on the branch that ends in the newest record. Raises as `load`."""
    problems: list[str] = []
    messages: list[Message] = []
    compactions: list[Compaction] = []
    with BackwardReader(path) as reader:
        branch = list(branch_backwards(reader, reader.newest(), problems))
        for record in reversed(branch):
            try:
                if record["type"] == "message":
                    messages.append(from_dict(record["message"]))
                elif record["type"] == "compaction":
                    compactions.append(Compaction(before=len(messages), messages=compaction_of(record)))
            except (ValueError, KeyError, TypeError) as error:
                problems.append(f"record {record.get('id')} was skipped: {error}")
        header = reader.header()
        problems = [*reader.problems(), *problems]
    return Whole(header=header, messages=tuple(messages), compactions=tuple(compactions), problems=tuple(problems))


def compaction_of(record: Mapping[str, Any]) -> tuple[Message, ...]:
    """What a record says that its branch was compacted to.

    Raises:
        ValueError, KeyError, TypeError: where it is no compaction.
    """
    return tuple(from_dict(message) for message in record["messages"])
