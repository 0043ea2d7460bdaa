"""The query, the scope and the results of a text search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from ...api.errors import ToolError
from ...api.record import Record
from ...guard.files.key_files import is_key_file
from ..files.globs import GlobFilter
from ..files.names import shown_name
from .lines import FoundLine

_LINE_CHARACTERS = 400
_BEFORE_MATCH = 100
_ANSWER_CHARACTERS = 60_000


class SearchQuery(Record):
    """A text search and its scope.

    `pattern` is a regular expression that is matched within lines; with `literal` it is plain text. `start` is a
    folder or file, checked and relative to the root, as returned by `real_place`. `files` selects files below it with
    patterns like those of .gitignore, as in `*.py` or `*.ts,!*.test.ts`. `context_lines` are shown before and after
    each matching line. `output` is `lines`, `files` for the first match of each file alone, or `count` for the number
    of matching lines of each file.
    """

    pattern: str
    start: str = "."
    files: str = "*"
    ignore_case: bool = False
    literal: bool = False
    context_lines: int = 0
    most: int = 20
    output: Literal["lines", "files", "count"] = "lines"


class SearchResult(Record):
    """The matching lines and their context, in the order of the files.

    `has_more` says that there are more than `most` matches, or more than fit into the result. `has_files` is False
    if no file matches `files`. `counts` has the number of matching lines by file, if requested; `matches` is then
    their sum.
    """

    lines: tuple[FoundLine, ...]
    matches: int
    context_lines: int = 0
    has_more: bool = False
    has_files: bool = True
    counts: tuple[tuple[str, int], ...] = ()

    def text(self) -> str:
        """The lines as `path:number: text`, with `-` instead of `:` for context, and `--` between groups.

        Counts are `path: count`. A long line is cut around the match.
        """
        shown = [f"{shown_name(path)}: {count:,}" for path, count in self.counts]
        previous = None
        for line in self.lines:
            if previous is not None and self.context_lines and not _is_near(line, previous, 1):
                shown.append("--")
            shown.append(_format(line))
            previous = line
        return "\n".join(shown)

    def files(self) -> tuple[str, ...]:
        """The files with matching lines, each once, for display."""
        return tuple(dict.fromkeys(shown_name(line.path) for line in self.lines if line.is_match))


class SearchPlaces(Record):
    """The scope: `files` are all of them, relative to the root; None for those below the start of the query.

    Below the start the program applies .gitignore; `wanted` says which files count. Hidden ones do not, even if
    .gitignore brings them back: .git and .tickets are among them. A program that is told so takes a tenth longer.
    """

    files: tuple[str, ...] | None
    wanted: GlobFilter

    def counts(self, path: str, start: str) -> bool:
        """Whether matches of a file count. Files that hold keys count only if the query names them."""
        if path == start:
            return True
        if holds_keys(path) or (self.files is None and (path[0] == "." or "/." in path)):
            return False
        return self.wanted.is_everything or self.wanted(path, start)


def as_result(query: SearchQuery, lines: Iterable[FoundLine], *, is_cut: bool) -> SearchResult:
    """What a search finds, as far as it fits into an answer.

    Args:
        is_cut: whether there is more than these lines.
    """
    shown: list[FoundLine] = []
    matches = characters = complete = 0
    last_match = None
    for line in lines:
        if matches + line.is_match > query.most or characters > _ANSWER_CHARACTERS:
            # What stands before a match that is not shown is left out with it.
            return _result(query, shown[:complete], matches, has_more=True)
        matches += line.is_match
        shown.append(line)
        characters += len(_format(line)) + 1
        last_match = line if line.is_match else last_match
        if last_match is not None and _is_near(line, last_match, query.context_lines):
            complete = len(shown)
    return _result(query, shown, matches, has_more=is_cut)


def as_counts(query: SearchQuery, counts: dict[str, int]) -> SearchResult:
    """The result of a search with `output="count"`."""
    found = tuple(sorted(counts.items(), key=lambda entry: entry[0].split("/")))
    return SearchResult(
        lines=(), matches=sum(counts.values()), counts=found[: query.most], has_more=len(found) > query.most
    )


@lru_cache(maxsize=1_000)
def holds_keys(path: str) -> bool:
    """Whether a file usually holds keys, by its name."""
    return is_key_file(path)


def _result(query: SearchQuery, lines: list[FoundLine], matches: int, *, has_more: bool) -> SearchResult:
    return SearchResult(lines=tuple(lines), matches=matches, context_lines=query.context_lines, has_more=has_more)


def _is_near(line: FoundLine, earlier: FoundLine, distance: int) -> bool:
    return line.path == earlier.path and line.number - earlier.number <= distance


def _format(line: FoundLine) -> str:
    mark = ":" if line.is_match else "-"
    text = line.text
    if len(text) > _LINE_CHARACTERS:
        begin = max(0, line.column - _BEFORE_MATCH) if line.column > _LINE_CHARACTERS - _BEFORE_MATCH else 0
        end = begin + _LINE_CHARACTERS
        before = f"[{begin:,} characters ...] " if begin else ""
        after = f" [... {len(text) - end:,} more characters]" if end < len(text) else ""
        text = f"{before}{text[begin:end]}{after}"
    return f"{shown_name(line.path)}{mark}{line.number}{mark} {text}"


def no_expression(query: SearchQuery, reason: str) -> ToolError:
    """The error for an invalid regular expression."""
    return ToolError(
        f"{query.pattern!r} is not a valid regular expression: {reason}. To search for the literal text, use "
        f"{re.escape(query.pattern)!r}."
    )


def takes_too_long(query: SearchQuery) -> ToolError:
    """The error for a pattern whose matching takes too long."""
    return ToolError(
        f"{query.pattern[:200]!r} takes too long: it tries too many ways to match one line. Avoid nested repetitions "
        "and look-around, or search a smaller part."
    )
