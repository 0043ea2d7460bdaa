"""The process table of the system, and the limit of processes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import cache

_TICKS = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36
_STAT_BYTES = 2048
_COMMAND_BYTES = 2_000_000
_CHILDREN_BYTES = 65_536


class ProcessEntry:
    """A process as the system lists it. `started` is in ticks since boot, or 0 if unknown."""

    __slots__ = ("gone", "group", "parent", "pid", "session", "started")

    def __init__(self, pid: int, parent: int, group: int, session: int, started: int, gone: bool) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.started = started
        self.gone = gone


Table = dict[int, ProcessEntry]


@cache
def adopts_orphans() -> bool:
    """Make this process the parent of its descendants' orphans (Linux); returns whether that worked."""
    if sys.platform != "linux":
        return False
    import ctypes  # takes 5 ms, and only a program that starts children needs it

    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, one, zero, zero, zero) == 0)
    except (OSError, AttributeError):
        return False


def system_table() -> Table:
    """All processes of the system."""
    if sys.platform == "linux":
        return _proc_table()
    else:  # noqa: RET505  # mypy follows a platform check only with both branches
        import subprocess

        listed = subprocess.run(["ps", "-axo", "pid=,ppid=,pgid=,stat="], capture_output=True, check=False)
        return parse_ps(listed.stdout.decode("ascii", "replace"))


def _proc_table() -> Table:
    table: Table = {}
    # Newest first: a process that keeps forking is seen before it has moved on.
    for name in reversed(os.listdir("/proc")):
        if name.isdigit():
            entry = entry_of(int(name))
            if entry is not None:
                table[entry.pid] = entry
    return table


def entry_of(pid: int) -> ProcessEntry | None:
    """The process with this id; None if there is none."""
    line = read_some(f"/proc/{pid}/stat", _STAT_BYTES)
    # The name before the last parenthesis may itself contain blanks and parentheses.
    fields = line[line.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    # If the first thread has ended and others run, the process looks like a zombie but is alive.
    gone = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    return ProcessEntry(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), gone)


def children_of(pid: int, thread: int = 0) -> list[int]:
    """The children of a process, including adopted orphans; none if the system does not list them.

    Args:
        thread: the thread that started them; by default the main one.
    """
    # Orphans belong to the main thread, whose id is that of the process.
    return list(map(int, read_some(f"/proc/{pid}/task/{thread or pid}/children", _CHILDREN_BYTES).split()))


class Place:
    """The context in which programs are started: the process that adopts their orphans, and the candidates for those.

    By default it is this process and all processes of the system.
    """

    @property
    def keeper(self) -> int:
        """The process that adopts orphans."""
        return os.getpid()

    def adopts(self) -> bool:
        """Whether it adopts them; this enables it if possible."""
        return adopts_orphans()

    def table(self) -> Table:
        """The processes among which those of a program are searched."""
        return system_table()

    def is_between(self, pid: int) -> bool:
        """Whether a process may be about to run another program, so that its environment is not conclusive yet."""
        return not _command_of(pid)

    def is_empty(self) -> bool:
        """Whether it is certain, at little cost, that nothing runs here."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True  # every descendant would be below a child of ours
        return False


class SandboxPlace(Place):
    """The inside of a sandbox, where the first process adopts every orphan and all others are below it."""

    def __init__(self, first: int, launching: Callable[[], bool]) -> None:
        """
        Args:
            first: the id of the first process, as Marvin sees it.
            launching: whether a start was requested whose process Marvin does not know yet.
        """
        self._first = first
        self._launching = launching

    @property
    def keeper(self) -> int:
        """The first process."""
        return self._first

    def adopts(self) -> bool:
        """Always: it has the id 1 there."""
        return True

    def table(self) -> Table:
        """The descendants of the first process; all processes if the system does not list children."""
        if not os.path.exists(f"/proc/{self._first}/task/{self._first}/children"):
            return system_table()
        table: Table = {}
        queue = [self._first]
        while queue:
            for pid in children_of(queue.pop()):
                entry = entry_of(pid)
                if entry is not None and pid not in table:
                    table[pid] = entry
                    queue.append(pid)
        return table

    def is_between(self, pid: int) -> bool:
        """The same, or a copy of the first process that is about to run the program of another call."""
        command = _command_of(pid)
        return not command or (self._launching() and command == _command_of(self._first))

    def is_empty(self) -> bool:
        """Whether the first process has no children."""
        path = f"/proc/{self._first}/task/{self._first}/children"
        return not os.path.exists(f"/proc/{self._first}") or (os.path.exists(path) and not children_of(self._first))


OWN = Place()
"""The programs that Marvin starts directly."""


def start_of(pid: int) -> int | None:
    """The start time of a process in ticks since boot, or 0 if the system gives none; None if none is alive.

    Together with the id, it distinguishes a process from a later one that reuses the id.
    """
    if sys.platform == "linux":
        entry = entry_of(pid)
        return None if entry is None or entry.gone else entry.started
    else:  # noqa: RET505  # mypy follows a platform check only with both branches
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            return 0
        return 0


def parse_ps(text: str) -> Table:
    """The process table from `ps -o pid=,ppid=,pgid=,stat=`, for systems without /proc.

    The group stands for the session, since ps gives no comparable session id.
    """
    table: Table = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and all(field.isdigit() for field in fields[:3]):
            pid, parent, group = map(int, fields[:3])
            table[pid] = ProcessEntry(pid, parent, group, group, 0, fields[3].startswith("Z"))
    return table


def read_some(path: str, limit: int) -> bytes:
    """The beginning of a file in /proc; empty if the process has ended meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, limit)
    except OSError:  # it ended meanwhile
        return b""
    finally:
        os.close(descriptor)


def _command_of(pid: int) -> bytes:
    return read_some(f"/proc/{pid}/cmdline", _COMMAND_BYTES)


def ticks() -> int:
    """The current time in the unit of `ProcessEntry.started`, less one: the system rounds start times down."""
    clock = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    return int(time.clock_gettime(clock) * _TICKS) - 1
