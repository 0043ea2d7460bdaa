"""Documents of the parent project, copied to a folder that agents can only read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from marvin_core import UsageError, is_key_file

from .files import ProjectFiles

FOLDER = "upstream"
_ENDINGS = (".md", ".txt", ".rst", ".json", ".yaml", ".yml", ".toml")
_MOST, _LARGEST = 100, 1_000_000
_READ_ONLY = 0o444
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class UpstreamFault(UsageError):
    """The folder with upstream documents cannot be used."""


def copy_upstream(files: ProjectFiles, given: Path | None, home: Path) -> tuple[str, ...]:
    """Copy the documents, and return the project's ones, relative to its folder. Blocks.

    Args:
        given: their folder; None for `.marvin/upstream` of the nearest folder above that has one, if the project
            has none itself.
        home: folders above it are not searched.

    Raises:
        UpstreamFault: the given folder does not exist, has no document, or one that is too long.
        FileFault: they cannot be written.
    """
    own = files.root / ".marvin" / FOLDER
    source = given
    if source is None and not any(_documents(own)):
        source = _above(files.root, home)
    if given is not None and not given.is_dir():
        raise UpstreamFault(f"--upstream {given} is not a folder. Give the folder with the documents.")
    if source is not None and source.resolve() != own.resolve():
        found = list(_documents(source))
        if given is not None and not found:
            raise UpstreamFault(
                f"--upstream {given} contains no document ({', '.join(_ENDINGS)}). Give another folder."
            )
        for path in found:
            data = _content(path)
            if data is not None and len(data) <= _LARGEST:
                files.write(f"{FOLDER}/{path.name}", data, _READ_ONLY)
            elif data is not None and given is not None:
                raise UpstreamFault(f"--upstream: {path} has more than {_LARGEST:,} bytes. Split it, or move it away.")
    return tuple(f".marvin/{FOLDER}/{path.name}" for path in _documents(own))


def documents_in(folder: Path) -> bool:
    """Whether a folder has a document that can be copied. Blocks."""
    return any(_documents(folder))


def _above(root: Path, home: Path) -> Path | None:
    for folder in root.parents:
        if folder == home or folder == Path(folder.anchor):
            return None
        if _is_own(found := folder / ".marvin" / FOLDER) and any(_documents(found)):
            return found
    return None


def _is_own(folder: Path) -> bool:
    """Whether a folder is this user's: in one that is writable for all, such as /tmp, anybody may have put
    documents."""
    try:
        return all(os.lstat(place).st_uid == os.getuid() for place in (folder.parent, folder))
    except OSError:
        return False


def _documents(folder: Path) -> Iterator[Path]:
    """The documents in a folder, by name, without links, keys, unprintable names and subfolders."""
    try:
        with os.scandir(folder) as entries:
            found = [Path(entry.path) for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return
    wanted = [path for path in found if path.suffix.lower() in _ENDINGS and _is_plain(path.name)]
    yield from sorted(wanted)[:_MOST]


def _is_plain(name: str) -> bool:
    return name.isprintable() and not is_key_file(name)


def _content(path: Path) -> bytes | None:
    try:
        descriptor = os.open(path, _OPEN)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return file.read(_LARGEST + 1)
    except OSError:
        return None
