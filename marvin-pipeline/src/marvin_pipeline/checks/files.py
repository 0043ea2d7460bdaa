"""Reads files of a project safely: one may be a link, a pipe, or huge."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LARGEST = 1_000_000
_LISTED = 2_000
"""Entries of a folder, and subfolders, that are examined."""
_DEEP = 6
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
SKIPPED = frozenset(
    {
        "node_modules",
        "venv",
        "env",
        "__pycache__",
        "dist",
        "build",
        "target",
        "vendor",
        "coverage",
        "site-packages",
    }
)
"""Folders without source of the project; hidden ones are skipped as well."""


def text_of(path: Path, most: int = _LARGEST) -> str:
    """The start of a regular file, at most this many bytes; empty for anything else, including links."""
    with suppress(OSError, ValueError):
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as stream:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return stream.read(most).decode("utf-8", "replace")
    return ""


def is_file(path: Path) -> bool:
    """Whether it is a regular file, and not a link."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether it is a folder, and not a link."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def folders_in(folder: Path) -> list[Path]:
    """The subfolders that may contain source, sorted."""
    found: list[Path] = []
    with suppress(OSError), os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number >= _LISTED:
                break
            if _may_hold_source(entry.name) and entry.is_dir(follow_symlinks=False):
                found.append(folder / entry.name)
    return sorted(found)


def files_below(folder: Path, most: int = _LISTED) -> Iterator[Path]:
    """The regular files below a folder that may be source, at most `most` and six levels deep, in a stable order."""
    count = 0
    for number, (place, names, files) in enumerate(os.walk(folder)):
        if number >= _LISTED:
            return
        depth = len(Path(place).relative_to(folder).parts)
        names[:] = sorted(name for name in names if _may_hold_source(name)) if depth < _DEEP else []
        for name in sorted(files):
            if count >= most:
                return
            count += 1
            path = Path(place, name)
            if is_file(path):
                yield path


def _may_hold_source(name: str) -> bool:
    return not name.startswith(".") and name not in SKIPPED
