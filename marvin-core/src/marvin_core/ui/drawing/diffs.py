"""Diffs on the screen: added and removed lines, with the changed words marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...util.text import counted
from ..rendering import DIFF_LINES, Paint, Role, clean
from .inline import Span, painted

_HANGING = "     "
_WORD = re.compile(r"\w+|\s+|.")
_MOST_WORDS = 400
"""The maximum number of words compared in a line; a longer one counts as changed as a whole."""
_ALIKE = 0.4
"""The minimum similarity of two lines, from 0 to 1, for a comparison of words."""


def diff_rows(details: Mapping[str, Any] | None, paint: Paint, hint: str = "") -> list[str]:
    """The diff of an edit, if its details contain one; a long one is cut, and `hint` says where all of it is."""
    diff = (details or {}).get("diff")
    if not isinstance(diff, str) or not diff.strip():
        return []
    lines = clean(diff).rstrip("\n").split("\n")
    rows = [f"{_HANGING}{row}" for row in _painted(lines[:DIFF_LINES], paint)]
    left = len(lines) - DIFF_LINES
    if left > 0:
        rows.append(paint("faint", f"{_HANGING}… {counted(left, 'more line')}{hint}"))
    return rows


def _painted(lines: Sequence[str], paint: Paint) -> Iterator[str]:
    if not paint.color:
        yield from lines
        return
    place = 0
    while place < len(lines):
        removed = _run(lines, place, "-")
        added = _run(lines, place + len(removed), "+")
        if removed and len(removed) == len(added):
            pairs = [_words(old, new, paint) for old, new in zip(removed, added, strict=True)]
            yield from (old for old, _ in pairs)
            yield from (new for _, new in pairs)
        elif removed or added:
            yield from (_line(line, paint) for line in (*removed, *added))
        else:
            yield _line(lines[place], paint)
            place += 1
        place += len(removed) + len(added)


def _run(lines: Sequence[str], place: int, sign: str) -> Sequence[str]:
    """The lines with this sign, starting at a position; names of files are not included."""
    end = place
    while end < len(lines) and lines[end].startswith(sign) and not lines[end].startswith(sign * 3):
        end += 1
    return lines[place:end]


def _line(line: str, paint: Paint) -> str:
    if line.startswith(("---", "+++")):
        return paint("faint", line)
    roles: Mapping[str, Role] = {"+": "added", "-": "removed", "@": "place"}
    role = roles.get(line[:1])
    return paint(role, line) if role else line


def _words(old: str, new: str, paint: Paint) -> tuple[str, str]:
    """A changed line, before and after, with the changed words marked."""
    before, after = _WORD.findall(old[1:]), _WORD.findall(new[1:])
    if max(len(before), len(after)) > _MOST_WORDS:
        return paint("removed", old), paint("added", new)
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return paint("removed", old), paint("added", new)
    left: list[Span] = [(("removed",), "-")]
    right: list[Span] = [(("added",), "+")]
    for what, a, b, c, d in matcher.get_opcodes():
        more: tuple[Role, ...] = () if what == "equal" else ("changed",)
        left.append((("removed", *more), "".join(before[a:b])))
        right.append((("added", *more), "".join(after[c:d])))
    return painted(left, paint), painted(right, paint)
