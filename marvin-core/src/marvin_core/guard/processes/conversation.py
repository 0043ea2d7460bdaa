"""A child process with a pipe in both directions, with queued input and notice of its end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...api.errors import ToolError

if TYPE_CHECKING:
    from ..search_path import ProgramSearch
    from .child import Child, Sink

_WAITING = 32_000_000
"""The most bytes that may wait for a program that does not read."""


class HandedOn:
    """A sink that passes the output on."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._take(chunk)


class ProgramTalk:
    """The `Conversation` with a child.

    Args:
        end: ends all processes of the child.
        sandboxed: whether it runs in a sandbox.
    """

    def __init__(self, child: Child, end: Callable[[Child], Awaitable[None]], *, sandboxed: bool) -> None:
        self.sandboxed = sandboxed
        self._child = child
        self._end = end
        self._waiting = bytearray()
        self._unblocked = False
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[None] | None = None
        child.family.outlive_call()
        child.end_with_output()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.family.pid

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return self._child.exit_code is None and self._ending is None

    def when_over(self, over: Callable[[], None]) -> None:
        """Call this once when it ends, or closes one of its pipes. It and all that it started are ended then."""

        def ended(_: object) -> None:
            self._ending = self._start_ending()
            over()

        self._child.finished.add_done_callback(ended)

    def send(self, data: bytes) -> None:
        """Write to its standard input as fast as it reads. `ToolError` if it has ended or does not read."""
        if not self.running or self._child.held_input < 0:
            raise ToolError("The program has ended.")
        if len(self._waiting) + len(data) > _WAITING:
            raise ToolError("The program does not read what is sent to it.")
        under_way = bool(self._waiting)
        self._waiting += data
        if under_way:  # the loop reports when the program can take more
            return
        if not self._unblocked:
            os.set_blocking(self._child.held_input, False)
            self._unblocked = True
        self._write(self._child.held_input)
        if self._waiting:
            self._loop.add_writer(self._child.held_input, self._write_on)

    def _write_on(self) -> None:
        descriptor = self._child.held_input
        if descriptor < 0:
            self._waiting.clear()
            return
        self._write(descriptor)
        if not self._waiting:
            self._loop.remove_writer(descriptor)

    def _write(self, descriptor: int) -> None:
        """Write the bytes that the program takes at once. If it no longer reads, they are dropped, and it is ended."""
        try:
            while self._waiting:
                del self._waiting[: os.write(descriptor, self._waiting[:65_536])]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended, or closed its input
            self._waiting.clear()
            self._child.end_soon()

    async def close(self) -> None:
        """Close its input, and make sure that all its processes end soon after."""
        await asyncio.shield(self._start_ending())

    def _start_ending(self) -> asyncio.Future[None]:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(self._child))
        return self._ending


def talk_with(
    child: Child,
    ends: tuple[Callable[[Child], Awaitable[None]], Callable[[Child], None]],
    on_end: Callable[[], None],
    *,
    sandboxed: bool,
) -> ProgramTalk:
    """The conversation with a newly started child.

    Args:
        ends: ends all processes of the child, and what is notified then.
    """
    end, over = ends

    async def ended(child: Child) -> None:
        try:
            await end(child)
        finally:
            over(child)

    talk = ProgramTalk(child, ended, sandboxed=sandboxed)
    talk.when_over(on_end)
    return talk


def sinks(take: Callable[[bytes], None], take_errors: Callable[[bytes], None] | None = None) -> Sequence[Sink]:
    """The sinks of the output: standard output goes to `take`, and standard error to `take_errors` or nowhere."""
    return [HandedOn(take), HandedOn(take_errors or (lambda _: None))]


def bound_to_us(which: Callable[..., str | None], argv: Sequence[str]) -> Sequence[str]:
    """A command line for outside of the sandbox. The program ends with this process, however this one ends."""
    setpriv = which("setpriv", outside=True) if sys.platform == "linux" else None
    program = argv[0] if "/" in argv[0] else which(argv[0])
    return argv if setpriv is None or program is None else [setpriv, "--pdeathsig", "KILL", "--", program, *argv[1:]]


def outside_of_sandboxes(
    programs: ProgramSearch, argv: Sequence[str], env: Mapping[str, str] | None
) -> tuple[Sequence[str], Mapping[str, str]]:
    """A command line and its variables for outside of the sandbox, never with a program of a project."""
    return programs.located(argv), {"PATH": programs.outside, **(env or {})}
