"""Standard output as the library of the line editor wants it."""

from __future__ import annotations

import os

from ...util.streams import StandardStreams


class TerminalOutput:
    """Standard output, as a file. A terminal that is gone takes everything and shows nothing."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self._streams = StandardStreams()

    def write(self, text: str) -> None:
        try:
            self._streams.out(text)
        except OSError:
            return

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        return self._streams.stdout

    def isatty(self) -> bool:
        return os.isatty(self._streams.stdout)
