"""Searching text with ripgrep, or with Marvin's own program where that is missing; the answers look the same."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TypeAlias

from marvin_core import Record, ToolContext, ToolError

from .globs import Filter
from .grep_program import NO_EXPRESSION
from .listing import in_repository, list_files
from .textfiles import HEAD_BYTES, refuse_binary

_LINE_CHARACTERS = 400
_ANSWER_CHARACTERS = 60_000
_OUTPUT_BYTES = 8_000_000
_BATCH_CHARACTERS = 100_000  # of file names in one command line
_RIPGREP = (
    "rg",
    "--no-config",
    "--no-heading",
    "--with-filename",
    "--line-number",
    "--null",
    "--color=never",
    "--no-messages",
    "--no-ignore-dot",
    "--crlf",
    "--sort=path",
    "--iglob=!.git",
    "--iglob=!.tickets",
)
_OUTPUT_LINE = re.compile(rb"([^\0\n]+)\0(\d+)([:-])(.*)")


class Query(Record):
    """What to look for, and where: `start` is a checked path relative to the root, and the filter is text."""

    pattern: str
    start: str
    glob_filter: str
    ignore_case: bool
    context_lines: int
    max_results: int


class Line(Record):
    """A line that was found, or one beside it."""

    path: str
    number: int
    is_match: bool
    text: str


Search: TypeAlias = Callable[[ToolContext, Query, "list[str] | None"], AsyncGenerator[Line, None]]


class CannotSearch(ToolError):
    """The program is missing, or does not understand the pattern."""


async def grep(context: ToolContext, query: Query) -> str:
    """The answer of code_grep.

    Raises:
        ToolError: where the pattern is no regular expression.
    """
    wanted = Filter(query.glob_filter)
    files = await _files(context, query, wanted)
    if files == [] and not wanted.is_everything:
        return f"No file in {query.start!r} passes glob_filter. Widen it, or list the files with glob."
    try:
        return await answer(context, query, files, ripgrep)
    except CannotSearch:
        # Python's expressions have what ripgrep's lack, such as look-ahead; and its errors are told well.
        if files is None:
            files = await _all_files(context, query, wanted)
        return await answer(context, query, files, own_search)


async def _files(context: ToolContext, query: Query, wanted: Filter) -> list[str] | None:
    """The files to search; None where it is a folder whose files ripgrep chooses as we would."""
    root = context.paths.root
    if (root / query.start).is_dir():
        # Elsewhere rules of folders above count for it that should not, or do not that should.
        is_top = (root / ".git").exists() or (query.start == "." and not in_repository(root))
        return None if wanted.is_everything and is_top else await _all_files(context, query, wanted)
    with context.paths.open(query.start) as file:
        refuse_binary(query.start, file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size)
    return [query.start]


async def _all_files(context: ToolContext, query: Query, wanted: Filter) -> list[str]:
    start = query.start
    found = await list_files(context, start, lambda name: wanted(name, start), hidden=wanted.names_hidden)
    names = [name for name, status in found if stat.S_ISREG(status.st_mode)]
    return sorted(names, key=lambda name: name.split("/"))


async def answer(context: ToolContext, query: Query, files: list[str] | None, search: Search) -> str:
    """What a search finds, as text.

    Args:
        files: where to search; None is everything below the start.
    """
    shown: list[str] = []
    matches = characters = complete = 0
    previous = last_match = None
    async with aclosing(search(context, query, files)) as lines:
        async for line in lines:
            matches += line.is_match
            if matches > query.max_results or characters > _ANSWER_CHARACTERS:
                # What stands before a match that is not shown is left out with it.
                shown[complete:] = ["[There is more. Narrow pattern, path or glob_filter, or raise max_results.]"]
                break
            if previous is not None and query.context_lines and not _is_near(line, previous, 1):
                shown.append("--")
            shown.append(_format(line))
            characters += len(shown[-1]) + 1
            previous = line
            last_match = line if line.is_match else last_match
            if last_match is not None and _is_near(line, last_match, query.context_lines):
                complete = len(shown)
    return "\n".join(shown) if matches else _nothing(query)


def _is_near(line: Line, earlier: Line, distance: int) -> bool:
    return line.path == earlier.path and line.number - earlier.number <= distance


def _format(line: Line) -> str:
    mark = ":" if line.is_match else "-"
    text = line.text
    if len(text) > _LINE_CHARACTERS:
        text = f"{text[:_LINE_CHARACTERS]} [... {len(text) - _LINE_CHARACTERS:,} more characters]"
    return f"{line.path}{mark}{line.number}{mark} {text}"


def _nothing(query: Query) -> str:
    where = repr(query.start) if query.glob_filter == "*" else f"{query.start!r} ({query.glob_filter})"
    hints = ["another spelling"]
    if not query.ignore_case:
        hints.append("ignore_case")
    if re.escape(query.pattern) != query.pattern:
        hints.append(f"{re.escape(query.pattern)!r} for the text itself")
    hidden = " Hidden files are searched where path or glob_filter names them." if query.glob_filter == "*" else ""
    return f"No line matches {query.pattern!r} in {where}. Try {' or '.join(hints)}.{hidden}"


async def ripgrep(context: ToolContext, query: Query, files: list[str] | None) -> AsyncGenerator[Line, None]:
    """Search with ripgrep.

    Raises:
        CannotSearch: where it is not installed, or does not take the pattern.
    """
    options = [*_RIPGREP, f"--context={query.context_lines}"]
    options.append("--ignore-case" if query.ignore_case else "--case-sensitive")
    if not in_repository(context.paths.root):
        # A .gitignore of the home folder says nothing about a project that is in no repository.
        options += ["--no-require-git", "--no-ignore-parent"]
    for batch in [[query.start]] if files is None else _batches(files):
        argv = [*options, "-e", query.pattern, "--", *batch]
        try:
            result = await context.processes.run(argv, cwd=context.paths.root, output_limit=_OUTPUT_BYTES)
        except ToolError as error:
            raise CannotSearch(str(error)) from error
        if result.exit_code not in (0, 1) and not result.output:
            raise CannotSearch(result.stderr.decode("utf-8", "replace"))
        for line in _parse(result.output, result.omitted):
            yield line


async def own_search(context: ToolContext, query: Query, files: list[str] | None) -> AsyncGenerator[Line, None]:
    """Search with Marvin's own program: a child process, since an expression may take for ever.

    Raises:
        ToolError: where the pattern is no regular expression.
    """
    from json import dumps

    fields = {**query.as_dict(), "files": files or []}
    result = await context.processes.run(
        [sys.executable, "-P", "-m", f"{__package__}.grep_program"],
        cwd=context.paths.root,
        stdin=dumps(fields).encode(),
        output_limit=_OUTPUT_BYTES,
    )
    if result.exit_code:
        reason = result.stderr.decode("utf-8", "replace").strip()
        if result.exit_code != NO_EXPRESSION:
            raise ToolError(f"The search failed: {reason[-500:]}. Search a smaller part, or install ripgrep.")
        raise ToolError(
            f"{query.pattern!r} is no valid regular expression: {reason}. "
            f"To find the text itself use {re.escape(query.pattern)!r}."
        )
    for line in _parse(result.output, result.omitted):
        yield line


def _batches(files: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for name in files:
        batch.append(name)
        characters += len(name) + 1
        if characters > _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _parse(output: bytes, omitted: int) -> Iterator[Line]:
    if omitted:  # what follows the first half comes from somewhere later
        output = output[: _OUTPUT_BYTES // 2].rpartition(b"\n")[0]
    for raw in output.split(b"\n"):
        found = _OUTPUT_LINE.match(raw.removesuffix(b"\r"))
        if found is not None:  # what it says about binary files, and its separators, hold no NUL
            path, number, mark, text = found.groups()
            yield Line(
                path=path.decode("utf-8", "replace").removeprefix("./"),
                number=int(number),
                is_match=mark == b":",
                text=text.decode("utf-8", "replace"),
            )
