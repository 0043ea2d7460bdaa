"""Searches with ripgrep, and checks each match again without following links."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from ...api.errors import ToolError
from ...api.processes import ProcessResult
from ...api.tool_context import ToolContext
from ...guard.files.no_links import Statuses, open_without_links
from ...util.threads import in_thread
from ..files.encodings import has_utf8_mark, utf16_codec
from ..files.listing import in_repository
from .lines import OUTPUT_BYTES, FewReader, FoundLine, LineReader, RawLine, parsed_counts
from .old_texts import OldTexts
from .program import lines_of
from .results import SearchPlaces, SearchQuery, SearchResult, as_counts, as_result, takes_too_long
from .sets_of_characters import ONLY_LINES
from .widening import widened

_BATCH_CHARACTERS = 100_000  # of file names in one command line
_ARGUMENT_BYTES = 100_000
"""The maximum size of the arguments of one call, in bytes. Linux allows 128 KiB for one argument."""
_RIPGREP = (
    "rg",
    "--no-config",
    "--no-heading",
    "--with-filename",
    "--null",
    "--color=never",
    "--no-ignore-dot",
    "--crlf",
)  # and not --no-messages, with which PCRE2 does not say that it gave up
_LINES = ("--line-number", "--column", "--byte-offset", "--no-context-separator")
_PCRE2 = ("--pcre2", "--no-mmap")
"""Without the second option ripgrep maps the whole file into memory."""
_LINE_END = re.compile(r"(?<!\\)((?:\\\\)*)\\z")
"""With `--crlf` it would match at the ends of some lines only, as ripgrep keeps a line end of one byte."""
_SORTED = "--sort=path"
"""With this option ripgrep searches one file at a time."""
_MANY = 2_000
"""The maximum number of matches that are collected unsorted and sorted afterwards."""
_FREQUENT = 300
"""So many matches that come at once show that the first ones are found soon in the order of the files."""
_ALL = 1_000_000_000
_MARK_BYTES = 3
_SOME_ERROR = 2
"""The exit code of ripgrep for a file that cannot be read, and for a wrong expression; any other is a failure of it."""


class CannotSearch(ToolError):
    """The program is missing, or does not support the pattern."""


class _HasNoSuchExpression(CannotSearch):
    """The pattern may require PCRE2."""


async def ripgrep(context: ToolContext, query: SearchQuery, places: SearchPlaces) -> SearchResult:
    """Search with ripgrep.

    Raises:
        CannotSearch: it is not installed, or does not support the pattern.
        ToolError: the pattern takes too long.
    """
    if len(os.fsencode(query.pattern)) > _ARGUMENT_BYTES:
        raise ToolError(f"The pattern is longer than {_ARGUMENT_BYTES:,} bytes. Search for a part of it.")
    if not query.literal and "\\Q" not in query.pattern:
        query = query.replace(pattern=_LINE_END.sub(r"\1$", query.pattern))
    search = _Search(context, query, places)
    try:
        return await search.run(())
    except _HasNoSuchExpression:
        return await search.run(_PCRE2)


class _Search:
    """One search; its second attempt may use another regular expression engine."""

    def __init__(self, context: ToolContext, query: SearchQuery, places: SearchPlaces) -> None:
        self._context = context
        self._query = query
        self._places = places

    async def run(self, engine: Sequence[str]) -> SearchResult:
        find = self._count if self._query.output == "count" else self._lines
        wide = "" if engine else self._widened()
        if wide:
            with suppress(CannotSearch):  # it is longer than the plain one, and may be too long
                return await find(self._calls(["-e", wide]), is_wide=True)
        return await find(self._calls([*engine, *self._pattern()]))

    def _widened(self) -> str:
        query = self._query
        return widened(query.pattern, literal=query.literal, ignore_case=query.ignore_case)

    def _pattern(self) -> list[str]:
        return [*(["--fixed-strings"] if self._query.literal else []), "-e", self._query.pattern]

    def _calls(self, pattern: Sequence[str], files: Sequence[str] | None = None) -> list[list[str]]:
        """The command lines of a search in the given files; without files, in the scope of the query."""
        command = [*_RIPGREP, *self._options(), *pattern, "--"]
        files = self._places.files if files is None else files
        batches = _batches([self._query.start] if files is None else files)
        return [[*command, *batch] for batch in batches]

    def _options(self) -> Iterator[str]:
        query = self._query
        yield "--ignore-case" if query.ignore_case else "--case-sensitive"
        if query.output == "count":
            yield "--count"
        else:
            yield from _LINES
            yield f"--context={0 if query.output == 'files' else query.context_lines}"
            yield f"--max-count={1 if query.output == 'files' else query.most + 1}"
        if not in_repository(self._context.paths.root):
            # A .gitignore of the home folder says nothing about a project that is in no repository.
            yield from ("--no-require-git", "--no-ignore-parent")
        if self._places.files is None:
            yield from self._places.wanted.for_ripgrep()

    def _counts(self, path: str) -> bool:
        return self._places.counts(path, self._query.start)

    async def _lines(self, calls: list[list[str]], *, is_wide: bool = False) -> SearchResult:
        """The first matches, in the order of the files.

        What is rare is found sooner by many threads, in any order. What is frequent is found soon in that order.

        Args:
            is_wide: the calls look for the widened expression.

        Raises:
            CannotSearch: much of what a widened expression found is no match, and there may be others.
        """
        reader = await self._first(calls)
        raw = reader.lines
        old: list[RawLine] = []
        if is_wide:
            raw, old = await self._looked_at_again(raw)
            if reader.is_enough and sum(line.is_match for line in (*raw, *old)) <= self._query.most:
                raise CannotSearch("The converted expression matches too much.")
        found: list[FoundLine] = []
        known = {line.path for line in old}
        for path, of_file in groupby(sorted([*raw, *old], key=_place), key=lambda line: line.path):
            lines = list(of_file)
            if path in known:
                found += [line.line() for line in lines]
            else:
                found += await in_thread(partial(_confirmed, self._context.paths.root, path, lines))
            if sum(line.is_match for line in found) > self._query.most:
                break
        return as_result(self._query, found, is_cut=reader.is_cut)

    async def _first(self, calls: list[list[str]]) -> LineReader:
        """The first matches in the order of the files, or all matches in any order if there are few.

        ripgrep 13 fails at some carriage returns with `$`. Where one of its threads fails, the others wait for it
        without end; a search in order has no threads.
        """
        most = self._query.most
        limit = self._context.timeouts.search if "$" in self._query.pattern else None
        few = FewReader(max(_MANY, most), self._counts, max(_FREQUENT, most), self._context.timeouts.search_in_order)
        any_order = asyncio.ensure_future(self._read(calls, few))
        try:
            await asyncio.wait([any_order, few.full], timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if any_order.done() and not few.is_enough:
                any_order.result()
                return few
            # Its end is not waited for: ending a program takes as long as starting one.
            reader = LineReader(most, self._counts)
            await self._read([[*argv[:1], _SORTED, *argv[1:]] for argv in calls], reader)
            return reader
        finally:
            await _ended(any_order)

    async def _looked_at_again(self, lines: list[RawLine]) -> tuple[list[RawLine], list[RawLine]]:
        """Check the lines of a widened search again: keep those that the original expression matches, and those in
        files of legacy encodings. Lines of pure ASCII need no check.
        """
        doubtful = {line.path for line in lines if line.is_match and not line.data.isascii()}
        sure = [line for line in lines if line.path not in doubtful]
        old, others = await self._in_old(doubtful)
        if others:
            reader = LineReader(max(_MANY, self._query.most), self._counts)
            await self._read(self._calls(self._pattern(), others), reader)
            sure += reader.lines
        return sure, old

    async def _in_old(self, paths: Iterable[bytes]) -> tuple[list[RawLine], list[str]]:
        """The first matching lines in files of legacy encodings, in the order of the files, and the other files.

        Raises:
            ToolError: there are too many such files.
        """
        query, root = self._query, self._context.paths.root
        left = sorted(paths, key=lambda path: path.split(b"/"))
        deadline = time.monotonic() + self._context.timeouts.search
        found: list[RawLine] = []
        others: list[str] = []
        around = query.context_lines if query.output == "lines" else 0
        case = "--ignore-case" if query.ignore_case else "--case-sensitive"
        argv = [*_RIPGREP, case, *_LINES, f"--context={around}", *self._pattern(), "--", "-"]
        while left and not self._is_enough(found):
            texts, done = await in_thread(partial(OldTexts.read, root, left))
            left = left[done:]
            others += texts.others
            reader = LineReader(query.most if query.output == "lines" else _ALL, lambda _: True)
            if texts.data:
                await self._ran(argv, reader, stdin=texts.data)
            if time.monotonic() > deadline or (reader.is_cut and query.output == "count"):
                raise ToolError(
                    f"{query.pattern[:200]!r} takes too long: it was searched for in many files that are not UTF-8. "
                    "Search a smaller part, or use ASCII letters only."
                )
            found += texts.apart(reader.lines, around)
        return found, others

    def _is_enough(self, lines: list[RawLine]) -> bool:
        if self._query.output == "lines":
            return sum(line.is_match for line in lines) > self._query.most
        return self._query.output == "files" and len({line.path for line in lines}) > self._query.most

    async def _read(self, calls: list[list[str]], reader: LineReader) -> None:
        """Feed the output of the programs to a reader until it has enough."""
        for argv in calls:
            await self._ran(argv, reader)
            if reader.is_enough:
                break

    async def _count(self, calls: list[list[str]], *, is_wide: bool = False) -> SearchResult:
        counts = await self._counted(calls)
        if is_wide:
            plain = await self._counted(self._calls(self._pattern()))
            doubtful = [path for path, count in counts.items() if plain.get(path) != count and self._counts(path)]
            old, _ = await self._in_old(map(os.fsencode, doubtful))
            counts = {**plain, **Counter(os.fsdecode(line.path) for line in old)}
        return as_counts(self._query, await in_thread(partial(self._confirmed_counts, counts)))

    async def _counted(self, calls: list[list[str]]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for argv in calls:
            counts |= parsed_counts((await self._ran(argv)).output)
        return counts

    def _confirmed_counts(self, counts: dict[str, int]) -> dict[str, int]:
        wanted = {path: count for path, count in counts.items() if self._counts(path)}
        with Statuses(self._context.paths.root) as statuses:
            return {path: count for path, count in wanted.items() if _is_file(statuses, path)}

    async def _ran(
        self, argv: list[str], reader: LineReader | None = None, stdin: bytes | None = None
    ) -> ProcessResult:
        processes, root = self._context.processes, self._context.paths.root
        try:
            result = await processes.run(argv, cwd=root, stdin=stdin, output_limit=OUTPUT_BYTES, enough=reader)
        except ToolError as error:
            raise CannotSearch(str(error)) from error
        if result.exit_code in (0, 1):
            return result
        reason = result.stderr.decode("utf-8", "replace")
        if "PCRE2: error matching" in reason:
            raise takes_too_long(self._query)
        if "is not allowed in a regex" in reason:
            raise ToolError(ONLY_LINES.format("\\n or \\r"))
        if "regex parse error" in reason and "--pcre2" not in argv:
            raise _HasNoSuchExpression(reason)
        if result.exit_code != _SOME_ERROR or not (result.output or await self._can_search(argv)):
            raise CannotSearch(reason)
        return result

    async def _can_search(self, argv: list[str]) -> bool:
        """Whether only files were wrong: the same search in no text at all has no error."""
        command = [*argv[: argv.index("--", argv.index("-e") + 2)], "--", "-"]
        result = await self._context.processes.run(command, cwd=self._context.paths.root, stdin=b"")
        return result.exit_code in (0, 1)


async def _ended(search: asyncio.Future[None]) -> None:
    """Wait for the end of a search that is no longer needed, and ignore its result."""
    search.cancel()
    await asyncio.wait([search])
    if not search.cancelled():
        search.exception()


def _is_file(statuses: Statuses, path: str) -> bool:
    try:
        return stat.S_ISREG(statuses.of(path).st_mode)
    except OSError:
        return False


def _place(line: RawLine) -> list[bytes]:
    return line.path.split(b"/")


def _confirmed(root: Path, path: bytes, lines: list[RawLine]) -> list[FoundLine]:
    """The given lines that a file has, if it is reached without a link. Blocks.

    The program opens files by name. If a folder became a link meanwhile, it has read files outside.
    """
    try:
        with open_without_links(root, os.fsdecode(path)) as file:
            head = file.read(_MARK_BYTES)
            if utf16_codec(head) is not None:
                return _confirmed_wide(file, lines)
            mark = _MARK_BYTES if has_utf8_mark(head) else 0
            readings = ((raw, raw.without_column()) if raw.is_match else (raw,) for raw in lines)
            found = (next((raw for raw in ways if _has(file, raw, {0, mark})), None) for ways in readings)
            return [raw.line() for raw in found if raw is not None]
    except OSError:
        return []


def _has(file: BinaryIO, raw: RawLine, marks: set[int]) -> bool:
    """Whether the file has this line at this position. The program does not count a byte order mark."""
    for mark in marks:
        file.seek(raw.start + mark)
        if file.read(len(raw.data)) == raw.data:
            return True
    return False


def _confirmed_wide(file: BinaryIO, lines: list[RawLine]) -> list[FoundLine]:
    wanted = {raw.number: raw.line() for raw in lines}
    file.seek(0)
    has = enumerate(lines_of(file), 1)
    return [wanted[number] for number, text in has if number in wanted and wanted[number].text == text.rstrip("\n")]


def _batches(files: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for name in files:
        batch.append("./-" if name == "-" else name)  # by itself it is standard input
        characters += len(name) + 1
        if characters > _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
