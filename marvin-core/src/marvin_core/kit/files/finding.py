"""Finding files by their names, as a programmer thinks of them: without what .gitignore excludes."""

from __future__ import annotations

import os
import stat

from ...api.errors import ToolError
from ...api.record import Record
from ...api.tool_context import ToolContext
from .globs import GlobFilter, compile_glob, names_hidden
from .listing import list_files


class FoundFile(Record):
    """A file by its path relative to the root; `modified` is in nanoseconds since the epoch, `size` in bytes."""

    path: str
    modified: int
    size: int


async def find_files(
    context: ToolContext, pattern: str, start: str = ".", *, anywhere: bool = False
) -> list[FoundFile]:
    """The files below a folder that a glob pattern fits, the newest first.

    `*`, `?`, `[...]`, `{a,b}` and `**` mean what they mean in a shell. Names that begin with a dot are found only
    where the pattern names one. Links are found, and what is behind a linked folder is not.

    Args:
        pattern: counts from `start`.
        start: a folder, checked and relative to the root, as `real_place` gives it.
        anywhere: a pattern without a slash fits in every folder below.

    Raises:
        ToolError: the pattern is none, or leads out of the folder.
    """
    pattern = _relative(context, pattern)
    hidden = names_hidden(pattern)
    if anywhere:
        chosen = GlobFilter(pattern)
        found = await list_files(context, start, lambda name: chosen(name, start), hidden=hidden)
    else:
        matches = compile_glob(pattern).fullmatch
        prefix = "" if start == "." else f"{start}/"
        found = await list_files(
            context, start, lambda name: matches(name.removeprefix(prefix)) is not None, hidden=hidden
        )
    files = [
        FoundFile(path=name, modified=status.st_mtime_ns, size=status.st_size)
        for name, status in found
        if _is_file(context, name, status)
    ]
    return sorted(files, key=lambda file: (-file.modified, file.path))


def _relative(context: ToolContext, pattern: str) -> str:
    if not pattern.strip():
        raise ToolError("The pattern is empty. Give a glob pattern, such as '**/*.py'.")
    if pattern.startswith(("/", "~")):
        context.paths.locate(pattern)  # refuses it, and says which relative path to use
    pattern = os.path.normpath(pattern)
    if pattern.split("/")[0] == "..":
        raise ToolError(f"The pattern {pattern!r} leads out of the folder. Start from another folder instead.")
    return pattern


def _is_file(context: ToolContext, name: str, status: os.stat_result) -> bool:
    if stat.S_ISLNK(status.st_mode):
        return os.path.isfile(context.paths.root / name)
    return stat.S_ISREG(status.st_mode)
