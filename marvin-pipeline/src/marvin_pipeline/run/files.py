"""The pipeline's own files of a project, all below `.marvin`. Symbolic links in their paths are not followed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from marvin_core import MarvinError, Timeouts, own_folder

_FOLDER = ".marvin"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LEFT = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
"""A temporary file for an atomic write."""
_PLACES = ("", "logs", "logs/progress", "report", "upstream")
"""The folders for files."""
LARGEST = 2_000_000
"""Bytes of a document that are read at most."""


class FileFault(MarvinError):
    """A file of the pipeline cannot be read or written."""


class Held(MarvinError):
    """Another process holds a lock."""


class ProjectFiles:
    """The files below `.marvin` of one project; a name is relative to that, as `spec.md` or `logs/pipeline.jsonl`.

    Args:
        root: the project's folder, links resolved.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, name: str, most: int = LARGEST) -> bytes | None:
        """The first bytes of a file; None if there is none, or something like a pipe.

        Raises:
            FileFault: it cannot be read, or there is a link or a folder in its place.
        """
        folder, base = self._place(name)
        if not folder.is_dir():
            return None
        try:
            with own_folder(self.root, folder) as opened:
                return _beginning(os.open(base, _READ, dir_fd=opened), most)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link, possibly a dangling one
                return None
            raise self._fault(name, "read", error) from error

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if there is no such folder, or a link.

        Raises:
            FileFault: it exists and cannot be read.
        """
        path = self.root / _FOLDER / folder
        if path.is_symlink() or not path.is_dir():
            return []
        try:
            with own_folder(self.root, path) as opened:
                return sorted(os.listdir(opened))
        except OSError as error:
            raise self._fault(folder, "read", error) from error

    def text(self, name: str, most: int = LARGEST) -> str:
        """The same as text; empty if there is no such file."""
        return (self.read(name, most) or b"").decode("utf-8", "replace")

    def size(self, name: str) -> int | None:
        """The bytes of a file; None if there is no such file, a link or something else in its place included."""
        found = self._status(name)
        return None if found is None else found.st_size

    def stamp(self, name: str) -> str:
        """A text that changes whenever the file is written; empty if there is no such file."""
        found = self._status(name)
        return "" if found is None else f"{found.st_ino}-{found.st_mtime_ns}-{found.st_size}"

    def _status(self, name: str) -> os.stat_result | None:
        folder, base = self._place(name)
        if not folder.is_dir():
            return None
        try:
            with own_folder(self.root, folder) as opened:
                found = os.stat(base, dir_fd=opened, follow_symlinks=False)
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def is_there(self, name: str) -> bool:
        """Whether anything has this name."""
        folder, base = self._place(name)
        return os.path.lexists(folder / base)

    def write(self, name: str, data: bytes, mode: int = 0o666) -> None:
        """Replace a file atomically.

        Raises:
            FileFault: it cannot be written.
        """
        folder, base = self._place(name)
        temporary = f".{base}.{os.urandom(6).hex()}.tmp"
        try:
            with own_folder(self.root, folder, 0o777) as opened:
                try:
                    with os.fdopen(os.open(temporary, _NEW, mode, dir_fd=opened), "wb") as file:
                        file.write(data)
                        file.flush()
                        os.fsync(file.fileno())
                    os.replace(temporary, base, src_dir_fd=opened, dst_dir_fd=opened)
                except OSError:
                    with suppress(OSError):
                        os.unlink(temporary, dir_fd=opened)
                    raise
        except OSError as error:
            raise self._fault(name, "written", error) from error

    def append(self, name: str, data: bytes) -> None:
        """Append to a file: everything, or nothing if the disk is full.

        Raises:
            FileFault: it cannot be written.
        """
        folder, base = self._place(name)
        try:
            with own_folder(self.root, folder, 0o777) as opened:
                descriptor = os.open(base, _APPEND, 0o666, dir_fd=opened)
                try:
                    _append(descriptor, data)
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise self._fault(name, "written", error) from error

    @contextmanager
    def locked(self, name: str, timeouts: Timeouts) -> Iterator[None]:
        """Hold a lock file, which is never removed. Blocks for `timeouts.lock` at most.

        The system releases the lock when this process exits.

        Raises:
            FileFault: it cannot be created.
            Held: another process holds it for longer.
        """
        folder, base = self._place(name)
        try:
            with own_folder(self.root, folder) as opened:
                descriptor = os.open(base, _LOCK, 0o600, dir_fd=opened)
        except OSError as error:
            raise self._fault(name, "written", error) from error
        try:
            try:
                _acquire(descriptor, timeouts, f"{_FOLDER}/{name}")
            except OSError as error:  # such as on a file system without locks
                raise self._fault(name, "locked", error) from error
            yield
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> None:
        """Remove a file or a link; nothing happens if there is none.

        Raises:
            FileFault: it cannot be removed.
        """
        folder, base = self._place(name)
        if not folder.is_dir():
            return
        try:
            with own_folder(self.root, folder) as opened, suppress(FileNotFoundError):
                os.unlink(base, dir_fd=opened)
        except OSError as error:
            raise self._fault(name, "removed", error) from error

    def sweep(self) -> None:
        """Remove temporary files of a killed run. Requires the project's lock."""
        for name in _PLACES:
            folder = self.root / _FOLDER / name
            if folder.is_dir():
                with suppress(OSError), own_folder(self.root, folder) as opened:
                    for left in filter(_LEFT.fullmatch, os.listdir(opened)):
                        os.unlink(left, dir_fd=opened)

    def _place(self, name: str) -> tuple[Path, str]:
        path = self.root / _FOLDER / name
        return path.parent, path.name

    def _fault(self, name: str, what: str, error: OSError) -> FileFault:
        in_the_way = error.errno in _IN_THE_WAY or error.strerror is None
        why = "it is a link, or a file instead of a folder" if in_the_way else error.strerror
        return FileFault(f"{_FOLDER}/{name} cannot be {what}: {why}. Fix that, and run the pipeline again.")


_IN_THE_WAY = (errno.ELOOP, errno.ENOTDIR)


def _beginning(descriptor: int, most: int) -> bytes | None:
    """The first bytes of a regular file, which is closed; None for anything else."""
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "a folder has its name")
        if not stat.S_ISREG(mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def _append(descriptor: int, data: bytes) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a file")
    written = 0
    try:
        while written < len(data):
            written += os.write(descriptor, data[written:])
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, status.st_size)  # a truncated line would damage the next one
        raise


def _acquire(descriptor: int, timeouts: Timeouts, name: str) -> None:
    deadline = time.monotonic() + timeouts.lock
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise Held(f"{name} is locked by another process. Try again when that process has ended.") from error
            time.sleep(timeouts.lock_poll)
