"""Replacing the one place where a text occurs, and finding what was probably meant where it does not."""

from __future__ import annotations

import re

from ...api.errors import ToolError
from ...api.record import Record

_PLACES_SHOWN = 20
_NEAR_SHOWN = 3
_NEAR_LINES = 12
_SEARCHED_LINES = 20_000
_COMPARED_CHARACTERS = 200
_LIKE_ENOUGH = 0.6
_TELLING = 12  # characters: a shorter text may well occur for another reason
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)


class Replacement(Record):
    """A text with its one change: where it begins, as a line from 1, and how many lines went and came."""

    text: str
    line: int
    removed: int
    added: int


class NoMatch(ToolError):
    """The text that was to be replaced does not occur."""


def replace_once(path: str, text: str, old: str, new: str) -> Replacement:
    """Replace the one exact occurrence of `old`. In a file with CRLF line ends both may be given with LF.

    Raises:
        NoMatch: where there is none, with what comes near.
        ToolError: where there are several, with their lines.
    """
    found = [
        (position, fitted_old, fitted_new)
        for fitted_old, fitted_new in _fitted(text, old, new)
        for position in _positions(text, fitted_old)
    ]
    if not found:
        advice = near_misses(path, text, old, new)
        raise NoMatch(f"The text to be replaced does not occur in {path!r}; nothing was changed. {advice}")
    position, fitted_old, fitted_new = found[0]
    if len(found) > 1:
        lines = sorted({text.count("\n", 0, place) + 1 for place, _, _ in found})
        shown = ", ".join(map(str, lines)) + (", ..." if len(found) >= _PLACES_SHOWN else "")
        raise ToolError(
            f"The text to be replaced occurs {max(len(found), text.count(fitted_old))} times in {path!r}, at line "
            f"{shown}; nothing was changed. Add lines before or after it, to the new text as well, until it is unique."
        )
    return Replacement(
        text=text[:position] + fitted_new + text[position + len(fitted_old) :],
        line=text.count("\n", 0, position) + 1,
        removed=_lines(fitted_old),
        added=_lines(fitted_new),
    )


def _lines(text: str) -> int:
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def _fitted(text: str, old: str, new: str) -> list[tuple[str, str]]:
    """The pairs to look for: with the line ends of the file, and as they came where it has both kinds."""
    crlf = text.count("\r\n")
    if not crlf:
        return [(old, new)]
    converted = (_with_crlf(old), _with_crlf(new))
    if crlf == text.count("\n"):
        return [converted]
    return [(old, new)] if converted[0] == old else [(old, new), converted]


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _positions(text: str, needle: str) -> list[int]:
    """The first places, overlapping ones too: any of them may be the one that is meant."""
    found: list[int] = []
    position = text.find(needle)
    while position >= 0 and len(found) < _PLACES_SHOWN:
        found.append(position)
        position = text.find(needle, position + 1)
    return found


def near_misses(path: str, text: str, old: str, new: str) -> str:
    """What may have gone wrong, and the lines that come near, as advice."""
    if len(new.strip()) >= _TELLING and new in text:
        line = text.count("\n", 0, text.index(new)) + 1
        return f"The new text is already there, at line {line}: the change seems to be made. Read the file to check."
    stripped = _LINE_NUMBER.sub("", old)
    if stripped != old and stripped in text.replace("\r\n", "\n"):
        return "It occurs without the line numbers: leave out the number and the tab before each line."
    lines = text.split("\n")[:_SEARCHED_LINES]
    wanted = old.strip("\n").split("\n")
    starts = _same_but_for_blanks(lines, wanted)
    reason = "Only spaces or tabs differ here" if starts else "The nearest lines"
    starts = starts or _similar(lines, wanted)
    if not starts:
        return f"Nothing like it is in it. Read the file again, and check that {path!r} is right."
    count = min(len(wanted), _NEAR_LINES)
    shown = "\n...\n".join(_numbered(lines, start, count) for start in starts[:_NEAR_SHOWN])
    return f"{reason}:\n{shown}\nCopy the text exactly, or read the file again."


def _same_but_for_blanks(lines: list[str], wanted: list[str]) -> list[int]:
    bare = ["".join(line.split()) for line in wanted]
    if not any(bare):
        return []
    all_bare = ["".join(line.split()) for line in lines]
    return [
        start
        for start in range(len(lines) - len(bare) + 1)
        if all_bare[start] == bare[0] and all_bare[start : start + len(bare)] == bare
    ]


def _similar(lines: list[str], wanted: list[str]) -> list[int]:
    """Where the text would begin if its most telling line were one of those that resemble it."""
    from difflib import SequenceMatcher  # 2 ms, and only after a mistake

    offset, anchor = max(enumerate(wanted), key=lambda line: len(line[1].strip()))
    matcher = SequenceMatcher(None, "", anchor.strip()[:_COMPARED_CHARACTERS], autojunk=False)
    scored: list[tuple[float, int]] = []
    for number, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:_COMPARED_CHARACTERS])
        if matcher.real_quick_ratio() >= _LIKE_ENOUGH and matcher.quick_ratio() >= _LIKE_ENOUGH:
            ratio = matcher.ratio()
            if ratio >= _LIKE_ENOUGH:
                scored.append((-ratio, number))
    return [max(0, number - offset) for _, number in sorted(scored)[:_NEAR_SHOWN]]


def _numbered(lines: list[str], start: int, count: int) -> str:
    shown = enumerate(lines[start : start + count], start + 1)
    return "\n".join(f"{number}\t{line.rstrip(chr(13))[:_COMPARED_CHARACTERS]}" for number, line in shown)
