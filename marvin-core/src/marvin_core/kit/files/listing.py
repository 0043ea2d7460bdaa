"""The files below a folder as a programmer thinks of them: without what .gitignore excludes."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from ...api.errors import ToolError
from ...api.tool_context import ToolContext
from .ignore_rules import NEVER, IgnoreRules

GIT = ("git", "-c", "core.fsmonitor=false")
"""A monitor is a program that the repository names; listing files must not run it."""

_LIST_BYTES = 100_000_000
_BATCH = 500

Wanted = Callable[[str], bool]


async def list_files(
    context: ToolContext, start: str, wanted: Wanted, *, hidden: bool
) -> list[tuple[str, os.stat_result]]:
    """The wanted files at or below a folder, links not followed, relative to the root.

    Args:
        start: a checked path relative to the root.
        hidden: whether names below `start` may begin with a dot.
    """
    root = context.paths.root
    found: list[tuple[str, os.stat_result]] = []
    names = await _git_names(context, start)
    if not names:
        return [entry async for entry in _walk(context, start, wanted, hidden)]
    for index, name in enumerate(names):
        if not _is_listed(name, start, hidden):
            continue
        try:
            status = os.lstat(root / name)
        except OSError:
            continue  # deleted, and git not told yet
        if stat.S_ISDIR(status.st_mode):  # a repository in this one
            found += [entry async for entry in _walk(context, name.rstrip("/"), wanted, hidden)]
        elif wanted(name):
            found.append((name, status))
        if not index % _BATCH:
            await asyncio.sleep(0)  # let other tasks run
    return found


def real_place(context: ToolContext, path: str) -> str:
    """Where a file or folder is, relative to the root, all links resolved: git looks behind none."""
    root = context.paths.root
    real = os.path.realpath(root / context.paths.locate(path))
    return context.paths.locate(os.path.relpath(real, root))


def in_repository(root: Path) -> bool:
    """Whether a folder is in a git repository."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def _is_listed(name: str, start: str, hidden: bool) -> bool:
    below = name if start == "." else name[len(start) + 1 :]
    parts = below.rstrip("/").split("/")
    if any(part.casefold() in NEVER for part in parts):
        return False
    return hidden or not any(part.startswith(".") for part in parts)


async def _git_names(context: ToolContext, start: str) -> list[str]:
    """What git knows or would add; nothing where git cannot say."""
    if not in_repository(context.paths.root):
        return []
    argv = [*GIT, "--literal-pathspecs", "ls-files", "-co", "--exclude-standard", "-z", "--", start]
    try:
        result = await context.processes.run(argv, cwd=context.paths.root, output_limit=_LIST_BYTES)
    except ToolError:
        return []
    if result.exit_code or result.omitted:
        return []
    # A file in conflict is listed once for each side.
    return list(dict.fromkeys(os.fsdecode(name) for name in result.output.split(b"\0") if name))


async def _walk(
    context: ToolContext, start: str, wanted: Wanted, hidden: bool
) -> AsyncIterator[tuple[str, os.stat_result]]:
    rules = IgnoreRules(context)
    if start != "." and rules.ignores_above(start):
        rules = IgnoreRules(context, start)  # who names an excluded folder wants to see it
    folders = [start]
    while folders:
        folder = folders.pop()
        await asyncio.sleep(0)  # let other tasks run
        for entry in entries_of(context.paths.root / folder):
            name = entry.name if folder == "." else f"{folder}/{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            if not _is_listed(entry.name, ".", hidden) or rules.ignores(name, is_folder=is_folder):
                continue
            if is_folder:
                folders.append(name)
            elif wanted(name):
                try:
                    yield name, entry.stat(follow_symlinks=False)
                except OSError:
                    continue  # deleted meanwhile


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """What a folder holds; nothing where it cannot be read."""
    try:
        with os.scandir(folder) as scan:
            return list(scan)
    except OSError:
        return []
