"""Removes the folders of a worktree without following links: an agent's process may swap one in at any moment.

`git worktree remove` goes by names, and would delete what such a link leads to.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from marvin_core import open_without_links, opened_folder

_OF_GIT = "worktrees"
_LONGEST = 10_000
_TRIES = 3


def remove_worktree(folder: Path, place: str, tree: Path, common: Path) -> None:
    """Remove a worktree, and git's folder about it. What cannot be removed stays. Blocks.

    Args:
        folder: the folder to review.
        place: the folder of the worktrees, relative to it.
        tree: the worktree, in that place.
        common: git's folder, links resolved.
    """
    if _removed(folder, place, tree.name):
        for name in git_folders_of(tree, common):
            _removed(common, _OF_GIT, name)


def remove_locks(tree: Path, common: Path, names: tuple[str, ...]) -> None:
    """Remove the locks with these names from git's folder about a worktree. Blocks."""
    for found in git_folders_of(tree, common):
        with suppress(OSError), opened_folder(common, f"{_OF_GIT}/{found}") as opened:
            for name in names:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=opened)


def git_folders_of(tree: Path, common: Path) -> list[str]:
    """The names of git's folders about a worktree: one, unless a folder lies. Blocks."""
    try:
        with opened_folder(common, _OF_GIT) as opened:
            names = os.listdir(opened)
    except OSError:
        return []
    return [name for name in names if _worktree_of(common, name) == os.fsencode(tree / ".git")]


def _worktree_of(common: Path, name: str) -> bytes:
    try:
        with open_without_links(common, f"{_OF_GIT}/{name}/gitdir") as file:
            return file.read(_LONGEST).removesuffix(b"\n")
    except OSError:
        return b""


def _removed(root: Path, place: str, name: str) -> bool:
    """Remove a folder; returns whether it is gone."""
    try:
        with opened_folder(root, place) as opened:
            for _ in range(_TRIES):
                with suppress(OSError):
                    shutil.rmtree(name, dir_fd=opened)
            return name not in os.listdir(opened)
    except OSError:
        return False
