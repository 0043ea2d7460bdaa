"""Which processes one call started, and how to end them all: setsid and double forks do not get away."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable
from functools import cache

MARKER = "MARVIN_PROC"
"""In each child's environment: the tokens of the calls that it runs under, outermost first."""

_TICKS = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 100
_STEPS = 2_000
"""How often the orphans are looked at in a row, each time some 50 microseconds, while new ones come."""
_STAT_BYTES = 2048
_ENVIRONMENT_BYTES = 2_000_000
_CHILDREN_BYTES = 65_536

# A process has one table of children whatever objects it holds: which of ours have an owner that
# waits for them is known here, so that nobody else takes their exit status.
_owned: set[int] = set()


class ProcessEntry:
    """A process as the system lists it. `started` is in ticks since boot, 0 where it is not known."""

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
    """Make this process the parent of its descendants' orphans (Linux); says whether it is."""
    if sys.platform != "linux":
        return False
    import ctypes  # 5 ms, and only a program that starts children needs it

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
    # The newest first: what forks all the time is seen before it has moved on.
    for name in reversed(os.listdir("/proc")):
        if name.isdigit():
            entry = _proc_entry(int(name))
            if entry is not None:
                table[entry.pid] = entry
    return table


def _proc_entry(pid: int) -> ProcessEntry | None:
    line = _read(f"/proc/{pid}/stat", _STAT_BYTES)
    # The name before the last parenthesis may itself hold blanks and parentheses.
    fields = line[line.rfind(b")") + 2 :].split()
    if len(fields) < 20:
        return None
    # Where the first thread has ended and others run, the process looks like a zombie and lives.
    gone = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    return ProcessEntry(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]), gone)


def _adopted() -> list[int]:
    """This process's own children, orphans that it adopted among them; none where the system does not list them."""
    # Orphans go to the main thread, which has the number of the process.
    return list(map(int, _read(f"/proc/self/task/{os.getpid()}/children", _CHILDREN_BYTES).split()))


def start_of(pid: int) -> int | None:
    """When a process was started, in ticks since boot, or 0 where the system does not tell; None where none lives.

    With the number it tells a process from a later one that got the same number.
    """
    if sys.platform == "linux":
        entry = _proc_entry(pid)
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
    """The table out of `ps -o pid=,ppid=,pgid=,stat=`, for systems without /proc.

    The session is taken to be the group: ps shows none that could be compared.
    """
    table: Table = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 4 and all(field.isdigit() for field in fields[:3]):
            pid, parent, group = map(int, fields[:3])
            table[pid] = ProcessEntry(pid, parent, group, group, 0, fields[3].startswith("Z"))
    return table


def _read(path: str, limit: int) -> bytes:
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


def _marker_of(pid: int) -> bytes:
    prefix = MARKER.encode() + b"="
    for variable in _read(f"/proc/{pid}/environ", _ENVIRONMENT_BYTES).split(b"\0"):
        if variable.startswith(prefix):
            return variable[len(prefix) :]
    return b""


def ticks() -> int:
    """Now, as `ProcessEntry.started` counts, and one less: the system rounds the time of a start down."""
    clock = time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC
    return int(time.clock_gettime(clock) * _TICKS) - 1


def _take_off(entry: ProcessEntry) -> None:
    """Take an orphan that has ended off the system's table."""
    if entry.parent == os.getpid() and entry.pid not in _owned:
        try:
            os.waitpid(entry.pid, os.WNOHANG)
        except ChildProcessError:
            pass


