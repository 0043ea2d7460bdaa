"""Locks of git that nobody holds any more: of a git that was killed, as with the run that had started it.

Git removes its locks when it is asked to end, but not when it is killed. Every later step would fail.
"""

from __future__ import annotations

import os
import re
import stat
import time
from pathlib import Path

from marvin_core import Timeouts

_HELD = re.compile(r"Unable to create '(?P<path>[^'\n]+\.lock)': File exists")
_PROC = Path("/proc")


def lock_in(said: bytes) -> Path | None:
    """The lock that git says it could not take; None where it says nothing of that kind."""
    found = _HELD.search(os.fsdecode(said))
    return Path(found["path"]) if found else None


def set_free(lock: Path, repository: Path, top: Path, timeouts: Timeouts) -> bool:
    """Wait for a lock, and remove it where no git works in the project; says whether it is gone. Blocks.

    Args:
        lock: as git named it.
        repository: the folder of git, outside of which nothing is removed.
        top: the folder that its working tree begins with.
        timeouts: `lock` is the longest to wait, `lock_poll` is between two looks.
    """
    deadline = time.monotonic() + timeouts.lock
    while os.path.lexists(lock):
        if time.monotonic() >= deadline:
            return _is_inside(lock, repository) and not _is_worked_in(top, repository) and _removed(lock)
        time.sleep(timeouts.lock_poll)
    return True


def _is_inside(lock: Path, repository: Path) -> bool:
    """Whether it is a file below the folder of git, reached by no link."""
    try:
        place = Path(os.path.realpath(lock.parent))
        return stat.S_ISREG(os.lstat(lock).st_mode) and place.is_relative_to(os.path.realpath(repository))
    except OSError:
        return False


def _is_worked_in(*folders: Path) -> bool:
    """Whether a git works in one of these folders, as one whose editor is open; yes where that cannot be told."""
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
    except PermissionError:  # somebody else's
        return True
    except OSError:  # it has ended by now
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
