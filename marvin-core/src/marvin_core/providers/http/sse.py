"""Server-sent events, parsed as bytes."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class EventTooLong(ValueError):
    """An event exceeds the limit."""


class SSEParser:
    """Splits a byte stream into the data of its events.

    Lines end only at CR, LF and CRLF: JSON may contain U+2028 and U+0085, where text readers also split. Only `data`
    counts; comments and other fields are ignored. More than `limit` bytes without an event raise `EventTooLong`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._since = 0  # bytes after the last event
        self._line = bytearray()
        self._data: list[bytes] = []
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        """Process a chunk; returns the data of each event that it completes."""
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        self._since += len(data)
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            # Gathered in place: a long line in small reads stays linear, and takes no more than its length.
            self._line += data
            self._check()
            return []
        self._after_cr = data.endswith(b"\r")
        lines = data[:end]
        if self._line:
            self._line += lines
            lines = bytes(self._line)
            self._line.clear()
        self._line += data[end:]
        events = self._events(lines)
        if events:
            self._since = len(self._line)
        self._check()
        return events

    def finish(self) -> list[bytes]:
        """The data of a last event without a blank line after it; call this once, at the end of the stream."""
        events = self._events(bytes(self._line) + b"\n\n")
        self._line.clear()
        return events

    def _check(self) -> None:
        if self._since > self._limit:
            raise EventTooLong

    def _events(self, lines: bytes) -> list[bytes]:
        if self._at_start:
            self._at_start = False
            lines = lines.removeprefix(_BOM)
        events = []
        data = self._data
        # Of bytes, splitlines knows CR, LF and CRLF only.
        for line in lines.splitlines():
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line == b"data":
                data.append(b"")
        return events


class JsonLines:
    """Splits a byte stream into lines, which end only at LF or CRLF; empty ones are skipped.

    A line of more than `limit` bytes raises `EventTooLong`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Process a chunk; returns each line that it completes."""
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            # Gathered in place: a long line in small reads stays linear, and takes no more than its length.
            self._begun += data
            self._check(self._begun)
            return []
        if self._begun:
            self._begun += whole
            whole = bytes(self._begun)
            self._begun.clear()
        self._begun += rest
        lines = _lines(whole)
        if len(whole) > self._limit:
            for line in lines:
                self._check(line)
        return lines

    def finish(self) -> list[bytes]:
        """A last line without a line end; call this once, at the end of the stream."""
        return _lines(bytes(self._begun))

    def _check(self, line: bytes | bytearray) -> None:
        if len(line) > self._limit:
            raise EventTooLong


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.strip()]
