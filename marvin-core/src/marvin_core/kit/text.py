"""Prepares texts for a model: output of programs, long texts, lists of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..util.terminal_text import disarm, folded

_LINE_SEARCH = 2_000
"""The distance within which a cut is moved to the end of a line, in characters."""


def output_text(data: bytes, omitted: int = 0, advice: str = "") -> str:
    """The output of a program as text: without terminal control sequences, with a note where bytes were dropped.

    Of a line that was overwritten after carriage returns, the last state is shown. Invalid UTF-8 is shown
    as U+FFFD.

    Args:
        data: `ProcessResult.output`: if bytes were dropped, the first half is the head of the output and
            the second its tail.
        omitted: the number of dropped bytes between them, `ProcessResult.omitted`.
        advice: a sentence that says how to see the rest.
    """
    if not omitted:
        return _plain(data)
    middle = len(data) - len(data) // 2
    head, tail = data[:middle], data[middle:]
    line_end = head.rfind(b"\n", max(0, len(head) - _LINE_SEARCH)) + 1
    if line_end:
        omitted += len(head) - line_end
        head = head[:line_end]
    line_start = tail.find(b"\n", 0, _LINE_SEARCH) + 1
    omitted += line_start
    return f"{_plain(head).rstrip()}\n{_note(omitted, 'bytes', advice)}\n{_plain(tail[line_start:])}"


def head_and_tail(text: str, limit: int, advice: str = "") -> str:
    """A text of at most `limit` characters unchanged; a longer one as its head and its tail, with a note between them.

    It is cut at ends of lines if some are near.

    Args:
        limit: the maximum number of characters, without the note.
        advice: a sentence that says how to see the rest.
    """
    if len(text) <= limit:
        return text
    head, tail = text[: limit - limit // 2], text[len(text) - limit // 2 :]
    line_end = head.rfind("\n", max(0, len(head) - _LINE_SEARCH)) + 1
    head = head[:line_end] or head
    tail = tail[tail.find("\n", 0, _LINE_SEARCH) + 1 :]
    omitted = len(text) - len(head) - len(tail)
    return f"{head.rstrip()}\n{_note(omitted, 'characters', advice)}\n{tail}"


def numbered(results: Iterable[str], limit: int, *, total: int | None = None, advice: str = "") -> str:
    """Results as a numbered list, as many as fit; a last line gives their number if some are left out.

    Each begins with its number, and its further lines are indented. Results are separated by an empty line if one of
    them has several lines. The first is always shown, cut if it is too long.

    Args:
        results: one text each.
        limit: the maximum number of characters, without the last line.
        total: the number of all results, if not all of them are given.
        advice: a sentence that says how to see the others.
    """
    given = list(results)
    parts = [_indented(number, result) for number, result in enumerate(given, 1)]
    gap = "\n\n" if any("\n" in part for part in parts) else "\n"
    shown = list(_fitting(parts, limit, len(gap)))
    if given and not shown:
        shown = [parts[0][:limit].rstrip() + "…"]
    there = max(total or 0, len(given))
    if len(shown) < there:
        shown.append(f"[{len(shown):,} of {there:,} are shown. {advice}".rstrip() + "]")
    return gap.join(shown)


def _indented(number: int, result: str) -> str:
    begin = f"{number}. "
    first, *others = result.strip().splitlines() or [""]
    return "\n".join([begin + first, *(" " * len(begin) + line if line else "" for line in others)])


def _fitting(parts: Iterable[str], limit: int, gap: int) -> Iterator[str]:
    left = limit
    for part in parts:
        if len(part) > left:
            return
        left -= len(part) + gap
        yield part


def _note(omitted: int, what: str, advice: str) -> str:
    return f"[... {omitted:,} {what} omitted. {advice}".rstrip() + "]"


def _plain(data: bytes) -> str:
    return disarm(folded(data.decode("utf-8", "replace")))
