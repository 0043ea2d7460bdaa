"""The files below a folder as a programmer thinks of them: without what .gitignore excludes."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

from ...api.errors import PathRefused, ToolError
from ...api.tool_context import ToolContext
from ...guard.files.no_links import Statuses, scanned
from ...util.git_calls import GIT_ALONE, git_command
from .ignore_rules import NEVER, IgnoreRules

GIT = git_command()
"""Listing files runs nothing that a repository names, and fetches no rules that a partial clone lacks."""
LIST_BYTES = 100_000_000
"""What is taken of a list of names."""
_BATCH = 500

Wanted = Callable[[str], bool]


async def list_files(
    context: ToolContext,
    start: str,
    wanted: Wanted,
    *,
    hidden: bool,
    tails: tuple[str, ...] = (),
    bad_rules: list[str] | None = None,
) -> list[tuple[str, os.stat_result]]:
    """The wanted files at or below a folder, links not followed, relative to the root.

    Args:
        start: a checked path relative to the root.
        hidden: whether names below `start` may begin with a dot.
        tails: every wanted name ends with one of them; without any, it may end with anything.
        bad_rules: gets the lines of .gitignore that are no rules, where git is not asked.
    """
    names = await _git_names(context, start)
    if names:
        found = await _looked_at(context, start, names, wanted, hidden=hidden, tails=tails)
    else:
        found = [entry async for entry in _walk(context, start, wanted, hidden, bad_rules)]
    if not hidden and "/." not in f"/{start}".removesuffix("/."):
        return found  # what no tool reaches lies in folders with a dot
    reached: dict[str, bool] = {}
    for name, _ in found:
        folder = os.path.dirname(name)
        if folder not in reached:
            reached[folder] = _is_reached(context, folder)
    return [entry for entry in found if reached[os.path.dirname(entry[0])]]


def _is_reached(context: ToolContext, folder: str) -> bool:
    """Whether tools may look into a folder."""
    try:
        context.paths.locate(folder or ".")
    except PathRefused:
        return False
    except ToolError:  # removed meanwhile
        return True
    return True


async def _looked_at(
    context: ToolContext, start: str, names: list[str], wanted: Wanted, *, hidden: bool, tails: tuple[str, ...]
) -> list[tuple[str, os.stat_result]]:
    """The wanted ones among names that git listed."""
    root = context.paths.root
    found: list[tuple[str, os.stat_result]] = []
    has_modules = (root / ".gitmodules").exists()  # git lists them as it lists files
    if tails and not has_modules:
        names = [name for name in names if name.endswith((*tails, "/"))]
    names = list(dict.fromkeys(names))  # a file in conflict is listed once for each side
    with Statuses(root) as statuses:
        for begin in range(0, len(names), _BATCH):
            await asyncio.sleep(0)  # let other tasks run
            for name in names[begin : begin + _BATCH]:
                # A look at each file would take ten times as long as git does.
                if not (name[-1] == "/" or has_modules or wanted(name)) or not _is_listed(name, start, hidden):
                    continue
                try:
                    status = statuses.of(name)
                except OSError:
                    continue  # deleted, and git not told yet; or behind a link
                if stat.S_ISDIR(status.st_mode):  # a repository in this one
                    found += [entry async for entry in _walk(context, name.rstrip("/"), wanted, hidden)]
                elif not has_modules or wanted(name):
                    found.append((name, status))
    return found


def real_place(context: ToolContext, path: str) -> str:
    """Where a file or folder is, relative to the root, all links resolved: git looks behind none."""
    root = context.paths.root
    located = context.paths.locate(path)
    try:
        real = os.path.realpath(root / located)
    except OSError as error:
        raise ToolError(
            f"{path!r} cannot be looked up: {error.strerror}. It was changed just now; try again."
        ) from error
    return context.paths.locate(os.path.relpath(real, root))


def in_repository(root: Path) -> bool:
    """Whether a folder is in a git repository."""
    return any((folder / ".git").exists() for folder in (root, *root.parents))


def _is_listed(name: str, start: str, hidden: bool) -> bool:
    below = name if start == "." else name[len(start) + 1 :]
    if "/." not in f"/{below}":  # what is never listed begins with a dot as well
        return True
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
        result = await context.processes.run(argv, cwd=context.paths.root, output_limit=LIST_BYTES, env=GIT_ALONE)
    except ToolError:
        return []
    if result.exit_code or result.omitted:
        return []
    return os.fsdecode(result.output.removesuffix(b"\0")).split("\0") if result.output else []


async def _walk(
    context: ToolContext, start: str, wanted: Wanted, hidden: bool, bad_rules: list[str] | None = None
) -> AsyncIterator[tuple[str, os.stat_result]]:
    rules = IgnoreRules(context, bad=bad_rules)
    if start != "." and rules.ignores_above(start):
        rules = IgnoreRules(context, start, bad_rules)  # who names an excluded folder wants to see it
    folders = [start]
    while folders:
        folder = folders.pop()
        await asyncio.sleep(0)  # let other tasks run
        found: list[tuple[str, os.stat_result]] = []
        with scanned(context.paths.root, folder) as entries, suppress(OSError):
            for entry in entries:
                name = entry.name if folder == "." else f"{folder}/{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                if not _is_listed(entry.name, ".", hidden) or rules.ignores(name, is_folder=is_folder):
                    continue
                if is_folder:
                    folders.append(name)
                elif wanted(name):
                    with suppress(OSError):  # deleted meanwhile
                        found.append((name, entry.stat(follow_symlinks=False)))
        for file in found:
            yield file
