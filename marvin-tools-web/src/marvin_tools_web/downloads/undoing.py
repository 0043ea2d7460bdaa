"""Taking downloads back: the files that are still as they were saved are removed."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from marvin_core import ToolContext, ToolError, in_thread, one_line

Marks: TypeAlias = list[dict[str, Any]]
"""Of each file where it is below the folder of the downloads, and what tells whether it is still the same."""

_SHOWN = 200


def marks(folder: Path, saved: Iterable[Path]) -> Marks:
    """What is kept of files that were saved, for the call that takes them back."""
    return [{"name": str(path.relative_to(folder)), "mark": _mark(path)} for path in saved]


async def remove(context: ToolContext, folder: Path, kept: Sequence[Mapping[str, Any]]) -> str:
    """Remove files that were saved; what was done, in words.

    Raises:
        ToolError: one of them was changed since then, and none was removed; or nobody takes a call back.
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
