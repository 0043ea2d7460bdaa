"""The session file: an append-only tree of records, one JSON object a line.

The first record is the header. Every other one names its parent, so that going back to an earlier
point and on from there makes a branch and never rewrites anything.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import SessionError
from .files import acquire
from .messages import Message, Text, ToolOutput, from_dict, to_dict, tool
from .records import Record
from .waits import Waits

VERSION = 1
INTERRUPTED = (
    "This call was interrupted before it had a result. It may have done part of its work: "
    "check, then call it again if it is still needed."
)


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


class Loaded(Record):
    """What was read from a session file: the branch that ends in its newest record.

    `leaf` is the id of that record, and `before_last` that of the one which its last message follows.
    `problems` names each line that had to be skipped.
    """

    header: Header
    messages: tuple[Message, ...]
    state: Mapping[str, Any]
    leaf: str
    before_last: str
    problems: tuple[str, ...]


class Transcript:
    """Writes one session file. Nothing is created before the first `append`."""

    def __init__(self, path: Path, header: Header, waits: Waits, *, leaf: str = "", before_last: str = "") -> None:
        self.path = path
        self.header = header
        self._waits = waits
        self._leaf = leaf
        self._before_last = before_last
        self._descriptor: int | None = None
        self._written = 0
        # Part of each record's id: a session is written by many processes, and even their numbers return.
        self._writer = os.urandom(6).hex()

    @property
    def leaf(self) -> str:
        """The record that the next one will follow; empty before the first."""
        return self._leaf

    def append(self, *messages: Message) -> None:
        """Add messages after the newest one of this writer, in one write.

        Raises:
            SessionError: where the file cannot be written.
        """
        self._write([("message", {"message": to_dict(message)}) for message in messages])

    def append_state(self, state: Mapping[str, Any]) -> None:
        """Add what packs keep in the session; the newest state counts. Raises as `append`."""
        self._write([("state", {"state": state})])

    def rename(self, title: str) -> None:
        """Give the session another title: the newest header counts. Raises as `append`."""
        self.header = self.header.replace(title=title)
        self._append_lines([self._header_line()])

    def step_back(self) -> None:
        """Go back to before the last message; what is appended next becomes another branch beside it."""
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

    def _write(self, records: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        lines = []
        leaf = self._leaf
        if not self._leaf:
            lines.append(self._header_line())
            leaf = self.header.id
        before_last = self._before_last
        for kind, data in records:
            self._written += 1
            identity = f"{self._writer}.{self._written}"
            lines.append(_line({"type": kind, "id": identity, "parent": leaf, **data}))
            before_last = leaf if kind == "message" else before_last
            leaf = identity
        self._append_lines(lines)
        self._leaf, self._before_last = leaf, before_last

    def _header_line(self) -> bytes:
        return _line({"type": "session", "version": VERSION, **self.header.as_dict()})

    def _append_lines(self, lines: Iterable[bytes]) -> None:
        try:
            self._append_bytes(b"".join(lines))
        except OSError as error:
            raise SessionError(
                f"The session cannot be saved to {self.path}: {error.strerror}. "
                "Free space or make the folder writable; the conversation goes on unsaved."
            ) from error

    def _append_bytes(self, data: bytes) -> None:
        descriptor = self._open()
        acquire(descriptor, self._waits.lock, self._waits.lock_poll, str(self.path))
        try:
            end = os.lseek(descriptor, 0, os.SEEK_END)
            if end and os.pread(descriptor, 1, end - 1) != b"\n":
                data = b"\n" + data
            if os.write(descriptor, data) < len(data):
                os.ftruncate(descriptor, end)
                raise OSError(28, "the disk is full")
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _open(self) -> int:
        if self._descriptor is None:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, 0o600)
        return self._descriptor


def _line(record: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes of its own, only an escape
        return (json.dumps(record, separators=(",", ":")) + "\n").encode()


def new_session_id(now: float, title: str) -> str:
    """The id of a session, which is also its file's name: the time in UTC and a slug of the title."""
    from datetime import UTC, datetime

    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S-%f")[:-3]
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in title.lower()).split()
    return f"{stamp}-{'-'.join(words[:6])[:40].strip('-') or 'session'}"


