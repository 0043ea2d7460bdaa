"""Background Marvins that outlive their parent: each has a record, and a lock that shows that it is running.

Only the process itself holds its lock, starting before it runs its first line. So a killed process never appears to be
running, even if its process id is reused.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.errors import ToolError
from ...api.processes import Job
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...util.state_files import LockTimeout, is_locked, locked, make_private_folder, replace_file, take_lock
from ...util.threads import in_thread

if TYPE_CHECKING:
    from ...api.config import Config

FOLDER = "apart"
"""Relative to Marvin's state folder."""
_NAME = re.compile(r"[a-z][a-z0-9]{0,30}-[A-Za-z0-9-]{1,60}")
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_LOG = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_HIGH = 16
"""Higher than the numbers under which a program finds its descriptors."""
_HELD = 3
"""The number of the lock's descriptor in its process."""
_LISTED = 500
_RECORD, _LOCKED, _OUTPUT, _STOPPED = _ENDINGS = (".json", ".lock", ".log", ".stop")
"""The suffixes of the files of one process."""
_LARGEST = 100_000
_DAY = 86_400


class ApartOrder(Record):
    """A process to start."""

    name: str
    """Its id: a word for its kind, a dash, and a part that is unique."""
    title: str
    """Its task, for people."""
    root: Path
    """Its folder, links resolved; sessions of this folder and of folders above it list the process."""
    argv: Sequence[str]
    environment: Mapping[str, str]
    most: int
    """The maximum number of running processes of this kind, in all folders."""


