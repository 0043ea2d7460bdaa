"""Copies of the index. The one of a call that has ended shows that what was staged before it is not staged again."""

from __future__ import annotations

import fcntl
import filecmp
import os
import shlex
import shutil
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from marvin_core import ToolError

_PREFIX = "marvin-staged-"
_UNIMPORTANT = "marvin-index-"
"""The prefix of a copy in which nothing is staged. It is removed if its call was killed."""
_OWED = "-kept"
_FIRST = "first"
_ABBREVIATED = 16
_EMPTY = "$(git hash-object -t tree /dev/null)"


def copied(index: Path, git_dir: Path, head: str, held: ExitStack, *, is_staged: bool) -> Path | None:
    """Copy the index with its time, by which git knows the files that changed in the moment it was written. Blocks.

    Args:
        head: the commit of the branch; empty if there is none.
        held: keeps the copy locked. What is locked belongs to a call that runs.
        is_staged: whether something is staged.

    Returns:
        The copy; None if there is no index.

    Raises:
        ToolError: it cannot be copied.
    """
    number = f"{head[:_ABBREVIATED] or _FIRST}-{os.getpid()}-{time.monotonic_ns()}"
    copy = git_dir / f"{_UNIMPORTANT}{number}"
    try:
        with suppress(FileNotFoundError), index.open("rb") as source:
            held.callback(copy.unlink, missing_ok=True)
            made = held.enter_context(copy.open("xb")).fileno()
            with suppress(OSError):  # not every file system has locks
                fcntl.flock(made, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with copy.open("wb") as target:
                shutil.copyfileobj(source, target)
            status = os.fstat(source.fileno())
            os.fchmod(made, status.st_mode & 0o777)
            os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
            if is_staged:
                copy = copy.rename(git_dir / f"{_PREFIX}{number}")
                held.callback(copy.unlink, missing_ok=True)
            return copy
    except OSError as error:
        raise ToolError(f"Nothing was committed: the index cannot be copied: {error.strerror}.") from error
    return None


def is_held(copy: Path) -> bool:
    """Whether the call that made a copy still runs, or has just removed it. Blocks."""
    try:
        with copy.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return not os.fstat(file.fileno()).st_nlink
    except (BlockingIOError, FileNotFoundError):
        return True
    except OSError:
        return False


def owed(copy: Path | None) -> Path | None:
    """Rename a copy, so that it outlives its call unless it becomes the index again. Blocks.

    Raises:
        ToolError: somebody has removed it.
    """
    try:
        number = copy.name.removeprefix(_PREFIX).removeprefix(_UNIMPORTANT) if copy else ""
        return copy and copy.rename(copy.with_name(f"{_PREFIX}{number}{_OWED}"))
    except OSError as error:
        raise ToolError(
            f"What was staged before could not be staged again: {copy}: {error.strerror}. What the call has staged is "
            "still staged."
        ) from error


def is_copy_of(copy: Path | None, index: Path) -> bool:
    """Whether the index was not changed since it was copied. Blocks."""
    with suppress(OSError):
        return (
            copy is not None
            and copy.stat().st_mtime_ns == index.stat().st_mtime_ns
            and filecmp.cmp(copy, index, shallow=False)
        )
    return False


def check_left(git_dir: Path, index: Path, head: str) -> None:
    """Refuse to commit once a call has left something else staged than the user had. Blocks."""
    for left in sorted(git_dir.glob(f"{_PREFIX}*")):
        if not is_held(left):
            why = "did not put the index back" if left.name.endswith(_OWED) else "was killed"
            raise ToolError(
                f"Nothing was committed: an earlier git_commit {why}. What the user had staged before it is kept in "
                f"{left}. Ask the user. {way_back(left, index, head)}; if it is not wanted, or git_log shows that the "
                f"commit was made: rm {shlex.quote(str(left))}"
            )


def way_back(copy: Path, index: Path, head: str, *, lock: str = "") -> str:
    """How to stage again what a copy has.

    In place of the index, it would have what was committed since staged as reverted.

    Args:
        head: the commit of the branch now; empty if there is none.
        lock: what ends a lock of the index.
    """
    then = copy.name.removeprefix(_PREFIX).partition("-")[0]
    path = shlex.quote(str(copy))
    if then == (head[:_ABBREVIATED] or _FIRST):
        return f"To stage that again, run_command: {lock}mv {path} {shlex.quote(str(index))}"
    base = _EMPTY if then == _FIRST else then
    return (
        f'The branch has another commit since. To stage that again, run_command: {lock}cd "$(git rev-parse '
        f'--show-toplevel)" && GIT_INDEX_FILE={path} git diff-index -p --cached --binary --full-index {base} | '
        f"git apply --cached && rm {path}"
    )
