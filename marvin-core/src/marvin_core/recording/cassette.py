"""Reads a cassette: conversations with their prompts, requests, answers and calls. The file is untrusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..api.errors import MarvinError
from ..util.json_lines import lines_forwards
from ..util.text import cut, one_line
from ..util.untrusted_json import parse_json
from .form import digest
from .writing import LONGEST, VERSION

_LARGEST = 256 * 1024 * 1024
_MOST_LINES = 1_000_000
_MOST_REQUESTS = 5_000
_MOST_MESSAGES = 2_000_000
"""The maximum number of messages in all requests: shared messages count in each request."""
_MOST_OPEN = 1_000
"""The maximum number of calls of a conversation that run at the same time."""
_LARGE = 1_000_000_000
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class CassetteError(MarvinError):
    """The file is not a cassette that can be replayed."""


class RecordedRequest:
    """A request and its answer. `answer` is None if the recording ended before it was complete."""

    def __init__(self, number: int, value: dict[str, Any], head: Mapping[str, Any]) -> None:
        self.number = number
        self.value = value
        self.provider = _text(head, "provider")
        self.model = _text(head, "model")
        self.window = _whole(head, "window")
        self.max_tools = _whole(head, "max_tools")
        self.is_whole = bool(value) and digest(value) == head.get("digest")
        self.answer: Mapping[str, Any] | None = None
        self.steered: list[str] = []
        """Messages from a person during the answer or its calls."""


class RecordedCall:
    """A tool call, and its result. `result` is None if the recording ended before it."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        self.id = _text(head, "id")
        self.name = _text(head, "name")
        self.arguments = head.get("arguments") if isinstance(head.get("arguments"), Mapping) else {}
        self.result: Mapping[str, Any] | None = None
        self.extras: Mapping[str, Any] = {}
        self.starts_agent = False
        self.asks = False
        """Whether a person was asked for text during the call."""


class RecordedPrompt:
    """A prompt, and its requests and calls."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        self.text = _text(head, "text")
        self.mode = "coding" if head.get("mode") == "coding" else "chat"
        self.tools = _text(head, "tools")
        self.origin = ""
        self.commands: list[str] = []
        """Slash commands since the previous prompt; a replay does not run them."""
        self.steered: list[str] = []
        self.requests: list[RecordedRequest] = []
        self.calls: dict[str, RecordedCall] = {}
        self.done: Mapping[str, Any] | None = None


class Recorded:
    """A conversation: that of the session, or of a sub-agent."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        self.id = _text(head, "c")
        self.head = head
        self.depth = _whole(head, "depth") or 0
        self.prompts: list[RecordedPrompt] = []
        self.commands: list[str] = []
        self.beside: list[RecordedRequest] = []
        """Requests without a prompt, such as that of a command that compacts."""
        self.ended = False
        self.open: dict[str, RecordedCall] = {}

    @property
    def requests(self) -> Iterator[RecordedRequest]:
        """The requests of all prompts, in order."""
        for prompt in self.prompts:
            yield from prompt.requests


class Cassette:
    """The content of a file. `notes` names missing parts."""

    def __init__(self, marvin: str) -> None:
        self.marvin = marvin
        self.conversations: dict[str, Recorded] = {}
        self.notes: list[str] = []

    @property
    def main(self) -> Recorded:
        """The conversation of the session itself. Raises `CassetteError` if there is none."""
        for found in self.conversations.values():
            return found
        raise CassetteError("The cassette has no session: it ended before one began.")

    @property
    def is_cut(self) -> bool:
        """Whether the recording ended before the session did."""
        return any(not found.ended for found in self.conversations.values())


