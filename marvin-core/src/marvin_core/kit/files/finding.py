"""Finding files by name, without those that .gitignore excludes."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from operator import itemgetter
from typing import NamedTuple, overload

from ...api.errors import ToolError
from ...api.tool_context import ToolContext
from .globs import GlobFilter, at_any_depth, compile_glob, literal_tails, names_hidden, split_globs
from .listing import Wanted, any_file, list_files
from .names import shown_name


class FoundFile(NamedTuple):
    """A file by its path relative to the root; `modified` is in nanoseconds since the epoch, `size` in bytes."""

    path: str
    modified: int
    size: int

    @property
    def shown(self) -> str:
        """The path on one line, quoted if it holds invisible characters."""
        return shown_name(self.path)


class FoundFiles(Sequence[FoundFile]):
    """What `find_files` found, in order. A `FoundFile` is made when it is looked at, since there may be 100,000."""

    def __init__(self, entries: Sequence[tuple[str, int, int, int]]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> FoundFile: ...

    @overload
    def __getitem__(self, index: slice) -> FoundFiles: ...

    def __getitem__(self, index: int | slice) -> FoundFile | FoundFiles:
        if isinstance(index, slice):
            return FoundFiles(self._entries[index])
        path, _, modified, size = self._entries[index]
        return FoundFile(path, modified, size)


async def find_files(
    context: ToolContext,
    pattern: str,
    start: str = ".",
    *,
    anywhere: bool = False,
    any_case: bool = False,
    left_out: bool = False,
    bad_rules: list[str] | None = None,
) -> FoundFiles:
    """The files below a folder that match a glob pattern, newest first.

    `*`, `?`, `[...]`, `{a,b}` and `**` mean the same as in a shell. Names that begin with a dot match only if the
    pattern has the dot. Links are returned; linked folders are not searched.

    Args:
        pattern: relative to `start`.
        start: a folder, checked and relative to the root, as returned by `real_place`.
        anywhere: a pattern without a slash matches in all folders below.
        any_case: ignore case; not with `anywhere`.
        left_out: find only one file, even if it is hidden or excluded; none after a second. This explains why nothing
            is found.
        bad_rules: receives invalid lines of .gitignore, as `path:number: line`, if git is not used.

    Raises:
        ToolError: the pattern is invalid, or leads out of the folder.
    """
    pattern = _relative(context, pattern, start)
    hidden, tails = names_hidden(pattern), () if any_case else literal_tails(pattern)
    wanted: Wanted | None
    if tails and at_any_depth(pattern) and not left_out:
        wanted = None
    elif anywhere:
        chosen = GlobFilter(pattern)

        def wanted(name: str) -> bool:
            return chosen(name, start)
    else:
        matches = compile_glob(pattern, any_case=any_case).fullmatch
        prefix = "" if start == "." else f"{start}/"

        def wanted(name: str) -> bool:
            return matches(name.removeprefix(prefix)) is not None

    if left_out and wanted is not None:
        return FoundFiles(await any_file(context, start, wanted))
    found = await list_files(context, start, wanted, hidden=hidden, tails=tails, bad_rules=bad_rules)
    is_file = stat.S_ISREG
    files = [entry for entry in found if is_file(entry[1]) or _leads_to_file(context, *entry[:2])]
    files.sort()
    files.sort(key=itemgetter(2), reverse=True)
    return FoundFiles(files)


def _relative(context: ToolContext, pattern: str, start: str) -> str:
    if not pattern.strip():
        raise ToolError("The pattern is empty. Give a glob pattern, such as '**/*.py'.")
    if pattern.startswith(("/", "~")):
        pattern = os.path.relpath(context.paths.locate(pattern), start)  # refuses what is outside
    pattern = os.path.normpath(pattern)
    if pattern.split("/")[0] == "..":
        raise ToolError(f"The pattern {pattern!r} leads out of the folder. Search in another folder instead.")
    return pattern


def relative_filter(context: ToolContext, text: str) -> str:
    """A list of patterns for `GlobFilter`, with absolute ones made relative to the root.

    A pattern with a leading slash that is not an absolute path below the root is relative to it already.
    """
    if "/" not in text:
        return text
    return ",".join(_anchored(context, pattern) for pattern in split_globs(text))


def _anchored(context: ToolContext, pattern: str) -> str:
    sign, path = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    fixed = "/".join(takewhile(lambda name: not any(mark in name for mark in "*?[{"), path.split("/")))
    if not path.startswith("/") or not fixed:
        return pattern
    try:
        place = context.paths.locate(fixed)
    except ToolError:
        return pattern
    return f"{sign}/{'' if place == '.' else place}{path[len(fixed) :]}"


def _leads_to_file(context: ToolContext, name: str, mode: int) -> bool:
    if stat.S_ISLNK(mode):
        with suppress(ToolError):  # the target of a link that leads outside is not a file of the project
            return context.paths.stat(name).kind == "file"
    return False
