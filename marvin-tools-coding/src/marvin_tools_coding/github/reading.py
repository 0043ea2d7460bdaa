"""The tools that read clones: github_read_file and github_grep."""

from __future__ import annotations

from typing import Annotated, Literal

from marvin_core import Field, ToolContext, ToolError, ToolResult, in_thread, tool

from ..files.reading import Range, ReadCall, ReadTool
from ..files.search import found_lines
from ..files.showing import shown_file
from .adapters import (
    GREP_FILE_IGNORED,
    GREP_FILE_NAMES,
    READ_FILE_IGNORED,
    READ_FILE_NAMES,
    grep_file_arguments,
    read_file_arguments,
)
from .api import SETTINGS
from .repositories import Clones, host_of, named

_ENTRIES = 500
_READ = ReadTool(name="github_read_file", first="start", last="end", search="github_grep", edits=False)

Repo = Annotated[str, "OWNER/REPO"]


@tool(
    access=["read"],
    group="github",
    settings=SETTINGS,
    aliases=READ_FILE_NAMES,
    unlisted=["column"],
    ignores=READ_FILE_IGNORED,
    adapt=read_file_arguments,
)
async def github_read_file(
    context: ToolContext,
    repo: Repo,
    path: Annotated[str, "File, or folder to list"],
    start: Annotated[int, "First line, from 1"] = 0,
    end: Annotated[int, "Last line"] = 0,
    column: Annotated[int | None, Field(ge=1), "With start: the character of that long line to continue at"] = None,
) -> ToolResult:
    """Read in a cloned repository, as read_file does."""
    if start < 0 or end < 0:
        raise ToolError(
            f"start {start} and end {end} are line numbers that start at 1. Leave them out to start at the first line."
        )
    reading, repository = await in_thread(lambda: Clones(context.home).open(context, named(repo, host_of(context))))
    if await in_thread(lambda: reading.paths.exists(path) and reading.paths.stat(path).kind == "folder"):
        return ToolResult(content=await in_thread(lambda: _listed(reading, path)))
    call = ReadCall(context=context, files=reading, path=path, tool=_READ, repo=str(repository))
    return await shown_file(call, Range(start or None, end or None), column)


def _listed(reading: ToolContext, path: str) -> str:
    """The names in a folder, subfolders first. Blocks."""
    found = [entry for entry in reading.paths.list(path, _ENTRIES + 2) if entry.path != ".git"]
    entries = sorted(found, key=lambda entry: (entry.kind != "folder", entry.path))
    lines = [_shown(entry.path) + {"folder": "/", "link": " (a link)"}.get(entry.kind, "") for entry in entries]
    if not lines:
        return f"(The folder {path!r} is empty.)"
    if len(lines) > _ENTRIES:
        lines[_ENTRIES:] = [f"[More than {_ENTRIES} names. Find files with github_grep and glob_filter.]"]
    return "\n".join(lines)


def _shown(name: str) -> str:
    return name if name.isprintable() else repr(name)


@tool(
    access=["read"],
    group="github",
    settings=SETTINGS,
    aliases=GREP_FILE_NAMES,
    unlisted=["path", "ignore_case", "context_lines", "output", "literal"],
    ignores=GREP_FILE_IGNORED,
    adapt=grep_file_arguments,
)
async def github_grep(
    context: ToolContext,
    repo: Repo,
    pattern: Annotated[str, "Regular expression of ripgrep"],
    glob_filter: Annotated[str, "As in '*.py,!test_*'"] = "",
    max_results: Annotated[int, Field(ge=1, le=100), "Maximum matches"] = 30,
    path: Annotated[str, "Folder or file"] = ".",
    ignore_case: Annotated[bool, "Any case"] = False,
    context_lines: Annotated[int, Field(ge=0, le=20), "Lines around"] = 2,
    output: Annotated[Literal["lines", "files", "count"], "files: names; count: lines"] = "lines",
    literal: Annotated[bool, "Plain text"] = False,
) -> str:
    """Search a cloned repository, as code_grep does."""
    reading, _ = await in_thread(lambda: Clones(context.home).open(context, named(repo, host_of(context))))
    return await found_lines(
        reading,
        pattern,
        path,
        files=glob_filter or "*",
        ignore_case=ignore_case,
        literal=literal,
        context_lines=context_lines,
        most=max_results,
        output=output,
    )
