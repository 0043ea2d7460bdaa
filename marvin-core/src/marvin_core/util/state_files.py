"""Marvin's own state files: replaced atomically, locked for one read-modify-write, trusted only if ours."""

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
"""How the name of a file ends that is about to take the place of another one."""
_NAME_KEPT = 180
"""Bytes of a file's name that its temporary file has as well; names have 255 bytes at most."""
_FORGOTTEN = 3_600
"""The age, in seconds, of a temporary file whose writer was killed."""
_OTHERS = 0o077
_LOOKED_AT = 1_000
"""Folders whose files are closed; where there are more, the folder around them is closed all the same."""
_SET_ASIDE = 5
"""How many damaged files of one name are kept."""
_swept: set[tuple[int, int]] = set()


class LockTimeout(MarvinError):
    """Another process holds a lock for too long."""


def make_private_folder(folder: Path) -> None:
    """Make a folder of Marvin's own, and those above it that are missing, for this user alone."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def private(path: str, flags: int) -> int:
    """An `opener` for `open`: a new file is for this user alone."""
    return os.open(path, flags, 0o600)


def close_to_others(folder: Path) -> bool:
    """Have nobody but this user look into a folder of Marvin's own; whether that was not so until now.

    What is in it is closed as well, so that it stays so wherever it is moved to. Some file systems know no modes.
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
    """Remove what writers that were killed left behind; once for each folder and process."""
    with suppress(OSError):
        status = folder.stat()
        if (status.st_dev, status.st_ino) in _swept:
            return
        _swept.add((status.st_dev, status.st_ino))
        for name in forgotten(folder, lambda name: name.endswith(TEMPORARY), _FORGOTTEN):
            with suppress(OSError):
                os.unlink(folder / name)


def forgotten(folder: Path | int, is_ours: Callable[[str], bool], age: float) -> list[str]:
    """The names of what was left in a folder, by that age in seconds. What is gone meanwhile is none of them.

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
    """Replace a file in one step; a reader sees the old content or the new, never a part.

    The mode of an existing file is kept, unless told otherwise, and a link is followed. `mode` is for a new one.

    Raises:
        OSError: the folder or the disk does not take it; the old content is then untouched.
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
    """Hold the lock of a state file, a file beside it that is never removed, for one read-modify-write.

    Args:
        limit: the longest to wait, in seconds.
        poll: between two tries, in seconds.

    Raises:
        LockTimeout: another process holds it longer than that.
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
    """Be the only process that renews the login of a file: what a login is renewed with may count once.

    The lock is a file beside it, as that of `locked`, and an HTTP request is awaited for as long as it may take.

    Raises:
        LockTimeout: another process takes longer than that.
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
    """Try to take the lock of an open file, without waiting; says whether it was free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: str | Path) -> bool:
    """Whether another process holds the lock of a file that `take_lock` takes; not so where there is none."""
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
    """Change a state file in one step, so that no change of another process is lost.

    Blocks while another process changes it, so an async function calls it by `in_thread`.

    Args:
        change: gets the content, None if there is no file yet; returns the new content, or None to leave it.
        timeouts: how long to wait for the other process, where not as long as usual.

    Raises:
        MarvinError: another process holds the file's lock for too long.
        OSError: the file cannot be read or written; the old content is then untouched.
    """
    timeouts = timeouts or Timeouts()
    with locked(path, timeouts.lock, timeouts.lock_poll):
        new = change(path.read_bytes() if path.exists() else None)
        if new is not None:
            replace_file(path, new)


def set_aside(path: Path) -> Path:
    """Move a damaged file to `NAME.damaged-TIME` beside it, so that nothing overwrites it; returns where it is now.

    Of the files that were set aside so, the newest few stay. Call it under the file's lock: what is there by then may
    be a good file of another process.
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
    """When a file was set aside: the second, and which one it was in it."""
    name, _, number = kept.name.partition("~")
    return name, int(number) if number.isdigit() else 1


def acquire(descriptor: int, limit: float, poll: float, name: str) -> None:
    """Take the exclusive lock of an open file; see `locked`. A limit of 0 makes one try."""
    deadline = time.monotonic() + limit
    while True:
        if take_lock(descriptor):
            return
        if time.monotonic() >= deadline:
            raise LockTimeout(f"{name} is locked by another process. Try again when that process has finished.")
        time.sleep(poll)


def read_trusted_json(path: Path) -> Any:
    """The JSON of a cache file that this user owns and nobody else may write; None for any other file."""
    return trusted_json(read_trusted(path))


def trusted_json(text: bytes | None) -> Any:
    """The JSON in what `read_trusted` gave; None if it is none."""
    try:
        # Nobody else wrote it, so its depth is not looked at: each start reads one.
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_trusted(path: Path) -> bytes | None:
    """The content of a cache file that this user owns and nobody else may write; None for any other file."""
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
    """Write a cache file as JSON, a line for each value; where that fails the work is done again next time."""
    try:
        if path.is_symlink():
            path.unlink()
        # With our mode: a cache that others may write would never be trusted, and made anew at each start.
        lines = "\n".join(json.dumps(one, separators=(",", ":")) for one in data)
        replace_file(path, lines.encode(), keep_mode=False)
    except OSError:
        return
