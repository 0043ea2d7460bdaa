"""The tools about folders: tree, set_working_dir and get_working_dir."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, tool

from .ignoring import NEVER, IgnoreRules
from .listing import GIT, entries_of, in_repository, real_place

_ENTRIES = 500
_ENTRIES_OF_ONE = 100


@tool(access=["read"], group="files")
async def tree(
    context: ToolContext,
    path: str = ".",
    max_depth: Annotated[int, Field(ge=1, le=10)] = 3,
    respect_gitignore: bool = True,
) -> str:
    """Show a folder as a tree, folders first; without what .gitignore excludes."""
    start = real_place(context, path)
    if not _is_folder(context.paths.root / start):
        context.paths.open(path).close()  # where there is nothing this fails and says so
        raise ToolError(f"{path!r} is a file, not a folder. Read it with read_file.")
    top = _Folder(start)
    skips = _Skips(context, start) if respect_gitignore else None
    level, room = [top], _ENTRIES
    for _ in range(max_depth):
        for folder in level:
            folder.look(context.paths.root)
        if skips is not None:
            excluded = await skips.among([folder.path_of(name) for folder in level for name in folder.names])
            for folder in level:
                folder.leave_out(excluded)
        for folder in level:
            room -= folder.cut_to(min(room, _ENTRIES_OF_ONE))
        level = [inner for folder in level for inner in folder.folders]
    lines = [f"{start}/", *top.lines("  ")]
    if not top.names:
        lines.append("  (nothing is in it)")
    if room <= 0:
        lines.append(f"[Only {_ENTRIES} entries are shown. Name a folder with path, or lower max_depth.]")
    return "\n".join(lines)


@tool(access=["state"], group="files", interactive=True)
async def set_working_dir(context: ToolContext, path: Annotated[str, "Absolute path of an existing folder"]) -> str:
    """Move the working directory, which all file tools are confined to. The user is asked first."""
    session = context.session
    if not session.interactive or session.depth > 0:
        raise ToolError(
            "The working directory is fixed in this run: nobody is there to confirm another one. "
            f"Work in {context.paths.root}."
        )
    if "\0" in path or not os.path.isabs(path):
        raise ToolError(f"{path!r} is not an absolute path. Give one that begins with '/'.")
    folder = _resolved(path)
    if not _is_folder(folder):
        raise ToolError(f"There is no folder {path!r}. Ask the user for the right path.")
    question = f"Move the working directory from {context.paths.root} to {folder}?"
    if await context.ask(question, ("yes", "no")) != "yes":
        raise ToolError(f"The user said no: the working directory stays {context.paths.root}. Go on there.")
    session.set_working_dir(folder)
    return f"The working directory is {folder} from the next call on."


@tool(access=["read"], group="files")
async def get_working_dir(context: ToolContext) -> str:
    """Tell the working directory, which all paths are relative to."""
    return str(context.paths.root)


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


def _resolved(path: str) -> Path:
    return Path(os.path.realpath(path))


def _is_folder(path: Path) -> bool:
    return path.is_dir()


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
