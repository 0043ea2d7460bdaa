"""Searching text with ripgrep, or with Marvin's own program where that is missing; the answers look the same."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import TypeAlias

from ...api.errors import ToolError
from ...api.record import Record
from ...api.tool_context import ToolContext
from .encodings import HEAD_BYTES, refuse_binary
from .globs import GlobFilter
from .listing import in_repository, list_files
from .search_program import NO_EXPRESSION

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


class SearchQuery(Record):
    """What to look for, and where.

    `pattern` is a regular expression that is matched within lines. `start` is a folder or file, checked and relative
    to the root, as `real_place` gives it. `files` chooses among the files below it as .gitignore does, as in
    `*.py` or `*.ts,!*.test.ts`. `context_lines` are shown before and after each line that matches.
    """

    pattern: str
    start: str = "."
    files: str = "*"
    ignore_case: bool = False
    context_lines: int = 0
    most: int = 20


class FoundLine(Record):
    """A line that was found, or one beside it."""

    path: str
    number: int
    is_match: bool
    text: str


class SearchResult(Record):
    """The lines that were found and those beside them, in the order of the files.

    `has_more` says that there are more than `most` matches, or more than fit into an answer. `has_files` is False
    where no file passes `files`.
    """

    lines: tuple[FoundLine, ...]
    matches: int
    context_lines: int = 0
    has_more: bool = False
    has_files: bool = True

    def text(self) -> str:
        """The lines as `path:number: text`, with `-` in place of `:` beside a match, and `--` between places."""
        shown: list[str] = []
        previous = None
        for line in self.lines:
            if previous is not None and self.context_lines and not _is_near(line, previous, 1):
                shown.append("--")
            shown.append(_format(line))
            previous = line
        return "\n".join(shown)


Search: TypeAlias = Callable[[ToolContext, SearchQuery, "list[str] | None"], AsyncGenerator[FoundLine, None]]


class CannotSearch(ToolError):
    """The program is missing, or does not understand the pattern."""


async def search_files(context: ToolContext, query: SearchQuery) -> SearchResult:
    """Search the text files of a folder, without what .gitignore excludes, hidden ones only where they are named.

    It uses ripgrep where that is installed, and Python's expressions where ripgrep lacks something, as look-ahead.

    Raises:
        ToolError: the pattern is no regular expression, or `start` is a file that is no text.
    """
    wanted = GlobFilter(query.files)
    files = await _files(context, query, wanted)
    if files == [] and not wanted.is_everything:
        return SearchResult(lines=(), matches=0, has_files=False)
    try:
        return await collected(context, query, files, ripgrep)
    except CannotSearch:
        # Python's expressions have what ripgrep's lack, such as look-ahead; and its errors are told well.
        if files is None:
            files = await _all_files(context, query, wanted)
        return await collected(context, query, files, own_search)


async def _files(context: ToolContext, query: SearchQuery, wanted: GlobFilter) -> list[str] | None:
    """The files to search; None where it is a folder whose files ripgrep chooses as we would."""
    root = context.paths.root
    if (root / query.start).is_dir():
        # Elsewhere rules of folders above count for it that should not, or do not that should.
        is_top = (root / ".git").exists() or (query.start == "." and not in_repository(root))
        return None if wanted.is_everything and is_top else await _all_files(context, query, wanted)
    with context.paths.open(query.start) as file:
        refuse_binary(query.start, file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size)
    return [query.start]


async def _all_files(context: ToolContext, query: SearchQuery, wanted: GlobFilter) -> list[str]:
    start = query.start
    found = await list_files(context, start, lambda name: wanted(name, start), hidden=wanted.names_hidden)
    names = [name for name, status in found if stat.S_ISREG(status.st_mode)]
    return sorted(names, key=lambda name: name.split("/"))


async def collected(context: ToolContext, query: SearchQuery, files: list[str] | None, search: Search) -> SearchResult:
    """What a search finds, as far as it fits into an answer.

    Args:
        files: where to search; None is everything below the start.
    """
    shown: list[FoundLine] = []
    matches = characters = complete = 0
    last_match = None
    async with aclosing(search(context, query, files)) as lines:
        async for line in lines:
            if matches + line.is_match > query.most or characters > _ANSWER_CHARACTERS:
                # What stands before a match that is not shown is left out with it.
                return _result(query, shown[:complete], matches, has_more=True)
            matches += line.is_match
            shown.append(line)
            characters += len(_format(line)) + 1
            last_match = line if line.is_match else last_match
            if last_match is not None and _is_near(line, last_match, query.context_lines):
                complete = len(shown)
    return _result(query, shown, matches)


def _result(query: SearchQuery, lines: list[FoundLine], matches: int, *, has_more: bool = False) -> SearchResult:
    return SearchResult(lines=tuple(lines), matches=matches, context_lines=query.context_lines, has_more=has_more)


def _is_near(line: FoundLine, earlier: FoundLine, distance: int) -> bool:
    return line.path == earlier.path and line.number - earlier.number <= distance


def _format(line: FoundLine) -> str:
    mark = ":" if line.is_match else "-"
    text = line.text
    if len(text) > _LINE_CHARACTERS:
        text = f"{text[:_LINE_CHARACTERS]} [... {len(text) - _LINE_CHARACTERS:,} more characters]"
    return f"{line.path}{mark}{line.number}{mark} {text}"


async def ripgrep(context: ToolContext, query: SearchQuery, files: list[str] | None) -> AsyncGenerator[FoundLine, None]:
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


async def own_search(
    context: ToolContext, query: SearchQuery, files: list[str] | None
) -> AsyncGenerator[FoundLine, None]:
    """Search with Marvin's own program: a child process, since an expression may take for ever.

    Raises:
        ToolError: where the pattern is no regular expression.
    """
    from json import dumps

    fields = {
        "pattern": query.pattern,
        "ignore_case": query.ignore_case,
        "context_lines": query.context_lines,
        "max_results": query.most,
        "files": files or [],
    }
    result = await context.processes.run(
        [sys.executable, "-P", "-m", f"{__package__}.search_program"],
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


def _parse(output: bytes, omitted: int) -> Iterator[FoundLine]:
    if omitted:  # what follows the first half comes from somewhere later
        output = output[: _OUTPUT_BYTES // 2].rpartition(b"\n")[0]
    for raw in output.split(b"\n"):
        found = _OUTPUT_LINE.match(raw.removesuffix(b"\r"))
        if found is not None:  # what it says about binary files, and its separators, hold no NUL
            path, number, mark, text = found.groups()
            yield FoundLine(
                path=path.decode("utf-8", "replace").removeprefix("./"),
                number=int(number),
                is_match=mark == b":",
                text=text.decode("utf-8", "replace"),
            )
