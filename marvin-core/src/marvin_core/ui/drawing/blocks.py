"""Splits an answer into blocks as it arrives: paragraphs, items, headings, code, tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from ...api.record import Record
from ..rendering import clean

Kind: TypeAlias = Literal["paragraph", "item", "quote", "heading", "code", "verbatim", "table", "rule", "blank"]

LONG = 4_000
"""The maximum length of a block that is held back until its end, in characters. A longer one is written in parts."""
PART = 5
"""The number of lines in such a part: few enough to be visible while they arrive, without redrawing."""
_CONTEXT = 40
"""The number of code lines before a part that determine its colours."""
LONG_TABLE = 200
"""The maximum number of rows of an aligned table. A longer one is written unformatted."""
_LONG_TABLE_CHARACTERS = 20_000
LONG_CODE_LINE = 100_000
"""The maximum length of a code line that is not split, in characters."""

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r" {0,3}(?P<signs>#{1,6})(?: +(?P<text>.*?))?(?: +#+)? *$")
_RULE = re.compile(r" {0,3}(?:(?:- *){3,}|(?:_ *){3,}|(?:\* *){3,})$")
_UNDERLINE = re.compile(r" {0,3}(?P<sign>=+|-+) *$")
_ITEM = re.compile(r"(?P<marker> *(?:[-*+]|\d{1,9}[.)]) +)(?P<text>\S.*)?$")
_QUOTE = re.compile(r" {0,3}(?P<marker>(?:> ?)+)(?P<text>.*)$")
_DELIMITERS = re.compile(r" *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$")
_TEXT: tuple[Kind, ...] = ("paragraph", "item", "quote")


class Block(Record):
    """One block, or a part of a long one.

    `marker` is the sign of an item or a quote, the `#` signs of a heading, or the language of code. For code in parts,
    `before` contains the last lines of the previous parts; `begins` and `ends` mark the first and the last part.
    """

    kind: Kind
    lines: tuple[str, ...] = ()
    marker: str = ""
    before: tuple[str, ...] = ()
    begins: bool = True
    ends: bool = True


_BLANK = Block(kind="blank")


class Blocks:
    """Takes parts of an answer; returns the completed blocks.

    The end of a block depends only on the text, and not on how the text was split.
    """

    def __init__(self) -> None:
        self._line = ""
        self._kind: Kind | None = None
        self._lines: list[str] = []
        self._size = 0
        self._marker = ""
        self._fence = ""
        self._indent = 0
        self._before: list[str] = []
        self._begins = True
        self._last: Kind = "blank"
        self._in_list = False

    def feed(self, delta: str) -> list[Block]:
        """The blocks that this part completes."""
        self._line += delta
        found: list[Block] = []
        if "\n" in delta:
            *complete, rest = self._line.split("\n")
            for line in complete:
                found += self._take_all(line)
            self._line = rest
        if len(self._line) > LONG:
            found += self._take_long()
        return found

    def end(self) -> list[Block]:
        """The remaining block."""
        found = [*self._take_all(self._line)] if self._line.strip() else []
        self._line = ""
        return [*found, *self._close()]

    def pause(self) -> list[Block]:
        """The remaining block, before other text is written in between. Code continues as code afterwards."""
        if self._kind != "code":
            return self.end()
        return [*self._part()] if self._lines else []

    @property
    def is_empty(self) -> bool:
        """Whether no text is held back."""
        return self._kind is None and not self._line

    @property
    def is_table(self) -> bool:
        """Whether a table is open."""
        return self._kind == "table"

    @property
    def is_code(self) -> bool:
        """Whether a code block is open."""
        return self._kind == "code"

    def open_text(self, most: int) -> str:
        """The text held back, unformatted: its last `most` characters, or slightly more."""
        rest = clean(self._line[-most:])
        lines: list[str] = []
        for line in reversed(self._lines):
            most -= len(line) + 1
            if most < 0:
                break
            lines.append(line)
        text = "\n".join([*reversed(lines), rest])
        first = len(lines) == len(self._lines)
        return self._marker + text if first and self._kind in _TEXT else text

    # --- lines -------------------------------------------------------------------------------------

    def _take_all(self, line: str) -> Iterator[Block]:
        """A complete line, in parts if it is very long."""
        self._line = line
        yield from self._take_long()
        line, self._line = self._line, ""
        yield from self._take(clean(line).rstrip("\r"))

    def _take_long(self) -> Iterator[Block]:
        """The part of the line that is too long to be held back, split after a space if possible."""
        most = LONG_CODE_LINE if self._kind == "code" else LONG
        while len(self._line) > most:
            place = self._line.rfind(" ", most // 2, most) + 1 or most
            line, self._line = self._line[:place], self._line[place:]
            yield from self._take(clean(line).rstrip("\r"))

    def _take(self, line: str) -> Iterator[Block]:
        if self._kind == "code":
            yield from self._take_code(line)
        elif not line.strip():
            yield from self._close()
            if self._last != "blank":
                self._last = "blank"
                yield _BLANK
        elif match := _FENCE.match(line):
            yield from self._close()
            self._open("code", match["info"].strip())
            self._fence, self._indent = match["fence"], len(match["indent"])
        else:
            yield from self._take_text(line)

    def _take_code(self, line: str) -> Iterator[Block]:
        bare = line.strip()
        if bare and bare == self._fence[0] * len(bare) and len(bare) >= len(self._fence):
            yield from self._close()
            return
        indent = min(self._indent, len(line) - len(line.lstrip(" ")))
        yield from self._add(line[indent:])

    def _take_text(self, line: str) -> Iterator[Block]:
        if self._kind in ("table", "verbatim") and "|" in line:
            yield from self._add(line)
        elif self._begins_table(line):
            self._kind = "table"
            self._lines.append(line)
        elif self._kind == "paragraph" and (match := _UNDERLINE.match(line)) and self._begins:
            self._kind, self._marker = "heading", "#" if match["sign"][0] == "=" else "##"
            yield from self._close()
        elif match := _HEADING.match(line):
            yield from self._close()
            self._open("heading", match["signs"])
            self._lines.append(match["text"] or "")
            yield from self._close()
        elif _RULE.match(line):
            yield from self._close()
            self._open("rule")
            yield from self._close()
        elif (match := _QUOTE.match(line)) or (match := _ITEM.match(line)):
            kind: Kind = "quote" if ">" in match["marker"] else "item"
            if not (kind == self._kind == "quote" and match["marker"].strip() == self._marker.strip()):
                yield from self._close()
                self._open(kind, match["marker"])
            yield from self._add(match["text"] or "")
        elif self._kind in _TEXT:
            yield from self._add(line.strip())
        else:
            yield from self._take_first(line)

    def _take_first(self, line: str) -> Iterator[Block]:
        """The first line of a paragraph; below an item it keeps the indentation that makes it part of the item."""
        yield from self._close()
        text = line.lstrip(" ")
        if line.startswith("    ") and not self._in_list:
            self._open("verbatim")
            self._lines.append(line)
            yield from self._close()
        else:
            self._open("paragraph", line[: len(line) - len(text)])
            yield from self._add(text.rstrip())

    def _begins_table(self, line: str) -> bool:
        """Whether the line separates the header of a table from its rows."""
        return (
            self._kind == "paragraph"
            and len(self._lines) == 1
            and "|" in self._lines[0]
            and "|" in line
            and _DELIMITERS.match(line) is not None
        )

    def _open(self, kind: Kind, marker: str = "") -> None:
        self._kind, self._marker, self._begins = kind, marker, True
        self._lines, self._before, self._size = [], [], 0
        if kind == "item":
            self._in_list = True
        elif kind != "code" and not marker.startswith(" "):
            self._in_list = False

    def _add(self, line: str) -> Iterator[Block]:
        """A line of the open block; a part of a long block is released."""
        self._lines.append(line)
        self._size += len(line)
        if self._kind == "table":
            if len(self._lines) > LONG_TABLE or self._size > _LONG_TABLE_CHARACTERS:
                self._kind = "verbatim"
                yield from self._part()
        elif len(self._lines) >= PART or self._size >= LONG:
            yield from self._part()

    def _part(self) -> Iterator[Block]:
        assert self._kind is not None
        yield self._block(ends=False)
        self._before = [*self._before, *self._lines][-_CONTEXT:]
        self._lines, self._size, self._begins = [], 0, False

    def _close(self) -> Iterator[Block]:
        if self._kind is None:
            return
        block = self._block(ends=True)
        self._last, self._kind = self._kind, None
        self._lines, self._marker, self._size = [], "", 0
        if block.lines or block.begins or block.kind == "code":
            yield block

    def _block(self, *, ends: bool) -> Block:
        assert self._kind is not None
        before = tuple(self._before) if self._kind == "code" else ()
        return Block(
            kind=self._kind,
            lines=tuple(self._lines),
            marker=self._marker,
            before=before,
            begins=self._begins,
            ends=ends,
        )
