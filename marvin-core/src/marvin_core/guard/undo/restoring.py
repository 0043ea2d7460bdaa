"""Restores files of a snapshot by folder descriptors, so that links cannot redirect it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha1
from pathlib import Path

from ...api.errors import MarvinError
from ..files.no_links import READ, opened_folder
from ..files.writing import temporary_name
from .contents import name_of
from .trees import Change, Kept

_BLOCK = 1_000_000
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = 0o040000
"""The mode that represents a folder in the place of a file."""


def state_of(root: Path, path: bytes) -> Kept | None:
    """The entry at a path, as a snapshot would record it; None if there is none.

    Raises:
        OSError: it cannot be read, or its path contains a link.
    """
    folder, _, name = os.fsdecode(path).rpartition("/")
    try:
        with opened_folder(root, folder) as descriptor:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                return Kept(mode=0o120000, content=name_of(os.fsencode(os.readlink(name, dir_fd=descriptor))))
            if not stat.S_ISREG(status.st_mode):
                return Kept(mode=FOLDER, content="")
            mode = 0o100755 if status.st_mode & 0o100 else 0o100644
            return Kept(mode=mode, content=_content_of(name, descriptor))
    except (FileNotFoundError, NotADirectoryError) as error:
        if isinstance(error, NotADirectoryError) and _is_behind_a_link(root, folder):
            raise OSError(errno.ELOOP, "its folder was replaced by a link") from error
        return None


def _is_behind_a_link(root: Path, folder: str) -> bool:
    place = os.path.join(root, folder)
    return os.path.realpath(place) != place


def _content_of(name: str, folder: int) -> str:
    with os.fdopen(os.open(name, READ, dir_fd=folder), "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        digest = sha1(b"blob %d\0" % size, usedforsecurity=False)
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def read_now(root: Path, path: bytes, most: int) -> bytes | None:
    """The current beginning of a file; None if it cannot be read."""
    folder, _, name = os.fsdecode(path).rpartition("/")
    with suppress(OSError), opened_folder(root, folder) as descriptor:
        with os.fdopen(os.open(name, READ, dir_fd=descriptor), "rb") as stream:
            return stream.read(most)
    return None


def blocked_by(root: Path, change: Change, removed: Collection[bytes]) -> Iterator[str]:
    """Why a file cannot be restored: a folder in its place that will not be empty, or a file in place of its folder.

    Args:
        removed: the files that will be removed before.
    """
    parts = os.fsdecode(change.path).split("/")
    for length in range(1, len(parts) + 1):
        path = "/".join(parts[:length])
        try:
            with opened_folder(root, "/".join(parts[: length - 1])) as descriptor:
                status = os.stat(parts[length - 1], dir_fd=descriptor, follow_symlinks=False)
        except OSError:
            return
        if length == len(parts) and stat.S_ISDIR(status.st_mode):
            for folder, _, names in os.walk(root / path):
                below = (os.fsencode(os.path.relpath(os.path.join(folder, name), root)) for name in names)
                yield from (f"{os.fsdecode(name)} is there" for name in below if name not in removed)
        elif length < len(parts) and not stat.S_ISDIR(status.st_mode) and os.fsencode(path) not in removed:
            yield f"{path} is no longer a folder"


def remove_created(root: Path, changes: Sequence[Change], done: list[bytes]) -> None:
    """Remove the files that did not exist before, and folders that become empty.

    Args:
        done: each file is added to it when it is removed.
    """
    folders: set[str] = set()
    for change in changes:
        folder, _, name = os.fsdecode(change.path).rpartition("/")
        _check_unchanged(root, change)
        with suppress(FileNotFoundError), opened_folder(root, folder) as descriptor:
            os.unlink(name, dir_fd=descriptor)
        done.append(change.path)
        while folder:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    for folder in sorted(folders, key=len, reverse=True):
        parent, _, name = folder.rpartition("/")
        with suppress(OSError), opened_folder(root, parent) as descriptor:
            os.rmdir(name, dir_fd=descriptor)


def put_files_back(
    root: Path,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
    modes: Mapping[str, int],
    done: list[bytes],
) -> None:
    """Restore the earlier content of files, each atomically.

    Args:
        contents: the contents of all files, by name.
        modes: unusual permissions, by path.
        done: each file is added to it when it is restored.

    Raises:
        MarvinError: one cannot be written; the files before it are restored.
    """
    for change in changes:
        if change.before is not None:
            try:
                _check_unchanged(root, change)
                _put(root, change, contents[change.before.content], modes.get(os.fsdecode(change.path)))
            except OSError as error:
                name = os.fsdecode(change.path)
                raise MarvinError(f"{name} cannot be written: {error.strerror}. Free space, then try again.") from error
            done.append(change.path)


def _check_unchanged(root: Path, change: Change) -> None:
    """Raise `MarvinError` if a file was changed while the others were restored."""
    now = state_of(root, change.path)
    if now != change.after and not (change.after is None and now == Kept(mode=FOLDER, content="")):
        raise MarvinError(f"{os.fsdecode(change.path)} was changed at the same moment, so it stays as it is.")


def _put(root: Path, change: Change, content: bytes, mode: int | None) -> None:
    before = change.before
    assert before is not None
    folder, _, name = os.fsdecode(change.path).rpartition("/")
    _make_folders(root, folder)
    temporary = temporary_name()
    with opened_folder(root, folder) as descriptor:
        try:
            if before.is_link:
                os.symlink(os.fsdecode(content), temporary, dir_fd=descriptor)
            else:
                known = mode if mode is not None else _permissions(name, descriptor, before)
                usual = 0o777 if before.mode == 0o100755 else 0o666
                opened = os.open(temporary, _NEW, usual if known is None else 0o600, dir_fd=descriptor)
                with os.fdopen(opened, "wb") as stream:
                    stream.write(content)
                    if known is not None:
                        os.fchmod(stream.fileno(), known)
            os.rename(temporary, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=descriptor)
            raise


def _permissions(name: str, folder: int, before: Kept) -> int | None:
    """The current permissions of the file, if its executable bit is unchanged; else None."""
    with suppress(FileNotFoundError):
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and bool(status.st_mode & 0o100) == (before.mode == 0o100755):
            return stat.S_IMODE(status.st_mode)
    return None


def _make_folders(root: Path, folder: str) -> None:
    made = ""
    for part in filter(None, folder.split("/")):
        with suppress(FileExistsError), opened_folder(root, made) as descriptor:
            os.mkdir(part, dir_fd=descriptor)
        made = f"{made}/{part}" if made else part
