"""Reads the contents of commits from git's objects: without a checkout, independent of the working tree."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from marvin_core import Record, in_thread, opened_folder

GitRun: TypeAlias = Callable[..., Awaitable[bytes]]
"""Runs git with some arguments and returns its output; raises `GitFault`."""
BETWEEN_COMMITS = {"GIT_INDEX_FILE": "/marvin-reads-no-index"}
"""A variable for diffs between commits. Once git knows the index, it reads a file of the working tree in place of a
commit's if it takes both for the same, and the file may lie outside of the project by then."""
_FILES = (b"100644", b"100755")
"""The modes of regular files, as opposed to links."""
_NAMES, _CONTENT = 100_000_000, 60_000_000
"""Bytes of a list of names, and of the contents of files."""


class Change(Record):
    """A file that differs in a later commit. An object is empty if there is no such file."""

    path: str
    before: str
    after: str


class Commits:
    """Reads commits of one project.

    Args:
        git: runs git.
        folder: the project's folder.
    """

    def __init__(self, git: GitRun, folder: Path) -> None:
        self._git = git
        self._folder = folder

    async def changes(self, before: str, after: str) -> list[Change]:
        """The files that differ between two commits, by path below the project."""
        printed = await self._git(
            "diff",
            "--raw",
            "--no-renames",
            "--no-abbrev",
            "--no-ext-diff",
            "--relative",
            "-z",
            before,
            after,
            env=BETWEEN_COMMITS,
            limit=_NAMES,
        )
        parts = printed.split(b"\0")
        return [_change(head, path) for head, path in zip(parts[::2], parts[1::2], strict=False) if head]

    async def renames(self, before: str, after: str) -> Mapping[str, str]:
        """The files that were moved or renamed between two commits: new paths by old ones."""
        flags = ("--name-status", "--find-renames", "--diff-filter=R", "--no-ext-diff", "--relative", "-z")
        printed = await self._git("diff", *flags, before, after, env=BETWEEN_COMMITS, limit=_NAMES)
        parts = [os.fsdecode(part) for part in printed.split(b"\0")]
        return dict(zip(parts[1::3], parts[2::3], strict=False))

    async def names(self, commit: str) -> list[str]:
        """The files of a commit, by path below the project."""
        printed = await self._git("ls-tree", "-r", "-z", "--name-only", commit, limit=_NAMES)
        return [os.fsdecode(name) for name in printed.split(b"\0") if name]

    async def contents(self, objects: Iterable[str]) -> Mapping[str, bytes]:
        """The contents of files, by object. Objects that are not complete are missing."""
        wanted = sorted({each for each in objects if each})
        if not wanted:
            return {}
        printed = await self._git("cat-file", "--batch", stdin="\n".join(wanted).encode() + b"\n", limit=_CONTENT)
        return _contents(printed)

    async def overlooked(self) -> list[str]:
        """The files that git is configured to ignore changes of: no commit contains these changes."""
        tagged = await self._git("ls-files", "-v", "-z", limit=_NAMES)
        marked = [each[2:] for each in tagged.split(b"\0") if each[:1].islower() or each[:1] == b"S"]
        ignored = await self._git(
            "ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z", limit=_NAMES
        )
        alone = [os.fsdecode(name) for name in ignored.split(b"\0") if name and not name.endswith(b"/")]
        there = await in_thread(lambda: [name for name in alone if _is_there(self._folder, name)])
        return sorted((*map(os.fsdecode, marked), *there))


def _is_there(root: Path, path: str) -> bool:
    """Whether a file or link is reached through no link: git may have listed what lies outside."""
    folder, _, name = path.rpartition("/")
    try:
        with opened_folder(root, folder) as descriptor:
            os.lstat(name, dir_fd=descriptor)
    except OSError:
        return False
    return True


def _change(head: bytes, path: bytes) -> Change:
    modes = head.lstrip(b":").split()
    if len(modes) < 4:
        return Change(path=os.fsdecode(path), before="", after="")
    old, new = (_object(mode, name) for mode, name in ((modes[0], modes[2]), (modes[1], modes[3])))
    return Change(path=os.fsdecode(path), before=old, after=new)


def _object(mode: bytes, name: bytes) -> str:
    return name.decode("ascii", "replace") if mode in _FILES else ""


def _contents(printed: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    at = 0
    while (end := printed.find(b"\n", at)) > 0:
        words: Sequence[bytes] = printed[at:end].split()
        if len(words) != 3 or not words[2].isdigit():  # it is missing; the next line is the next one
            at = end + 1
            continue
        begin, size = end + 1, int(words[2])
        if begin + size > len(printed):
            break
        found[words[0].decode("ascii", "replace")] = printed[begin : begin + size]
        at = begin + size + 1
    return found
