"""Newline-delimited JSON, parsed as bytes."""

from __future__ import annotations


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
