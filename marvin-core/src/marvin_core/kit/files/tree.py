"""A folder as a tree of its files and folders, without those that .gitignore excludes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ...api.errors import ToolError
from ...api.record import Record
from ...api.tool_context import ToolContext
from ...guard.files.no_links import opened_folder
from ...util.git_calls import GIT_ALONE
from ...util.threads import in_thread
from .ignore_rules import NEVER, IgnoreRules
from .listing import GIT, LIST_BYTES, in_repository
from .names import shown_name

_ENTRIES = 500
_ENTRIES_OF_ONE = 100
_FOLDERS_AT_ONCE = 50


class FolderTree(Record):
    """A tree as lines, each folder above its entries, indented by two spaces per level.

    `entries` counts the shown entries, `is_cut` says that there are more than the maximum of 500. A folder shows at
    most 100 entries of its own, and the number of the others. `bad_rules` are invalid lines of .gitignore, as
    `path:number: line`, if git was not used.
    """

    lines: tuple[str, ...]
    entries: int
    is_cut: bool
    bad_rules: tuple[str, ...] = ()


async def folder_tree(context: ToolContext, start: str, *, depth: int, ignored: bool = False) -> FolderTree:
    """The entries of a folder, folders first.

    Args:
        start: a folder, checked and relative to the root, as returned by `real_place`.
        depth: the number of levels.
        ignored: also show what .gitignore excludes.
    """
    top = _Folder(start)
    skips = None if ignored else _Skips(context, start)
    level, room = [top], _ENTRIES
    for _ in range(depth):
        for begin in range(0, len(level) if room else 0, _FOLDERS_AT_ONCE):
            part = level[begin : begin + _FOLDERS_AT_ONCE]
            await in_thread(partial(_look, part, context.paths.root))
            if skips is not None:
                await skips.leave_out(part)
            for folder in part:
                room -= folder.cut_to(min(room, _ENTRIES_OF_ONE))
            if not room:  # what is in the rest is not shown
                break
        level = [inner for folder in level for inner in folder.folders]
    bad = () if skips is None else tuple(skips.bad_rules)
    return FolderTree(lines=tuple(top.lines("")), entries=_ENTRIES - room, is_cut=room <= 0, bad_rules=bad)


def _look(folders: Sequence[_Folder], root: Path) -> None:
    for folder in folders:
        folder.look(root)


def _leave_out(folders: Sequence[_Folder], excluded: set[str]) -> None:
    for folder in folders:
        folder.leave_out(excluded)


class _Folder:
    """A folder of the tree, with its entries once it was read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.names: dict[str, str] = {}
        self.folders: list[_Folder] = []
        self._left_out = 0

    def path_of(self, name: str) -> str:
        return name if self.path == "." else f"{self.path}/{name}"

    def look(self, root: Path) -> None:
        """Read its entries, folders first, each with its displayed name."""
        found: list[tuple[bool, str, str]] = []
        # It may be gone, not be readable, or have become a link.
        with suppress(OSError), opened_folder(root, self.path) as folder, os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name.casefold() not in NEVER:
                    found.append((not is_folder, entry.name, _shown(entry, is_folder, folder)))
        self.names = {name: shown for _, name, shown in sorted(found)}
        self.folders = [_Folder(self.path_of(name)) for is_file, name, _ in sorted(found) if not is_file]

    def leave_out(self, excluded: set[str]) -> None:
        """Remove the excluded entries."""
        self.names = {name: shown for name, shown in self.names.items() if self.path_of(name) not in excluded}
        self.folders = [folder for folder in self.folders if folder.path not in excluded]

    def cut_to(self, room: int) -> int:
        """Keep at most this many entries; returns the remaining number."""
        kept = list(self.names.items())[: max(0, room)]
        self._left_out = len(self.names) - len(kept)
        self.names = dict(kept)
        self.folders = self.folders[: len(kept)]  # folders come first
        return len(kept)

    def lines(self, indent: str) -> list[str]:
        """The lines of the tree below it."""
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


def _shown(entry: os.DirEntry[str], is_folder: bool, folder: int) -> str:
    name = shown_name(entry.name)
    if is_folder:
        return f"{name}/"
    if not entry.is_symlink():
        return name
    try:
        return f"{name} -> {shown_name(os.readlink(entry.name, dir_fd=folder))}"
    except OSError:
        return name  # gone meanwhile


class _Skips:
    """The files that git ignores; if git is not available, those that .gitignore files exclude."""

    def __init__(self, context: ToolContext, start: str) -> None:
        self._context = context
        self._start = start
        self._rules: IgnoreRules | None = None
        self._shows_all: bool | None = None
        self._kept: set[str] | None = None
        self.bad_rules: list[str] = []

    async def leave_out(self, folders: Sequence[_Folder]) -> None:
        """Remove ignored entries from the folders. Folders below an ignored one are skipped."""
        if self._shows_all is None:
            self._shows_all = self._start != "." and bool(await self._ask([self._start]))
        if self._shows_all:
            return
        paths = await in_thread(lambda: [folder.path_of(name) for folder in folders for name in folder.names])
        excluded = await self._ask(paths) if paths else set()
        if excluded:
            await in_thread(partial(_leave_out, folders, excluded))

    async def _ask(self, paths: list[str]) -> set[str]:
        if self._rules is None and in_repository(self._context.paths.root):
            # A name that begins with a colon would be read as one of git's patterns. To ask the index about each path
            # takes a time that grows with the square of what is in it.
            names = await in_thread(lambda: b"\0".join(os.fsencode(f"./{path}") for path in paths))
            ignored = await self._git("check-ignore", "--no-index", "-z", "--stdin", stdin=names)
            if ignored is not None:
                excluded = {name[2:] for name in ignored}
                return excluded - await self._tracked() if excluded else excluded
        rules = self._rules = self._rules or IgnoreRules(self._context, bad=self.bad_rules)
        root = self._context.paths.root
        return await in_thread(
            lambda: {path for path in paths if rules.ignores(path, is_folder=_is_real_folder(root / path))}
        )

    async def _tracked(self) -> set[str]:
        """The tracked names that git would otherwise ignore, and the folders that contain them."""
        if self._kept is None:
            names = await self._git("ls-files", "-ci", "--exclude-standard", "-z") or ()
            self._kept = set(names)
            for name in names:
                while (name := name.rpartition("/")[0]) and name not in self._kept:
                    self._kept.add(name)
        return self._kept

    async def _git(self, *arguments: str, stdin: bytes = b"") -> list[str] | None:
        """The names that git prints; None if git fails."""
        try:
            result = await self._context.processes.run(
                [*GIT, *arguments],
                cwd=self._context.paths.root,
                stdin=stdin,
                output_limit=LIST_BYTES,
                env=GIT_ALONE,
            )
        except ToolError:
            return None
        if result.exit_code not in (0, 1) or result.omitted:
            return None
        return [os.fsdecode(name) for name in result.output.split(b"\0") if name]


def _is_real_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