def sessions(folder: Path) -> list[Path]:
    """The session files of a folder, newest first."""
    return sorted(folder.glob("*.jsonl"), reverse=True)


def read_header(path: Path) -> Header | None:
    """The header that a session file begins with, or None where there is none; see `archive.survey` for its title."""
    try:
        with path.open("rb") as stream:
            return header_of(json.loads(stream.readline()))
    except (OSError, ValueError, SessionError):
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
        raise SessionError(f"There is no session {session_id!r}. `--continue` takes the newest of this folder.")
    names = ", ".join(path.stem for path in matches[:5])
    raise SessionError(f"{session_id!r} fits {len(matches)} sessions: {names}. Give more of the id.")


def newest_of(folder: Path, working_dir: str) -> Path:
    """The file of the newest session of a working directory.

    Raises:
        SessionError: where there is none.
    """
    for path in sessions(folder):
        header = read_header(path)
        if header is not None and header.working_dir == working_dir:
            return path
    raise SessionError(f"There is no session of {working_dir} to continue. Start one without --continue.")


def load(path: Path, leaf: str = "") -> Loaded:
    """Read a session, skipping and naming damaged lines.

    Args:
        leaf: the record that the branch ends in; the newest one by default.

    Raises:
        SessionError: where the file cannot be read or has no usable header.
    """
    problems: list[str] = []
    header, records = read_records(path, problems)
    leaf = leaf or next(reversed(records), "")
    branch = _branch(records, leaf, header.id, problems)
    messages, state = _replay(branch, problems)
    followed = [record.get("parent") for record in branch if record["type"] == "message"]
    return Loaded(
        header=header,
        messages=messages,
        state=state,
        leaf=leaf or header.id,
        before_last=str(followed[-1]) if followed else header.id,
        problems=tuple(problems),
    )


def read_records(path: Path, problems: list[str]) -> tuple[Header, dict[str, dict[str, Any]]]:
    """The newest header of a session file and its other records by id, in the order of the file.

    Args:
        problems: each line that had to be skipped is named here.

    Raises:
        SessionError: where the file cannot be read or has no usable header.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise SessionError(f"The session {path} cannot be read: {error.strerror}.") from error
    records: dict[str, dict[str, Any]] = {}
    header: Header | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if record["type"] == "session":
                header = header_of(record)
            else:
                records[record["id"]] = record
        except (ValueError, KeyError, TypeError, SessionError) as error:
            problems.append(f"line {number} of {path.name} was skipped: {error}")
    if header is None:
        raise SessionError(f"{path} is not a session file: it has no header. Start a new session.")
    return header, records


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


def _branch(records: Mapping[str, dict[str, Any]], leaf: str, root: str, problems: list[str]) -> list[dict[str, Any]]:
    """The records from the oldest to the leaf. Where one was lost, the way goes on to the one above it in the file."""
    above = dict(zip(records, [root, *records], strict=False))
    branch: list[dict[str, Any]] = []
    seen: set[str] = set()
    while leaf in records and leaf not in seen:
        seen.add(leaf)
        branch.append(records[leaf])
        parent = records[leaf].get("parent")
        if parent != root and (not isinstance(parent, str) or parent not in records):
            problems.append(f"what record {leaf} followed was lost")
            parent = above[leaf]
        leaf = parent
    if leaf in seen:
        problems.append(f"record {leaf} is its own ancestor; what lies before it was left out")
    return branch[::-1]


def _replay(branch: Iterable[Mapping[str, Any]], problems: list[str]) -> tuple[tuple[Message, ...], dict[str, Any]]:
    messages: list[Message] = []
    state: dict[str, Any] = {}
    for record in branch:
        try:
            if record["type"] == "message":
                messages.append(from_dict(record["message"]))
            elif record["type"] == "state":
                state = dict(record["state"])
        except (ValueError, KeyError, TypeError) as error:
            problems.append(f"record {record.get('id')} was skipped: {error}")
    return tuple(messages), state


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
        calls = message.calls
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
