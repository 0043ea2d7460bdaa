"""Copies the documents in `.marvin` between the main folder and an agent's worktree, in both directions.

Documents in git come with the commit. The others, and later changes, are copied. Git ignores the copies, so no commit
contains them. The agent's changes to them are copied to the main folder when the agent has ended.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.files.sandbox import SandboxPaths
from ...util.threads import in_thread
from .git import Git, Repository

_FOLDER = ".marvin"
_OWN = frozenset({"logs", "report", "undo", "worktrees", "pipeline_state", "request.md", ".gitignore"})
"""Entries that each folder has separately."""
_INDEX = "memories/INDEX.md"
_MOST_FILES = 500
_MOST_BYTES = 20_000_000
_DEEP = 8


class BroughtBack(Record):
    """The documents that an agent changed; the names are relative to `.marvin`."""

    taken: tuple[str, ...] = ()
    """Those copied to the main folder."""
    refused: tuple[str, ...] = ()
    """Those not copied: they were changed in the main folder meanwhile, or agents must not change them."""


class SharedDocuments:
    """The documents of one worktree."""

    def __init__(self, main: Path, worktree: Repository, git: Git) -> None:
        self._main = SandboxPaths(main)
        self._there = SandboxPaths(worktree.root, protected=(".git",))
        self._worktree = worktree
        self._git = git
        self._copied: dict[str, str] = {}

    async def copy(self) -> None:
        """Copy the documents that the worktree lacks, or has in another version than the main folder.

        Raises:
            ToolError: git fails, or a file cannot be written.
        """
        tracked = await self._tracked()
        copied = await in_thread(self._copy)
        hidden = [name for name in copied if name in tracked]
        if hidden:  # the worktree's index marks them as unchanged
            stdin = "\0".join(f"{self._worktree.prefix}{_FOLDER}/{name}" for name in hidden)
            arguments = ("update-index", "--skip-worktree", "-z", "--stdin")
            await self._git.run(self._worktree, "git update-index", *arguments, stdin=os.fsencode(stdin))

    def _copy(self) -> Sequence[str]:
        found = dict(_files(self._main))
        differing = {name: data for name, data in found.items() if data != _content(self._there, name)}
        for name, data in {**differing, ".gitignore": b"*\n"}.items():
            self._there.replace(f"{_FOLDER}/{name}", data)
        self._copied = {name: _digest(data) for name, data in found.items()}
        return (*differing, ".gitignore")

    async def bring_back(self) -> BroughtBack:
        """Copy the agent's changes to the main folder. Raises `ToolError` if git fails."""
        tracked = await self._tracked(skipped=False)
        return await in_thread(lambda: self._bring_back(tracked))

    def _bring_back(self, tracked: Collection[str]) -> BroughtBack:
        taken, refused = [], []
        for name, data in _files(self._there):
            if name in tracked or self._copied.get(name) == _digest(data):
                continue
            now = _content(self._main, name)
            if now == data:
                continue
            is_free = now is None or self._copied.get(name) == _digest(now)
            merged = data if is_free else _with_new_lines(name, now or b"", data)
            if merged is not None and self._put(name, merged):
                taken.append(name)
            else:
                refused.append(name)
        return BroughtBack(taken=tuple(taken), refused=tuple(refused))

    def _put(self, name: str, data: bytes) -> bool:
        try:
            self._main.replace(f"{_FOLDER}/{name}", data)
        except ToolError:
            return False
        return True

    async def _tracked(self, *, skipped: bool = True) -> frozenset[str]:
        """The documents in the index of the worktree; with `skipped`, only those that it treats as unchanged."""
        prefix = f"{self._worktree.prefix}{_FOLDER}/"
        listed = await self._git.names(self._worktree, "git ls-files", "ls-files", "-t", "-z", "--", prefix)
        fields = (line.split(" ", 1) for line in listed)
        return frozenset(name.removeprefix(prefix) for tag, name in fields if skipped or tag != "S")


def _files(paths: SandboxPaths) -> Iterator[tuple[str, bytes]]:
    """The documents of a folder with their contents. Links are left out, and documents above the size limit."""
    left, size, folders = _MOST_FILES, _MOST_BYTES, [("", 0)]
    while folders:
        folder, depth = folders.pop()
        for name, is_folder in _entries(paths, folder):
            path = f"{folder}{name}"
            if path in _OWN or path.startswith("review-history-"):
                continue
            if is_folder:
                if depth < _DEEP:
                    folders.append((f"{path}/", depth + 1))
                continue
            data = _content(paths, path)
            if data is None or not left or len(data) > size:
                continue
            left, size = left - 1, size - len(data)
            yield path, data


def _entries(paths: SandboxPaths, folder: str) -> Sequence[tuple[str, bool]]:
    """The files and folders in a folder below `.marvin`, without links."""
    where = f"{_FOLDER}/{folder}".rstrip("/")
    try:
        found = paths.list(where, most=_MOST_FILES)
    except ToolError:
        return ()
    named = [(one.path.rpartition("/")[2], one.kind) for one in found]
    return sorted((name, kind == "folder") for name, kind in named if kind in ("file", "folder"))


def _content(paths: SandboxPaths, name: str) -> bytes | None:
    """A document; None if it cannot be read, or is too large."""
    try:
        if not paths.exists(f"{_FOLDER}/{name}"):
            return None
        with paths.open(f"{_FOLDER}/{name}") as stream:
            data = stream.read(_MOST_BYTES + 1)
    except ToolError:
        return None
    return data if len(data) <= _MOST_BYTES else None


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _with_new_lines(name: str, now: bytes, data: bytes) -> bytes | None:
    """The index of findings with the lines of both; None for another document."""
    if name != _INDEX:
        return None
    known = set(now.splitlines())
    new = [line for line in data.splitlines() if line not in known]
    return b"\n".join([*now.splitlines(), *new, b""])


def differing_documents(main: Path, worktree: Path) -> Sequence[str]:
    """The documents of a worktree that differ from the main folder, if it is no longer known which were copied."""
    theirs, ours = SandboxPaths(worktree), SandboxPaths(main)
    return [name for name, data in _files(theirs) if data != _content(ours, name)]
