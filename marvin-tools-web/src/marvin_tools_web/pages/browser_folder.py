"""The folder of a running browser: its profile, and temporary files of it and its driver. It is removed with the
browser."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_BEGIN = "marvin-browser-"
_LOCK = "lock"
_FORGOTTEN = 3_600.0
"""The age in seconds after which a folder without a lock file is removed: its creator was killed before it locked
it."""


@contextmanager
def own_folder(base: Path | None = None) -> Iterator[Path]:
    """A folder below `base`, or the system's folder for temporary files. Folders of killed calls are removed."""
    parent = base or Path(tempfile.gettempdir())
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=_BEGIN, dir=parent))
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        # A browser that is exiting may still write there; the next call removes what is left.
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _sweep(parent: Path) -> None:
    with suppress(OSError), os.scandir(parent) as entries:
        ours = [entry for entry in entries if entry.name.startswith(_BEGIN) and entry.is_dir(follow_symlinks=False)]
        for entry in ours:
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                    _remove_left(Path(entry.path))


def _remove_left(folder: Path) -> None:
    """Remove a folder whose lock is not held."""
    try:
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        if time.time() - folder.stat().st_mtime > _FORGOTTEN:
            shutil.rmtree(folder, ignore_errors=True)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
