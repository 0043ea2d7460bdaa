"""Finds the text that a missing one probably means: in bounded time, anywhere in the file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from types import MappingProxyType

from .document import Document
from .patch import Hunk

_SHOWN = 3
_SHOWN_LINES = 12
_LINE_SHOWN = 200
_LINES = 40
"""The maximum number of lines of a text that are searched."""
_PIECES = 64
"""The maximum number of pieces of these lines that are searched."""
_HITS = 200
"""The maximum number of matches of each piece."""
_LIKE_ENOUGH = 0.2
"""The fraction of a text that has to match."""
_FINE_ENOUGH = 0.3
"""The same for the shortest pieces, which many lines have in common."""
_WORDS_ENOUGH = 0.5
"""The same for words, which may occur by chance."""
_WORD = re.compile(r"\w{4,}")
_TELLING = 12
"""The minimum length in characters: a shorter text may match by chance."""
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
_ESCAPE = re.compile(r"""\\([nt"'\\])""")
_ESCAPED = MappingProxyType({"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"})


def advice(document: Document, hunk: Hunk, *, secret: bool = False) -> str:
    """The probable reason why the text of a change does not occur, and similar lines.

    Args:
        secret: the file holds keys, so that no line is shown.
    """
    new, old = hunk.new.replace("\r\n", "\n"), hunk.old.replace("\r\n", "\n")
    if len(new.strip()) >= _TELLING and new.strip("\n") in document.text:
        line = document.line_at(document.text.index(new.strip("\n")))
        return (
            f"The new text is already there, at line {line:,}: the change seems to have been made already. Read "
            "the file to check."
        )
    if secret:
        return "Read the file again. Its lines are not shown here, because it is a file for keys or passwords."
    stripped = _LINE_NUMBER.sub("", old)
    if stripped != old and stripped.strip("\n") in document.text:
        return "It occurs without line numbers: leave out the number and the tab before each line."
    for decoded, what in _decoded(old):
        if decoded != old and decoded.strip() and decoded.strip("\n") in document.text:
            return f"It occurs with {what}. Send the characters themselves, in the new text too."
    wanted = old.strip("\n").split("\n")
    starts = nearest(document, wanted)
    if not starts:
        return "The file contains nothing similar. Read the file again, and check that the path is right."
    shown = "\n...\n".join(excerpt(document, start, len(wanted)) for start in starts)
    return f"The nearest lines:\n{shown}\nCopy the text exactly, or read the file again."


def _decoded(old: str) -> Iterator[tuple[str, str]]:
    """A text that was escaped once too often as it was meant, and what that has instead."""
    yield _ESCAPE.sub(lambda found: _ESCAPED[found[1]], old), r"line breaks, tabs and quotes instead of \n, \t and \""
    yield unescape(old), "<, > and & instead of &lt;, &gt; and &amp;"


def excerpt(document: Document, start: int, count: int) -> str:
    """Some lines, from 0 on, with their numbers."""
    lines = document.lines[start : start + min(count, _SHOWN_LINES)]
    return "\n".join(f"{number}\t{_cut(line)}" for number, line in enumerate(lines, start + 1))


def _cut(line: str) -> str:
    return line if len(line) <= _LINE_SHOWN else f"{line[:_LINE_SHOWN]} [... cut]"


def nearest(document: Document, wanted: list[str]) -> list[int]:
    """The lines, from 0 on, at which the text would begin, judged by where some of its pieces occur."""
    return (
        _likely(document, list(_pieces(wanted)), _LIKE_ENOUGH)
        or _likely(document, list(_words(wanted)), _WORDS_ENOUGH, only_rare=True)
        or _likely(document, list(_fine_pieces(wanted)), _FINE_ENOUGH)
    )


def _likely(
    document: Document, pieces: list[tuple[int, str]], like_enough: float, *, only_rare: bool = False
) -> list[int]:
    pieces = list(dict.fromkeys(pieces))
    if len(pieces) > _PIECES:
        pieces = [pieces[i * len(pieces) // _PIECES] for i in range(_PIECES)]
    found = [(piece, _begins(document, offset, piece)) for offset, piece in pieces]
    telling = [(piece, lines) for piece, lines in found if len(lines) < _HITS] or ([] if only_rare else found)
    votes: dict[int, float] = defaultdict(float)
    there: dict[int, int] = defaultdict(int)
    for piece, lines in telling:
        for line in lines:
            votes[line] += len(piece) / len(lines)  # what is rare tells more
            there[line] += len(piece)
    total = sum(len(piece) for piece, _ in telling)
    best = sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))
    likely = [max(0, line) for line, vote in best if there[line] >= like_enough * total and vote * 2 >= best[0][1]]
    return list(dict.fromkeys(likely))[:_SHOWN]


def _begins(document: Document, offset: int, piece: str) -> set[int]:
    """The lines at which a text would begin if a piece occurs the given number of lines below its beginning."""
    return {_line_of(document, hit) - offset for hit in _hits(document.text, piece)}


def _pieces(wanted: list[str]) -> Iterator[tuple[int, str]]:
    """Parts of the lines, each with the number of its line."""
    for offset, line in enumerate(wanted[:_LINES]):
        bare = line.strip()
        if len(bare) < 2:
            continue
        yield offset, bare
        size = 5 if len(bare) <= 30 else 10
        for start in range(0, min(len(bare), 20 * size) - size + 1, size):
            yield offset, bare[start : start + size]


def _words(wanted: list[str]) -> Iterator[tuple[int, str]]:
    """The words: in a file of many similar lines, one of them may be in few lines only."""
    for offset, line in enumerate(wanted[:_LINES]):
        for word in _WORD.findall(line):
            yield offset, word


def _fine_pieces(wanted: list[str]) -> Iterator[tuple[int, str]]:
    """All sequences of three characters: a short line with a typo may share no longer ones."""
    for offset, line in enumerate(wanted[:_LINES]):
        bare = line.strip()
        for start in range(min(len(bare), _PIECES) - 2):
            yield offset, bare[start : start + 3]


def _hits(text: str, piece: str) -> Iterator[int]:
    at = text.find(piece)
    for _ in range(_HITS):
        if at < 0:
            return
        yield at
        at = text.find(piece, at + len(piece))


def _line_of(document: Document, position: int) -> int:
    return bisect_right(document.starts, position, 0, max(1, len(document.starts) - 1)) - 1
