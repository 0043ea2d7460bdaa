"""JSON Lines: writing a line, and reading lines of limited size from either end of a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from .untrusted_json import LARGEST

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
BLOCK = 128 * 1024
_HEAD = 256
"""Bytes of a line that is too long which are still returned, to identify it."""


def record_line(record: Mapping[str, Any]) -> bytes:
    """A record as a line, with its newline."""
    try:
        return (_encode(record) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes of its own, only an escape
        return (json.dumps(record, separators=(",", ":")) + "\n").encode()


def lines_backwards(
    descriptor: int, end: int, block: int = BLOCK, largest: int = LARGEST
) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of a file before the offset `end`, the last one first: offset, content, whether the line is complete.

    Lines are split at newline bytes only, since JSON may contain other line endings. The newline is removed. Of a line
    that is too long, only the beginning is returned.

    Args:
        block: the number of bytes to read at a time.
        largest: the maximum length of a line in bytes.
    """
    tail: list[bytes] = []  # the parts of a line whose beginning is not read yet, the last part first
    size = 0
    position = end
    while position:
        count = min(block, position)
        position -= count
        first, *rest = os.pread(descriptor, count, position).split(b"\n")
        while rest:
            part = rest.pop()
            size += len(part)
            if tail or size > largest:
                yield _line(descriptor, end - size, [part, *reversed(tail)], size, largest)
            else:  # nearly all lines of a session: complete within one block
                yield end - size, part, True
            end -= size + 1
            tail, size = [], 0
        size += len(first)
        tail = [*tail, first] if size <= largest else []
    yield _line(descriptor, 0, list(reversed(tail)), size, largest)


def _line(descriptor: int, offset: int, parts: list[bytes], size: int, largest: int) -> tuple[int, bytes, bool]:
    if size > largest:
        return offset, os.pread(descriptor, _HEAD, offset), False
    return offset, b"".join(parts), True


def lines_forwards(
    descriptor: int, begin: int, end: int, largest: int = LARGEST, block: int = BLOCK
) -> Iterator[tuple[bytes, bool]]:
    """The lines of a file between two offsets, the first one first, each with whether it is complete; as above."""
    parts: list[bytes] = []
    size = 0
    position = begin
    while position < end and (data := os.pread(descriptor, min(block, end - position), position)):
        position += len(data)
        *complete, last = data.split(b"\n")
        for part in complete:
            yield _joined([*parts, part], size + len(part), largest)
            parts, size = [], 0
        size += len(last)
        if size <= largest or not parts:
            parts.append(last[:_HEAD] if size > largest else last)
    if size:
        yield _joined(parts, size, largest)


def _joined(parts: list[bytes], size: int, largest: int) -> tuple[bytes, bool]:
    return (b"".join(parts), True) if size <= largest else (b"".join(parts[:1])[:_HEAD], False)
