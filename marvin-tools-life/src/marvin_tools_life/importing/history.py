"""The input history: converts plain lines to today's format."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from .forms import Merged

_HEAD = re.compile(r"# \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?")
"""The line above an entry in today's format."""
_STAMP = re.compile(r"#\d{9,11}")
"""The time above a line in readline's format, in seconds since the epoch."""
_LIBEDIT = "_HiStOrY_V2_"
_OCTAL = re.compile(r"\\(\d{3})")


class Typed(NamedTuple):
    """An input: the line above it, and its text, which may have several lines."""

    head: str
    text: str
    is_plain: bool

    def lines(self) -> str:
        """The entry as it is written in the file."""
        return f"\n{self.head}\n" + "".join(f"+{line}\n" for line in self.text.split("\n"))


def merged_history(here: bytes | None, older: bytes, when: float) -> Merged:
    """The lines of the older file that are new, as entries, followed by today's entries.

    Args:
        when: the modification time of the older file, in seconds since the epoch.
    """
    found = list(_entries(_decoded(older), when))
    if here == older:
        plain = sum(one.is_plain for one in found)
        content = "".join(one.lines() for one in found).encode("utf-8", "surrogateescape") if plain else None
        return Merged(content, plain, len(found) - plain)
    own = _decoded(here or b"")
    known = {one.text for one in _entries(own, when)}
    new = [one for one in found if one.text not in known]
    if not new:
        return Merged(None, 0, len(found))
    added = "".join(one.lines() for one in new).encode("utf-8", "surrogateescape")
    return Merged(added + (here or b""), len(new), len(found) - len(new))


def _decoded(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def _entries(text: str, when: float) -> Iterator[Typed]:
    """The inputs, the oldest first. Entries in today's format stay unchanged; every other line is an entry."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    is_libedit = bool(lines) and lines[0] == _LIBEDIT
    at = 1 if is_libedit else 0
    head = usual = f"# {_told(when)}"
    while at < len(lines):
        line = lines[at]
        at += 1
        if _HEAD.fullmatch(line) and at < len(lines) and lines[at].startswith("+"):
            first = at
            while at < len(lines) and lines[at].startswith("+"):
                at += 1
            yield Typed(line, "\n".join(one[1:] for one in lines[first:at]), is_plain=False)
        elif _STAMP.fullmatch(line):
            head = f"# {_told(float(line[1:]))}"
        elif line.strip():
            yield Typed(head, _unescaped(line) if is_libedit else line, is_plain=True)
            head = usual


def _told(when: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))


def _unescaped(line: str) -> str:
    """A line in libedit's format, which writes spaces and backslashes as octal escapes."""
    raw = line.encode("utf-8", "surrogateescape")
    plain = re.sub(_OCTAL.pattern.encode(), lambda found: bytes([int(found[1], 8) & 0xFF]), raw)
    return plain.replace(b"\n", b" ").decode("utf-8", "surrogateescape")