def read_cassette(path: Path) -> Cassette:
    """Read the cassette in a file.

    Raises:
        CassetteError: it is not a cassette, or is damaged; the text names the line.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        raise CassetteError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise CassetteError(f"{path} is not a file.")
        if about.st_size > _LARGEST:
            raise CassetteError(f"{path} is larger than {_LARGEST:,} bytes, so it is not read.")
        whole_end = not about.st_size or os.pread(descriptor, 1, about.st_size - 1) == b"\n"
        return _Reading(path).read(lines_forwards(descriptor, 0, about.st_size, LONGEST), whole_end=whole_end)
    finally:
        os.close(descriptor)


class _Reading:
    """Builds a cassette from the records of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cassette: Cassette | None = None
        self._requests: dict[tuple[str, int], RecordedRequest] = {}
        self._messages = 0

    def read(self, lines: Iterator[tuple[bytes, bool]], *, whole_end: bool) -> Cassette:
        number, fault = 0, ""
        for number, (line, is_whole) in enumerate(lines, 1):
            if number > _MOST_LINES:
                raise CassetteError(f"{self._path} has more than {_MOST_LINES:,} lines, so it is not read.")
            if fault:
                raise CassetteError(fault)
            line = line.removesuffix(b"\r")
            if not line:
                continue
            if not is_whole:
                raise CassetteError(f"Line {number} of {self._path} is longer than {LONGEST:,} bytes.")
            try:
                record = parse_json(line, LONGEST)
                if not isinstance(record, dict):
                    raise ValueError("it is not a record")
                self._take(record)
            except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
                fault = f"Line {number} of {self._path} is damaged: {cut(one_line(str(error)))}"
        if self._cassette is None:
            raise CassetteError(fault or f"{self._path} is not a cassette: it does not begin like one.")
        if fault and whole_end:
            raise CassetteError(fault)
        if self._cassette.is_cut:
            self._cassette.notes.append("the recording was cut: the session went on, or was ended from outside")
        return self._cassette

    def _take(self, record: Mapping[str, Any]) -> None:
        kind = record.get("type")
        if self._cassette is None:
            if kind != "cassette":
                raise CassetteError(f"{self._path} is not a cassette: it does not begin like one.")
            version = record.get("version")
            if version != VERSION:
                raise CassetteError(
                    f"{self._path} is a cassette of version {version!r:.20}; this Marvin reads {VERSION}."
                )
            self._cassette = Cassette(cut(one_line(_text(record, "marvin")), 40))
            return
        if kind == "conversation":
            self._begin(record)
            return
        of = self._cassette.conversations.get(_text(record, "c"))
        if of is None:
            raise ValueError("it belongs to no conversation")
        self._add(of, str(kind), record)

    def _begin(self, record: Mapping[str, Any]) -> None:
        assert self._cassette is not None
        begun = Recorded(record)
        if begun.id in self._cassette.conversations or len(self._cassette.conversations) >= _MOST_REQUESTS:
            raise ValueError("a conversation begins twice")
        for earlier in self._cassette.conversations.values():  # a running call started it
            if earlier.depth < begun.depth:
                for call in earlier.open.values():
                    call.starts_agent = True
        self._cassette.conversations[begun.id] = begun

    def _add(self, of: Recorded, kind: str, record: Mapping[str, Any]) -> None:
        assert self._cassette is not None
        prompt = of.prompts[-1] if of.prompts and of.prompts[-1].done is None else None
        if kind == "prompt":
            of.prompts.append(RecordedPrompt(record))
            of.prompts[-1].commands, of.commands = of.commands, []
        elif kind == "request":
            self._request(of, prompt, record)
        elif kind == "answer":
            self._requests[of.id, int(record["n"])].answer = _answer(record)
        elif kind == "call":
            self._call(of, prompt, record)
        elif kind in ("result", "extras"):
            _result(of, kind, record)
        elif kind == "message" and prompt is not None:
            _message(prompt, record)
        elif kind == "question":
            for call in of.open.values():
                call.asks = call.asks or record.get("kind") == "text"
        elif kind == "command":
            of.commands.append(cut(one_line(_text(record, "name")), 60))
        elif kind == "done" and prompt is not None:
            prompt.done = record
        elif kind == "end":
            of.ended = True
        elif kind == "left_out":
            what = cut(one_line(str(record.get("of"))), 40)
            self._cassette.notes.append(f"a record was too large and left out: {what}")
        elif kind == "full":
            self._cassette.notes.append("the cassette was full before the session ended")

    def _request(self, of: Recorded, prompt: RecordedPrompt | None, record: Mapping[str, Any]) -> None:
        number = int(record["n"])
        if (of.id, number) in self._requests or len(self._requests) >= _MOST_REQUESTS:
            raise ValueError("a request occurs twice, or there are too many requests")
        value = dict(_mapping(record, "request"))
        if value:
            self._complete(of, value, record)
        made = RecordedRequest(number, value, record)
        self._requests[of.id, number] = made
        (of.beside if prompt is None else prompt.requests).append(made)

    def _complete(self, of: Recorded, value: dict[str, Any], record: Mapping[str, Any]) -> None:
        """Copy the shared parts from an earlier request."""
        messages = value.get("messages")
        if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
            raise ValueError("its messages are not valid")
        if "like" in record:
            like = self._requests[of.id, int(record["like"])].value
            same = int(record.get("same", 0))
            if not 0 <= same <= len(like["messages"]):
                raise ValueError("it refers to messages that do not exist")
            value["messages"] = [*like["messages"][:same], *messages]
            for name, inner in like.items():
                value.setdefault(name, inner)
        self._messages += len(value["messages"])
        if self._messages > _MOST_MESSAGES:
            raise ValueError("its requests are too long in total")

    def _call(self, of: Recorded, prompt: RecordedPrompt | None, record: Mapping[str, Any]) -> None:
        if len(of.open) >= _MOST_OPEN:
            raise ValueError("too many calls have no result")
        call = RecordedCall(record)
        if prompt is not None:
            prompt.calls[call.id] = call
        of.open[call.id] = call


def _result(of: Recorded, kind: str, record: Mapping[str, Any]) -> None:
    call_id = _text(record, "id")
    if kind == "result" and call_id in of.open:
        call = of.open.pop(call_id)
        if not isinstance(record.get("text", ""), str):
            raise ValueError("the text of a result is not valid")
        call.result = record
    elif kind == "extras" and of.prompts and call_id in of.prompts[-1].calls:
        of.prompts[-1].calls[call_id].extras = record


def _message(prompt: RecordedPrompt, record: Mapping[str, Any]) -> None:
    """Messages to the model other than its own answers."""
    origin = _text(record, "origin")
    if origin == "steered":
        told = prompt.requests[-1].steered if prompt.requests else prompt.steered
        told.append(_text(record, "text"))
    elif not prompt.origin:
        prompt.origin = origin


def _answer(record: Mapping[str, Any]) -> Mapping[str, Any]:
    parts = record.get("parts")
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise ValueError("an answer has no parts")
    for part in parts:
        pieces = part.get("pieces", [])
        if not isinstance(pieces, list) or not all(map(_is_piece, pieces)):
            raise ValueError("an answer has parts that are not valid")
    return record


def _is_piece(piece: Any) -> bool:
    if not isinstance(piece, list) or len(piece) != 2 or not isinstance(piece[1], int):
        return False
    return isinstance(piece[0], (int, float)) and all(abs(one) < _LARGE for one in piece)


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a text")
    return value


def _whole(record: Mapping[str, Any], name: str) -> int | None:
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGE else None


def _mapping(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = record.get(name)
    return value if isinstance(value, Mapping) else {}


def shared_start(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the common prefix of two lists."""
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return min(len(left), len(right))
