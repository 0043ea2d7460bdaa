"""Writing to a file in an open folder: a whole file beside it, or by appending."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from .folder_descriptors import Place

_TEMPORARY = (".marvin-", ".tmp")
"""The prefix and suffix of a temporary file."""
TEMPORARY = "*".join(_TEMPORARY)
"""The names of temporary files, as a pattern."""
_NAME = re.compile(r"\.marvin-(\d{20})-[0-9a-f]{16}\.tmp", re.ASCII)
"""The name of a temporary file, with the time when it was chosen: that of a second name is the time of the file."""
_FORGOTTEN = 3_600 * 10**9
"""The age, in nanoseconds, after which a temporary file counts as left by a killed writer."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def temporary_name() -> str:
    """A unique name; `sweep` removes an old one."""
    return f"{_TEMPORARY[0]}{time.time_ns():020}-{os.urandom(8).hex()}{_TEMPORARY[1]}"


class Prepared:
    """A temporary file beside its target, with the mode, owner and attributes of the old file.

    `status` is its own, and `name` the one in the folder.

    Raises:
        OSError: that is not possible; no file is left behind.
    """

    def __init__(self, place: Place, write: Callable[[BinaryIO], object], old: os.stat_result | None) -> None:
        self._place = place
        self.name = temporary_name()
        # 0666: the kernel applies the umask, which cannot be read without setting it. A replacement must not be
        # readable by others before it has the mode of the old file.
        descriptor = os.open(self.name, _CREATE, 0o666 if old is None else 0o600, dir_fd=place.folder)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                write(stream)
                stream.flush()
                if old is not None:
                    take_over(descriptor, old, place)
            # Not before it is closed: some network file systems set its time then.
            self.status = os.stat(self.name, dir_fd=place.folder, follow_symlinks=False)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove the temporary file."""
        discard(self.name, self._place.folder)


def take_over(descriptor: int, old: os.stat_result, place: Place) -> None:
    """Give a new file the owner, the attributes and the mode of the old one, as far as this user may."""
    new = os.fstat(descriptor)
    if new.st_gid != old.st_gid:
        with suppress(PermissionError):  # this user is not in that group
            os.fchown(descriptor, -1, old.st_gid)
    if new.st_uid != old.st_uid:
        with suppress(PermissionError):  # only the superuser can give a file away
            os.fchown(descriptor, old.st_uid, -1)
    if sys.platform == "linux":
        _take_over_attributes(descriptor, old, place)
    mode, new = stat.S_IMODE(old.st_mode), os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # it would run with the rights of this user
    os.fchmod(descriptor, mode)


def _take_over_attributes(descriptor: int, old: os.stat_result, place: Place) -> None:
    """Access lists and other extended attributes, as far as this user may set them; Python has them on Linux only."""
    if sys.platform != "linux":
        return
    with suppress(OSError):
        before = os.open(place.name, _READ, dir_fd=place.folder)
        try:
            if not os.path.samestat(os.fstat(before), old):
                return
            for name in os.listxattr(before):
                with suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(before, name))
        finally:
            os.close(before)


def add(descriptor: int, data: bytes) -> None:
    """Append to an open file; a partial write is rolled back."""
    before = os.fstat(descriptor).st_size
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except BaseException:
        with suppress(OSError):
            if os.fstat(descriptor).st_size == before + len(data) - len(left):  # no other process has written since
                os.ftruncate(descriptor, before)
        raise


def sweep(folder: int) -> None:
    """Remove temporary files that killed writers left in a folder."""
    listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        for name in os.listdir(listing):
            named = _NAME.fullmatch(name)
            if named is not None and int(named[1]) < time.time_ns() - _FORGOTTEN:
                discard(name, folder)
    finally:
        os.close(listing)


def discard(name: str, folder: int) -> None:
    """Remove a file, if it exists and can be removed."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)
