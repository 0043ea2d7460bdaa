"""The complete transcript of a chat, for the pager."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...api.events import (
    Event,
    MessageEnd,
    MessageUpdate,
    ModelCycle,
    Notice,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from ...util.terminal_text import exact
from ..rendering import Measure, Role, before_joined, clean, shown_rows

MOST = 2_000_000
"""The maximum length in characters; the oldest text is dropped."""
_WIDTH = 100


class Line(NamedTuple):
    """A line of the transcript, and its style."""

    role: Role | None
    text: str


class _Entry:
    """A text that belongs together; it grows while it streams."""

    def __init__(self, role: Role | None, kind: str, text: str) -> None:
        self.role: Role | None = role
        self.kind = kind
        self.parts = [text]
        self.size = len(text)


class Transcript:
    """Records events and typed lines; only text beyond the newest `MOST` characters is dropped."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._entries: deque[_Entry] = deque()
        self._size = 0
        self._dropped = False

    def add(self, event: Event) -> None:
        """Record an event."""
        if isinstance(event, MessageUpdate):
            if event.kind != "tool_call":
                self._stream(event.kind, event.delta)
        elif isinstance(event, MessageEnd):
            self._close()
        elif isinstance(event, ToolExecutionStart):
            self._put("tool", "call", f"🔧 {event.name}\n{_arguments(event.arguments)}".rstrip())
        elif isinstance(event, ToolExecutionEnd):
            self._ended(event)
        elif isinstance(event, Notice):
            self._put("error" if event.level == "error" else "notice", "notice", f"({event.text})")
        elif isinstance(event, ModelCycle):
            self._put("notice", "notice", f"({event.reason})")

    def typed(self, text: str) -> None:
        """Record a typed line, completely."""
        self._put("user", "typed", f"> {text}")

    def answered(self, text: str) -> None:
        """Record an earlier answer."""
        self._stream("text", text)
        self._close()

    def said(self, text: str, role: Role | None = None) -> None:
        """Record a text of Marvin itself."""
        self._put(role, "said", text)

    def lines(self) -> Iterator[Line]:
        """The whole transcript, line by line, without terminal control sequences."""
        if self._dropped:
            yield Line("notice", "(Older messages are not shown; the session file contains them.)")
        before = ""
        for entry in self._entries:
            if before and entry.kind in ("typed", "text", "thinking", "call") and before != "typed":
                yield Line(None, "")
            before = entry.kind
            for line in clean("".join(entry.parts)).rstrip("\n").split("\n"):
                yield Line(_role_in_diff(line) if entry.kind == "diff" else entry.role, line)

    def _ended(self, event: ToolExecutionEnd) -> None:
        ended = f"{'failed' if event.is_error else 'done'} in {event.elapsed:.1f} s: {event.name}"
        self._put("error" if event.is_error else "faint", "output", f"{ended}\n{event.text.rstrip()}")
        diff = (event.details or {}).get("diff")
        if isinstance(diff, str) and diff.strip():
            self._put(None, "diff", diff.rstrip("\n"))
        if event.show:
            self._put(None, "output", "\n".join(shown_rows(event.show, _WIDTH, self._measure)))

    def _stream(self, kind: str, delta: str) -> None:
        last = self._entries[-1] if self._entries else None
        if last is None or last.kind != kind:
            self._put("thinking" if kind == "thinking" else None, kind, delta)
            return
        last.parts.append(delta)
        last.size += len(delta)
        self._size += len(delta)
        self._forget()

    def _close(self) -> None:
        """The next part of the text begins a new entry."""
        if self._entries:
            last = self._entries[-1]
            last.parts = ["".join(last.parts)]
            if last.kind == "text":
                last.kind = "answer"

    def _put(self, role: Role | None, kind: str, text: str) -> None:
        self._entries.append(_Entry(role, kind, text))
        self._size += len(text)
        self._forget()

    def _forget(self) -> None:
        while self._size > MOST and len(self._entries) > 1:
            self._size -= self._entries.popleft().size
            self._dropped = True


def _arguments(arguments: Mapping[str, Any]) -> str:
    """Every argument, completely."""
    rows: list[str] = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        first, *more = exact(text).split("\n")
        rows += [f"  {name}: {first}", *(f"    {line}" for line in more)]
    return "\n".join(rows)


def _role_in_diff(line: str) -> Role | None:
    if line.startswith(("---", "+++")):
        return "faint"
    roles: Mapping[str, Role] = {"+": "added", "-": "removed", "@": "place"}
    return roles.get(line[:1])


def rows_of(lines: Sequence[Line], width: int, measure: Measure) -> list[Line]:
    """The lines in rows of this width; the work is linear in the text, however long a line is."""
    rows: list[Line] = []
    for role, text in lines:
        if len(text) * 2 <= width or (text.isascii() and len(text) <= width):
            rows.append(Line(role, text))
        else:
            rows += [Line(role, row) for row in _folded(text, width, measure)]
    return rows


def _folded(text: str, width: int, measure: Measure) -> Iterator[str]:
    begin = used = space = 0
    for place, character in enumerate(text):
        columns = measure(character)
        while used and used + columns > width:
            joined = before_joined(text, place, measure)
            end = space if space > begin else joined if joined > begin else place
            yield text[begin:end].rstrip(" ") if end == space else text[begin:end]
            used = sum(map(measure, text[end:place]))
            begin = end
        used += columns
        if character == " ":
            space = place + 1
    yield text[begin:]
