"""The first process in a sandbox: it starts commands for Marvin and reports how they ended.

It runs as a separate script, so it imports the standard library only. Marvin sends a request with the three descriptors
of the command. It receives a pidfd of the command, and later the exit status. When Marvin ends, the socket closes and
this process ends. Since it has the id 1 here, everything in the sandbox ends with it.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from array import array
from contextlib import ExitStack
from typing import Any

_LARGEST = 262_144
_BACKLOG = 128
_MOST_DESCRIPTORS = 4
_PR_SET_DUMPABLE = 4
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_SCOPE_ABSTRACT_SOCKETS = 1
_KEYCTL: dict[str, int] = {"x86_64": 250, "i686": 288, "armv7l": 311, "ppc64le": 271, "s390x": 280}
_KEYCTL_OF_OTHERS = 219
_JOIN_SESSION_KEYRING = 1
_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds between two attempts to start a process: less than one second in total, since other requests wait."""
_RESET = (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
"""Signals whose handling Python changes from what programs expect."""
_FEWEST_NUMBERS = 301
"""The smallest value that Linux accepts for the limit of process ids, which is one above the highest id."""


class Supervisor:
    """Starts commands and waits for them; `channel` is the socket to Marvin."""

    def __init__(self, channel: socket.socket, *, with_proxy: bool) -> None:
        self._channel = channel
        self._with_proxy = with_proxy
        self._ids: dict[int, int] = {}
        self._woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # The process with the id 1 receives from inside only signals that it handles, and Python handles this one. A
        # handler that does nothing is not inherited by commands, while ignoring the signal would be.
        signal.signal(signal.SIGINT, lambda *_: None)

    def serve(self) -> None:
        """Serve Marvin's requests until Marvin ends."""
        with ExitStack() as stack:
            own = stack.enter_context(os.fdopen(os.pidfd_open(os.getpid()), closefd=True))
            descriptors, port = [own.fileno()], 0
            if self._with_proxy:
                # Marvin serves it from outside. A socket stays in the network in which it was created.
                listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG))
                descriptors.append(listener.fileno())
                port = listener.getsockname()[1]
            self._tell({"ready": os.getpid(), "port": port}, *descriptors)
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._woken in ready:
                os.read(self._woken, 1024)
                self._reap()
            if self._channel.fileno() in ready and not self._take():
                return

    def _tell(self, message: dict[str, Any], *descriptors: int) -> None:
        socket.send_fds(self._channel, [json.dumps(message).encode()], descriptors)

    def _take(self) -> bool:
        """Handle one request; False if Marvin has ended."""
        data, descriptors = received(self._channel)
        if not data:
            return False
        if len(descriptors) > 3:  # too long for a message: it is in a separate file
            with os.fdopen(descriptors.pop(), "rb") as stream:
                data = stream.read()
        request = json.loads(data)
        try:
            self._start(request, descriptors)
        except OSError as error:
            self._tell({"id": request["id"], "failed": error.errno})
        except (TypeError, ValueError):  # a name or a text that no system call accepts; this process must continue
            self._tell({"id": request["id"], "failed": errno.EINVAL})
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        return True

    def _start(self, request: dict[str, Any], descriptors: list[int]) -> None:
        os.chdir(request["cwd"])
        try:
            pid = self._spawned(request, descriptors)
        finally:
            os.chdir("/")
        self._ids[pid] = request["id"]
        pidfd = os.pidfd_open(pid)
        try:
            self._tell({"id": request["id"]}, pidfd)
        finally:
            os.close(pidfd)

    def _spawned(self, request: dict[str, Any], descriptors: list[int]) -> int:
        """Start the command as a child, retrying, as a command that used up all processes may just have been killed."""
        for pause in _PAUSES:
            try:
                return _spawn(request, descriptors)
            except BlockingIOError:  # EAGAIN: there are too many
                self._reap()
                time.sleep(pause)
        return _spawn(request, descriptors)

    def _reap(self) -> None:
        """Reap all children that have ended, including orphans of commands."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._ids:
                self._tell({"id": self._ids.pop(pid), "code": os.waitstatus_to_exitcode(status)})


def received(channel: socket.socket) -> tuple[bytes, list[int]]:
    """A message and its descriptors, which no command must inherit."""
    room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array("i").itemsize)
    data, ancillary, _, _ = channel.recvmsg(_LARGEST, room, socket.MSG_CMSG_CLOEXEC)
    descriptors = array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    return data, list(descriptors)


def _spawn(request: dict[str, Any], descriptors: list[int]) -> int:
    """Start the command in a new session without descriptors of this process; returns its process id.

    The system does not copy this process for it; a copy would take longer than most commands.
    """
    return os.posix_spawn(
        request["program"],
        request["argv"],
        request["env"],
        file_actions=[(os.POSIX_SPAWN_DUP2, descriptor, place) for place, descriptor in enumerate(descriptors)],
        setsid=True,
        setsigmask=[],
        setsigdef=_RESET,
    )


def _restrict(limits: dict[str, int]) -> None:
    """Restrict the descendants in ways that namespaces do not: own limits, and sockets of the machine."""
    for name in ("RLIMIT_NPROC", "RLIMIT_DATA"):
        if limits.get(name):
            resource.setrlimit(getattr(resource, name), (limits[name], limits[name]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    # Commands run as the same user: without this they could read the memory of this process and take its descriptors.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    # A keyring is inherited, and that of a login contains tickets and keys; this replaces it by an empty one.
    libc.syscall(_KEYCTL.get(os.uname().machine, _KEYCTL_OF_OTHERS), _JOIN_SESSION_KEYRING, None)
    if limits.get("abstract"):
        ruleset = libc.syscall(
            _LANDLOCK_CREATE_RULESET,
            struct.pack("QQQ", 0, 0, _SCOPE_ABSTRACT_SOCKETS),
            ctypes.c_size_t(24),
            ctypes.c_uint32(0),
        )
        if ruleset >= 0:
            libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
            os.close(ruleset)


def _limit_numbers(folder: int, most: int) -> None:
    """Limit the number of processes, also for root, if Linux counts them per sandbox (6.14).

    The folder is /proc/sys/kernel from outside, which is read-only inside.
    """
    try:
        place = os.open("pid_max", os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        os.write(place, str(max(most, _FEWEST_NUMBERS)).encode())
    except OSError:
        return
    finally:
        os.close(place)


def main() -> None:
    """Supervise until Marvin ends. The arguments: the number of the socket, and the limits as JSON."""
    number = int(sys.argv[1])
    limits = json.loads(sys.argv[2])
    if limits.get("numbers"):
        _limit_numbers(limits["folder"], limits["numbers"])
    os.closerange(3, number)
    os.closerange(number + 1, 4096)
    os.set_inheritable(number, False)
    _restrict(limits)
    with socket.socket(fileno=number) as channel:
        try:
            Supervisor(channel, with_proxy=bool(limits.get("proxy"))).serve()
        except (BrokenPipeError, ConnectionResetError):  # Marvin ended in the middle of a message
            return


if __name__ == "__main__":
    main()
