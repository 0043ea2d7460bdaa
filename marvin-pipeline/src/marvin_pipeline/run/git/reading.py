"""Reads files of a project for a commit. No link is followed: a folder may become a link at any moment."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from marvin_core import KEY_SAMPLE, Record, opened_folder

from .project_git import GitFault

LINK = 0o120000
_FILE, _PROGRAM = 0o100644, 0o100755
_LARGEST = 500_000_000
_BATCH_FILES, _BATCH_BYTES = 5_000, 64_000_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL)
"""The errors if there is nothing with that name, or a link on the way to it; the last one if a link is replaced."""


class Entry(Record):
    """A file, or a link with its target as the content, by its path in the project."""

    name: str
    mode: int
    content: bytes


class Batch(Record):
    """Some of the entries, and the names of tracked files that are gone."""

    entries: tuple[Entry, ...]
    gone: tuple[str, ...]


def batches(
    root: Path, wanted: Iterable[tuple[str, bool]], left_out: Callable[[str, int, bytes], str]
) -> Iterator[Batch]:
    """What the files contain now, some at a time. Blocks.

    Args:
        wanted: the names, and whether a file is new. A new one that is gone or cannot be read is left out.
        left_out: tells from the name, the size and the beginning of a new file why it is left out; empty if it is not.

    Raises:
        GitFault: a tracked file cannot be read.
    """
    entries: list[Entry] = []
    gone: list[str] = []
    size = 0
    for name, is_new in wanted:
        entry = _new(root, name, left_out) if is_new else _tracked(root, name)
        if entry is not None:
            entries.append(entry)
            size += len(entry.content)
        elif not is_new:
            gone.append(name)
        if len(entries) >= _BATCH_FILES or size >= _BATCH_BYTES:
            yield Batch(entries=_apart(entries), gone=tuple(gone))
            entries, gone, size = [], [], 0
    if entries or gone:
        yield Batch(entries=_apart(entries), gone=tuple(gone))


def _apart(entries: list[Entry]) -> tuple[Entry, ...]:
    """The entries without those that have another one below them: a folder was a link, or a file, in between."""
    folders: set[str] = set()
    for entry in entries:
        folder = entry.name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return tuple(entry for entry in entries if entry.name not in folders)


def _tracked(root: Path, name: str) -> Entry | None:
    try:
        return _read(root, name, lambda size, _: _why_too_large(size))
    except OSError as error:
        raise _fault(name, error.strerror or str(error)) from error


def _new(root: Path, name: str, left_out: Callable[[str, int, bytes], str]) -> Entry | None:
    try:
        return _read(root, name, partial(left_out, name))
    except (OSError, GitFault):
        return None


def _read(root: Path, name: str, why_not: Callable[[int, bytes], str]) -> Entry | None:
    """None if it is gone."""
    folder, _, base = name.rpartition("/")
    try:
        with opened_folder(root, folder) as descriptor:
            try:
                opened = os.open(base, _READ, dir_fd=descriptor)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
                return Entry(name=name, mode=LINK, content=os.fsencode(os.readlink(base, dir_fd=descriptor)))
            return _opened(name, opened, why_not)
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise


def _opened(name: str, opened: int, why_not: Callable[[int, bytes], str]) -> Entry | None:
    """What a descriptor, which is closed, was opened for."""
    try:
        status = os.fstat(opened)
        if stat.S_ISDIR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise _fault(name, "it is not a file")
        with open(opened, "rb", closefd=False) as file:
            head = file.read(KEY_SAMPLE)
            if reason := why_not(status.st_size, head):
                raise _fault(name, reason)
            file.seek(0)
            content = file.read(status.st_size)  # no more, in case it grows
        return Entry(name=name, mode=_PROGRAM if status.st_mode & stat.S_IXUSR else _FILE, content=content)
    finally:
        os.close(opened)


def _why_too_large(size: int) -> str:
    return f"it has more than {_LARGEST // 1_000_000} MB" if size > _LARGEST else ""


def _fault(name: str, why: str) -> GitFault:
    return GitFault(
        f"{name} cannot be committed: {why}. Change that, or have git ignore the file (git rm --cached, .gitignore), "
        "and run the pipeline again."
    )
