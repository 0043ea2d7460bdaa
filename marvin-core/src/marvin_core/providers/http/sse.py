"""Server-sent events, parsed as bytes."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class SSEParser:
    """Splits a byte stream into the data of its events.

    Lines end at CR, LF and CRLF and nowhere else: JSON may hold U+2028 and U+0085, where text
    readers split too. Only `data` counts; comments and the other fields are skipped.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._after_cr = False
        self._at_start = True

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was read; returns the data of each event that it completes."""
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            if data:
                # Kept in pieces and joined once: a long line in small reads stays linear.
                self._line.append(data)
            return []
        self._after_cr = data.endswith(b"\r")
        lines = data[:end]
        if self._line:
            self._line.append(lines)
            lines = b"".join(self._line)
        self._line = [data[end:]] if end < len(data) else []
        return self._events(lines)

    def finish(self) -> list[bytes]:
        """The data of a last event that no blank line ended; call it once, at the end of the stream."""
        events = self._events(b"".join(self._line) + b"\n\n")
        self._line = []
        return events

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
    """Splits a byte stream into its lines, which end at LF or CRLF and nowhere else; empty ones are skipped."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was read; returns each line that it completes."""
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            # Kept in pieces and joined once: a long line in small reads stays linear.
            self._begun.append(data)
            return []
        lines = _lines(b"".join([*self._begun, whole]))
        self._begun = [rest]
        return lines

    def finish(self) -> list[bytes]:
        """A last line that no line end followed; call it once, at the end of the stream."""
        return _lines(b"".join(self._begun))


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.strip()]
