"""The files that downloads are written into until all of them has come."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_NAMED = 80
"""Characters of its name that the part file of a download has as well."""
_OURS = re.compile(r"\..{0,80}\.[0-9a-f]{16}\.part", re.DOTALL)
_TRIES = 100


def begin(folder: Path, name: str) -> tuple[Path, BinaryIO]:
    """A new part file. Who writes it holds its lock, so that it is known to be one whose writer was killed else.

    Raises:
        OSError: where the folder takes none.
    """
    for _ in range(_TRIES):
        part = folder / f".{name[:_NAMED]}.{os.urandom(8).hex()}.part"
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        try:
            if _is_held(descriptor) and os.fstat(descriptor).st_nlink:
                return part, os.fdopen(descriptor, "wb")
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # another Marvin swept it away before it was locked
        part.unlink(missing_ok=True)
    raise FileExistsError(0, "every name is taken")


def sweep(folder: Path) -> None:
    """Remove the part files whose writers were killed. What is no file of ours, or cannot be removed, stays."""
    with suppress(OSError), os.scandir(folder) as entries:
        found = [
            entry.path for entry in entries if _OURS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
        for path in found:
            with suppress(OSError):
                _remove(path)


def _remove(path: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if _is_held(descriptor, certain=True):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _is_held(descriptor: int, *, certain: bool = False) -> bool:
    """Whether the lock of a file could be taken; where there are no locks, only what is not `certain` is taken so."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return not certain
    return True
