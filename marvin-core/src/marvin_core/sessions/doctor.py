"""Finds problems of a session file, and repairs them in a copy; no message is ever deleted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..api.errors import SessionError
from ..api.messages import Message, from_dict, to_dict, tool
from ..api.record import Record
from ..api.timeouts import Timeouts
from ..conversation.pairing import heal, interrupted
from ..util.json_lines import lines_forwards, record_line
from ..util.state_files import acquire, replace_file
from ..util.text import one_line
from ..util.untrusted_json import parse_json
from .reader import compaction_of
from .records import LARGEST_LINE, Header, header_line, header_of

_MODE = 0o600
_TITLE = 80
_PROBLEMS = 1_000
"""The number of problems listed individually; the others are counted."""


class Diagnosis(Record):
    """The problems of a session file, one sentence each, with the effect of a repair."""

    problems: tuple[str, ...]
    content: bytes | None
    """The repaired content; None if no part of the file can be read."""
    damaged: bool
    """Whether the content itself is damaged, and not only the mode."""


def diagnose(path: Path, timeouts: Timeouts, largest: int = LARGEST_LINE) -> Diagnosis:
    """Check a file. `largest` is the maximum size of a line in bytes.

    Raises:
        SessionError: if the file cannot be read.
        MarvinError: if another process holds it.
    """
    with _held(path, timeouts) as descriptor:
        return _diagnose(path, descriptor, largest)


def repair(path: Path, timeouts: Timeouts, largest: int = LARGEST_LINE) -> tuple[Diagnosis, Path | None]:
    """Repair a file; returns its problems, and the path of the original if it had to be replaced.

    Raises as `diagnose` does, and `SessionError` if the folder cannot be written; the file is then unchanged.
    """
    with _held(path, timeouts) as descriptor:
        found = _diagnose(path, descriptor, largest)
        try:
            os.fchmod(descriptor, _MODE)
            if not found.damaged:
                return found, None
            written = os.fstat(descriptor)
            kept = _keep(path)
            if found.content is None:
                path.unlink()
            else:
                replace_file(path, found.content, _MODE, keep_mode=False)
                os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))  # a repair is not counted as use
            return found, kept
        except OSError as error:
            raise SessionError(f"{path} cannot be repaired: {error.strerror}. Make its folder writable.") from error


@contextmanager
def _held(path: Path, timeouts: Timeouts) -> Iterator[int]:
    """The open file, locked so that no other process can append to it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        acquire(descriptor, timeouts.lock, timeouts.lock_poll, str(path))
        yield descriptor
    finally:
        os.close(descriptor)  # this releases the lock


def _keep(path: Path) -> Path:
    """Create a hard link `NAME.damaged-1`, or with the next number, to the original; returns it."""
    number = 1
    while True:
        kept = path.with_name(f"{path.name}.damaged-{number}")
        try:
            os.link(path, kept)
            return kept
        except FileExistsError:
            number += 1


def _diagnose(path: Path, descriptor: int, largest: int) -> Diagnosis:
    status = os.fstat(descriptor)
    lines = lines_forwards(descriptor, 0, status.st_size, largest)
    examined = FileCheck(lines, path.stem, status.st_mtime)
    problems = examined.told()
    damaged = bool(problems)
    mode = stat.S_IMODE(status.st_mode)
    if mode != _MODE:
        problems = [*problems, f"Its mode is {mode:04o}, so other users may read it. A repair sets it to 0600."]
    return Diagnosis(problems=tuple(problems), content=examined.content(), damaged=damaged)


class _Waiting(Record):
    """A call without an output so far: the tool, and the line of the call."""

    tool: str
    line: int


