"""A child process in the event loop: reads its output, writes its input, and notices its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ...api.processes import ProcessResult

if TYPE_CHECKING:
    from .program import Program
    from .tree import Family

_CHUNK = 65_536
_READS_AT_ONCE = 16


class Sink(Protocol):
    """A target for output."""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        ...


class Capture:
    """Output in memory with a limit: half of it from the beginning and half from the end."""

    def __init__(self, limit: int) -> None:
        self._head = bytearray()
        self._head_limit = limit - limit // 2
        self._tail: deque[bytearray] = deque()
        self._tail_limit = limit // 2
        self._tail_size = 0
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes; bytes between head and tail are dropped."""
        self._total += len(chunk)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        # Small chunks are joined: thousands of tiny objects would need more memory than their content.
        if self._tail and len(self._tail[-1]) < _CHUNK:
            self._tail[-1] += chunk
        else:
            self._tail.append(bytearray(chunk))
        self._tail_size += len(chunk)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    def takes_whole(self, chunk: bytes) -> bool:
        """Whether nothing would have been dropped after these bytes either."""
        return self._total + len(chunk) <= self._head_limit + self._tail_limit

    @property
    def data(self) -> bytes:
        """Head and tail, joined."""
        tail = b"".join(self._tail)
        return bytes(self._head) + tail[max(0, len(tail) - self._tail_limit) :]

    @property
    def omitted(self) -> int:
        """The number of bytes dropped between head and tail."""
        return max(0, self._total - self._head_limit - self._tail_limit)


class _Watched:
    """Passes output on, and asks after each chunk whether it was enough."""

    def __init__(self, sink: Sink, enough: Callable[[bytes], bool], finish: Callable[[], None]) -> None:
        self._sink = sink
        self._enough: Callable[[bytes], bool] | None = enough
        self._finish = finish

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._sink.add(chunk)
        if self._enough is not None and self._enough(chunk):
            self._enough = None
            self._finish()


