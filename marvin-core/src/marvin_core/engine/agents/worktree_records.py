"""The record of an agent's worktree: a file in git's folder for the worktree, which the session keeps locked."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.files.no_links import standing_for
from ...guard.files.writing import temporary_name
from ...guard.sandbox.places import beginning
from ...util.untrusted_json import parse_json

FOLDER = ".marvin/worktrees"
"""The location of worktrees, relative to the main folder."""
_FILE = "marvin.json"
_BEGUN = "marvin-worktree.json"
"""A file in git's folder that names the worktree being made. Only the holder of the turn makes one."""
_SIZE = 100_000
_LINK = 16_384
"""The maximum size of a `.git` file in bytes."""
_MOST = 1_000
"""The maximum number of worktrees of a repository to examine."""


class RecordedWorktree(Record):
    """A worktree that was made for an agent."""

    root: str
    """The main folder."""
    path: str
    """Its top folder."""
    branch: str
    base: str
    """The commit from which it was made."""
    into: str
    """The branch of the main folder at that time, as a full name; empty for a detached one."""
    ticket: str


def note_begun(common: Path, known: RecordedWorktree) -> None:
    """Note a worktree before it is made, so that it is found if this process is killed before the record exists.

    Raises:
        ToolError: it cannot be written.
    """
    try:
        with standing_for(common) as folder:
            with suppress(FileNotFoundError):
                os.unlink(_BEGUN, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(_BEGUN, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(json.dumps(known.as_dict()).encode())
    except OSError as error:
        raise ToolError(f"No worktree can be created in {common}: {error.strerror}.") from error


def end_begun(common: Path) -> None:
    """Remove that note: the record exists, or the worktree does not. Raises `OSError` if the note stays."""
    with suppress(FileNotFoundError), standing_for(common) as folder:
        os.unlink(_BEGUN, dir_fd=folder)


def begun_record(common: Path) -> RecordedWorktree | None:
    """The worktree whose creation was interrupted by a kill; the caller must hold the turn."""
    with suppress(OSError, ValueError, TypeError), _opened(common, _BEGUN) as descriptor:
        return _parsed(os.read(descriptor, _SIZE))
    return None


def kept_record(git_dir: Path, known: RecordedWorktree) -> int:
    """Write the record of a new worktree; the descriptor holds its lock until it is closed.

    Another Marvin that searches for abandoned worktrees sees the record complete and locked, or not at all.

    Raises:
        ToolError: it cannot be written.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    new = temporary_name()
    try:
        with standing_for(git_dir) as folder:
            descriptor = os.open(new, flags, 0o600, dir_fd=folder)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, json.dumps(known.as_dict()).encode())
            os.rename(new, _FILE, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        raise ToolError(f"The worktree in {git_dir} cannot be recorded: {error.strerror}.") from error
    return descriptor


def forget(git_dir: Path) -> None:
    """Remove the record of a finished worktree; any remaining content was reported."""
    with suppress(OSError), standing_for(git_dir) as folder:
        os.unlink(_FILE, dir_fd=folder)


def left_records(common: Path, root: Path) -> list[tuple[RecordedWorktree, Path]]:
    """The abandoned worktrees of a folder, whose sessions ended without a report, each with git's folder for it."""
    places = [common / "worktrees" / name for name in _names(common / "worktrees")]
    found = [(known, place) for place in places if (known := _left_record(place)) is not None]
    return [(known, place) for known, place in found if known.root == str(root)]


def interrupted(root: Path) -> list[RecordedWorktree]:
    """The same for the start, without git: found by the `.git` files of the worktrees in a folder."""
    found = []
    for name in _names(root / FOLDER):
        path = root / FOLDER / name
        link = beginning(path / ".git", _LINK).decode("utf-8", "replace")
        known = _left_record(Path(link.removeprefix("gitdir:").strip())) if link.startswith("gitdir:") else None
        if known is not None and known.path == str(path):
            found.append(known)
    return found


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MOST]
    except OSError:
        return []


def _left_record(git_dir: Path) -> RecordedWorktree | None:
    """The record of a worktree; None if there is none, or if its session is still running."""
    with suppress(OSError, ValueError, TypeError), _opened(git_dir) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while the session lives
        if not os.fstat(descriptor).st_nlink:
            return None  # it was removed in between
        return _parsed(os.read(descriptor, _SIZE))
    return None


def _parsed(data: bytes) -> RecordedWorktree:
    """Raises `ValueError` or `TypeError` if it is not a record."""
    return RecordedWorktree(**{str(name): str(value) for name, value in dict(parse_json(data)).items()})


@contextmanager
def _opened(git_dir: Path, name: str = _FILE) -> Iterator[int]:
    with standing_for(git_dir) as folder:
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
