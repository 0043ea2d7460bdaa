"""Private folders of the sandboxes of a session, such as /tmp; they are deleted with the session."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ...util.state_files import make_private_folder

_LOCK = "lock"
_TRIES = 5


class PrivateFolder:
    """A folder with a private folder for each of /tmp and the like. Its lock is held for the whole session."""

    def __init__(self, parent: Path) -> None:
        """
        Raises:
            OSError: if it cannot be created.
        """
        make_private_folder(parent)
        _sweep(parent)
        self.path, self._lock = _locked(parent)
        for name in ("tmp", "var-tmp"):
            (self.path / name).mkdir()
            (self.path / name).chmod(0o1777)  # programs expect this; only this user gets into the folder
        (self.path / "empty").touch(mode=0o444)

    def remove(self) -> None:
        """Remove it with all files of commands. No command may still be running."""
        _remove(self.path)
        os.close(self._lock)


def _locked(parent: Path) -> tuple[Path, int]:
    """A new folder, and its lock. Another Marvin would remove a folder without a lock as abandoned."""
    for left in reversed(range(_TRIES)):
        path = Path(mkdtemp(dir=parent))
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return path, lock
            os.close(lock)
        except OSError:
            if not left:
                raise
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(parent))


def _sweep(parent: Path) -> None:
    """Remove the folders of sessions that were killed."""
    for folder in parent.iterdir():
        with suppress(OSError):
            descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(descriptor)


def _remove(folder: Path) -> None:
    def open_up(function: Callable[..., Any], path: str, _: object) -> None:
        # Package managers keep their caches in folders that may be read-only.
        with suppress(OSError):
            for place in (os.path.dirname(path), path):
                if stat.S_ISDIR(os.lstat(place).st_mode):
                    os.chmod(place, 0o700)
            function(path)

    shutil.rmtree(folder, onerror=open_up)
    shutil.rmtree(folder, ignore_errors=True)
