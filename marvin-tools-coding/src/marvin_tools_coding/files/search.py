"""The tools that find things: glob for files, code_grep for text."""

from __future__ import annotations

import os
import re
from itertools import takewhile
from typing import Annotated, Literal, TypedDict, Unpack

from marvin_core import (
    Field,
    FoundFile,
    SearchQuery,
    SearchResult,
    ToolContext,
    ToolError,
    find_files,
    real_place,
    search_files,
    tool,
)

from .adapters import GLOB_IGNORED, GLOB_NAMES, GREP_IGNORED, GREP_NAMES, glob_arguments, grep_arguments
from .folders import no_rules


class SearchOptions(TypedDict):
    """The fields of a `SearchQuery` that calls set."""

    files: str
    ignore_case: bool
    context_lines: int
    most: int
    output: Literal["lines", "files", "count"]
    literal: bool


StartPath = Annotated[str, "Folder or file"]


@tool(
    known_as=["find", "file_search", "find_files", "glob_file_search"],
    access=["read"],
    group="files",
    aliases=GLOB_NAMES,
    unlisted=["ignore"],
    ignores=GLOB_IGNORED,
    adapt=glob_arguments,
)
async def glob(
    context: ToolContext,
    pattern: Annotated[str, "A pattern such as 'src/**/*.{ts,tsx}'"],
    path: Annotated[str, "Folder to start in"] = ".",
    max_results: Annotated[int, Field(ge=1, le=5000), "Maximum files"] = 200,
    ignore: list[str] | str | None = None,
) -> str:
    """List files, newest first: '*.py' in the folder itself, '**/*.py' at any depth. What .gitignore excludes is left
    out; hidden names need their dot."""
    start = _folder(context, path)
    bad: list[str] = []
    files = await find_files(context, pattern, start, bad_rules=bad)
    if not files:
        return "\n".join([await _nothing(context, pattern, start), *no_rules(bad)])
    lines = [file.shown for file in files[:max_results]]
    if len(files) > max_results:
        lines.append(f"[{len(files) - max_results:,} more of {len(files):,}. Narrow the pattern or raise max_results.]")
    if ignore:
        lines.append(
            "[ignore was not used: only what .gitignore excludes is left out. Use a narrower pattern or path.]"
        )
    return "\n".join([*lines, *no_rules(bad)])


@tool(
    known_as=["grep", "rg", "ripgrep", "search", "grep_search", "search_files", "search_file_content"],
    access=["read"],
    group="files",
    aliases=GREP_NAMES,
    ignores=GREP_IGNORED,
    adapt=grep_arguments,
)
async def code_grep(
    context: ToolContext,
    pattern: Annotated[str, "Regular expression of ripgrep"],
    path: StartPath = ".",
    glob_filter: Annotated[str, "Any depth: '*.{ts,tsx},!*.test.ts'"] = "*",
    ignore_case: Annotated[bool, "Any case"] = False,
    context_lines: Annotated[int, Field(ge=0, le=20), "Lines around"] = 2,
    max_results: Annotated[int, Field(ge=1, le=500), "Maximum matches"] = 20,
    output: Annotated[Literal["lines", "files", "count"], "files: names; count: lines"] = "lines",
    literal: Annotated[bool, "Plain text"] = False,
) -> str:
    """Search the lines of files. Hidden ones and what .gitignore excludes need path to name them."""
    return await found_lines(
        context,
        pattern,
        path,
        files=glob_filter,
        ignore_case=ignore_case,
        context_lines=context_lines,
        most=max_results,
        output=output,
        literal=literal,
    )


async def found_lines(context: ToolContext, pattern: str, path: str, **options: Unpack[SearchOptions]) -> str:
    """The result of a search, as models read it.

    Raises:
        ToolError: the pattern is invalid, or there is nothing at the path.
    """
    if not pattern:
        raise ToolError("pattern is empty. Give a regular expression, such as 'def main'.")
    if "\n" in pattern or "\0" in pattern:
        raise ToolError("pattern contains a line break or NUL; lines are searched one by one. Give one line.")
    query = SearchQuery(pattern=pattern, start=_start(context, path), **options)
    found = await search_files(context, query)
    if not found.has_files:
        return await _no_file(context, query)
    if not found.matches and not found.has_more:
        return _no_line(query)
    shown = "\n".join(found.files()) if query.output == "files" else found.text()
    return "\n".join(filter(None, (shown, _rest(query, found))))


