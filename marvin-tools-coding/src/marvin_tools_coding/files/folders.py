"""The tools about folders: tree, set_working_dir and get_working_dir."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, folder_tree, real_place, tool

from ..adapters import FOLDERS, IGNORED
from .adapters import TREE_IGNORED, TREE_NAMES, tree_arguments

_ALL_IGNORED = "everything here is ignored by git; respect_gitignore=false shows it"
_NO_RULES = 3
"""Invalid lines of .gitignore that are shown."""


@tool(
    known_as=["ls", "list", "list_dir", "list_directory", "list_files"],
    access=["read"],
    group="files",
    aliases=TREE_NAMES,
    unlisted=["ignore"],
    ignores=TREE_IGNORED,
    adapt=tree_arguments,
)
async def tree(
    context: ToolContext,
    path: Annotated[str, "Folder"] = ".",
    max_depth: Annotated[int, Field(ge=1, le=10), "Levels shown"] = 3,
    respect_gitignore: Annotated[bool, "Leave out what git ignores"] = True,
    ignore: list[str] | str | None = None,
) -> str:
    """Show a folder as a tree of 500 entries at most, without what .gitignore excludes. glob lists files by name."""
    start = real_place(context, path)
    if not _is_folder(context.paths.root / start):
        context.paths.open(path).close()  # fails with an error where nothing is
        raise ToolError(f"{path!r} is a file, not a folder. Read it with read_file.")
    found = await folder_tree(context, start, depth=max_depth, ignored=not respect_gitignore)
    lines = [f"{start}/", *(f"  {line}" for line in found.lines)]
    if not found.entries:
        # Without ignore rules: a folder of ignored files is not empty.
        has_ignored = respect_gitignore and (await folder_tree(context, start, depth=1, ignored=True)).entries
        lines.append(f"  ({_ALL_IGNORED if has_ignored else 'empty'})")
    if found.is_cut:
        lines.append(f"[Only {found.entries} entries are shown. Give a folder as path, or lower max_depth.]")
    if ignore:
        lines.append("[ignore was not used: only what .gitignore excludes is left out.]")
    return "\n".join([*lines, *no_rules(found.bad_rules)])


def no_rules(lines: Sequence[str]) -> Iterator[str]:
    """A warning about lines of .gitignore that have no effect."""
    for line in lines[:_NO_RULES]:
        yield f"[Not a valid rule, ignored: {line}]"
    if len(lines) > _NO_RULES:
        yield f"[{len(lines) - _NO_RULES:,} more lines of .gitignore are not valid rules.]"


@tool(access=["state"], group="files", interactive=True, aliases={"path": FOLDERS}, ignores=IGNORED)
async def set_working_dir(context: ToolContext, path: Annotated[str, "Folder, absolute"]) -> str:
    """Move the working directory, which file tools are confined to; the user is asked."""
    session = context.session
    if not session.interactive or session.depth > 0:
        raise ToolError(
            "The working directory is fixed in this run, because nobody can confirm another one. Work in "
            f"{context.paths.root}."
        )
    if "\0" in path or not os.path.isabs(path):
        raise ToolError(f"{path!r} is not an absolute path. Give one that begins with '/'.")
    folder = _resolved(path)
    if not str(folder).isprintable():
        raise ToolError(
            f"{str(folder)!r} contains characters that cannot be displayed, so the user cannot confirm "
            "it. Use another folder."
        )
    if not _is_folder(folder):
        raise ToolError(f"There is no folder {path!r}. Ask the user for the right path.")
    question = f"Change the working directory from {context.paths.root} to {folder}?"
    if await context.ask(question, ("yes", "no")) != "yes":
        raise ToolError(f"The user said no: the working directory is still {context.paths.root}. Continue there.")
    session.set_working_dir(folder)
    return f"The working directory is {folder} from the next call on."


@tool(access=["read"], group="files", ignores=IGNORED)
async def get_working_dir(context: ToolContext) -> str:
    """The working directory, where it may have been moved."""
    return str(context.paths.root)


def _resolved(path: str) -> Path:
    return Path(os.path.realpath(path))


def _is_folder(path: Path) -> bool:
    return path.is_dir()
