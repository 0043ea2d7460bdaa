"""Error texts of file access for the model: the working directory, its content, and how to recover."""

from __future__ import annotations

import errno
import stat
from collections.abc import Collection
from contextlib import suppress
from itertools import islice
from pathlib import Path

from ...util.text import did_you_mean, near_names
from .no_links import scanned

_LINES = 30
_CHILDREN = 5
_SCANNED = 2_000
_UNINTERESTING = {".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".pytest_cache"}

_DENIED = "Permission denied: {path!r} cannot be {done}. Check the permissions of the file and its folder."
_FULL = "No space is left on the disk: {path!r} was not {done}, and nothing was changed. Free some space first."
_ADVICE = {
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EEXIST: "{path!r} already exists, and nothing was changed. Edit the existing file, or use another name.",
    errno.EISDIR: "{path!r} is a folder, not a file. List its contents, and give a file in it.",
    errno.ENOTDIR: "A part of {path!r} is a file and not a folder. List the folder above it to check the path.",
    errno.ENAMETOOLONG: "{path!r} is too long for the file system (255 bytes a name). Use a shorter one.",
    errno.ELOOP: "{path!r} is reached through links that form a circle or changed just now. Give the path of the "
    "file itself.",
    errno.EFBIG: "{path!r} would become larger than is allowed here; nothing was changed. Write less.",
    errno.EROFS: "The file system is read-only: {path!r} cannot be {done}. Use another folder.",
}
_DONE = {"read": "read", "make": "made", "write": "written", "remove": "deleted", "find": "looked up"}


def describe_failure(error: OSError, path: str, action: str) -> str:
    """The explanation and the advice for an error of the system.

    Args:
        action: read, write, make, remove or find.
    """
    number = error.errno
    if isinstance(error, FileExistsError):
        number = errno.EEXIST
    elif isinstance(error, IsADirectoryError):
        number = errno.EISDIR
    advice = _ADVICE.get(number or 0)
    if advice is None:
        advice = "{path!r} cannot be {done}: {reason}. Try another file, or list its folder."
    return advice.format(path=path, done=_DONE[action], reason=error.strerror or error)


def kind_of(mode: int) -> str:
    """The kind of a thing that is not a regular file, with its article."""
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something special")


def nearest_names(parts: tuple[str, ...], names: Collection[str]) -> str:
    """A sentence with names in the folder that resemble the last part of the path, or nothing."""
    found = did_you_mean(["/".join((*parts[:-1], name)) for name in near_names(parts[-1], names)])
    return f" {found}" if found else ""


def outline(root: Path, hidden: Collection[str]) -> str:
    """The working directory and a short tree of it: two levels, folders first, links not followed."""
    lines = [f"Working directory: {root}"]
    skipped = _UNINTERESTING.union(hidden)
    entries = _entries(root, ".", skipped)
    for name, is_folder in entries[:_LINES]:
        lines.append(f"  {name}/" if is_folder else f"  {name}")
        children = _entries(root, name, skipped) if is_folder else []
        lines += [f"    {child}/" if deeper else f"    {child}" for child, deeper in children[:_CHILDREN]]
        if len(children) > _CHILDREN:
            lines.append(f"    ... {len(children) - _CHILDREN} more")
    if len(entries) > _LINES:
        lines.append(f"  ... {len(entries) - _LINES} more")
    if not entries:
        lines.append("  (empty)")
    return "\n".join(lines)


def _entries(root: Path, path: str, skipped: Collection[str]) -> list[tuple[str, bool]]:
    with scanned(root, path) as entries, suppress(OSError):
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, _SCANNED)]
        shown = [(name, is_folder) for name, is_folder in found if name.casefold() not in skipped]
        return sorted(shown, key=lambda entry: (not entry[1], entry[0]))
    return []
