"""The tools that find things: glob for files, code_grep for text."""

from __future__ import annotations

import os
import re
from typing import Annotated

from marvin_core import Field, SearchQuery, ToolContext, ToolError, find_files, real_place, search_files, tool

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
    files = [file.path for file in await find_files(context, pattern, start)]
    if not files:
        return await _nothing(context, pattern, start)
    lines = files[:max_results]
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
    query = SearchQuery(
        pattern=pattern,
        start=_start(context, path),
        files=glob_filter,
        ignore_case=ignore_case,
        context_lines=context_lines,
        most=max_results,
    )
    found = await search_files(context, query)
    if not found.has_files:
        return f"No file in {query.start!r} passes glob_filter. Widen it, or list the files with glob."
    if not found.matches and not found.has_more:
        return _no_line(query)
    more = "[There is more. Narrow pattern, path or glob_filter, or raise max_results.]"
    return "\n".join(filter(None, (found.text(), more if found.has_more else "")))


def _no_line(query: SearchQuery) -> str:
    where = repr(query.start) if query.files == "*" else f"{query.start!r} ({query.files})"
    hints = ["another spelling"]
    if not query.ignore_case:
        hints.append("ignore_case")
    if re.escape(query.pattern) != query.pattern:
        hints.append(f"{re.escape(query.pattern)!r} for the text itself")
    hidden = " Hidden files are searched where path or glob_filter names them." if query.files == "*" else ""
    return f"No line matches {query.pattern!r} in {where}. Try {' or '.join(hints)}.{hidden}"


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


async def _nothing(context: ToolContext, pattern: str, start: str) -> str:
    text = f"No file matches {pattern!r} in {start!r}."
    if _is_folder(context, f"{start}/{pattern}"):
        return f"{text} It is a folder: use {pattern + '/**'!r}."
    deeper = [] if "/" in pattern else await find_files(context, pattern, start, anywhere=True)
    if deeper:
        return f"{text} {len(deeper):,} match {'**/' + pattern!r}, which also looks into folders."
    return f"{text} Look at what is there with tree, or use a wider pattern."
