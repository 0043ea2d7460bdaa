"""The standard streams, written as bytes: UTF-8 whatever the locale, and each write seen at once."""

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
    """File descriptors of a run; by default those of the process."""

    def __init__(self, stdin: int = 0, stdout: int = 1, stderr: int = 2) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.clean: Callable[[str], str] = str
        """Takes out of errors what nobody may be shown."""

    def out(self, text: str) -> None:
        """Write to standard output.

        Raises:
            OSError: nobody reads it any more, or the disk behind it is full.
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
    """Stands in for standard output where packs must not write: each line that they print goes elsewhere, with a name.

    Args:
        owner: whose code runs in a frame.
        tell: gets the owner and the line, in the thread that printed.
    """

    def __init__(self, owner: Callable[[FrameType | None], str], tell: Callable[[str, str], None]) -> None:
        self._owner = owner
        self._tell = tell
        self._begun: dict[str, str] = {}

    def write(self, text: str) -> int:
        """Pass whole lines on; the beginning of one waits for its end."""
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
        """Pass on what is begun."""
        begun, self._begun = self._begun, {}
        for owner, line in begun.items():
            self._tell(owner or "a pack", line)

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


class PackOutput(PackLines):
    """Stands in for standard output where that is Marvin's alone: what packs print goes to standard error, with a name.

    What programs write there that packs start goes there, too. The process ends with it so; where `streams` are not
    those of the process, nothing but what is written here is kept away.

    Args:
        owner: whose code runs in a frame.
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
        """As any `PackLines`, until Marvin alone writes."""
        return len(text) if self._silent else self._pass_on(text, sys._getframe(1))

    def silence(self) -> None:
        """Pass on what is begun; from now on only Marvin writes, whatever threads and programs were left behind."""
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
    """Have nothing but Marvin write to standard output; see `PackOutput`."""
    sys.stdout = cast("TextIO", PackOutput(streams, owner))


def silence_packs() -> None:
    """Right before the last line that Marvin writes: nothing of packs may come behind it."""
    output: object = sys.stdout
    if isinstance(output, PackOutput):
        output.silence()


@contextmanager
def diverted(lines: PackLines) -> Iterator[None]:
    """Have what is printed go to `lines`, where Marvin itself writes elsewhere."""
    before, sys.stdout = sys.stdout, cast("TextIO", lines)
    try:
        yield
    finally:
        lines.finish()
        sys.stdout = before