class Child:
    """A running program. `finished` completes when the program and its output have ended, or at its time-out.

    `outputs` maps our ends of its output descriptors to the sinks for the bytes.
    """

    def __init__(self, program: Program, family: Family, outputs: dict[int, Sink], output_tail: float) -> None:
        self.family = family
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.exited = asyncio.Event()
        self.timed_out = False
        self.had_enough = False
        self._program = program
        self._outputs = outputs
        self._output_tail = output_tail
        self._timers: list[asyncio.TimerHandle] = []
        self._expiry: asyncio.TimerHandle | None = None
        self._left = 0.0
        self._holds = 0
        self._input = self._needed_output = -1
        self._yields_to_interrupt = False
        self.grace = 0.0
        """Seconds that a program has to end itself once `let_go` was called."""
        self._loop = asyncio.get_running_loop()
        for descriptor in outputs:
            os.set_blocking(descriptor, False)
            self._loop.add_reader(descriptor, self._read, descriptor)
        program.watch(self._on_exit)

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it is running."""
        return self._program.exit_code

    @property
    def output_ended(self) -> bool:
        """Whether no more output can come."""
        return not self._outputs

    def is_gone(self) -> bool:
        """Whether it has ended, and no process that it started is alive."""
        return self.exit_code is not None and self.family.is_gone()

    def is_killed(self) -> bool:
        """The same, after a signal to all live processes; faster, since it skips the wait before the next check."""
        return self.exit_code is not None and not self.family.kill()

    def expire_after(self, seconds: float) -> None:
        """Set the time-out."""
        self._expiry = self._loop.call_later(seconds, self._expire)

    def end_when(self, enough: Callable[[bytes], bool]) -> None:
        """Finish as soon as a chunk of standard output is enough. Must be called before any of it was read."""
        for descriptor, sink in self._outputs.items():  # standard output comes first
            self._outputs[descriptor] = _Watched(sink, enough, self._stop)
            break

    def end_with_output(self) -> None:
        """Finish when standard output ends. Must be called before any of it was read."""
        self._needed_output = next(iter(self._outputs))  # standard output comes first

    def end_soon(self) -> None:
        """Finish even if it is still running. What it writes for a moment is read before, as it may say why."""
        self._timers.append(self._loop.call_later(self._output_tail, self._finish))

    def _stop(self) -> None:
        self.had_enough = True
        self._finish()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Pause its time-out while the context lasts; several contexts may overlap."""
        if not self._holds and self._expiry is not None:
            self._left = self._expiry.when() - self._loop.time()
            self._expiry.cancel()
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if not self._holds and self._expiry is not None:
                self.expire_after(max(0.0, self._left))

    def _expire(self) -> None:
        if not self.finished.done():
            # Once the program itself has ended, only the wait for its output is cut short.
            self.timed_out = not self.exited.is_set()
            self._finish()

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def _on_exit(self) -> None:
        self.family.reaped()
        self.exited.set()
        if self._outputs:
            self.end_soon()
        else:
            self._finish()

    def _read(self, descriptor: int) -> None:
        for _ in range(_READS_AT_ONCE):
            try:
                chunk = os.read(descriptor, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                self._close_output(descriptor)
                return
            self._outputs[descriptor].add(chunk)

    def _close_output(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
        del self._outputs[descriptor]
        if not self._outputs and self.exited.is_set():
            self._finish()
        elif descriptor == self._needed_output:
            self.end_soon()

    def feed(self, descriptor: int, data: bytes) -> None:
        """Write the program's input as fast as the program reads it, then close it."""
        os.set_blocking(descriptor, False)
        self._input = descriptor
        rest = memoryview(data)

        def write() -> None:
            nonlocal rest
            try:
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:
                return
            except BrokenPipeError:  # a program may stop reading its input
                pass
            self._close_input()

        self._loop.add_writer(descriptor, write)
        write()

    def hold(self, descriptor: int, grace: float) -> None:
        """Hold its input open; when it closes, the program has this many seconds to end itself."""
        self._input, self.grace = descriptor, grace

    @property
    def held_input(self) -> int:
        """The descriptor of the held input; -1 if there is none, or no longer."""
        return self._input

    def yield_to_interrupt(self, grace: float) -> None:
        """Have it be interrupted if it is ended early; then it has this many seconds to end itself."""
        self._yields_to_interrupt, self.grace = True, grace

    def let_go(self) -> bool:
        """Close a held input or send an interrupt, so that the program ends itself; False if it did neither."""
        if self._yields_to_interrupt and self.exit_code is None:
            self._yields_to_interrupt = False
            self.family.ask_to_end(signal.SIGINT)
            return True
        held = bool(self.grace) and self._input >= 0
        if held:
            self._close_input()
        return held

    def _close_input(self) -> None:
        if self._input >= 0:
            self._loop.remove_writer(self._input)
            os.close(self._input)
            self._input = -1

    def redirect(self, sink: Sink) -> None:
        """Send output to this sink from now on."""
        for descriptor in self._outputs:
            self._outputs[descriptor] = sink

    def stop_timers(self) -> None:
        """Remove the time-out."""
        for timer in self._timers:
            timer.cancel()
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def close(self) -> None:
        """Release all resources, after reading the remaining content of the pipes."""
        self.stop_timers()
        self._close_input()
        for descriptor in tuple(self._outputs):
            self._read(descriptor)
            if descriptor in self._outputs:
                self._close_output(descriptor)


def result_of(child: Child, output: Capture, errors: Capture) -> ProcessResult:
    """How a program ended, without its duration."""
    exit_code = 0 if child.had_enough else child.exit_code
    return ProcessResult(
        exit_code=None if child.timed_out else exit_code,
        output=output.data,
        stderr=errors.data,
        omitted=output.omitted + errors.omitted,
        timed_out=child.timed_out,
        elapsed=0.0,
    )
