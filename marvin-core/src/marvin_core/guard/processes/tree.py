"""Finds and kills all processes of a call, including those after setsid and double forks."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable

from .table import OWN, Place, ProcessEntry, Table, children_of, entry_of, read_some

MARKER = "MARVIN_PROC"
"""In each child's environment: the tokens of the calls that started it, outermost first."""
NOBODY = -1
"""A placeholder for the process id: the process has ended, and its id may be reused."""
_ROUNDS = 100
_STEPS = 2_000
"""The maximum number of checks for new orphans in a row, each of about 50 microseconds."""
_ENVIRONMENT_BYTES = 2_000_000

# A process has a single table of children, shared by all objects. This set holds the children with an owner that waits
# for them, so that no other code takes their exit status.
_owned: set[int] = set()


def _marker_of(pid: int) -> bytes:
    prefix = MARKER.encode() + b"="
    for variable in read_some(f"/proc/{pid}/environ", _ENVIRONMENT_BYTES).split(b"\0"):
        if variable.startswith(prefix):
            return variable[len(prefix) :]
    return b""


def own(pid: int) -> None:
    """Mark a child as owned: it is not an orphan, and no other code may take its exit status."""
    _owned.add(pid)


def disown(pid: int) -> None:
    """Its exit status was taken; the system may reuse its id."""
    _owned.discard(pid)


def _take_off(entry: ProcessEntry) -> None:
    """Reap an orphan that has ended."""
    if entry.parent == os.getpid() and entry.pid not in _owned:
        try:
            os.waitpid(entry.pid, os.WNOHANG)
        except ChildProcessError:
            pass


