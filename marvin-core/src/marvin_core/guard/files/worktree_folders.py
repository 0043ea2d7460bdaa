"""Removes git worktrees without following links: a command may swap a folder in one for a link at any moment.

`git worktree remove` goes by names. It would delete what such a link leads to, and no sandbox restricts it, since a
sandbox cannot remove its own root folder.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from .no_links import open_without_links, opened_folder

_OF_GIT = "worktrees"
_LOCKS = ("index.lock", "HEAD.lock")
_LONGEST = 10_000
_TRIES = 10


def remove_worktree(root: Path, tree: Path, common: Path) -> bool:
    """Remove a worktree, and git's folder for it; returns whether the worktree is gone. Blocks.

    Args:
        root: the working directory, links resolved.
        tree: the worktree, below it.
        common: git's folder that all worktrees share, links resolved.
    """
    if not _removed(root, str(tree.parent.relative_to(root)), tree.name):
        return False
    base, place = _place_of(root, common)
    for name in _git_folders(base, place, tree):
        _removed(base, place, name)
    return True


def remove_worktree_locks(root: Path, tree: Path, common: Path) -> None:
    """Remove the locks that a killed git left in git's folder for a worktree. Blocks.

    The arguments are as of `remove_worktree`.
    """
    base, place = _place_of(root, common)
    for folder in _git_folders(base, place, tree):
        with suppress(OSError), opened_folder(base, f"{place}/{folder}") as opened:
            for name in _LOCKS:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=opened)


def _place_of(root: Path, common: Path) -> tuple[Path, str]:
    """The folder with git's folders for worktrees: where no link is followed from, and the path from there."""
    inside = common.relative_to(root) / _OF_GIT if common.is_relative_to(root) else None
    return (common, _OF_GIT) if inside is None else (root, str(inside))


def _git_folders(base: Path, place: str, tree: Path) -> list[str]:
    """The names of git's folders for a worktree: each says in `gitdir` to which one it belongs."""
    try:
        with opened_folder(base, place) as opened:
            names = os.listdir(opened)
    except OSError:
        return []
    return [name for name in names if _worktree_of(base, f"{place}/{name}") == str(tree / ".git")]


def _worktree_of(base: Path, folder: str) -> str:
    """What `gitdir` names; with `worktree.useRelativePaths` it does so relative to its folder."""
    try:
        with open_without_links(base, f"{folder}/gitdir") as file:
            named = os.fsdecode(file.read(_LONGEST).removesuffix(b"\n"))
    except OSError:
        return ""
    return os.path.normpath(os.path.join(base, folder, named))


def _removed(root: Path, place: str, name: str) -> bool:
    """Remove a folder; returns whether there is none."""
    try:
        with opened_folder(root, place) as opened:
            for _ in range(_TRIES):
                with suppress(OSError):
                    shutil.rmtree(name, dir_fd=opened)
            return name not in os.listdir(opened)
    except FileNotFoundError:
        return True
    except OSError:
        return False
