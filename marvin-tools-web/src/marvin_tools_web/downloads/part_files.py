"""Part files: what downloads are written into until they are complete."""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_NAMED = 80
"""Characters of the file's name in the name of its part file."""
_OURS = re.compile(r"\..{0,80}\.[0-9a-f]{16}\.part", re.DOTALL)
_TRIES = 100


def begin(folder: Path, name: str) -> tuple[Path, BinaryIO]:
    """A new part file. The writer holds its lock; a part file without a held lock was left by a killed writer.

    Raises:
        OSError: the folder is not writable.
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
        os.close(descriptor)  # another Marvin removed it before it was locked
        part.unlink(missing_ok=True)
    raise FileExistsError(0, "every name is taken")


def sweep(folder: Path) -> None:
    """Remove the part files of killed writers. Other files, and those that cannot be removed, stay."""
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
    """Take a file's lock; returns whether that worked. Where locks are not supported, the answer is `not certain`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return not certain
    return True
