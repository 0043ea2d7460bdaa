"""Removes stale git locks, such as those of a git that was killed with its run.

git removes its locks when it is terminated, but not when it is killed. Every later command would fail.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

from marvin_core import Timeouts

_HELD = re.compile(r"Unable to create '(?P<path>.+\.lock)': File exists")
_PROC = Path("/proc")


def lock_in(said: bytes) -> Path | None:
    """The lock in git's error message; None for other messages."""
    found = _HELD.search(os.fsdecode(said))
    return Path(found["path"]) if found else None


def set_free(lock: Path, repository: Path, top: Path, timeouts: Timeouts) -> bool:
    """Wait for a lock, and remove it if no git runs in the project; returns whether another try may succeed. Blocks.

    Programs without git, such as editors, take locks as well, but not for long. So only a lock that is still the one
    from the beginning is removed.

    Args:
        lock: the path in git's message.
        repository: git's folder; nothing outside of it is removed.
        top: the top folder of the working tree.
        timeouts: `lock` is the longest wait, `lock_poll` the interval of checks.
    """
    deadline, first = time.monotonic() + timeouts.lock, identity(lock)
    while os.path.lexists(lock):
        if time.monotonic() >= deadline:
            if not _is_inside(lock, repository) or _is_worked_in(top, repository):
                return False
            return identity(lock) != first or _removed(lock)
        time.sleep(timeouts.lock_poll)
    return True


def identity(lock: Path) -> tuple[int, int] | None:
    """What tells a lock, or an index, from a later one with the same name; None if there is none."""
    try:
        status = os.lstat(lock)
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns


def _is_inside(lock: Path, repository: Path) -> bool:
    """Whether a file is below git's folder, with no link in its path."""
    try:
        place = Path(os.path.realpath(lock.parent))
        return stat.S_ISREG(os.lstat(lock).st_mode) and place.is_relative_to(os.path.realpath(repository))
    except OSError:
        return False


def _is_worked_in(*folders: Path) -> bool:
    """Whether a git runs in one of these folders, for example with an open editor; true if unknown."""
    places = [os.path.realpath(folder) for folder in folders]
    if not (_PROC / "self" / "cwd").exists():
        return True
    return any(_works_in(process, places) for process in _PROC.iterdir() if process.name.isdigit())


def _works_in(process: Path, places: list[str]) -> bool:
    try:
        name = (process / "comm").read_text(errors="replace").strip()
        if name != "git" and not name.startswith("git-"):
            return False
        place = os.readlink(process / "cwd")
    except PermissionError:  # another user's
        return True
    except OSError:  # it has exited
        return False
    return any(place == folder or place.startswith(f"{folder}/") for folder in places)


def _removed(lock: Path) -> bool:
    try:
        os.unlink(lock)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
