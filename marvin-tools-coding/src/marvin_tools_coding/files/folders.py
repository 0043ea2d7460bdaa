"""The tools about folders: tree, set_working_dir and get_working_dir."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, folder_tree, real_place, tool


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
    found = await folder_tree(context, start, depth=max_depth, ignored=not respect_gitignore)
    lines = [f"{start}/", *(f"  {line}" for line in found.lines)]
    if not found.entries:
        lines.append("  (nothing is in it)")
    if found.is_cut:
        lines.append(f"[Only {found.entries} entries are shown. Name a folder with path, or lower max_depth.]")
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


def _resolved(path: str) -> Path:
    return Path(os.path.realpath(path))


def _is_folder(path: Path) -> bool:
    return path.is_dir()
