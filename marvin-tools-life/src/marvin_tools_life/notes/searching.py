"""The tool search_notes."""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterable
from itertools import groupby
from typing import Annotated, Literal

from marvin_core import (
    Field,
    FoundLine,
    SearchQuery,
    SearchResult,
    ToolContext,
    ToolError,
    in_thread,
    one_line,
    search_files,
    tool,
)

from .place import Notes

_WORDS = 8
"""Words of a query that are searched for one by one if no line contains the whole query."""
_LOOKED_AT = 2_000
"""Lines with at least one word, from which the notes with most of them are chosen."""
_NAMES_SHOWN = 10
_FORMS: tuple[Literal["NFC", "NFD"], ...] = ("NFC", "NFD")
"""Normal forms of accents: most systems use the first, file names on a Mac the second."""
_NAME = 200


@tool(access=["read"], aliases={"query": ("text", "pattern", "q", "keyword"), "max_results": ("limit", "most")})
async def search_notes(
    query: Annotated[str, "Words; case is ignored"],
    max_results: Annotated[int, Field(ge=1, le=100), "Maximum lines"] = 20,
    *,
    context: ToolContext,
) -> str:
    """Search the names and lines of all notes."""
    words = query.split()
    if not words or "\0" in query:
        raise ToolError("The query is empty. Give one or more words of a note.")
    notes = await in_thread(lambda: Notes(context))
    if not await in_thread(lambda: notes.files.paths.exists(notes.folder(""))):
        return f"There are no notes yet in {notes.shown}. Use write_note to create one."
    names, found = await asyncio.gather(
        in_thread(lambda: _names(notes, words)),
        search_files(notes.files, _query(notes, r"\s+".join(map(_pattern, words)), max_results)),
    )
    said = [names] if names else []
    if found.matches:
        said.append(_told(found))
    elif len(words) > 1:
        said += [told] if (told := await _by_words(notes, words, max_results)) else []
    if not said:
        return f"No note in {notes.shown} has {query.strip()!r}. Try fewer or other words, or list them with notes_ls."
    return "\n".join(said)


def _pattern(word: str) -> str:
    """A word as a regular expression, with accents in both normal forms."""
    forms = dict.fromkeys([word, *(unicodedata.normalize(form, word) for form in _FORMS)])
    written = [re.escape(form) for form in forms]
    return written[0] if len(written) == 1 else f"(?:{'|'.join(written)})"


def _query(notes: Notes, pattern: str, most: int) -> SearchQuery:
    return SearchQuery(pattern=pattern, start=notes.start, ignore_case=True, most=most)


def _told(found: SearchResult) -> str:
    more = "\n[There are more lines. Search for more words, or raise max_results.]" if found.has_more else ""
    return found.text() + more


def _names(notes: Notes, words: list[str]) -> str:
    """The notes whose paths contain all words. Blocks."""
    # Only names with the longest word are examined: there may be very many notes.
    pattern = "".join(_in_any_case(sign) for sign in max(words, key=len).rpartition("/")[2])
    try:
        found = notes.files.paths.glob(f"{notes.start}/**/*{pattern}*")
    except ToolError:  # more names than are examined
        return ""
    wanted = [_composed(word) for word in words]
    paths = [path.removeprefix(f"{notes.start}/") for path in found]
    shown = [one_line(path, _NAME) for path in paths if all(word in _composed(path) for word in wanted)]
    if not shown:
        return ""
    more = f" and {len(shown) - _NAMES_SHOWN:,} more" if len(shown) > _NAMES_SHOWN else ""
    return f"[By name: {', '.join(shown[:_NAMES_SHOWN])}{more}]"


def _in_any_case(sign: str) -> str:
    """A character as a literal in a pattern of `paths.glob`; one with an accent in either normal form."""
    if not sign.isascii():
        return "*"
    cases = {sign, sign.lower(), sign.upper()}
    if cases == {sign}:
        return f"[{sign}]" if sign in "[*?" else sign
    return f"[{''.join(sorted(case for case in cases if len(case) == 1))}]"


async def _by_words(notes: Notes, words: list[str], most: int) -> str:
    """The lines of the notes with most of the words, if no line has all of them."""
    wanted = list({_composed(word): word for word in words}.values())[:_WORDS]
    found = await search_files(notes.files, _query(notes, "|".join(map(_pattern, wanted)), _LOOKED_AT))
    if not found.lines:
        return ""
    groups = {path: list(lines) for path, lines in groupby(found.lines, key=lambda line: line.path)}
    counts = {path: _held(wanted, lines) for path, lines in groups.items()}
    best = max(counts.values())
    lines = [line for path, lines in groups.items() if counts[path] == best for line in lines]
    said = "all of the words" if best == len(wanted) else f"{best} of the {len(wanted)} words"
    shown = found.replace(lines=tuple(lines[:most]), has_more=len(lines) > most or found.has_more)
    return f"[No line has these words in a row. Notes with {said}:]\n{_told(shown)}"


def _held(words: Iterable[str], lines: Iterable[FoundLine]) -> int:
    text = _composed("\n".join(line.text for line in lines))
    return sum(_composed(word) in text for word in words)


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())
