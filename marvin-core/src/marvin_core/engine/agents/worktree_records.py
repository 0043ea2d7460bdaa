"""What Marvin knows of the worktree of an agent: a file in git's folder for it, which its session keeps locked."""

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
"""Where worktrees lie in the folder that they are made for."""
_FILE = "marvin.json"
_BEGUN = "marvin-worktree.json"
"""A file in git's folder: the worktree that is being made. Who makes one holds the turn, so there is one at most."""
_SIZE = 100_000
_LINK = 16_384
"""Bytes of a `.git` file."""
_MOST = 1_000
"""Worktrees of a repository that are looked at."""


class RecordedWorktree(Record):
    """A worktree that was made for an agent."""

    root: str
    """The folder that it was made for."""
    path: str
    """Its top."""
    branch: str
    base: str
    """The commit that it was made from."""
    into: str
    """The branch of the main folder at that time, as a full name; empty where it was on none."""
    ticket: str


def note_begun(common: Path, known: RecordedWorktree) -> None:
    """Note a worktree before it is made, so that it is found where this is killed before there is a record in it.

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
    """Remove that note: there is a record, or no worktree. Raises `OSError` where it stays."""
    with suppress(FileNotFoundError), standing_for(common) as folder:
        os.unlink(_BEGUN, dir_fd=folder)


def begun_record(common: Path) -> RecordedWorktree | None:
    """The worktree that somebody was killed over; for who holds the turn."""
    with suppress(OSError, ValueError, TypeError), _opened(common, _BEGUN) as descriptor:
        return _parsed(os.read(descriptor, _SIZE))
    return None


def kept_record(git_dir: Path, known: RecordedWorktree) -> int:
    """Write the record of a new worktree; the descriptor holds its lock until it is closed.

    Another Marvin that looks for what was left sees it whole and locked, or not at all.

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
    """Remove the record of a worktree that is over; what stays of it was told."""
    with suppress(OSError), standing_for(git_dir) as folder:
        os.unlink(_FILE, dir_fd=folder)


def left_records(common: Path, root: Path) -> list[tuple[RecordedWorktree, Path]]:
    """The worktrees of a folder whose sessions ended without a word, with git's folder for each."""
    places = [common / "worktrees" / name for name in _names(common / "worktrees")]
    found = [(known, place) for place in places if (known := _left_record(place)) is not None]
    return [(known, place) for known, place in found if known.root == str(root)]


def interrupted(root: Path) -> list[RecordedWorktree]:
    """The same for a start, which asks no git: found by what the worktrees in a folder say of themselves."""
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
    """What is known of a worktree; None where nothing is, or where its session lives."""
    with suppress(OSError, ValueError, TypeError), _opened(git_dir) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while the session lives
        if not os.fstat(descriptor).st_nlink:
            return None  # it was forgotten in between
        return _parsed(os.read(descriptor, _SIZE))
    return None


def _parsed(data: bytes) -> RecordedWorktree:
    """Raises `ValueError` or `TypeError` where it is no record."""
    return RecordedWorktree(**{str(name): str(value) for name, value in dict(parse_json(data)).items()})


@contextmanager
def _opened(git_dir: Path, name: str = _FILE) -> Iterator[int]:
    with standing_for(git_dir) as folder:
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
