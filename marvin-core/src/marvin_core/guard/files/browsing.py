"""Listing folders in the sandbox root, and glob patterns. Links are never followed."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from heapq import nsmallest
from operator import itemgetter
from typing import TypeAlias

from ...api.errors import ToolError
from ...api.tool_context import FileInfo, FileKind
from .folder_descriptors import Descent, Folder

_LOOKED_AT = 500_000
"""The most names that one pattern may examine."""

Parts: TypeAlias = tuple[str, ...]
Places: TypeAlias = frozenset[int]
IsHidden: TypeAlias = Callable[[Parts], bool]
_NOWHERE: Places = frozenset()


def info_of(path: Parts, status: os.stat_result) -> FileInfo:
    """The file status of the entry at a path."""
    shown = "/".join(path) or "."
    return FileInfo(path=shown, kind=_kind(status.st_mode), size=status.st_size, modified=status.st_mtime)


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"


def list_folder(folder: Folder, path: Parts, hidden: IsHidden, most: int) -> tuple[FileInfo, ...]:
    """The entries of a folder that was opened by its path: the first `most` by name, without hidden ones."""
    with _scan(folder) as entries:
        names = nsmallest(most, (entry.name for entry in entries if not hidden((*folder.parts, entry.name))))
    found = []
    for name in names:
        with suppress(FileNotFoundError):  # it was removed meanwhile
            status = os.stat(name, dir_fd=folder.descriptor, follow_symlinks=False)
            found.append(info_of((*path, name), status))
    return tuple(found)


@contextmanager
def _scan(folder: Folder) -> Iterator[Iterator[os.DirEntry[str]]]:
    """The entries of an open folder. A name that is not valid text keeps Python's surrogates."""
    descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=folder.descriptor)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


class Search:
    """The paths below a root that match a pattern.

    Args:
        pattern: its parts. `**` matches any number of folders, including none. In other parts `*`, `?` and `[...]` work
            as in a shell. None of them matches a dot at the beginning of a name.
        descent: creates the descriptors for one listing.
        hidden: whether a path must not be shown.
    """

    def __init__(self, pattern: Parts, descent: Callable[[], Descent], hidden: IsHidden) -> None:
        if pattern[-1:] == ("**",):
            pattern = (*pattern, "*")  # the content, not the folder itself
        self._shown = "/".join(pattern)
        self._parts = tuple(_expression(part) for part in pattern)
        self._end = len(pattern)
        self._ended: Places = frozenset([self._end])
        self._descent = descent
        self._hidden = hidden
        self._looked_at = 0

    def paths(self, most: int) -> tuple[str, ...]:
        """The first `most` matches. A folder's names are in order, and its content follows its name.

        Raises:
            ToolError: too many names have to be examined.
        """
        found: list[str] = []
        waiting: list[tuple[Parts, bool, Places]] = [((), True, self._with_empty([0]))]
        while waiting and len(found) < most:
            path, is_folder, places = waiting.pop()
            if self._end in places and path:
                found.append("/".join(path))
            if is_folder and places != {self._end}:
                waiting += [((*path, name), inner, after) for name, inner, after in self._names(path, places)]
            if self._looked_at > _LOOKED_AT:
                raise ToolError(
                    f"{self._shown!r} has more than {_LOOKED_AT:,} names to search. Begin the pattern with a folder."
                )
        return tuple(found)

    def _with_empty(self, places: Sequence[int]) -> Places:
        """The positions in the pattern that are possible here: `**` may also match no folder at all."""
        reached = set(places)
        for place in places:
            while place < self._end and self._parts[place] is None:
                place += 1
                reached.add(place)
        return frozenset(reached)

    def _after(self, places: Places, name: str) -> Places:
        """The positions in the pattern after a name."""
        after = []
        for place in places - {self._end}:
            expression = self._parts[place]
            if expression is not None:
                after += [place + 1] if expression.match(name) else []
            elif not name.startswith("."):
                after.append(place)
        return self._with_empty(after)

    def _names(self, path: Parts, places: Places) -> list[tuple[str, bool, Places]]:
        """The matching names of a folder in reverse order, each with whether it is a folder and its positions.

        None if the folder cannot be read. Other names cost little, since most of them are files that do not match.
        """
        # No pattern ends with `**`, so a file matches by its last part alone.
        last = self._parts[-1] if self._end - 1 in places else None
        with suppress(OSError, ToolError), self._descent() as descent:
            folder = descent.folder(path)
            if folder.parts != path:
                return []  # a link took its place
            found = []
            with _scan(folder) as entries:
                for entry in entries:
                    self._looked_at += 1
                    if self._looked_at > _LOOKED_AT:
                        break
                    name, is_folder = entry.name, entry.is_dir(follow_symlinks=False)
                    if is_folder:
                        after = self._after(places, name)
                    else:
                        after = self._ended if last is not None and last.match(name) else _NOWHERE
                    if after and not self._hidden((*path, name)):
                        found.append((name, is_folder, after))
            return sorted(found, key=itemgetter(0), reverse=True)
        return []


def _expression(part: str) -> re.Pattern[str] | None:
    """The regular expression for a part of a pattern; None for `**`."""
    if part == "**":
        return None
    return re.compile(("" if part.startswith(".") else r"(?!\.)") + fnmatch.translate(part), re.DOTALL)
