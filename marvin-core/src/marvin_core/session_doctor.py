"""Finding what is wrong with a session file, and mending it in a copy; nothing that was said is ever deleted."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import SessionError
from .files import acquire, replace_file
from .messages import Message, ToolOutput, from_dict, to_dict, tool
from .records import Record
from .session_records import Header, header_line, header_of, record_line
from .transcript import interrupted
from .waits import Waits

_MODE = 0o600
_CUT = 80


class Diagnosis(Record):
    """What is wrong with a session file, a sentence each, with what a repair does about it."""

    problems: tuple[str, ...]
    content: bytes | None
    """What a repair puts in the place of the file; None where nothing in it can be read."""
    damaged: bool
    """Whether the content itself is at fault, and not the mode alone."""


def diagnose(path: Path, waits: Waits) -> Diagnosis:
    """Look for what is wrong.

    Raises:
        SessionError: where the file cannot be read.
        MarvinError: where another process holds it.
    """
    with _held(path, waits) as descriptor:
        return _diagnose(path, descriptor)


def repair(path: Path, waits: Waits) -> tuple[Diagnosis, Path | None]:
    """Mend a file; returns what was wrong, and where the original is kept where it had to be replaced.

    Raises as `diagnose`, `SessionError` also where the folder cannot be written; the file is then as it was.
    """
    with _held(path, waits) as descriptor:
        found = _diagnose(path, descriptor)
        try:
            if not found.damaged:
                os.chmod(path, _MODE)
                return found, None
            written = os.fstat(descriptor)
            kept = _keep(path)
            if found.content is None:
                path.unlink()
            else:
                replace_file(path, found.content, _MODE, keep_mode=False)
                os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))  # a repair is no use of the session
            return found, kept
        except OSError as error:
            raise SessionError(f"{path} cannot be repaired: {error.strerror}. Make its folder writable.") from error


@contextmanager
def _held(path: Path, waits: Waits) -> Iterator[int]:
    """The open file, while nobody else can add to it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        acquire(descriptor, waits.lock, waits.lock_poll, str(path))
        yield descriptor
    finally:
        os.close(descriptor)  # which lets go of the lock


def _keep(path: Path) -> Path:
    """Give the original a second name, `NAME.damaged-1` or the next number; returns it."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.damaged-{number}")
        try:
            os.link(path, kept)
            return kept
        except FileExistsError:
            number += 1


def _diagnose(path: Path, descriptor: int) -> Diagnosis:
    status = os.fstat(descriptor)
    with open(descriptor, "rb", closefd=False) as stream:
        examined = Examination(stream.read(), path.stem, status.st_mtime)
    problems = examined.problems
    damaged = bool(problems)
    mode = stat.S_IMODE(status.st_mode)
    if mode != _MODE:
        problems = [*problems, f"others may get at it: its mode is {mode:04o}. A repair makes it 0600."]
    return Diagnosis(problems=tuple(problems), content=examined.content(), damaged=damaged)


class Examination:
    """One pass through a session file: what is wrong in it, and the lines without that.

    Args:
        name: the session's id, where the file does not say it.
        written: when the file was last written, in seconds since the epoch.
    """

    def __init__(self, data: bytes, name: str, written: float) -> None:
        self.problems: list[str] = []
        self._name = name
        self._written = written
        self._headers: dict[int, Header] = {}
        self._records: list[tuple[int, dict[str, Any]]] = []
        self._mended: list[dict[str, Any]] = []
        self._ids: dict[str, str] = {}
        """The id that each one stands for from here on."""
        self._open: dict[str, dict[str, str]] = {}
        """Of each mended record by id: the calls, by id with their names, that have no output yet on the way to it."""
        self._read(data)
        self._header = self._find_header()
        if self._header is not None:
            self._mend()

    def content(self) -> bytes | None:
        """The mended file; None where there is nothing to mend."""
        if self._header is None:
            return None
        newest = list(self._headers.values())[-1:]
        said = sum(record["type"] == "message" for record in self._mended)
        lines = [header_line(self._header), *map(record_line, self._mended)]
        return b"".join([*lines, *(header_line(header, said) for header in newest if header != self._header)])

    def _read(self, data: bytes) -> None:
        """Take the lines apart into headers and records."""
        if not data.strip():
            self.problems.append("it is empty. A repair moves it aside.")
            return
        for number, line in enumerate(data.split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if record["type"] == "session":
                    self._headers[number] = header_of(record)
                    continue
                _check(record)
                self._records.append((number, record))
            except (ValueError, KeyError, TypeError, AttributeError, SessionError) as error:
                self._tell(number, f"cannot be read: {str(error)[:_CUT]}.", "leaves it out")

    def _tell(self, number: int, what: str, remedy: str) -> None:
        self.problems.append(f"line {number} {what} A repair {remedy}.")

    def _find_header(self) -> Header | None:
        """The header that the mended file begins with; one is made up where there is none."""
        if not self._headers and not self._records:
            if self.problems[0].startswith("line"):
                self.problems.append("nothing in it can be read. A repair moves it aside.")
            return None
        first = min(self._headers, default=0)
        if first and (not self._records or first < self._records[0][0]):
            return self._headers[first]
        if first:
            self.problems.append("it does not begin with its header. A repair puts the one from further down there.")
            return self._headers[first]
        self.problems.append("it has no header. A repair makes one from what was said.")
        return self._made_up()

    def _made_up(self) -> Header:
        said = [from_dict(record["message"]) for _, record in self._records if record["type"] == "message"]
        title = next((message.text for message in said if message.role == "user"), self._name)
        last = next((message for message in reversed(said) if message.model), None)
        return Header(
            id=self._name,
            title=" ".join(title.split())[:_CUT],
            time=self._written,
            provider=last.provider if last else "",
            model=last.model if last else "",
            working_dir="",
        )

    def _mend(self) -> None:
        assert self._header is not None
        self._ids[self._header.id] = self._header.id
        self._open[self._header.id] = {}
        every = {record["id"] for _, record in self._records}
        last = self._header.id
        for number, record in self._records:
            parent = self._parent(number, record, last, every)
            self._add(number, {**record, "id": self._identity(number, record), "parent": parent})
            last = self._mended[-1]["id"] if self._mended else last
        self._close_ends()

    def _parent(self, number: int, record: Mapping[str, Any], above: str, every: set[str]) -> str:
        """What the record follows, by its id in the mended file: always one above it."""
        parent = record.get("parent")
        if isinstance(parent, str) and parent in self._ids:
            return self._ids[parent]
        lost = not isinstance(parent, str) or parent not in every
        what = "follows a line that was lost." if lost else "follows one that stands below it, or itself."
        self._tell(number, what, "has it follow the line above")
        return above

    def _identity(self, number: int, record: Mapping[str, Any]) -> str:
        identity: str = record["id"]
        count = 1
        while identity in self._open:
            count += 1
            identity = f"{record['id']}~{count}"
        if count > 1:
            self._tell(number, f"has the id of another one, {record['id']}.", "gives it one of its own")
        return identity

    def _add(self, number: int, record: dict[str, Any]) -> None:
        """Add a record to the mended ones, with outputs for the calls that have none."""
        waiting = self._open[record["parent"]]
        original = self._records_id(number)
        if record["type"] == "state":
            self._put(record, waiting)
        elif record["type"] == "compaction":
            messages = compacted = [from_dict(message) for message in record["messages"]]
            compacted = self._answered(number, messages)
            self._put({**record, "messages": list(map(to_dict, compacted))}, {})
        elif record["type"] == "message":
            message = from_dict(record["message"])
            ...
        self._ids[original] = record["id"]
