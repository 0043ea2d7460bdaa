"""One started program: its output is read, its input fed, and its end noticed, all by the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Protocol

from ...util.threads import in_thread

if TYPE_CHECKING:
    import subprocess

    from .tree import Family

_CHUNK = 65_536
_READS_AT_ONCE = 16


class Sink(Protocol):
    """Where output goes."""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        ...


class Capture:
    """Output in memory: half of the limit from its head and half from its tail, whatever its length."""

    def __init__(self, limit: int) -> None:
        self._head = bytearray()
        self._head_limit = limit - limit // 2
        self._tail: deque[bytearray] = deque()
        self._tail_limit = limit // 2
        self._tail_size = 0
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next bytes; what is no longer part of head or tail is dropped."""
        self._total += len(chunk)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if not chunk:
            return
        # Small chunks are joined: thousands of tiny objects would need more than what they hold.
        if self._tail and len(self._tail[-1]) < _CHUNK:
            self._tail[-1] += chunk
        else:
            self._tail.append(bytearray(chunk))
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    @property
    def data(self) -> bytes:
        """Head and tail, one after the other."""
        tail = b"".join(self._tail)
        return bytes(self._head) + tail[max(0, len(tail) - self._tail_limit) :]

    @property
    def omitted(self) -> int:
        """How many bytes between head and tail were dropped."""
        return max(0, self._total - self._head_limit - self._tail_limit)


class Child:
    """A running program. `finished` is done when it has ended and so has its output, or at its time-out.

    `outputs` maps the descriptors that it writes to, our ends of them, to where the bytes go.
    """

    def __init__(
        self, popen: subprocess.Popen[bytes], family: Family, outputs: dict[int, Sink], output_tail: float
    ) -> None:
        self.family = family
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.exited = asyncio.Event()
        self.timed_out = False
        self._popen = popen
        self._outputs = outputs
        self._output_tail = output_tail
        self._timers: list[asyncio.TimerHandle] = []
        self._input = -1
        self._pidfd = -1
        self._loop = asyncio.get_running_loop()
        for descriptor in outputs:
            os.set_blocking(descriptor, False)
            self._loop.add_reader(descriptor, self._read, descriptor)
        self._watch()

    @property
    def exit_code(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._popen.returncode

    @property
    def output_ended(self) -> bool:
        """Whether nothing can come any more."""
        return not self._outputs

    def expire_after(self, seconds: float) -> None:
        """Set the time-out."""
        self._timers.append(self._loop.call_later(seconds, self._expire))

    def _expire(self) -> None:
        if not self.finished.done():
            # Once the program itself has ended, only the wait for its output is cut short.
            self.timed_out = not self.exited.is_set()
            self._finish()

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def _watch(self) -> None:
        if sys.platform == "linux":
            try:
                self._pidfd = os.pidfd_open(self._popen.pid)
            except OSError:  # a kernel before 5.3
                pass
            else:
                self._loop.add_reader(self._pidfd, self._on_exit)
                return
        waiting = asyncio.ensure_future(in_thread(self._popen.wait))
        waiting.add_done_callback(lambda _: self._on_exit())

    def _on_exit(self) -> None:
        if self._popen.poll() is None:
            return
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        self.family.reaped()
        self.exited.set()
        if self._outputs:
            self._timers.append(self._loop.call_later(self._output_tail, self._finish))
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

    def feed(self, descriptor: int, data: bytes) -> None:
        """Write the program's input, as it takes it, and close."""
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
            except BrokenPipeError:  # it reads no further, which is its own affair
                pass
            self._close_input()

        self._loop.add_writer(descriptor, write)
        write()

    def _close_input(self) -> None:
        if self._input >= 0:
            self._loop.remove_writer(self._input)
            os.close(self._input)
            self._input = -1

    def redirect(self, sink: Sink) -> None:
        """From now on output goes there."""
        for descriptor in self._outputs:
            self._outputs[descriptor] = sink

    def stop_timers(self) -> None:
        """No time-out any more."""
        for timer in self._timers:
            timer.cancel()

    def close(self) -> None:
        """Let go of everything, after taking what the pipes still hold."""
        self.stop_timers()
        self._close_input()
        for descriptor in tuple(self._outputs):
            self._read(descriptor)
            if descriptor in self._outputs:
                self._close_output(descriptor)
