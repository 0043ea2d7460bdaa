"""A folder as a tree: what is in it and in the folders below, without what .gitignore excludes."""

from __future__ import annotations

import os
from pathlib import Path

from ...api.errors import ToolError
from ...api.record import Record
from ...api.tool_context import ToolContext
from .ignore_rules import NEVER, IgnoreRules
from .listing import GIT, entries_of, in_repository

_ENTRIES = 500
_ENTRIES_OF_ONE = 100


class FolderTree(Record):
    """A tree as lines, each folder above what is in it, indented by two spaces a level.

    `entries` counts what is shown, `is_cut` says that there is more than the 500 entries that are shown at most. A
    folder shows 100 entries of its own at most, and how many more there are.
    """

    lines: tuple[str, ...]
    entries: int
    is_cut: bool


async def folder_tree(context: ToolContext, start: str, *, depth: int, ignored: bool = False) -> FolderTree:
    """What is in a folder, folders first.

    Args:
        start: a folder, checked and relative to the root, as `real_place` gives it.
        depth: how many levels are shown.
        ignored: show what .gitignore excludes as well.
    """
    top = _Folder(start)
    skips = None if ignored else _Skips(context, start)
    level, room = [top], _ENTRIES
    for _ in range(depth):
        for folder in level:
            folder.look(context.paths.root)
        if skips is not None:
            excluded = await skips.among([folder.path_of(name) for folder in level for name in folder.names])
            for folder in level:
                folder.leave_out(excluded)
        for folder in level:
            room -= folder.cut_to(min(room, _ENTRIES_OF_ONE))
        level = [inner for folder in level for inner in folder.folders]
    return FolderTree(lines=tuple(top.lines("")), entries=_ENTRIES - room, is_cut=room <= 0)


class _Folder:
    """A folder of the tree, and what is in it once it was looked at."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.names: dict[str, str] = {}
        self.folders: list[_Folder] = []
        self._left_out = 0

    def path_of(self, name: str) -> str:
        return name if self.path == "." else f"{self.path}/{name}"

    def look(self, root: Path) -> None:
        """Find out what is in it, folders first; each name with how it is shown."""
        found = []
        for entry in entries_of(root / self.path):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.casefold() not in NEVER:
                found.append((not is_folder, entry.name, _shown(entry, is_folder)))
        self.names = {name: shown for _, name, shown in sorted(found)}
        self.folders = [_Folder(self.path_of(name)) for is_file, name, _ in sorted(found) if not is_file]

    def leave_out(self, excluded: set[str]) -> None:
        """Forget what is excluded."""
        self.names = {name: shown for name, shown in self.names.items() if self.path_of(name) not in excluded}
        self.folders = [folder for folder in self.folders if folder.path not in excluded]

    def cut_to(self, room: int) -> int:
        """Keep so many entries; returns how many there are then."""
        kept = list(self.names.items())[: max(0, room)]
        self._left_out = len(self.names) - len(kept)
        self.names = dict(kept)
        self.folders = self.folders[: len(kept)]  # folders come first
        return len(kept)

    def lines(self, indent: str) -> list[str]:
        """The tree below it."""
        inner = {folder.path: folder for folder in self.folders}
        lines = []
        for name, shown in self.names.items():
            lines.append(indent + shown)
            folder = inner.get(self.path_of(name))
            if folder is not None:
                lines += folder.lines(indent + "  ")
        if self._left_out:
            lines.append(f"{indent}... {self._left_out:,} more")
        return lines


def _shown(entry: os.DirEntry[str], is_folder: bool) -> str:
    if is_folder:
        return f"{entry.name}/"
    if not entry.is_symlink():
        return entry.name
    try:
        return f"{entry.name} -> {os.readlink(entry.path)}"
    except OSError:
        return entry.name  # gone meanwhile


class _Skips:
    """What git ignores; where git cannot be asked, what the .gitignore files say."""

    def __init__(self, context: ToolContext, start: str) -> None:
        self._context = context
        self._start = start
        self._rules: IgnoreRules | None = None
        self._shows_all: bool | None = None

    async def among(self, paths: list[str]) -> set[str]:
        """Those of the paths that are ignored; none below a folder that is itself ignored."""
        if self._shows_all is None:
            self._shows_all = self._start != "." and bool(await self._ask([self._start]))
        return set() if self._shows_all or not paths else await self._ask(paths)

    async def _ask(self, paths: list[str]) -> set[str]:
        if self._rules is None and in_repository(self._context.paths.root):
            # A name that begins with a colon would be read as one of git's patterns.
            names = b"\0".join(os.fsencode(f"./{path}") for path in paths)
            try:
                result = await self._context.processes.run(
                    [*GIT, "check-ignore", "-z", "--stdin"],
                    cwd=self._context.paths.root,
                    stdin=names,
                    output_limit=4 * len(names) + 1_000,
                )
            except ToolError:
                result = None
            if result is not None and result.exit_code in (0, 1):
                return {os.fsdecode(name)[2:] for name in result.output.split(b"\0") if name}
        self._rules = self._rules or IgnoreRules(self._context)
        root = self._context.paths.root
        return {path for path in paths if self._rules.ignores(path, is_folder=_is_real_folder(root / path))}


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
