"""The standard streams, written as bytes: UTF-8 whatever the locale, and each write seen at once."""

from __future__ import annotations

import os

from .terminal_text import disarm


class StandardStreams:
    """File descriptors of a run; by default those of the process."""

    def __init__(self, stdin: int = 0, stdout: int = 1, stderr: int = 2) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    def out(self, text: str) -> None:
        """Write to standard output.

        Raises:
            OSError: where nobody reads it any more, or the disk behind it is full.
        """
        _write(self.stdout, text)

    def is_stalled(self) -> bool:
        """Whether standard output takes nothing at this moment: whoever reads it does not."""
        import select

        return not select.select([], [self.stdout], [], 0)[1]

    def err(self, text: str) -> None:
        """Write a line to standard error, without terminal sequences: errors repeat what services and tools say.

        Where it is closed there is nobody to tell.
        """
        text = disarm(text)
        try:
            _write(self.stderr, text if text.endswith("\n") else f"{text}\n")
        except OSError:
            return

    def stdin_is_terminal(self) -> bool:
        """Whether standard input is a terminal; false where it is closed."""
        return os.isatty(self.stdin)


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "replace"))
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # a reader left the pipe non-blocking: wait until it takes more
            import select

            select.select([], [descriptor], [])
