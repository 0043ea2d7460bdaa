"""Marvin's side of a running sandbox: its supervisor starts programs, and reports how they ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...api.errors import ToolError
from ...api.record import Record
from ..processes.program import Program, Request
from ..processes.table import SandboxPlace
from ..processes.tree import NOBODY, disown, own
from .blocked import explain
from .bubblewrap import Bubblewrap, arguments, opened, supervisor
from .cgroups import ControlGroup
from .policy import Layout
from .proxy_environment import proxy_environment
from .supervisor import received

_LARGEST = 100_000
"""The maximum size in bytes of a request as a message; a larger one is sent as a file."""
_SHARED = 4
"""The share of one process's memory limit that all processes together may use in `/dev/shm`."""
_SAID = 4_096
_SETTINGS = "/proc/sys/kernel"
_FOLDER = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
_KILLED = -signal.SIGKILL
_DROPPED = ("DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "TMP", "TEMP")
"""Variables that name sockets and folders which do not exist inside."""


class Start(Record):
    """The parameters of a sandbox: `limits` are those that the supervisor sets, `group` those of the system."""

    bubblewrap: Bubblewrap
    layout: Layout
    limits: Mapping[str, int]
    group: ControlGroup | None
    patience: float
    """Seconds to wait for a supervisor that does not answer."""


class SandboxFailed(Exception):
    """A sandbox could not be started; the text is bubblewrap's error."""


class SandboxSlow(SandboxFailed):
    """A sandbox did not start, or did not do its work, in time. Another try may succeed."""


class SandboxedProgram:
    """A program that the supervisor started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.exit_code: int | None = None
        self._on_exit: Callable[[], None] | None = None

    def watch(self, on_exit: Callable[[], None]) -> None:
        """Register a function that the event loop calls once when it has ended."""
        self._on_exit = on_exit
        if self.exit_code is not None:
            asyncio.get_running_loop().call_soon(on_exit)

    def ended(self, code: int) -> None:
        """Record that it has ended."""
        self.exit_code = code
        disown(self.pid)
        if self._on_exit is not None:
            self._on_exit()


class Resident:
    """A sandbox that stays open for the programs of a session."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket, start: Start) -> None:
        self.layout = start.layout
        self.alive = True
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._process = process
        self._channel = channel
        self._group = start.group
        self.listener: socket.socket | None = None
        """The socket inside the sandbox for the proxy to serve, until it is taken."""
        self._port = 0
        self._place: SandboxPlace | None = None
        self._first = -1
        """A pidfd of the supervisor."""
        self._first_taken = False
        self._last = 0
        self._launching: dict[int, asyncio.Future[Program]] = {}
        self._running: dict[int, SandboxedProgram] = {}
        self._unsent: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._loop = asyncio.get_running_loop()
        channel.setblocking(False)
        self._loop.add_reader(channel.fileno(), self._receive)

    @property
    def place(self) -> SandboxPlace:
        """The part of the process table that holds its programs."""
        if self._place is None:
            raise ToolError("The sandbox is not ready. Try again.")
        return self._place

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in it."""
        return not self.alive or (not self._launching and self.place.is_empty())

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment with the values that apply inside."""
        kept = {name: value for name, value in given.items() if name not in _DROPPED}
        if "TMPDIR" in kept:
            kept["TMPDIR"] = "/tmp"  # that of the sandbox
        return {**kept, **self.layout.environment, **(proxy_environment(self._port, kept) if self._port else {})}

    def explain(self, output: bytes, cwd: Path) -> str:
        """A hint that the sandbox blocked something, from the output of a failed program."""
        return explain(output, cwd, self.layout)

    def launch(self, request: Request) -> asyncio.Future[Program]:
        """Start a program; the descriptors may be closed after this returns."""
        launched: asyncio.Future[Program] = self._loop.create_future()
        if not self.alive:
            launched.set_exception(_gone())
            return launched
        for text in (*request.argv, *request.environment, *request.environment.values()):
            if "\0" in text:
                launched.set_exception(ValueError("embedded null byte"))
                return launched
        self._last += 1
        self._launching[self._last] = launched
        data, extra = _packed(
            {
                "id": self._last,
                "program": request.program,
                "argv": list(request.argv),
                "cwd": str(request.cwd),
                "env": dict(request.environment),
            }
        )
        try:
            self._send(data, (*request.descriptors, *extra))
        finally:
            for descriptor in extra:
                os.close(descriptor)
        return launched

    def _send(self, data: bytes, descriptors: Sequence[int]) -> None:
        if not self._unsent:
            try:
                socket.send_fds(self._channel, [data], descriptors)
                return
            except BlockingIOError:
                self._loop.add_writer(self._channel.fileno(), self._send_on)
            except OSError:
                self._lost()
                return
        self._unsent.append((data, tuple(map(os.dup, descriptors))))

    def _send_on(self) -> None:
        try:
            while self._unsent:
                data, descriptors = self._unsent[0]
                socket.send_fds(self._channel, [data], descriptors)
                self._unsent.popleft()
                _close(descriptors)
        except BlockingIOError:
            return
        except OSError:
            self._lost()
            return
        self._loop.remove_writer(self._channel.fileno())

    def _receive(self) -> None:
        """Handle a message of the supervisor. It may be anything: programs inside are not trusted."""
        while self.alive:
            descriptors: list[int] = []
            try:
                data, descriptors = received(self._channel)
                if not data:
                    self._lost()
                    return
                self._understand(json.loads(data), descriptors)
            except BlockingIOError:
                return
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                self._lost()
                return
            finally:
                _close(descriptors)

    def _understand(self, message: dict[str, Any], descriptors: Sequence[int]) -> None:
        if "ready" in message:
            if self._first >= 0:
                raise ValueError("ready twice")
            pid = _pid_behind(descriptors[:1])
            self._first = os.dup(descriptors[0])
            self._place = SandboxPlace(pid, lambda: bool(self._launching))
            self._port = int(message["port"])
            if self._port and len(descriptors) > 1:  # the descriptor itself is closed with the message
                self.listener = socket.socket(fileno=os.dup(descriptors[1]))
            if self._group is not None:  # before any program starts, so that the limits apply to all of them
                self._group.take(pid)
            if not self.ready.done():
                self.ready.set_result(None)
            return
        number = int(message["id"])
        if number in self._launching:
            self._launched(number, message, descriptors)
        elif number in self._running:
            self._running.pop(number).ended(int(message["code"]))

    def _launched(self, number: int, message: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        if "failed" in message:
            code = int(message["failed"])
            self._launching.pop(number).set_exception(OSError(code, os.strerror(code)))
            return
        program = SandboxedProgram(_pid_behind(descriptors))
        if program.pid != NOBODY:
            own(program.pid)  # from now on, even before the waiting task continues
        self._running[number] = program
        self._launching.pop(number).set_result(program)

    def _lost(self) -> None:
        """The supervisor has ended, or is unusable: kill everything inside."""
        if not self.alive:
            return
        self.kill()
        for launched in self._launching.values():
            if not launched.done():
                launched.set_exception(_gone())
        for program in self._running.values():
            program.ended(_KILLED)
        self._launching.clear()
        self._running.clear()
        if not self.ready.done():
            self.ready.set_exception(SandboxFailed(self.said()))

    def said(self) -> str:
        """The output of bubblewrap, which it writes only if it fails."""
        stream = self._process.stderr
        if stream is None or stream.closed:
            return ""
        os.set_blocking(stream.fileno(), False)
        return (stream.read(_SAID) or b"").decode("utf-8", "replace").strip()

    def kill(self) -> None:
        """End all processes in it, immediately."""
        if not self.alive:
            return
        self.alive = False
        if self.listener is not None:
            self.listener.close()
        self._loop.remove_reader(self._channel.fileno())
        if self._unsent:
            self._loop.remove_writer(self._channel.fileno())
        while self._unsent:
            _close(self._unsent.popleft()[1])
        # The supervisor has the id 1 inside: when it ends, the system ends all others. It also ends when its socket
        # closes.
        self._channel.close()
        if self._first < 0:
            # Its child does not end with it until the child has started. Both are in one group, whose id cannot be
            # reused before the exit status is taken.
            if self._process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            return
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._first, signal.SIGKILL)
        os.close(self._first)

    def collect(self) -> bool:
        """Reap its processes, and return whether all are gone. To be called until they are."""
        if self._process.poll() is None:
            return False
        disown(self._process.pid)
        if not self._supervisor_is_taken():
            return False
        if self._process.stderr is not None:
            self._process.stderr.close()
        return self._group is None or self._group.remove()

    def _supervisor_is_taken(self) -> bool:
        """Whether the supervisor has been reaped. It is an orphan of this process if bubblewrap ended before it."""
        if self._place is None or self._first_taken:
            return True
        try:
            self._first_taken = os.waitpid(self._place.keeper, os.WNOHANG)[0] != 0
        except ChildProcessError:
            self._first_taken = True
        return self._first_taken


def start(start: Start) -> Resident:
    """Start a sandbox. Its future `ready` completes when programs can be started, or fails with `SandboxFailed`.

    Raises:
        SandboxFailed: if bubblewrap itself cannot be started.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # With --die-with-parent, bubblewrap ends with the thread that started it; only the main thread lasts as long as
    # Marvin. The supervisor ends with its socket in any case.
    bound = ["--die-with-parent"] if threading.current_thread() is threading.main_thread() else []
    sources: dict[Path, int] = {}
    settings: tuple[int, ...] = ()
    try:
        if start.bubblewrap.by_descriptor:
            sources = opened(start.layout)
        mounted = arguments(start.bubblewrap, start.layout, sources, start.limits.get("RLIMIT_DATA", 0) // _SHARED)
        limits = dict(start.limits)
        if limits.get("numbers"):
            settings = (os.open(_SETTINGS, _FOLDER),)
            limits["folder"] = settings[0]
        process = subprocess.Popen(
            [*mounted, *bound, *supervisor(theirs.fileno(), json.dumps(limits))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(), *sources.values(), *settings),
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise SandboxFailed(str(error)) from error
    finally:
        theirs.close()
        _close((*sources.values(), *settings))
    own(process.pid)
    return Resident(process, ours, start)


def _packed(request: Mapping[str, Any]) -> tuple[bytes, Sequence[int]]:
    """A request as a message, and the file that holds it if it is too long for one."""
    data = json.dumps(request).encode()
    if len(data) <= _LARGEST:
        return data, ()
    with tempfile.TemporaryFile() as stream:
        stream.write(data)
        stream.seek(0)
        return b"{}", (os.dup(stream.fileno()),)


def _pid_behind(descriptors: Sequence[int]) -> int:
    """The process id, as Marvin sees it, of the process of a pidfd; `NOBODY` if it has ended."""
    if len(descriptors) != 1:
        raise ValueError("not one pidfd")
    with open(f"/proc/self/fdinfo/{descriptors[0]}", encoding="ascii") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name == "Pid" and int(value) != 0:
                return int(value) if int(value) > 0 else NOBODY
    raise ValueError("no pidfd")


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _gone() -> ToolError:
    return ToolError("The sandbox ended while the program was being started. Try again: a new sandbox is created.")
