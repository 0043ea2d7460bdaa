"""Folder descriptors below a root: each is opened first, and then its real path is read from the kernel."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from ...api.errors import PathRefused

_MAX_LINKS = 40
# O_PATH needs no permission to list the folder; other systems open it the ordinary way.
_FOLDER = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)


class Folder:
    """An open folder and the names that lead to it from the root."""

    def __init__(self, descriptor: int, parts: tuple[str, ...]) -> None:
        self.descriptor = descriptor
        self.parts = parts

    def list(self) -> list[str]:
        """The names in the folder."""
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.descriptor)
        try:
            return os.listdir(listing)
        finally:
            os.close(listing)


class Place:
    """A name in an open folder; the entry may be missing."""

    def __init__(self, folder: Folder, name: str) -> None:
        self.folder = folder.descriptor
        self.name = name
        self.parts = (*folder.parts, name)

    def status(self) -> os.stat_result:
        """The status of the entry; a link is not followed."""
        return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)

    def exists(self) -> bool:
        """Whether the entry exists; a dangling link counts."""
        try:
            self.status()
        except FileNotFoundError:
            return False
        return True


class Descent:
    """The folders that one operation opens, which is the body of a `with` statement; they are closed at its end.

    All methods raise OSError as the system does, and the error that `outside` returns for a path outside the root.
    `root` is a path without links.
    """

    def __init__(self, root: Path, outside: Callable[[], Exception]) -> None:
        self._path = str(root)
        self._outside = outside
        self._made: list[tuple[int, str]] = []
        self._descriptors: list[int] = []

    def __enter__(self) -> Self:
        try:
            self._root = self._opened_root()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _opened_root(self) -> Folder:
        descriptor = os.open(self._path, _FOLDER | os.O_NOFOLLOW)
        self._descriptors.append(descriptor)
        self._home = _kernel_path(descriptor)
        if sys.platform == "linux" and self._home != self._path:
            # A folder above the root was replaced. Other errors list its content; this one must not.
            raise PathRefused(
                f"Nothing was done: a link in the path of the working directory {self._path} now leads elsewhere."
            )
        return Folder(descriptor, ())

    def __exit__(self, *_: object) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())

    def locate(self, descriptor: int) -> tuple[str, ...]:
        """The names from the root to the open descriptor, according to the kernel."""
        found = _kernel_path(descriptor)
        if found == self._home:
            return ()
        start = self._home.rstrip("/") + "/"
        if not found.startswith(start):
            raise self._outside()
        return tuple(found[len(start) :].split("/"))

    def folder(self, parts: tuple[str, ...], start: Folder | None = None) -> Folder:
        """Open a folder, following links, then check its real path."""
        return self._open("/".join(parts) or ".", start or self._root)

    def place(self, parts: tuple[str, ...], make: Callable[[tuple[str, ...]], None] | None = None) -> Place:
        """The place of a path. With `make`, missing folders are created, each after a check."""
        if not parts:
            raise IsADirectoryError
        try:
            folder = self.folder(parts[:-1])
        except FileNotFoundError:
            if make is None:
                raise
            folder = self._make(parts[:-1], make)
        return Place(folder, parts[-1])

    def follow(self, place: Place) -> Place:
        """The target of a link or a chain of links; the same place for anything else."""
        for _ in range(_MAX_LINKS):
            try:
                if not stat.S_ISLNK(place.status().st_mode):
                    return place
            except FileNotFoundError:
                return place
            head, name = os.path.split(os.readlink(place.name, dir_fd=place.folder).rstrip("/"))
            if name in ("", ".", ".."):
                return self._folder_itself(place)
            # An absolute target ignores the folder, as in the kernel.
            folder = self._open(head or ".", Folder(place.folder, place.parts[:-1]))
            place = Place(folder, name)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def deepest(self, parts: tuple[str, ...]) -> int:
        """The index of the first part that is not an accessible folder, else of the last part."""
        for index in range(len(parts) - 1, 0, -1):
            try:
                self.folder(parts[:index])
            except (FileNotFoundError, NotADirectoryError):
                continue
            return index
        return 0

    @property
    def has_made(self) -> bool:
        """Whether the folder was created."""
        return bool(self._made)

    def remove_made_folders(self) -> None:
        """Remove the folders that were created, as far as they are still empty."""
        for parent, name in reversed(self._made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)

    def _make(self, parts: tuple[str, ...], allowed: Callable[[tuple[str, ...]], None]) -> Folder:
        folder = self._root
        for part in parts:
            try:
                folder = self._open(part, folder)
            except FileNotFoundError:
                allowed((*folder.parts, part))
                try:
                    os.mkdir(part, dir_fd=folder.descriptor)
                    self._made.append((folder.descriptor, part))
                except FileExistsError:
                    pass  # another process made it meanwhile, or it is a dangling link: see below
                folder = self._open(part, folder)
        return folder

    def _folder_itself(self, link: Place) -> Place:
        target = self._open(link.name, Folder(link.folder, link.parts[:-1]))
        if not target.parts:
            return Place(target, ".")
        return Place(self.folder(target.parts[:-1]), target.parts[-1])

    def _open(self, route: str, start: Folder) -> Folder:
        if route == "." and start is self._root:
            return start  # it is open already
        descriptor = os.open(route, _FOLDER, dir_fd=start.descriptor)
        self._descriptors.append(descriptor)
        return Folder(descriptor, self.locate(descriptor))


def _kernel_path(descriptor: int) -> str:
    if sys.platform == "darwin":
        import fcntl

        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).partition(b"\0")[0])
    return os.readlink(f"/proc/self/fd/{descriptor}")
