"""Marvin's own state files: atomic replacement, locks for read-modify-write, and cache files that only this user can
write."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from ..api.errors import MarvinError
from ..api.timeouts import Timeouts

TEMPORARY = ".marvin-tmp"
"""The end of the name of a temporary file that is about to replace another file."""
_NAME_KEPT = 180
"""Bytes of a file's name that its temporary file also has; names have at most 255 bytes."""
_FORGOTTEN = 3_600
"""The age, in seconds, at which a temporary file counts as left by a killed writer."""
_OTHERS = 0o077
_LOOKED_AT = 1_000
"""Folders whose files get closed permissions; with more of them, only the folder around them does."""
_SET_ASIDE = 5
"""The number of damaged files that are kept for one name."""
_swept: set[tuple[int, int]] = set()


class LockTimeout(MarvinError):
    """Another process has held a lock for too long."""


def make_private_folder(folder: Path) -> None:
    """Create a folder of Marvin's own, and missing ones above it, for this user only."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def private(path: str, flags: int) -> int:
    """An `opener` for `open`: a new file is for this user only."""
    return os.open(path, flags, 0o600)


def close_to_others(folder: Path) -> bool:
    """Restrict a folder of Marvin's own to this user; returns whether it was open to others before.

    Its contents are restricted as well, so that they stay closed if they are moved. Some file systems have no modes.
    """
    try:
        status = folder.stat()
        if status.st_uid != os.getuid() or not status.st_mode & _OTHERS:
            return False
        folder.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
        for place, _, names in islice(os.walk(folder), _LOOKED_AT):
            for path in (place, *(os.path.join(place, name) for name in names)):
                found = os.lstat(path)
                if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
                    os.chmod(path, stat.S_IMODE(found.st_mode) & ~_OTHERS)
        return not folder.stat().st_mode & _OTHERS
    except OSError:
        return False


def sweep(folder: Path) -> None:
    """Remove the files that killed writers left; once for each folder and process."""
    with suppress(OSError):
        status = folder.stat()
        if (status.st_dev, status.st_ino) in _swept:
            return
        _swept.add((status.st_dev, status.st_ino))
        for name in forgotten(folder, lambda name: name.endswith(TEMPORARY), _FORGOTTEN):
            with suppress(OSError):
                os.unlink(folder / name)


def forgotten(folder: Path | int, is_ours: Callable[[str], bool], age: float) -> list[str]:
    """The names of leftover files of this age, in seconds, in a folder. Files that disappear meanwhile are left out.

    Raises:
        OSError: the folder cannot be listed.
    """
    before = time.time() - age
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if is_ours(entry.name) and entry.stat(follow_symlinks=False).st_mtime < before:
                    found.append(entry.name)
    return found


def replace_file(path: Path, data: bytes, mode: int = 0o600, *, keep_mode: bool = True) -> None:
    """Replace a file atomically: a reader sees the old or the new content, never a part.

    The mode of an existing file is kept, unless specified, and a link is followed. `mode` is for a new file.

    Raises:
        OSError: the folder or the disk is not writable; the old content is then unchanged.
    """
    target = Path(os.path.realpath(path))
    make_private_folder(target.parent)
    sweep(target.parent)
    if keep_mode and target.exists():
        mode = stat.S_IMODE(target.stat().st_mode)
    begun = os.fsdecode(os.fsencode(target.name)[:_NAME_KEPT])
    temporary = target.with_name(f".{begun}.{os.getpid()}.{time.monotonic_ns()}{TEMPORARY}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(descriptor, mode)
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        temporary.rename(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path, limit: float, poll: float) -> Iterator[None]:
    """Hold the lock of a state file for one read-modify-write. The lock is a separate file, which is never removed.

    Args:
        limit: the longest wait, in seconds.
        poll: seconds between two attempts.

    Raises:
        LockTimeout: another process holds it for longer.
    """
    make_private_folder(path.parent)
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        acquire(descriptor, limit, poll, str(path))
        yield
    finally:
        os.close(descriptor)


@asynccontextmanager
async def renewing(path: Path, timeouts: Timeouts) -> AsyncIterator[None]:
    """Be the only process that renews the login in a file: a refresh token may be valid only once.

    The lock is a separate file, as with `locked`. The wait is as long as an HTTP request of another process may take.

    Raises:
        LockTimeout: another process takes longer.
    """
    import asyncio

    make_private_folder(path.parent)
    lock = path.with_suffix(".renewal.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        deadline = time.monotonic() + timeouts.http
        while not take_lock(descriptor):
            if time.monotonic() >= deadline:
                raise LockTimeout("another process is renewing the login and does not finish")
            await asyncio.sleep(timeouts.lock_poll)
        yield
    finally:
        os.close(descriptor)


def take_lock(descriptor: int) -> bool:
    """Try to lock an open file without waiting; returns whether it was free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: str | Path) -> bool:
    """Whether another process holds the lock of a file as taken by `take_lock`; false if the file is missing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def update_file(path: Path, change: Callable[[bytes | None], bytes | None], timeouts: Timeouts | None = None) -> None:
    """Change a state file atomically, so that no change by another process is lost.

    It blocks while another process changes the file, so async functions call it through `in_thread`.

    Args:
        change: gets the content, None if there is no file yet; returns the new content, or None to leave it unchanged.
        timeouts: how long to wait for the other process, if not the default.

    Raises:
        MarvinError: another process holds the file's lock for too long.
        OSError: the file cannot be read or written; the old content is then unchanged.
    """
    timeouts = timeouts or Timeouts()
    with locked(path, timeouts.lock, timeouts.lock_poll):
        new = change(path.read_bytes() if path.exists() else None)
        if new is not None:
            replace_file(path, new)


def set_aside(path: Path) -> Path:
    """Move a damaged file to `NAME.damaged-TIME` beside it, so that nothing overwrites it; returns its new path.

    Only the newest of these files are kept. Call it under the file's lock: the file may have been replaced by a valid
    one meanwhile.
    """
    start = f"{path.name}.damaged-"
    beside = sorted((entry for entry in path.parent.iterdir() if entry.name.startswith(start)), key=_order)
    name = f"{start}{time.strftime('%Y%m%d-%H%M%S')}"
    last = _order(beside[-1]) if beside else ("", 0)
    moved = path.with_name(f"{name}~{last[1] + 1}" if last[0] == name else name)
    path.rename(moved)
    with suppress(OSError):
        for old in [*beside, moved][:-_SET_ASIDE]:
            old.unlink()
    return moved


def _order(kept: Path) -> tuple[str, int]:
    """When a file was set aside: the second, and its number in that second."""
    name, _, number = kept.name.partition("~")
    return name, int(number) if number.isdigit() else 1


def acquire(descriptor: int, limit: float, poll: float, name: str) -> None:
    """Take the exclusive lock of an open file; see `locked`. With a limit of 0 there is one attempt."""
    deadline = time.monotonic() + limit
    while True:
        if take_lock(descriptor):
            return
        if time.monotonic() >= deadline:
            raise LockTimeout(f"{name} is locked by another process. Try again when that process has finished.")
        time.sleep(poll)


def read_trusted_json(path: Path) -> Any:
    """The JSON of a cache file that belongs to this user and that nobody else can write; None for any other file."""
    return trusted_json(read_trusted(path))


def trusted_json(text: bytes | None) -> Any:
    """The JSON in the content from `read_trusted`; None if it is not JSON."""
    try:
        # Nobody else can write it, so its depth is not checked: each start reads one.
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_trusted(path: Path) -> bytes | None:
    """The content of a cache file that belongs to this user and that nobody else can write; None for any other file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            return None
        with open(descriptor, "rb", closefd=False) as stream:
            return stream.read()
    except OSError:
        return None
    finally:
        os.close(descriptor)


def write_cache(path: Path, *data: Any) -> None:
    """Write a cache file as JSON, a line for each value. If that fails, the work is repeated next time."""
    try:
        if path.is_symlink():
            path.unlink()
        # With our mode: a cache that others can write would not be trusted, and created again at each start.
        lines = "\n".join(json.dumps(one, separators=(",", ":")) for one in data)
        replace_file(path, lines.encode(), keep_mode=False)
    except OSError:
        return