def _rest(query: SearchQuery, found: SearchResult) -> str:
    if query.output == "count":
        total = f"{found.matches:,} matching lines in all"
        return f"[{total}. There are more files than these.]" if found.has_more else f"[{total}]"
    if not found.has_more:
        return ""
    if query.output == "files":
        return "[There are more files. Narrow pattern, path or glob_filter, or raise max_results.]"
    return (
        f"[There are more matches than these {found.matches}. Narrow pattern, path or glob_filter, raise "
        "max_results, or count all with output='count'.]"
    )


async def _no_file(context: ToolContext, query: SearchQuery) -> str:
    text = f"No file in {query.start!r} matches glob_filter."
    left_out = await find_files(context, query.files, query.start, anywhere=True, left_out=True)
    if not left_out:
        return f"{text} Use a wider filter, or list the files with glob."
    file = left_out[0]
    reason = "it is hidden" if _is_hidden(file) else ".gitignore excludes it, or it usually holds keys"
    return f"{text} {file.shown} is left out: {reason}. To search it, pass it as path."


def _is_hidden(file: FoundFile) -> bool:
    return "/." in f"/{file.path}"


def _no_line(query: SearchQuery) -> str:
    where = repr(query.start) if query.files == "*" else f"{query.start!r} ({query.files})"
    hints = ["another spelling"]
    if not query.ignore_case:
        hints.append("ignore_case")
    if not query.literal and re.escape(query.pattern) != query.pattern:
        hints.append(f"literal, or {re.escape(query.pattern)!r}, for the literal text")
    text = f"No line matches {query.pattern!r} in {where}. Try {' or '.join(hints)}."
    if query.files == "*":
        text += " Hidden files, and what .gitignore excludes, are searched only if path names them."
    return text


def _start(context: ToolContext, path: str) -> str:
    start = real_place(context, path)
    if not _is_folder(context, start):
        context.paths.open(path).close()  # fails with an error where nothing is
    return start


def _is_folder(context: ToolContext, path: str) -> bool:
    return os.path.isdir(context.paths.root / path)


def _folder(context: ToolContext, path: str) -> str:
    start = _start(context, path)
    if not _is_folder(context, start):
        raise ToolError(f"{path!r} is a file, not a folder. Leave path out, or give its folder.")
    return start


async def _nothing(context: ToolContext, pattern: str, start: str) -> str:
    text = f"No file matches {pattern!r} in {start!r}."
    if _is_folder(context, f"{start}/{pattern}"):
        return f"{text} It is a folder: use {pattern.rstrip('/') + '/**'!r}."
    deeper = [] if "/" in pattern else await find_files(context, pattern, start, anywhere=True)
    if deeper:
        return f"{text} {len(deeper):,} match {'**/' + pattern!r}, which also searches in subfolders."
    in_other_case = await find_files(context, pattern, start, any_case=True)
    if in_other_case:
        return f"{text} {len(in_other_case):,} match if case is ignored, such as {in_other_case[0].shown}."
    left_out = _left_out(context, pattern, start)
    if left_out:
        return f"{text} {left_out}"
    existing = await find_files(context, pattern, start, anywhere="/" not in pattern, left_out=True)
    if existing:
        reason = "it is hidden" if _is_hidden(existing[0]) else ".gitignore excludes it"
        return f"{text} {existing[0].shown} is left out: {reason}. Read it with read_file."
    return f"{text} List the files with tree, or use a wider pattern."


def _left_out(context: ToolContext, pattern: str, start: str) -> str:
    """Why existing files that match the pattern are not listed; "" where unknown."""
    names = os.path.normpath(pattern).split("/")
    fixed = list(takewhile(lambda name: not any(sign in name for sign in "*?[{"), names))
    place = os.path.normpath("/".join((start, *fixed)))
    try:
        kind = context.paths.stat(place).kind if fixed else ""
    except ToolError:
        return ""
    if kind == "file" and fixed == names:
        return f"{place!r} exists, but .gitignore excludes it. Read it with read_file."
    if kind != "folder":
        return ""
    rest = "/".join(names[len(fixed) :])
    real = real_place(context, place)
    if real != place:
        return f"{place!r} leads over a link, which is not followed. Use its target: path={real!r}, pattern={rest!r}."
    return (
        f"If .gitignore excludes {place!r}, pass it as path: path={place!r}, pattern={rest!r}. A name that begins "
        "with a dot matches only a pattern that begins with a dot."
    )
