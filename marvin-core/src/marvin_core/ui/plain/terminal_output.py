"""Standard output with the interface that the line editor's library requires."""

from __future__ import annotations

import os

from ...util.streams import StandardStreams


class TerminalOutput:
    """Standard output as a file. If the terminal is gone, writes are ignored."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._streams = StandardStreams()

    def write(self, text: str) -> None:
        try:
            self._streams.out(text)
        except OSError:
            return

    def flush(self) -> None:
        """Nothing is buffered."""

    def fileno(self) -> int:
        return self._streams.stdout

    def isatty(self) -> bool:
        return os.isatty(self._streams.stdout)
