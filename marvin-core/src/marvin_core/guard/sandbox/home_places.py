"""Paths that tools do not read, or change only after approval, if the home folder is the working directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

from . import places

_KEPT = (*places.KEYS, *places.BROWSERS, *places.RUN_BY_THEMSELVES)
_PRIVATE = (*places.KEYS, *places.BROWSERS)
_NOT_HIDDEN = frozenset(place.partition("/")[0].casefold() for place in _KEPT if not place.startswith("."))
"""The first parts of these places without a leading dot. The histories all have one."""


def kept_place(paths: Iterable[str], root: Path, home: Path) -> str:
    """The first path that leads to keys, or to files that programs run or obey automatically; empty if none does.

    Args:
        paths: absolute and normalized, both as named and with links resolved.
        root: the working directory. If it neither is nor contains a home folder, no tool reaches such a place.
        home: the user's home folder; others count if this user could change them.
    """
    return _first(paths, root, home, lambda path: places.is_one_of(path, _KEPT))


def private_place(paths: Iterable[str], root: Path, home: Path) -> str:
    """The first path that leads to files hidden from commands: keys, profiles, histories.

    Otherwise like `kept_place`.
    """
    return _first(paths, root, home, _is_private)


def _is_private(path: PurePath) -> bool:
    return places.is_one_of(path, _PRIVATE) or any(
        place.match(pattern) for place in (path, *path.parents[:-1]) for pattern in places.HISTORIES
    )


def _first(paths: Iterable[str], root: Path, home: Path, is_meant: Callable[[PurePath], bool]) -> str:
    suspects = [Path(path) for path in paths if _may_be_meant(path)]
    if not suspects:  # as in most calls, so nothing needs to be looked up for them
        return ""
    reached = _reached(root, home)
    for path in suspects:
        for folder in reached:
            if path.is_relative_to(folder) and is_meant(path.relative_to(folder)):
                return str(path)
    return ""


def _may_be_meant(path: str) -> bool:
    """Whether such a place may begin at some part of a path."""
    return any(part.startswith(".") or part in _NOT_HIDDEN for part in path.casefold().split("/"))


def _reached(root: Path, home: Path) -> list[Path]:
    """The home folders that a root is or contains, evaluated now: a link may have been swapped."""
    base = str(root)
    folders = {os.path.realpath(folder) for folder in places.homes(home)}
    return [Path(folder) for folder in folders if folder == base or folder.startswith(f"{base.rstrip('/')}/")]
