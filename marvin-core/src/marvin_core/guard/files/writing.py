"""Writing to a place in an open folder: as a whole in one step, or at the end of what is there."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import BinaryIO

from .folder_descriptors import Place

_TEMPORARY = (".marvin-", ".tmp")
"""How the name of a file begins and ends that is still being written."""
_FORGOTTEN = 3_600
"""The age, in seconds, of such a file whose writer was killed."""
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def put(
    place: Place, write: Callable[[BinaryIO], object], old: os.stat_result | None, *, create_only: bool = False
) -> None:
    """Have what `write` writes take the place of what is there. The mode of the `old` file is kept.

    Args:
        create_only: nothing may be there, not even a moment before.

    Raises:
        OSError: where that is not possible; nothing is left behind then.
    """
    temporary = f"{_TEMPORARY[0]}{os.urandom(8).hex()}{_TEMPORARY[1]}"
    with ExitStack() as undo:
        # 0666: the kernel takes the umask off, which could not be read without setting it.
        descriptor = os.open(temporary, _CREATE, 0o666, dir_fd=place.folder)
        undo.callback(discard, temporary, place.folder)
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
            stream.flush()
            if old is not None:
                _take_over(descriptor, old)
        if create_only:
            # Whoever makes the name first has it; the finished file then replaces the empty one.
            os.close(os.open(place.name, _CREATE, 0o666, dir_fd=place.folder))
            undo.callback(discard, place.name, place.folder)
        # Not synced, unlike Marvin's own state: a disk takes ten times as long for that as for all the rest.
        os.replace(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        undo.pop_all()


def _take_over(descriptor: int, old: os.stat_result) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):  # only the superuser can give a file away
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def add(descriptor: int, data: bytes) -> None:
    """Write to the end of a file that is open for that; where the disk takes only a part, that is taken back."""
    before = os.fstat(descriptor).st_size
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except BaseException:
        with suppress(OSError):
            if os.fstat(descriptor).st_size == before + len(data) - len(left):  # nobody else has written since
                os.ftruncate(descriptor, before)
        raise


def sweep(folder: int) -> None:
    """Remove what writers that were killed left in a folder."""
    listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder)
    try:
        for name in os.listdir(listing):
            if not name.startswith(_TEMPORARY[0]) or not name.endswith(_TEMPORARY[1]):
                continue
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < time.time() - _FORGOTTEN:
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(listing)


def discard(name: str, folder: int) -> None:
    """Remove a file, if it is there and can be removed."""
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)