class Family:
    """Everything that one call started: the program, its descendants, and their orphans.

    Each child leads a session of its own, and no process can enter an existing session. So a process in Marvin's own
    session does not belong to a call, and is never signalled.
    """

    def __init__(self, pid: int, token: str, since: int, place: Place = OWN) -> None:
        """
        Args:
            pid: the program itself, just started and not yet waited for; `NOBODY` if its exit status was already taken.
                Its leftover processes are then identified by their marker.
            token: the call's part of the marker in its environment.
            since: `ticks()` before it was started.
            place: the context in which it was started.
        """
        self.pid = pid
        self._place = place
        self._token = token.encode()
        self._since = since
        self._known: dict[int, int] = {}
        self._untouchable: set[int] = set()
        self._claims_orphans = True
        self._is_unsure = False
        if pid != NOBODY:
            own(pid)

    def reaped(self) -> None:
        """The program's own exit status was taken; the system may reuse its id."""
        disown(self.pid)

    def is_gone(self) -> bool:
        """Whether no process of the call is alive. It is fast unless there are orphans whose call is unknown."""
        if sys.platform == "linux":
            if self._place.adopts() and (self._place.is_empty() or self._leaves_no_orphan()):
                return True
        elif not self._group_exists():
            return True
        return not self.is_alive()

    def _leaves_no_orphan(self) -> bool:
        """Whether, after the program has ended, all children of the adopting process are programs with an owner.

        A live process of the call would be one of these children, or below one. Only a child that ends while the system
        lists them can hide another child, and the second listing shows that.
        """
        children = children_of(self._place.keeper)
        theirs = _owned.difference([self.pid])
        return bool(children) and theirs.issuperset(children) and children_of(self._place.keeper) == children

    def _is_alone(self) -> bool:
        """Whether the program is running without children, and no orphan could belong to it.

        This costs little; listing all processes would block the event loop for each search that was cut short.
        """
        if sys.platform != "linux" or not self._place.adopts():
            return False
        beside = children_of(self._place.keeper)
        if self.pid not in beside or not _owned.issuperset(beside):
            return False
        try:
            threads = os.listdir(f"/proc/{self.pid}/task")
        except OSError:
            return False
        return not any(children_of(self.pid, int(thread)) for thread in threads)

    def _group_exists(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def is_alive(self) -> bool:
        """Whether a process of the call is alive, according to a scan of all processes."""
        for _ in range(_ROUNDS):
            living, news = self._look()
            if living or not news:
                return bool(living)
        return True

    def _look(self) -> tuple[list[ProcessEntry], bool]:
        """The live processes, and whether another scan may find more.

        It may if any process was seen for the first time, even a dead one: an unknown dead process may have left a
        child since the scan began. It may also if an orphan is about to run another program, so that its owner is not
        known yet. Orphans that have ended are reaped.
        """
        self._is_unsure = False
        news = False
        living = []
        for entry in self._members(self._place.table()):
            news = news or not self.knows(entry)
            self._known[entry.pid] = entry.started
            if not entry.gone:
                if entry.pid not in self._untouchable:
                    living.append(entry)
            else:
                _take_off(entry)
        return living, news or self._is_unsure

    def _members(self, table: Table) -> Iterable[ProcessEntry]:
        own_session = os.getsid(0) if sys.platform == "linux" else os.getpgid(0)
        children: dict[int, list[ProcessEntry]] = {}
        found: Table = {}
        for entry in self._settled(table):
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

    def _settled(self, table: Table) -> Iterable[ProcessEntry]:
        """The processes, each with an existing parent: a parent that ended during the listing left orphans."""
        for entry in table.values():
            is_orphaned = entry.parent not in table and entry.parent not in (0, self._place.keeper)
            now = entry_of(entry.pid) if is_orphaned and sys.platform == "linux" else entry
            yield now if now is not None and now.started == entry.started else entry

    def _is_ours(self, entry: ProcessEntry) -> bool:
        if entry.started < self._since and entry.started:
            return False
        if self.pid in (entry.pid, entry.group, entry.session):
            return True
        if self.knows(entry):
            return True
        if sys.platform != "linux" or entry.pid in _owned:
            return False
        if not self._place.adopts():
            return self._token in _marker_of(entry.pid)
        if entry.parent != self._place.keeper:
            return False
        # The order matters: a process that runs its program between the two checks has its marker by the second.
        between = not entry.gone and self._place.is_between(entry.pid)
        # An adopted orphan. One that cleared its environment has no marker. It belongs to this call too, since no
        # orphan may be left over, unless it existed before the call.
        marker = _marker_of(entry.pid)
        if marker:
            return self._token in marker
        self._is_unsure = self._is_unsure or (self._claims_orphans and between)
        return self._claims_orphans and not between

    def knows(self, entry: ProcessEntry) -> bool:
        """Whether it is already known as a member of this family."""
        return self._known.get(entry.pid, -1) == entry.started

    def outlive_call(self) -> None:
        """Make it a job from now on: orphans without a marker belong to calls."""
        self._claims_orphans = False

    def ask_to_end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send SIGTERM or SIGINT to all, so that lock files and the like are cleaned up.

        The group gets it at once; otherwise parents get it before their children. A shell whose command ends first
        would continue with the next command.
        """
        reached: set[int] = set()
        signalled = self._signal_group(number)
        if signalled and self._is_alone():
            return
        self._chase(number, reached)
        for entry in sorted(self._look()[0], key=lambda entry: entry.started):
            # A second signal would interrupt the handler of the first.
            if entry.pid not in reached and not (signalled and entry.group == self.pid):
                self._signal(entry.pid, number)

    def kill(self) -> bool:
        """Send SIGKILL to all; returns whether there was anything to kill.

        They are stopped first, until a scan shows no new process, so that none can escape by forking.
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
        """Send a signal to the adopted orphans as long as new ones appear, and record them.

        A process that keeps forking a successor and ending is faster than a scan of all processes on a busy machine,
        but each successor becomes an adopted orphan. The group is skipped, since it got the signal as a whole.
        """
        if sys.platform != "linux" or not self._place.adopts():
            return
        own_session = os.getsid(0)
        for _ in range(_STEPS):
            came = False
            for pid in children_of(self._place.keeper):
                entry = None if pid in _owned else entry_of(pid)
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
        """Whether the group received the signal."""
        # Only until the program's own exit status is taken is its id certain not to be that of another group.
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
