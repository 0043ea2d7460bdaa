"""JSON, one value a line: writing a line, and reading lines from the end of a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

BLOCK = 128 * 1024


def record_line(record: Mapping[str, Any]) -> bytes:
    """The line of a record, with its newline."""
    try:
        return (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair has no bytes of its own, only an escape
        return (json.dumps(record, separators=(",", ":")) + "\n").encode()


def lines_backwards(descriptor: int, end: int, block: int = BLOCK) -> Iterator[tuple[int, bytes]]:
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
