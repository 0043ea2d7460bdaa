"""Opening paths without following links, for directory walks, safe against links that are swapped in."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias

from ...util.state_files import make_private_folder

_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
_ROOT = os.O_RDONLY | os.O_DIRECTORY
_FOLDER = _ROOT | os.O_NOFOLLOW
Entry: TypeAlias = tuple[str, int, int, int]
"""A path with mode, modification time in nanoseconds, and size. The garbage collector untracks such tuples."""
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""The flags to open a file of unknown type: without following a link, without blocking."""


@contextmanager
def opened_folder(root: Path | str, path: str) -> Iterator[int]:
    """A folder descriptor, reached from the root one name at a time.

    Args:
        path: relative to the root, without `..`; `.` is the root itself.

    Raises:
        OSError: the folder is missing, or a part of the path is a link or not a folder.
    """
    names = [name for name in path.split("/") if name not in ("", ".")]
    with _walked(os.open(root, _ROOT), names, _FOLDER) as descriptor:
        yield descriptor


@contextmanager
def standing_for(path: Path) -> Iterator[int]:
    """A descriptor for an absolute path, without read permission for the folders on the way.

    Raises:
        OSError: the path does not exist, or a part of it is a link.
    """
    first = os.open("/", _PATH_ONLY | os.O_DIRECTORY)
    with _walked(first, path.parts[1:], _PATH_ONLY | os.O_NOFOLLOW) as descriptor:
        if stat.S_ISLNK(os.fstat(descriptor).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        yield descriptor


@contextmanager
def own_folder(root: Path, folder: Path, mode: int = 0o700) -> Iterator[int]:
    """A descriptor of a folder that Marvin itself writes to; missing parts are created.

    Args:
        root: the working directory.
        folder: in `.marvin` below the root, no link on the way is followed: a repository or a running command may have
            created one.
        mode: of folders created there; elsewhere they are private to this user.

    Raises:
        OSError: it cannot be created, or a part of the path is a link or not a folder.
    """
    if not folder.is_relative_to(root / ".marvin"):
        make_private_folder(folder)
        root, names = folder, tuple[str, ...]()
    else:
        names = folder.relative_to(root).parts
    with _walked(os.open(root, _ROOT), names, _FOLDER, made_with=mode) as descriptor:
        yield descriptor


@contextmanager
def _walked(descriptor: int, names: Sequence[str], flags: int, made_with: int | None = None) -> Iterator[int]:
    """Descend from a folder, which is closed, one name at a time; with a mode, missing folders are created."""
    try:
        for name in names:
            if made_with is not None:
                with suppress(FileExistsError):
                    os.mkdir(name, made_with, dir_fd=descriptor)
            inner = os.open(name, flags, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def open_without_links(root: Path | str, path: str) -> BinaryIO:
    """A file below a folder, opened for reading. No link is followed: it raises OSError for one, wherever it is."""
    folder, _, name = path.rpartition("/")
    with opened_folder(root, folder) as descriptor:
        return os.fdopen(os.open(name, READ, dir_fd=descriptor), "rb")


def is_there(root: Path | str, path: str) -> bool:
    """Whether a file, folder or link is there, reached through no link."""
    folder, _, name = path.rstrip("/").rpartition("/")
    try:
        with opened_folder(root, folder) as descriptor:
            os.lstat(name, dir_fd=descriptor)
    except (OSError, ValueError):
        return False
    return True


@contextmanager
def scanned(root: Path | str, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of a folder, none if it cannot be read. An entry can be queried only within the block."""
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(opened_folder(root, path))
            entries: Iterator[os.DirEntry[str]] = stack.enter_context(os.scandir(descriptor))
        except OSError:
            entries = iter(())
        yield entries


class Statuses:
    """The status of many files in sequence. Folders above the last one stay open until the block ends.

    Each folder is reached from the one around it, never by a link, as `opened_folder` does.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: str | None = None
        self._names: list[str] = []
        self._descriptors: list[int] = []

    def of(self, path: str) -> os.stat_result:
        """The status of the entry; a link is not followed. Raises OSError like `opened_folder`."""
        folder, _, name = (path if path[-1:] != "/" else path.rstrip("/")).rpartition("/")
        if folder != self._folder:
            self._enter(folder)
        return os.stat(name, dir_fd=self._descriptors[-1], follow_symlinks=False)

    def entries(self, paths: Iterable[str]) -> list[Entry]:
        """The entries at these paths; those without a readable status are left out. Blocks."""
        found: list[Entry] = []
        look = os.stat
        descriptor = self._descriptors[-1] if self._descriptors else -1
        for path in paths:
            folder, _, name = (path if path[-1:] != "/" else path.rstrip("/")).rpartition("/")
            try:
                if folder != self._folder:
                    self._enter(folder)
                    descriptor = self._descriptors[-1]
                status = look(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue
            found.append((path, status.st_mode, status.st_mtime_ns, status.st_size))
        return found

    def _enter(self, folder: str) -> None:
        self._folder = None
        if not self._descriptors:
            self._descriptors.append(os.open(self._root, _ROOT))
        names = [name for name in folder.split("/") if name not in ("", ".")]
        shared = 0
        while shared < min(len(names), len(self._names)) and names[shared] == self._names[shared]:
            shared += 1
        self._leave(shared)
        for name in names[shared:]:
            self._descriptors.append(os.open(name, _FOLDER, dir_fd=self._descriptors[-1]))
            self._names.append(name)
        self._folder = folder

    def _leave(self, kept: int) -> None:
        """Close the folders below the first ones."""
        while len(self._names) > kept:
            self._names.pop()
            os.close(self._descriptors.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(0)
        while self._descriptors:
            os.close(self._descriptors.pop())