class Family:
    """Everything that one call started: the program, its descendants, and orphans of theirs.

    A child is the leader of a session of its own, and no process can enter another session; so what
    is in Marvin's own session was started by somebody else and is never touched.
    """

    def __init__(self, pid: int, token: str, since: int) -> None:
        """
        Args:
            pid: the program itself, just started and not yet waited for.
            token: its own part of the marker in its environment.
            since: `ticks()` before it was started.
        """
        self.pid = pid
        self._token = token.encode()
        self._since = since
        self._known: dict[int, int] = {}
        self._untouchable: set[int] = set()
        self._claims_orphans = True
        _owned.add(pid)

    def reaped(self) -> None:
        """The program's own exit status was taken; its number may be used again."""
        _owned.discard(self.pid)

    def is_gone(self) -> bool:
        """Whether nothing of it is alive. One system call where Marvin has no other child."""
        if sys.platform == "linux":
            if adopts_orphans():
                try:
                    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                except ChildProcessError:
                    return True  # every descendant would be below a child of ours
        elif not self._group_exists():
            return True
        return not self.is_alive()

    def _group_exists(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def is_alive(self) -> bool:
        """Whether something of it lives, found by looking through all processes."""
        for _ in range(_ROUNDS):
            living, news = self._look()
            if living or not news:
                return bool(living)
        return True

    def _look(self) -> tuple[list[ProcessEntry], bool]:
        """What lives, and whether anything was seen for the first time, be it dead.

        A dead process that was not known may have left a child behind since the look began. Orphans
        that have ended are taken off the system's table.
        """
        news = False
        living = []
        for entry in self._members(system_table()):
            news = news or not self.knows(entry)
            self._known[entry.pid] = entry.started
            if not entry.gone:
                if entry.pid not in self._untouchable:
                    living.append(entry)
            else:
                _take_off(entry)
        return living, news

    def _members(self, table: Table) -> Iterable[ProcessEntry]:
        own_session = os.getsid(0) if sys.platform == "linux" else os.getpgid(0)
        children: dict[int, list[ProcessEntry]] = {}
        found: Table = {}
        for entry in table.values():
            children.setdefault(entry.parent, []).append(entry)
            if entry.session != own_session and self._is_ours(entry):
                found[entry.pid] = entry
        queue = list(found)
        while queue:
            for child in children.get(queue.pop(), ()):
                if child.pid not in found:
                    found[child.pid] = child
                    queue.append(child.pid)
        return found.values()

    def _is_ours(self, entry: ProcessEntry) -> bool:
        if entry.started < self._since and entry.started:
            return False
        if self.pid in (entry.pid, entry.group, entry.session):
            return True
        if self.knows(entry):
            return True
        if sys.platform != "linux" or entry.pid in _owned:
            return False
        if not adopts_orphans():
            return self._token in _marker_of(entry.pid)
        if entry.parent != os.getpid():
            return False
        # An orphan that Marvin adopted. One that wiped its environment has no marker: it is ours too,
        # since none may be left over, unless it was there before the call.
        marker = _marker_of(entry.pid)
        return self._token in marker or (not marker and self._claims_orphans)

    def knows(self, entry: ProcessEntry) -> bool:
        """Whether it was seen to belong to this family before."""
        return self._known.get(entry.pid, -1) == entry.started

    def outlive_call(self) -> None:
        """From now on it is a job: orphans without a marker are those of calls."""
        self._claims_orphans = False

    def ask_to_end(self) -> None:
        """SIGTERM to all, so that lock files and the like are cleaned up.

        The group gets it at once, and parents before their children: a shell that saw its command end first would go
        on with the next one.
        """
        reached: set[int] = set()
        signalled = self._signal_group(signal.SIGTERM)
        self._chase(signal.SIGTERM, reached)
        for entry in sorted(self._look()[0], key=lambda entry: entry.started):
            # Twice would break off what a program does on the first.
            if entry.pid not in reached and not (signalled and entry.group == self.pid):
                self._signal(entry.pid, signal.SIGTERM)

    def kill(self) -> bool:
        """SIGKILL to all; whether there was anything to kill.

        They are stopped first, until a look shows nothing new, so that none can fork away.
        """
        self._signal_group(signal.SIGSTOP)
        stopped: set[int] = set()
        unsettled = True
        for _ in range(_ROUNDS):
            self._chase(signal.SIGSTOP, stopped)
            living, news = self._look()
            fresh = [entry.pid for entry in living if entry.pid not in stopped]
            unsettled = bool(fresh) or news
            if not unsettled:
                break
            for pid in fresh:
                self._signal(pid, signal.SIGSTOP)
            stopped.update(fresh)
        self._signal_group(signal.SIGKILL)
        for pid in stopped:
            self._signal(pid, signal.SIGKILL)
        return unsettled or bool(stopped)

    def _chase(self, number: signal.Signals, reached: set[int]) -> None:
        """Send a signal to the orphans that Marvin adopted, as long as new ones come, and note who got it.

        What forks a successor and ends moves on faster than a busy machine lists all its processes, but each of its
        steps comes by here. The group is left out: it got the signal as one.
        """
        if sys.platform != "linux" or not adopts_orphans():
            return
        own_session = os.getsid(0)
        for _ in range(_STEPS):
            came = False
            for pid in _adopted():
                entry = None if pid in _owned else _proc_entry(pid)
                if entry is None or entry.session == own_session or not self._is_ours(entry):
                    continue
                if entry.gone:
                    _take_off(entry)
                elif pid not in reached and entry.group != self.pid:
                    self._signal(pid, number)
                    reached.add(pid)
                    self._known[pid] = entry.started
                    came = True
            if not came:
                return

    def _signal_group(self, number: signal.Signals) -> bool:
        """Whether the group got the signal."""
        # Only while the program's own status is not taken can its number not belong to another group.
        if self.pid in _owned:
            try:
                os.killpg(self.pid, number)
            except (ProcessLookupError, PermissionError):
                return False
            return True
        return False

    def _signal(self, pid: int, number: signal.Signals) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:  # sudo and the like: waiting for its end would be in vain
            self._untouchable.add(pid)
