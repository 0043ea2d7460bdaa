"""The records of a session file: the header, and lines of bounded length."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..api.errors import SessionError, UsageError
from ..api.limits import Limits
from ..api.record import Record
from ..util.json_lines import record_line
from ..util.numbers import amount
from ..util.text import one_line

VERSION = 1
LARGEST_LINE = Limits().session_line
_TITLE = 80
_LEAST = 1_000
"""The minimum length to which a text is cut, in characters."""
_GROWTH = 6
"""The maximum size of a character in JSON, in bytes."""
_CUT = "\n[The session file contains only this part: {:,} characters were left out.]"
_NO_IMAGE = "[An image was too large for the session file.]"
_KIND = re.compile(rb'\s*\{\s*"type"\s*:\s*"(\w+)"')


class Header(Record):
    """The description of the session in its file."""

    id: str
    title: str
    time: float
    provider: str
    model: str
    working_dir: str
    thinking: str = "off"
    parent: str = ""
    """The session that this one was forked from."""
    spent: float = 0.0
    """The known cost of the session so far, in USD."""
    depth: int = 0
    """The nesting depth of its agent; 0 for a session of a person."""


def header_of(record: Any) -> Header:
    """The header in a record.

    Raises:
        SessionError: if it does not contain one.
    """
    if not isinstance(record, dict) or record.get("type") != "session":
        raise SessionError("not a header")
    try:
        fields = {name: record[name] for name in Header._defaults if name in record}
        header = Header(**{**fields, "spent": amount(record.get("spent")) or 0.0})
    except TypeError as error:
        raise SessionError(str(error)) from error
    for name, value in header.as_dict().items():
        if not isinstance(value, (int, float) if name in ("time", "spent", "depth") else str):
            raise SessionError(f"{name} of the header is {value!r:.100}")
    return header


def title_of(words: str) -> str:
    """The words as a title.

    Raises:
        UsageError: if there are none.
    """
    title = one_line(words, _TITLE)
    if not title:
        raise UsageError("The title is empty. Give some words.")
    return title


def kind_of(line: bytes) -> bytes:
    """The kind of a line, such as `message`, without decoding it."""
    found = _KIND.match(line)
    return found[1] if found else b""


def header_line(header: Header, messages: int | None = None) -> bytes:
    """The line of a header. Headers after the first also contain the number of messages above them in the file."""
    count = {} if messages is None else {"messages": messages}
    return record_line({"type": "session", "version": VERSION, **header.as_dict(), **count})


class LineTooLong(SessionError):
    """A record is larger than a line may be, and cannot be shortened."""


def line_of(record: Mapping[str, Any], largest: int) -> bytes:
    """The line of a record. If it is too long, the texts of its messages are cut, with a mark at each cut.

    Raises:
        LineTooLong: if that is not enough.
    """
    line = record_line(record)
    most = largest
    while len(line) > largest:
        most //= 4
        if most < _LEAST:
            raise LineTooLong(
                f"A {record['type']} of {len(line):,} bytes is too large for the session file and was not saved. "
                "limits.session_line in config.yaml sets the maximum size of a line."
            )
        line = record_line(_cut(record, most // _GROWTH))
    return line


def _cut(record: Mapping[str, Any], most: int) -> dict[str, Any]:
    if "message" in record:
        return {**record, "message": _cut_message(record["message"], most)}
    if "messages" in record:
        return {**record, "messages": [_cut_message(message, most) for message in record["messages"]]}
    return dict(record)


def _cut_message(message: Mapping[str, Any], most: int) -> dict[str, Any]:
    return {**message, "content": [_cut_block(block, most) for block in message["content"]]}


def _cut_block(block: Mapping[str, Any], most: int) -> dict[str, Any]:
    cut = dict(block)
    if block["type"] == "image":
        return cut if len(block["data"]) <= most else {"type": "text", "text": _NO_IMAGE}
    if block["type"] == "tool_output":
        cut["content"] = [_cut_block(part, most) for part in block["content"]]
        for extra in ("show", "undo"):  # half of it would have another meaning
            if len(record_line({"": block.get(extra)})) > most:
                cut.pop(extra, None)
    elif block["type"] == "tool_call" and len(block["arguments"]) > most:
        cut |= {"arguments": _cut_text(block["arguments"], most), "complete": False}  # it must never run in this form
    elif len(block.get("text", "")) > most:
        cut["text"] = _cut_text(block["text"], most)
    if len(record_line(block.get("provider_data") or {})) > most:
        del cut["provider_data"]
    return cut


def _cut_text(text: str, most: int) -> str:
    return text[:most] + _CUT.format(len(text) - most)