class ApartJobs:
    """All background Marvins of all folders.

    Args:
        folder: the folder of their records, locks and logs, in Marvin's state folder.
        days: how long the records of ended ones are kept.
    """

    def __init__(self, folder: Path, timeouts: Timeouts, days: int = 30) -> None:
        self._folder = folder
        self._timeouts = timeouts
        self._days = days

    @classmethod
    def of(cls, config: Config) -> ApartJobs:
        """All that this user started."""
        return cls(config.state_folder / FOLDER, config.timeouts, config.limits.agent_days)

    async def start(self, order: ApartOrder) -> Job:
        """Start one. A cancelled wait does not stop the start.

        Raises:
            ToolError: too many of its kind are running, its name is taken, or it cannot be started.
        """
        if not _NAME.fullmatch(order.name):
            raise ToolError(f"{order.name!r} is not a job name: use a word, a hyphen, then letters and digits.")
        return await asyncio.shield(asyncio.ensure_future(self._start(order)))

    def list(self, root: Path | None = None) -> Sequence[Job]:
        """Those of a folder and the folders below it, or all, oldest first. Blocks for a moment."""
        return [self._job(name, data) for name, data in self._records() if root is None or _is_of(data, root)]

    def running(self, root: Path) -> Sequence[Job]:
        """The running ones of a folder and the folders below it. Blocks for less time, as records of ended ones are not
        read."""
        found = ((name, self._read(name)) for name in self._names() if self._is_held(name))
        return [self._job(name, data) for name, data in found if data is not None and _is_of(data, root)]

    def find(self, name: str, root: Path | None = None) -> Job | None:
        """The one with this id, in a folder and below it, or in all; None if there is none. Blocks."""
        data = self._read(name) if _NAME.fullmatch(name) else None
        return None if data is None or not (root is None or _is_of(data, root)) else self._job(name, data)

    async def stop(self, name: str) -> Job:
        """Stop one, and all processes that it started; returns when it has ended.

        Raises:
            ToolError: there is none with this id, or it cannot be stopped.
        """
        job = self.find(name)
        if job is None:
            raise ToolError(f"There is no job {name!r}.")
        limits = self._timeouts
        patience = 2 * (limits.close + limits.agent_end)  # it stops its agents, then itself
        with self._stopping(name) as is_first:
            await self._until(lambda: is_first() or not self._is_held(name), patience + limits.kill_limit)
            for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, limits.kill_limit)):
                if not self._is_held(name):
                    break
                self._signal(job.pid, number)
                await self._until(lambda: not self._is_held(name), wait)
        found = self.find(name)
        if found is None or found.running:
            raise ToolError(f"{name} (process {job.pid}) could not be ended. Ask the user to end it.")
        return found

    def output(self, name: str, most: int, since: int = 0) -> tuple[bytes, int]:
        """The newest bytes of its log and the total size: at most `most` bytes, without the first `since`.

        Raises:
            ToolError: there is none with this id, or its log cannot be read.
        """
        job = self.find(name)
        if job is None:
            raise ToolError(f"There is no job {name!r}.")
        try:
            descriptor = os.open(job.log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as log:
                size = os.fstat(descriptor).st_size
                wanted = max(0, min(most, size - since))
                log.seek(size - wanted)
                return log.read(wanted), size
        except OSError as error:
            raise ToolError(f"The log {job.log} cannot be read: {error.strerror}.") from error

    async def _start(self, order: ApartOrder) -> Job:
        record = {"root": str(order.root), "title": order.title, "pid": 0, "begun": time.time()}
        try:
            with ExitStack() as held:
                lock, log = await in_thread(lambda: self._prepared(order, record, held))
                try:
                    # Not in a thread: the event loop must not see a child without an owner.
                    record["pid"] = _spawned(order, lock, log)
                except OSError:
                    (self._folder / f"{order.name}{_RECORD}").unlink(missing_ok=True)
                    raise
                await in_thread(lambda: self._write(order.name, record))
        except OSError as error:
            raise ToolError(
                f"{order.name} was not started: {error.strerror or error} ({error.filename or self._folder})."
            ) from error
        except LockTimeout as error:
            raise ToolError(str(error)) from error
        return self._job(order.name, record)

    def _prepared(self, order: ApartOrder, record: Mapping[str, object], held: ExitStack) -> tuple[int, int]:
        """The descriptors of the lock and the log of a new one; its record is written."""
        make_private_folder(self._folder)
        held.enter_context(locked(self._folder / "all", self._timeouts.lock, self._timeouts.lock_poll))
        self._remove_old()
        self._check_room(order)
        lock = held.enter_context(_opened(self._folder / f"{order.name}{_LOCKED}", _OPEN))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ToolError(f"A job named {order.name} already exists.") from None
        log = held.enter_context(_opened(self._folder / f"{order.name}{_OUTPUT}", _LOG))
        self._write(order.name, record)
        return lock, log

    def _check_room(self, order: ApartOrder) -> None:
        kind = order.name.partition("-")[0]
        running = [job.id for job in self.list() if job.running and job.id.partition("-")[0] == kind]
        if len(running) >= order.most:
            raise ToolError(
                f"{len(running)} of this kind are already running, which is the limit: {', '.join(running)}. Wait "
                "until one of them has ended, or stop one."
            )

    def _records(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        found = [(name, data) for name in self._names() if (data := self._read(name)) is not None]
        yield from sorted(found, key=lambda pair: str(pair[1]["begun"]))

    def _names(self) -> Sequence[str]:
        try:
            with os.scandir(self._folder) as entries:
                found = sorted(entry.name for entry in entries if entry.name.endswith(_RECORD))
        except OSError:  # usually none was ever started
            return ()
        return [name.removesuffix(_RECORD) for name in found[-_LISTED:]]

    def _read(self, name: str) -> Mapping[str, object] | None:
        try:
            with open(self._folder / f"{name}{_RECORD}", "rb") as file:
                data = json.loads(file.read(_LARGEST))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(data, dict) or type(data.get("pid")) is not int or not isinstance(data.get("root"), str):
            return None
        return data if data.keys() >= {"title", "begun"} else None

    def _write(self, name: str, record: Mapping[str, object]) -> None:
        replace_file(self._folder / f"{name}{_RECORD}", json.dumps(record).encode())

    def _job(self, name: str, data: Mapping[str, object]) -> Job:
        return Job(
            id=name,
            command=str(data["title"]),
            log=self._folder / f"{name}{_OUTPUT}",
            pid=int(str(data["pid"])),
            running=self._is_held(name),
        )

    def _is_held(self, name: str) -> bool:
        """Whether its process is alive."""
        return is_locked(self._folder / f"{name}{_LOCKED}")

    @contextmanager
    def _stopping(self, name: str) -> Iterator[Callable[[], bool]]:
        """A lock that shows whether another process stops it too: a second signal would interrupt its shutdown."""
        try:
            lock = os.open(self._folder / f"{name}{_STOPPED}", _OPEN, 0o600)
        except OSError:  # it is stopped anyway
            yield lambda: True
            return
        try:
            yield lambda: take_lock(lock)
        finally:
            os.close(lock)

    def _signal(self, pid: int, number: signal.Signals) -> None:
        """Signal the process that holds the lock. It leads a session; a process that reuses its id hardly ever does."""
        with suppress(OSError):
            if pid > 1 and os.getsid(pid) == pid:
                os.kill(pid, number)

    async def _until(self, reached: Callable[[], bool], limit: float) -> None:
        deadline = time.monotonic() + limit
        while True:
            if reached() or time.monotonic() > deadline:
                return
            await asyncio.sleep(self._timeouts.job_poll)

    def _remove_old(self) -> None:
        oldest = time.time() - self._days * _DAY
        for entry in list(os.scandir(self._folder)):
            name, kind = os.path.splitext(entry.name)
            if kind in _ENDINGS and _NAME.fullmatch(name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest and not self._is_held(name):
                        os.unlink(entry.path)


def _is_of(data: Mapping[str, object], root: Path) -> bool:
    return Path(str(data["root"])).is_relative_to(root)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _spawned(order: ApartOrder, lock: int, log: int) -> int:
    """Start the process; it gets the lock, an empty input, and its log as output."""
    from .tree import own  # only needed to start one

    high = fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    try:
        pid = os.posix_spawn(
            order.argv[0],
            list(order.argv),
            dict(order.environment),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, high, _HELD),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT),
        )
    finally:
        os.close(high)
    own(pid)  # no tool call must mistake it for one of its leftover processes
    threading.Thread(target=_await_end, args=(pid,), name=f"end of {order.name}", daemon=True).start()
    return pid


def _await_end(pid: int) -> None:
    from .tree import disown

    with suppress(OSError):
        os.waitpid(pid, 0)
    disown(pid)
