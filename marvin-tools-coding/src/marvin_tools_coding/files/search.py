"""The tools that find things: glob for files, code_grep for text."""

from __future__ import annotations

import os
import stat
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, tool

from .globs import Filter, compile_glob, names_hidden
from .grepping import Query, grep
from .listing import list_files, real_place

StartPath = Annotated[str, "Folder or file to search"]


@tool(access=["read"], group="files")
async def glob(
    context: ToolContext,
    pattern: Annotated[str, "Such as '**/*.py' or 'src/*.{ts,tsx}'"],
    path: Annotated[str, "Folder that the pattern counts from"] = ".",
    max_results: Annotated[int, Field(ge=1, le=5000)] = 200,
) -> str:
    """List files by a glob pattern, newest first, without what .gitignore excludes."""
    start = _folder(context, path)
    pattern = _relative(context, pattern)
    matches = compile_glob(pattern).fullmatch
    prefix = "" if start == "." else f"{start}/"
    found = await list_files(
        context,
        start,
        lambda name: matches(name.removeprefix(prefix)) is not None,
        hidden=names_hidden(pattern),
    )
    files = [(status.st_mtime_ns, name) for name, status in found if _is_file(context, name, status)]
    if not files:
        return await _nothing(context, pattern, start)
    files.sort(key=lambda file: (-file[0], file[1]))
    lines = [name for _, name in files[:max_results]]
    if len(files) > max_results:
        lines.append(f"[{len(files) - max_results:,} more of {len(files):,}. Narrow the pattern or raise max_results.]")
    return "\n".join(lines)


@tool(access=["read"], group="files")
async def code_grep(
    context: ToolContext,
    pattern: Annotated[str, "Regular expression, matched within lines"],
    path: StartPath = ".",
    glob_filter: Annotated[str, "Only files that match, such as '*.py' or '*.{ts,tsx},!*.test.ts'"] = "*",
    ignore_case: bool = False,
    context_lines: Annotated[int, Field(ge=0, le=20), "Lines shown around each match"] = 2,
    max_results: Annotated[int, Field(ge=1, le=500)] = 20,
) -> str:
    """Search file contents by a regular expression, without what .gitignore excludes."""
    if not pattern:
        raise ToolError("pattern is empty. Give a regular expression, such as 'def main'.")
    if "\n" in pattern or "\0" in pattern:
        raise ToolError("pattern holds a line break or NUL; lines are searched one by one. Give one line of it.")
    query = Query(
        pattern=pattern,
        start=_start(context, path),
        glob_filter=glob_filter,
        ignore_case=ignore_case,
        context_lines=context_lines,
        max_results=max_results,
    )
    return await grep(context, query)


def _start(context: ToolContext, path: str) -> str:
    start = real_place(context, path)
    if not _is_folder(context, start):
        context.paths.open(path).close()  # where there is nothing this fails and says so
    return start


def _is_folder(context: ToolContext, path: str) -> bool:
    return os.path.isdir(context.paths.root / path)


def _folder(context: ToolContext, path: str) -> str:
    start = _start(context, path)
    if not _is_folder(context, start):
        raise ToolError(f"{path!r} is a file, not a folder. Leave path out, or name its folder.")
    return start


def _relative(context: ToolContext, pattern: str) -> str:
    if not pattern.strip():
        raise ToolError("pattern is empty. Give a glob pattern, such as '**/*.py'.")
    if pattern.startswith(("/", "~")):
        context.paths.locate(pattern)  # refuses it, and says which relative path to use
    pattern = os.path.normpath(pattern)
    if pattern.split("/")[0] == "..":
        raise ToolError(f"The pattern {pattern!r} leads out of the folder. Use path to start from another one.")
    return pattern


def _is_file(context: ToolContext, name: str, status: os.stat_result) -> bool:
    if stat.S_ISLNK(status.st_mode):
        return os.path.isfile(context.paths.root / name)
    return stat.S_ISREG(status.st_mode)


async def _nothing(context: ToolContext, pattern: str, start: str) -> str:
    text = f"No file matches {pattern!r} in {start!r}."
    if _is_folder(context, f"{start}/{pattern}"):
        return f"{text} It is a folder: use {pattern + '/**'!r}."
    if "/" not in pattern:
        deeper = Filter(pattern)
        found = await list_files(context, start, lambda name: deeper(name, start), hidden=names_hidden(pattern))
        if found:
            return f"{text} {len(found):,} match {'**/' + pattern!r}, which also looks into folders."
    return f"{text} Look at what is there with tree, or use a wider pattern."
