"""Lists the files below a folder, without those that .gitignore excludes."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from ...api.errors import PathRefused, ToolError
from ...api.record import Record
from ...api.tool_context import ToolContext
from ...guard.files.no_links import Entry, Statuses, scanned
from ...util.git_calls import GIT_ALONE, git_command
from ...util.threads import in_thread
from .ignore_rules import NEVER, IgnoreRules

GIT = git_command()
"""Listing files runs no programs that a repository configures, and a partial clone fetches nothing."""
LIST_BYTES = 100_000_000
"""The maximum number of bytes of a list of names."""
_BATCH = 5_000
_SOON = 1.0
"""The maximum time in seconds for an explanation."""

_BOTH, _TRACKED, _OTHERS = ("-co", "--exclude-standard"), ("-c",), ("-o", "--exclude-standard")
_STARS = MappingProxyType({**GIT_ALONE, **{f"GIT_{kind}_PATHSPECS": "0" for kind in ("LITERAL", "GLOB", "ICASE")}})
"""Variables for a call whose path contains a star as a wildcard; a user may have disabled wildcards in paths."""
_LARGE_INDEX = 1_000_000
"""The size of an index in bytes, about 10,000 files, from which it is listed in parallel with untracked files."""

Wanted = Callable[[str], bool]
Names: TypeAlias = list[str]
Listed: TypeAlias = list[Entry]


async def list_files(
    context: ToolContext,
    start: str,
    wanted: Wanted | None,
    *,
    hidden: bool,
    tails: tuple[str, ...] = (),
    bad_rules: list[str] | None = None,
) -> Listed:
    """The selected files at or below a folder, relative to the root; links are not followed.

    Args:
        start: a checked path relative to the root.
        wanted: selects names; without it all names with these endings are selected.
        hidden: whether names below `start` may begin with a dot.
        tails: the possible endings of the names; empty for any.
        bad_rules: receives invalid lines of .gitignore, if git is not used.
    """

    selection = _Selection(start=start, wanted=wanted, hidden=hidden, tails=tails)
    found = await _from_git(context, start, partial(_looked_at, context, selection), tails)
    if found is None:
        found = [entry async for entry in _walk(context, start, selection.wants, hidden, bad_rules)]
    if not hidden and "/." not in f"/{start}".removesuffix("/."):
        return found  # what no tool reaches lies in folders with a dot
    reached: dict[str, bool] = {}
    for name, *_ in found:
        folder = os.path.dirname(name)
        if folder not in reached:
            reached[folder] = _is_reached(context, folder)
    return [entry for entry in found if reached[os.path.dirname(entry[0])]]


def _is_reached(context: ToolContext, folder: str) -> bool:
    """Whether tools may access a folder."""
    try:
        context.paths.locate(folder or ".")
    except PathRefused:
        return False
    except ToolError:  # removed meanwhile
        return True
    return True


class _Selection(Record):
    """Which names are wanted; see `list_files`."""

    start: str
    wanted: Wanted | None
    hidden: bool
    tails: tuple[str, ...]

    def wants(self, name: str) -> bool:
        """Whether a name is wanted, if it is no hidden one."""
        return name.endswith(self.tails) if self.wanted is None else self.wanted(name)

    def of(self, names: Names) -> Names:
        """The wanted ones among names from git, and repositories, which end with a slash."""
        tails, wanted = self.tails, self.wanted
        if tails:
            endings = (*tails, "/")
            names = [name for name in names if name.endswith(endings)]
        if wanted is not None:
            names = [name for name in names if wanted(name) or name[-1] == "/"]
        return self.listed(names)

    def listed(self, names: Names) -> Names:
        """Without hidden ones, unless those are wanted, and each once: one in conflict has a line for each side."""
        if "/." in f"/{'/'.join(names)}":
            start, hidden = self.start, self.hidden
            names = [name for name in names if not ("/." in name or name[0] == ".") or _is_listed(name, start, hidden)]
        return names if len(set(names)) == len(names) else list(dict.fromkeys(names))


async def _looked_at(context: ToolContext, selection: _Selection, names: Names) -> Listed:
    """The selected files among names from git, with their state.

    What is not there was deleted, and git not told yet; or it is behind a link.
    """
    root = context.paths.root
    found: Listed = []
    has_modules = (root / ".gitmodules").exists()  # git lists them as it lists files
    chosen = selection.listed if has_modules else selection.of  # a look at each file takes ten times as long as git

    def look(statuses: Statuses, some: Names) -> Listed:
        return statuses.entries(chosen(some))

    with Statuses(root) as statuses:
        for some in _batches(names):
            entries = await in_thread(partial(look, statuses, some), to_the_end=True)
            repositories = [name for name, mode, *_ in entries if stat.S_ISDIR(mode)]
            if repositories or has_modules:
                entries = [entry for entry in entries if not stat.S_ISDIR(entry[1]) and selection.wants(entry[0])]
            found += entries
            for name in repositories:  # in this one
                walk = _walk(context, name.rstrip("/"), selection.wants, selection.hidden)
                found += [entry async for entry in walk]
    return found


def _entry(name: str, status: os.stat_result) -> Entry:
    return name, status.st_mode, status.st_mtime_ns, status.st_size


def real_place(context: ToolContext, path: str) -> str:
    """The real path of a file or folder, relative to the root: git does not follow links."""
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


def _batches(names: Names) -> Iterator[Names]:
    """The names in parts, of which none ends within the lines of one file in conflict."""
    begin = 0
    while begin < len(names):
        end = begin + _BATCH
        while end < len(names) and names[end] == names[end - 1]:
            end += 1
        yield names[begin:end]
        begin = end


def _is_listed(name: str, start: str, hidden: bool) -> bool:
    below = name if start == "." else name[len(start) + 1 :]
    if "/." not in f"/{below}":  # what is never listed begins with a dot as well
        return True
    parts = below.rstrip("/").split("/")
    if any(part.casefold() in NEVER for part in parts):
        return False
    return hidden or not any(part.startswith(".") for part in parts)


async def _from_git(
    context: ToolContext, start: str, look: Callable[[Names], Awaitable[Listed]], tails: tuple[str, ...]
) -> Listed | None:
    """The selected files that are tracked or could be added; None if git fails or lists nothing."""
    root = context.paths.root
    if not in_repository(root):
        return None
    index = _index_of(root)
    before = _state_of(index)
    if before is None or before[0] < _LARGE_INDEX:
        names = await _git_names(context, [start], _BOTH)
        return await look(names) if names else None
    others = asyncio.ensure_future(_git_names(context, [start], _OTHERS))
    tracked = asyncio.ensure_future(_git_tracked(context, start, tails))
    try:
        # While git walks through all folders for what it does not know, what it knows is looked at.
        known = await tracked
        found = await look(known) if known else []
        new = await others
    finally:
        for listing in (others, tracked):
            listing.cancel()
    if new is None or known is None or _state_of(index) != before:  # what was added in between would be in neither
        names = await _git_names(context, [start], _BOTH)
        return await look(names) if names else None
    return [*await look(new), *found] if new or known else None


async def _git_tracked(context: ToolContext, start: str, tails: tuple[str, ...]) -> Names | None:
    """The tracked files, as `_git_names`; other endings are left out if git can do that.

    A full list could be many times as long.
    """
    if tails and start == "." and not (context.paths.root / ".gitmodules").exists():
        ending = [f"*{re.escape(tail)}" for tail in tails]
        names = await _git_names(context, ending, _TRACKED, stars=True)
        if names:
            return names
    return await _git_names(context, [start], _TRACKED)  # where none is found, whether it knows anything here


async def _git_names(
    context: ToolContext, paths: Sequence[str], which: Sequence[str], *, stars: bool = False
) -> Names | None:
    """The names that git lists at these paths, in which a star is a wildcard; None if git fails."""
    argv = [*GIT, *(() if stars else ("--literal-pathspecs",)), "ls-files", *which, "-z", "--", *paths]
    try:
        result = await context.processes.run(
            argv, cwd=context.paths.root, output_limit=LIST_BYTES, env=_STARS if stars else GIT_ALONE
        )
    except ToolError:
        return None
    if result.exit_code or result.omitted:
        return None
    return os.fsdecode(result.output.removesuffix(b"\0")).split("\0") if result.output else []


def _index_of(root: Path) -> Path | None:
    """The index of the repository that contains a folder, if its path is simple to find."""
    folder = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    return None if folder is None or not (folder / ".git").is_dir() else folder / ".git" / "index"


def _state_of(index: Path | None) -> tuple[int, int, int] | None:
    """The size of an index, and a value that changes with it; None without an index."""
    try:
        status = None if index is None else index.stat()
    except OSError:
        status = None
    return None if status is None else (status.st_size, status.st_mtime_ns, status.st_ino)


async def any_file(context: ToolContext, start: str, wanted: Wanted) -> Listed:
    """One of the selected files, hidden and excluded ones included, if it is found soon."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SOON):
            async for entry in _walk(context, start, wanted, hidden=True, ignored=True):
                if stat.S_ISREG(entry[1]) and _is_reached(context, os.path.dirname(entry[0])):
                    return [entry]
    return []


async def _walk(
    context: ToolContext,
    start: str,
    wanted: Wanted,
    hidden: bool,
    bad_rules: list[str] | None = None,
    *,
    ignored: bool = False,
) -> AsyncIterator[Entry]:
    rules = IgnoreRules(context, bad=bad_rules)
    if start != "." and rules.ignores_above(start):
        rules = IgnoreRules(context, start, bad_rules)  # who names an excluded folder wants to see it
    folders = [start]
    while folders:
        folder = folders.pop()
        await asyncio.sleep(0)  # let other tasks run
        found: Listed = []
        with scanned(context.paths.root, folder) as entries, suppress(OSError):
            for entry in entries:
                name = entry.name if folder == "." else f"{folder}/{entry.name}"
                is_folder = entry.is_dir(follow_symlinks=False)
                if not _is_listed(entry.name, ".", hidden):
                    continue
                if not ignored and rules.ignores(name, is_folder=is_folder):
                    continue
                if is_folder:
                    folders.append(name)
                elif wanted(name):
                    with suppress(OSError):  # deleted meanwhile
                        found.append(_entry(name, entry.stat(follow_symlinks=False)))
        for file in found:
            yield file
