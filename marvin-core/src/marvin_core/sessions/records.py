"""The records of a session file: the header, the form of a line, and reading lines from the end of the file."""

from __future__ import annotations

import re
from typing import Any

from ..api.errors import SessionError
from ..api.limits import Limits
from ..api.record import Record
from ..util.json_lines import record_line
from ..util.numbers import amount

VERSION = 1
LARGEST_LINE = Limits().session_line
_KIND = re.compile(rb'\s*\{\s*"type"\s*:\s*"(\w+)"')


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
    spent: float = 0.0
    """What the session cost so far, in USD, as far as that is known."""


def header_of(record: Any) -> Header:
    """The header that a record holds.

    Raises:
        SessionError: where it holds none.
    """
    if not isinstance(record, dict) or record.get("type") != "session":
        raise SessionError("not a header")
    try:
        fields = {name: record[name] for name in Header._defaults if name in record}
        header = Header(**{**fields, "spent": amount(record.get("spent")) or 0.0})
    except TypeError as error:
        raise SessionError(str(error)) from error
    for name, value in header.as_dict().items():
        if not isinstance(value, (int, float) if name in ("time", "spent") else str):
            raise SessionError(f"{name} of the header is {value!r:.100}")
    return header


def kind_of(line: bytes) -> bytes:
    """What a line is, as in `message`, without decoding it."""
    found = _KIND.match(line)
    return found[1] if found else b""


def header_line(header: Header, messages: int | None = None) -> bytes:
    """The line of a header. A later one than the first also says how many messages stand above it in the file."""
    count = {} if messages is None else {"messages": messages}
    return record_line({"type": "session", "version": VERSION, **header.as_dict(), **count})
