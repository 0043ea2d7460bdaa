"""Restores files of a snapshot by folder descriptors, so that links cannot redirect it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha1
from itertools import takewhile
from pathlib import Path

from ...api.errors import MarvinError
from ..files.displacing import NotTheChecked, displace, put_new
from ..files.folder_descriptors import Folder, Place
from ..files.no_links import READ, opened_folder
from ..files.writing import discard, take_over, temporary_name
from .births import born_at
from .contents import name_of
from .pieces import usual_mode
from .trees import Change, Kept

_BLOCK = 1_000_000
_CHANGED = "was changed at the same moment"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = 0o040000
"""The mode that represents a folder in the place of a file."""


def check_no_link(root: Path) -> None:
    """Raise `MarvinError` if a working directory was replaced by a link: files elsewhere would be changed or read."""
    if os.path.realpath(root) != str(root):
        raise MarvinError(f"{root} was replaced by a link. Put the folder back, then try again.")


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
            for folder, folders, names in os.walk(root / path):
                names += [name for name in folders if os.path.islink(os.path.join(folder, name))]
                below = (os.fsencode(os.path.relpath(os.path.join(folder, name), root)) for name in names)
                yield from (f"{os.fsdecode(name)} is there" for name in below if name not in removed)
        elif length < len(parts) and not stat.S_ISDIR(status.st_mode) and os.fsencode(path) not in removed:
            yield f"{path} is no longer a folder"


def remove_created(root: Path, changes: Sequence[Change], since: int, done: list[bytes]) -> None:
    """Remove the files that did not exist before, and new or moved folders that become empty.

    Args:
        since: folders that were created before this time, in nanoseconds since the epoch, stay if they were not moved.
        done: each file is added to it when it is removed.

    Raises:
        MarvinError: one cannot be removed; those before it are.
    """
    folders: set[str] = set()
    moved = _moved_folders(root, changes, since)
    for change in changes:
        if change.before is None:
            folder, _, name = os.fsdecode(change.path).rpartition("/")
            with _told("removed", os.fsdecode(change.path)):
                _check_unchanged(root, change)
                with suppress(FileNotFoundError), opened_folder(root, folder) as descriptor:
                    _displace(root, change, Place(Folder(descriptor, ()), name), None)
            done.append(change.path)
            folders.update(_above(folder))
    for change in changes:
        if change.before is not None:  # its folder keeps its permissions
            folders.difference_update(_above(os.fsdecode(change.path).rpartition("/")[0]))
    for folder in sorted(folders, key=len, reverse=True):
        parent, _, name = folder.rpartition("/")
        born = born_at(os.fsencode(root / folder))
        if born is None or born >= since or folder in moved:
            with suppress(OSError), opened_folder(root, parent) as descriptor:
                os.rmdir(name, dir_fd=descriptor)


def _moved_folders(root: Path, changes: Sequence[Change], since: int) -> set[str]:
    """The folders that seem to be new, and contain a file at the place that it had in a folder which is gone.

    Of a file that was moved alone, only the name was changed since then.
    """
    places: set[str] = set()
    for change in changes:
        if change.after is None:
            path = os.fsdecode(change.path)
            gone = takewhile(lambda folder: not os.path.isdir(root / folder), _above(path.rpartition("/")[0]))
            places.update(path[len(folder) :] for folder in gone)
    found = set()
    for change in changes if places else ():
        path = os.fsdecode(change.path)
        folders = [folder for folder in _above(path.rpartition("/")[0]) if path[len(folder) :] in places]
        with suppress(OSError):
            status = os.lstat(root / path) if change.before is None and folders else None
            if status is not None and not status.st_mtime_ns < since <= status.st_ctime_ns:
                found.update(folders)
    return found


def _above(folder: str) -> Iterator[str]:
    """A folder and those around it, below the root."""
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def put_files_back(
    root: Path,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
    modes: Mapping[str, int],
    done: list[bytes],
) -> set[str]:
    """Restore the earlier content of files, each atomically; returns the new folders that `close_folders` must know.

    Args:
        contents: the contents of all files, by name.
        modes: unusual permissions of files and folders, by path.
        done: each file is added to it when it is restored.

    Raises:
        MarvinError: one cannot be written; the files before it are restored.
    """
    made: set[str] = set()
    for change in changes:
        if change.before is not None:
            with _told("written", os.fsdecode(change.path)):
                made.update(_make_folders(root, os.fsdecode(change.path).rpartition("/")[0], modes))
                _put(root, change, contents[change.before.content], modes)
            done.append(change.path)
    return made


def close_folders(root: Path, folders: Collection[str], modes: Mapping[str, int]) -> None:
    """Give new folders their earlier permissions, which may forbid to write in them.

    Raises:
        MarvinError: one cannot be changed.
    """
    for folder in sorted(folders, key=len, reverse=True):
        with _told("given its earlier permissions", folder), opened_folder(root, folder) as descriptor:
            os.fchmod(descriptor, modes[folder])


@contextmanager
def _told(what: str, path: str) -> Iterator[None]:
    """Have a failure say which file it is about, and how to continue."""
    try:
        yield
    except OSError as error:
        to_do = "Free space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "Change that"
        raise MarvinError(f"{path} cannot be {what}: {error.strerror}. {to_do}, then try again.") from error
    except NotTheChecked as error:
        saved = f" Another version of it was saved as {error.kept!r}, in the same folder." if error.kept else ""
        raise MarvinError(f"{path} {error}, so it stays as it is.{saved}") from error


def _check_unchanged(root: Path, change: Change) -> None:
    """Raise `NotTheChecked` if a file was changed while the others were restored."""
    now = state_of(root, change.path)
    if now != change.after and not (change.after is None and now == Kept(mode=FOLDER, content="")):
        raise NotTheChecked(_CHANGED, "")


def permissions_now(root: Path, path: str) -> int | None:
    """The permissions of a file; None if there is no file."""
    folder, _, name = path.rpartition("/")
    with suppress(OSError), opened_folder(root, folder) as descriptor:
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        return stat.S_IMODE(status.st_mode) if stat.S_ISREG(status.st_mode) else None
    return None


def put_permissions_back(root: Path, chmods: Mapping[str, tuple[int, int]]) -> None:
    """Restore the earlier permissions of files. Raises `MarvinError` if those of one cannot be changed."""
    for path, (before, after) in chmods.items():
        if permissions_now(root, path) == after:
            folder, _, name = path.rpartition("/")
            with _told("given its earlier permissions", path), opened_folder(root, folder) as descriptor:
                opened = os.open(name, READ, dir_fd=descriptor)
                try:
                    os.fchmod(opened, before)
                finally:
                    os.close(opened)


def _put(root: Path, change: Change, content: bytes, modes: Mapping[str, int]) -> None:
    before, path = change.before, os.fsdecode(change.path)
    assert before is not None
    folder, _, name = path.rpartition("/")
    temporary = temporary_name()
    _check_unchanged(root, change)
    with opened_folder(root, folder) as descriptor:
        place = Place(Folder(descriptor, ()), name)
        try:
            if before.is_link:
                os.symlink(os.fsdecode(content), temporary, dir_fd=descriptor)
            else:
                _write(temporary, place, content, modes.get(path, usual_mode(before)))
            with suppress(NotADirectoryError, FileNotFoundError):
                _remove_empty(name, descriptor)
            if place.exists():
                _displace(root, change, place, temporary)
            else:
                put_new(place, temporary)
        except OSError:
            discard(temporary, descriptor)
            raise


def _displace(root: Path, change: Change, place: Place, new: str | None) -> None:
    """Replace or remove a file. Raises `NotTheChecked` if another program changes it at the same moment."""
    folder = os.fsdecode(change.path).rpartition("/")[0]

    def flaw(name: str) -> str:
        beside = f"{folder}/{name}" if folder else name
        return "" if state_of(root, os.fsencode(beside)) == change.after else _CHANGED

    displace(place, new, flaw).close()


def _write(temporary: str, place: Place, content: bytes, mode: int) -> None:
    """Write a temporary file with the owner, and the attributes, of the file in its place."""
    old = place.status() if place.exists() else None
    old = old if old is not None and stat.S_ISREG(old.st_mode) else None
    with os.fdopen(os.open(temporary, _NEW, 0o600, dir_fd=place.folder), "wb") as stream:
        stream.write(content)
        if old is not None:
            take_over(stream.fileno(), old, place)
        os.fchmod(stream.fileno(), mode)


def _remove_empty(name: str, folder: int) -> None:
    """Remove an empty folder in the place of a file, and those in it. Raises OSError if there is a file in it."""
    for _, folders, _, descriptor in os.fwalk(name, topdown=False, onerror=_raise, dir_fd=folder):
        for inner in folders:
            os.rmdir(inner, dir_fd=descriptor)
    os.rmdir(name, dir_fd=folder)


def _raise(error: OSError) -> None:
    raise error


def _make_folders(root: Path, folder: str, modes: Mapping[str, int]) -> Iterator[str]:
    """Make a folder and those around it; yields the new ones that do not have their earlier permissions yet.

    They lack only that their owner may not write in them: an undo that fails halfway does not know them the next time.
    """
    for made in reversed([*_above(folder)]):
        parent, _, name = made.rpartition("/")
        mode = modes.get(made)
        with suppress(FileExistsError), opened_folder(root, parent) as descriptor:
            os.mkdir(name, 0o777 if mode is None else 0o700, dir_fd=descriptor)
            if mode is not None:
                close_folders(root, [made], {made: mode | 0o700})
                yield made
