"""Undo of downloads: removes the files that are unchanged since."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from marvin_core import ToolContext, ToolError, in_thread, one_line

Marks: TypeAlias = list[dict[str, Any]]
"""For each file its path below the download folder, and what shows whether it is unchanged."""

_SHOWN = 200


def marks(folder: Path, saved: Iterable[Path]) -> Marks:
    """The data of saved files that undoing the call needs."""
    return [{"name": str(path.relative_to(folder)), "mark": _mark(path)} for path in saved]


async def remove(context: ToolContext, folder: Path, kept: Sequence[Mapping[str, Any]]) -> str:
    """Remove saved files; returns what was done, as text.

    Raises:
        ToolError: one of them was changed since, and none was removed; or the call is not by `/undo`.
    """
    if context.origin != "undo":
        raise ToolError("taken_back is for /undo only. Leave it out.")
    return await in_thread(lambda: _remove(folder, kept))


def _remove(folder: Path, kept: Sequence[Mapping[str, Any]]) -> str:
    there: list[Path] = []
    for one in kept:
        path = folder / str(one["name"])
        try:
            if not path.parent.resolve().is_relative_to(folder.resolve()) or _mark(path) != one["mark"]:
                raise ToolError(f"{one_line(str(path), _SHOWN)} was changed since then. Remove it by hand.")
        except FileNotFoundError:
            continue
        there.append(path)
    try:
        for path in there:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"{error.filename} cannot be removed: {error.strerror}. Remove it by hand.") from error
    if len(there) < len(kept):
        return f"Removed {len(there)} of {len(kept)} files; the others were removed before."
    return f"Removed: {', '.join(path.name for path in there)}"


def _mark(path: Path) -> str:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return ""
    return f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"