class FileCheck:
    """One pass through a session file: its problems, and its repaired lines.

    Args:
        lines: the lines, each with whether it is complete.
        name: the session's id, if the file does not contain it.
        written: the time of the last write, in seconds since the epoch.
    """

    def __init__(self, lines: Iterable[tuple[bytes, bool]], name: str, written: float) -> None:
        self.problems: list[str] = []
        self._more_problems = 0
        self._name = name
        self._written = written
        self._headers: dict[int, Header] = {}
        self._records: list[tuple[int, dict[str, Any]]] = []
        self._mended: list[dict[str, Any]] = []
        self._ids: dict[str, str] = {}
        """The repaired record for each record id of the file."""
        self._open: dict[str, dict[str, _Waiting]] = {}
        """For each repaired record: the calls above it that have no output yet, by id."""
        self._closed: dict[str, dict[str, Any]] = {}
        """For each repaired record: the outputs that were added right after it."""
        self._copies: dict[str, int] = {}
        self._read(lines)
        self._header = self._find_header()
        if self._header is not None:
            self._mend(self._header.id)

    def content(self) -> bytes | None:
        """The repaired file; None if no repair is needed."""
        if self._header is None:
            return None
        lines = [header_line(self._header)]
        said = len(self._closed)
        for record in self._mended:
            lines.append(record_line(record))
            said += record["type"] == "message"
            if record["id"] in self._closed:
                lines.append(record_line(self._closed[record["id"]]))
        newest = self._headers[max(self._headers)] if self._headers else self._header
        if newest != self._header:
            lines.append(header_line(newest, said))
        return b"".join(lines)

    def told(self) -> list[str]:
        """The problems, up to the number that is listed individually."""
        return [*self.problems, f"There are {self._more_problems:,} more."] if self._more_problems else self.problems

    def _read(self, lines: Iterable[tuple[bytes, bool]]) -> None:
        """Split the lines into headers and records."""
        for number, (line, whole) in enumerate(lines, 1):
            if not line.strip() and whole:
                continue
            if not whole:
                self._tell(number, "is too long (`limits.session_line` in config.yaml).", "leaves it out")
                continue
            try:
                record = parse_json(line, len(line))
                if record["type"] == "session":
                    self._headers[number] = header_of(record)
                else:
                    _check(record)
                    self._records.append((number, record))
            except (ValueError, KeyError, TypeError, AttributeError, SessionError):
                self._tell(number, "is incomplete or damaged.", "leaves it out")

    def _tell(self, number: int, what: str, remedy: str) -> None:
        if len(self.problems) < _PROBLEMS:
            self.problems.append(f"Line {number} {what} A repair {remedy}.")
        else:
            self._more_problems += 1

    def _find_header(self) -> Header | None:
        """The header of the repaired file; a new one if there is none."""
        if not self._headers and not self._records:
            what = "Nothing in it can be read." if self.problems else "It is empty."
            self.problems.append(f"{what} A repair moves it aside.")
            return None
        if not self._headers:
            self.problems.append("It has no header. A repair creates one from the conversation.")
            return self._made_up()
        first = min(self._headers)
        if self._records and self._records[0][0] < first:
            self.problems.append("It does not begin with its header. A repair moves the header to the beginning.")
        return self._headers[first]

    def _made_up(self) -> Header:
        said = [from_dict(record["message"]) for _, record in self._records if record["type"] == "message"]
        title = next((message.text for message in said if message.role == "user"), self._name)
        last = next((message for message in reversed(said) if message.model), None)
        return Header(
            id=self._name,
            title=one_line(title, _TITLE),
            time=self._written,
            provider=last.provider if last else "",
            model=last.model if last else "",
            working_dir="",
        )

    def _mend(self, root: str) -> None:
        self._ids[root] = root
        self._open[root] = {}
        every = {record["id"] for _, record in self._records}
        above = root
        for number, record in self._records:
            parent = self._parent(number, record, above, every)
            self._add(number, {**record, "id": self._identity(number, record), "parent": parent}, record["id"])
            above = self._ids[record["id"]]
        followed = {record["parent"] for record in self._mended}
        for end in [record["id"] for record in self._mended if record["id"] not in followed]:
            self._close(end)

    def _parent(self, number: int, record: Mapping[str, Any], above: str, every: set[str]) -> str:
        """The parent of the record, by its id in the repaired file: always an earlier one."""
        parent = record.get("parent")
        if isinstance(parent, str) and parent in self._ids:
            return self._ids[parent]
        below = isinstance(parent, str) and parent in every
        what = (
            "refers to a later record, or to itself, as its parent." if below else ("refers to a parent that was lost.")
        )
        self._tell(number, what, "makes the record above it its parent")
        return above

    def _identity(self, number: int, record: Mapping[str, Any]) -> str:
        original: str = record["id"]
        identity = original
        while identity in self._open:
            self._copies[original] = self._copies.get(original, 1) + 1
            identity = f"{original}~{self._copies[original]}"
        if identity != original:
            self._tell(number, "has the same id as another record.", "gives it a new id")
        return identity

    def _add(self, number: int, record: dict[str, Any], original: str) -> None:
        """Add a record to the repaired ones; missing outputs are inserted before it, and superfluous ones left out."""
        self._ids[original] = record["id"]
        if record["type"] == "compaction":
            self._add_compaction(number, record)
        elif record["type"] != "message":
            self._put(record, self._open[record["parent"]])
        elif record["message"]["role"] == "tool":
            self._add_outputs(number, record, original)
        else:
            record["parent"] = self._close(record["parent"])
            self._put(record, _calls(from_dict(record["message"]), number))

    def _add_outputs(self, number: int, record: dict[str, Any], original: str) -> None:
        message = from_dict(record["message"])
        waiting = dict(self._open[record["parent"]])
        answers = [output for output in message.outputs if waiting.pop(output.call_id, None)]
        if len(answers) < len(message.content):
            self._tell(number, "has an output without a call.", "leaves the output out")
            record["message"] = to_dict(tool(answers))
        if answers:
            self._put(record, waiting)
        else:
            self._ids[original] = record["parent"]

    def _add_compaction(self, number: int, record: dict[str, Any]) -> None:
        messages = compaction_of(record)
        # Outputs of its last calls may follow in the file.
        last = messages[-1:] if messages and messages[-1].calls else ()
        healed = (*heal(messages[: len(messages) - len(last)])[0], *last)
        if healed != messages:
            self._tell(number, "has calls without outputs, or outputs without calls.", "gives each call one output")
            record["messages"] = [to_dict(message) for message in healed]
        self._put(record, _calls(last[0], number) if last else {})

    def _put(self, record: dict[str, Any], waiting: dict[str, _Waiting]) -> None:
        self._mended.append(record)
        self._open[record["id"]] = waiting

    def _close(self, parent: str) -> str:
        """Add outputs for calls without one before a record; returns the new parent of the record."""
        waiting = self._open[parent]
        if not waiting:
            return parent
        if parent not in self._closed:
            for call in waiting.values():
                what = f"calls {call.tool}, which has no output: it was interrupted."
                self._tell(call.line, what, "adds an output that says so")
            outputs = tool([interrupted(identity, call.tool) for identity, call in waiting.items()])
            identity = f"{parent}~outputs"
            record = {"type": "message", "id": identity, "parent": parent, "message": to_dict(outputs)}
            self._open[identity] = {}
            self._closed[parent] = record
        return f"{parent}~outputs"


def _calls(message: Message, line: int) -> dict[str, _Waiting]:
    return {call.id: _Waiting(tool=call.name, line=line) for call in message.calls}


def _check(record: Any) -> None:
    """Raises ValueError, KeyError or TypeError if a record is invalid."""
    if not isinstance(record["id"], str) or not isinstance(record["type"], str):
        raise ValueError("its id or its type is not text")
    if record["type"] == "message":
        from_dict(record["message"])
    elif record["type"] == "compaction":
        compaction_of(record)
    elif record["type"] == "state":
        dict(record["state"])
