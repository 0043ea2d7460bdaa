"""Reading files for a snapshot, by folder descriptors: a process in the sandbox may put links in their place meanwhile.

A file that git itself opens by its path could be outside of the folder, and an undo would write its content into the
folder.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha1
from pathlib import Path

from ...api.record import Record
from ..files.no_links import READ, opened_folder

_BLOB = 3
"""The code of its type in a pack."""


class Read(Record):
    """A file that was read: its name, its mode in git, its permissions, and its content."""

    path: bytes
    mode: int
    permissions: int
    content: bytes

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose content is its target."""
        return self.mode == 0o120000


class Folders:
    """Opens one folder after another; the last one stays open."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: str | None = None
        self._descriptor = -1
        self.permissions: dict[str, int] = {}
        """Those of each opened folder, and of the folders around it."""

    def of(self, folder: str) -> int:
        """The descriptor of a folder. Raises OSError like `opened_folder`."""
        if folder != self._folder:
            self.close()
            with opened_folder(self._root, folder) as opened:
                self._folder, self._descriptor = folder, os.dup(opened)
            while folder and folder not in self.permissions:
                self.permissions[folder] = stat.S_IMODE(os.lstat(self._root / folder).st_mode)
                folder = folder.rpartition("/")[0]
        return self._descriptor

    def close(self) -> None:
        """Close the last one."""
        if self._folder is not None:
            os.close(self._descriptor)
            self._folder = None


def read_files(
    folders: Folders, names: Iterable[bytes], largest: int, passed: set[bytes]
) -> Iterator[tuple[bytes, Read | None]]:
    """Each of the files in order; None for one that is missing, behind a link, too large, unreadable, or not a file.

    Args:
        passed: the files that are there, but too large or unreadable, are added to it.
    """
    with closing(folders):
        for path in names:
            found: Read | None = None
            try:
                folder, _, name = os.fsdecode(path).rpartition("/")
                found = _read(path, name, folders.of(folder), largest)
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError:
                passed.add(path)
            yield path, found


def _read(path: bytes, name: str, folder: int, largest: int) -> Read | None:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(name, dir_fd=folder))
        return Read(path=path, mode=0o120000, permissions=0o777, content=target)
    if not stat.S_ISREG(status.st_mode):
        return None
    if status.st_size > largest:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    descriptor = os.open(name, READ, dir_fd=folder)
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode) or opened.st_size > largest:  # it was replaced just now
            return None
        content = os.read(descriptor, opened.st_size)
        while len(content) < opened.st_size and (more := os.read(descriptor, opened.st_size - len(content))):
            content += more
    finally:
        os.close(descriptor)
    mode = 0o100755 if opened.st_mode & 0o100 else 0o100644
    return Read(path=path, mode=mode, permissions=stat.S_IMODE(opened.st_mode), content=content)


def name_of(content: bytes) -> str:
    """The name that git gives a content."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def contents_in(said: bytes, sizes: Mapping[str, int]) -> dict[str, bytes]:
    """The contents that git wrote one after another, by their names.

    Git does not verify that contents match their names. Shared objects are in the user's repository, in which commands
    can write.

    Raises:
        ValueError: one is missing, or does not match its name.
    """
    found, at = {}, 0
    for name, size in sizes.items():
        begin = said.find(b"\n", at) + 1
        content = said[begin : begin + size]
        if said[at:begin].split()[:1] != [name.encode()] or name_of(content) != name:
            raise ValueError(f"{name} is incomplete")
        found[name], at = content, begin + size + 1
    return found


def pack_of(contents: Sequence[bytes]) -> bytes:
    """The contents as a pack that git can read."""
    parts = [struct.pack(">4sLL", b"PACK", 2, len(contents))]
    for content in contents:
        parts += [_head(len(content)), zlib.compress(content, 1)]
    data = b"".join(parts)
    return data + sha1(data, usedforsecurity=False).digest()


def _head(size: int) -> bytes:
    """The type and the size of an object: four bits of the size first, then seven per byte."""
    value, size = _BLOB << 4 | size & 15, size >> 4
    head = bytearray()
    while size:
        head.append(value | 0x80)
        value, size = size & 0x7F, size >> 7
    return bytes([*head, value])


def name_lines(names: Iterable[str]) -> bytes:
    """The input that requests objects with these names from git."""
    return "".join(f"{name}\n" for name in names).encode()


def index_lines(files: Mapping[bytes, tuple[int, str] | None]) -> bytes:
    """The input that adds these files to git's index by mode and content, and removes those that are None."""
    lines = []
    for path, kept in files.items():
        mode, content = kept if kept is not None else (0, "0" * 40)
        lines.append(b"%o %s\t%s\0" % (mode, content.encode(), path))
    return b"".join(lines)
