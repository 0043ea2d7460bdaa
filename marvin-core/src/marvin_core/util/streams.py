"""The standard streams as bytes: UTF-8 whatever the locale, and each write is visible immediately."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO, cast

from .terminal_text import disarm


class StandardStreams:
    """The file descriptors of a run; by default those of the process."""

    def __init__(self, stdin: int = 0, stdout: int = 1, stderr: int = 2) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.clean: Callable[[str], str] = str
        """Removes secrets and the like from error texts."""

    def out(self, text: str) -> None:
        """Write to standard output.

        Raises:
            OSError: its reader is gone, or the disk behind it is full.
        """
        _write(self.stdout, text)

    def is_stalled(self) -> bool:
        """Whether a write to standard output would block, because its reader does not read."""
        import select

        return not select.select([], [self.stdout], [], 0)[1]

    def err(self, text: str) -> None:
        """Write a line to standard error, without terminal sequences: errors contain texts of services and tools.

        If it is closed, nothing happens.
        """
        text = disarm(self.clean(text))
        try:
            _write(self.stderr, text if text.endswith("\n") else f"{text}\n")
        except OSError:
            return

    def stdin_is_terminal(self) -> bool:
        """Whether standard input is a terminal; false if it is closed."""
        return os.isatty(self.stdin)


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "replace"))
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # a reader left the pipe non-blocking: wait until it takes more
            import select

            select.select([], [descriptor], [])


class PackLines(io.TextIOBase):
    """Replaces standard output while packs must not write to it: each line that they print is redirected, with their
    name.

    Args:
        owner: the owner of the code in a frame.
        tell: gets the owner and the line, in the thread that printed.
    """

    def __init__(self, owner: Callable[[FrameType | None], str], tell: Callable[[str, str], None]) -> None:
        self._owner = owner
        self._tell = tell
        self._begun: dict[str, str] = {}

    def write(self, text: str) -> int:
        """Pass on complete lines; the beginning of a line waits for its end."""
        return self._pass_on(text, sys._getframe(1))

    def _pass_on(self, text: str, frame: FrameType) -> int:
        owner = self._owner(frame)
        *lines, rest = f"{self._begun.pop(owner, '')}{text}".split("\n")
        if rest:
            self._begun[owner] = rest
        for line in lines:
            self._tell(owner or "a pack", line)
        return len(text)

    def finish(self) -> None:
        """Pass on an incomplete line."""
        begun, self._begun = self._begun, {}
        for owner, line in begun.items():
            self._tell(owner or "a pack", line)

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


class PackOutput(PackLines):
    """Reserves standard output for Marvin: what packs print goes to standard error, with their name.

    The same goes for programs that packs start. This lasts until the process exits. If `streams` are not those of the
    process, only text that is printed in this process is redirected.

    Args:
        owner: the owner of the code in a frame.
    """

    def __init__(self, streams: StandardStreams, owner: Callable[[FrameType | None], str]) -> None:
        super().__init__(owner, self._print)
        self._streams = streams
        self._silent = False
        self._whole_process = streams.stdout == 1
        if self._whole_process:
            streams.stdout = os.dup(1)
            os.dup2(streams.stderr, 1)

    def write(self, text: str) -> int:
        """Treat lines as `PackLines` does, until only Marvin writes."""
        return len(text) if self._silent else self._pass_on(text, sys._getframe(1))

    def silence(self) -> None:
        """Pass on incomplete lines; from now on only Marvin writes, even if threads and programs are still running."""
        self._silent = True
        self.finish()
        if self._whole_process:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            self._streams.stderr = os.dup(2)
            for descriptor in (1, 2):
                os.dup2(nowhere, descriptor)

    def _print(self, owner: str, line: str) -> None:
        self._streams.err(f"marvin: {owner} printed: {line}")


def keep_stdout(streams: StandardStreams, owner: Callable[[FrameType | None], str]) -> None:
    """Reserve standard output for Marvin; see `PackOutput`."""
    sys.stdout = cast("TextIO", PackOutput(streams, owner))


def silence_packs() -> None:
    """Call it right before the last line of Marvin: no output of packs may follow it."""
    output: object = sys.stdout
    if isinstance(output, PackOutput):
        output.silence()


@contextmanager
def diverted(lines: PackLines) -> Iterator[None]:
    """Redirect printed text to `lines`, while Marvin itself writes elsewhere."""
    before, sys.stdout = sys.stdout, cast("TextIO", lines)
    try:
        yield
    finally:
        lines.finish()
        sys.stdout = before
