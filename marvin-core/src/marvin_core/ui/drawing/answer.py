"""The text of an answer on the screen: a complete block is drawn once, the open one is shown as raw text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..rendering import Measure, Paint, Role, clean, wrapped
from .blocks import LONG, Block, Blocks

RULE = "─" * 20
"""Separates turns, and represents a horizontal rule. It is short, so that it fits in one row of every window."""
_ROWS_OF_TABLE = 2
"""The visible rows of an open table: it moves up with each new row, and is redrawn."""
_QUOTE = "│ "
_FENCE = "───"


class Answer:
    """Takes the text of an answer as it arrives; returns rows to write.

    A paragraph is a single row of any length, so that the terminal can wrap, search and copy it as a whole. `raw` is
    called for each answer, and returns whether its text is written unformatted.
    """

    def __init__(self, paint: Paint, measure: Measure, raw: Callable[[], bool]) -> None:
        self._paint = paint
        self._measure = measure
        self._raw = raw
        self._blocks = Blocks()
        self._typed = ""
        self._is_raw = raw()
        self.mark = ""
        """The mark before the next row, which identifies the speaker."""

    def feed(self, delta: str, width: int) -> list[str]:
        """The rows that this part of the text completes."""
        if self.is_empty:
            self._is_raw = self._raw()
        if self._is_raw:
            self._typed += delta
            *complete, self._typed = self._typed.split("\n")
            return list(self._marked([clean(line) for line in complete]))
        return self._drawn(self._blocks.feed(delta), width)

    def end(self, width: int) -> list[str]:
        """The remaining rows, if they contain text; the next answer starts afresh."""
        rows = self._drawn(self._blocks.end(), width)
        rows += self._marked([clean(self._typed)]) if self._typed.strip() else []
        self._typed, self._blocks = "", Blocks()
        return rows

    def pause(self, width: int) -> list[str]:
        """The rows of the remaining text, before other text is written in between."""
        if self._is_raw or not self._blocks.is_code:
            return self.end(width)
        return self._drawn(self._blocks.pause(), width)

    @property
    def is_empty(self) -> bool:
        """Whether no text is held back."""
        return self._blocks.is_empty and not self._typed

    def open_rows(self, width: int, most: int) -> list[str]:
        """The incomplete text, unformatted: its last rows, at most `most`."""
        if self.is_empty:
            return []
        if self._blocks.is_table:
            most = min(most, _ROWS_OF_TABLE)
        text = clean(self._typed[-LONG:]) if self._is_raw else self._blocks.open_text(most * width)
        if not text.strip():
            return []
        rows = wrapped(f"{self._sign()}{text}", width, self._measure, "").split("\n")[-most:]
        return [self._paint("code", row) for row in rows] if self._blocks.is_code else rows

    def _drawn(self, blocks: Sequence[Block], width: int) -> list[str]:
        return [row for block in blocks for row in self._marked(self._rows(block, width))]

    def _sign(self) -> str:
        return f"{self.mark} " if self.mark else ""

    def _marked(self, rows: Sequence[str]) -> Sequence[str]:
        """The rows, with the mark before the first visible one."""
        for place, row in enumerate(rows):
            if self.mark and row.strip():
                marked = [f"{self._paint('marvin', self.mark)} {row}"]
                self.mark = ""
                return [*rows[:place], *marked, *rows[place + 1 :]]
        return rows

    def _rows(self, block: Block, width: int) -> Sequence[str]:
        if block.kind == "blank":
            return [""]
        if block.kind == "rule":
            return [self._paint("rule", RULE)]
        if block.kind == "verbatim":
            return block.lines
        if block.kind == "code":
            return self._code(block)
        return [*self._mark_alone(), *self._table(block, width)] if block.kind == "table" else self._text(block)

    def _mark_alone(self) -> list[str]:
        """The mark in a row of its own, above content that it would shift."""
        mark, self.mark = self.mark, ""
        return [self._paint("marvin", mark)] if mark else []

    def _code(self, block: Block) -> list[str]:
        from .code import code_rows

        rows = [*self._mark_alone()] if block.begins else []
        rows += [self._paint("rule", f"{_FENCE} {block.marker}".rstrip())] if block.begins else []
        rows += code_rows(block.lines, block.before, block.marker, self._paint)
        return [*rows, self._paint("rule", _FENCE)] if block.ends else rows

    def _table(self, block: Block, width: int) -> Sequence[str]:
        from .tables import table_rows

        rows = table_rows(block.lines, width, self._paint, self._measure)
        return block.lines if rows is None else rows

    def _text(self, block: Block) -> list[str]:
        from .inline import lines_of, painted, spans

        text = "\n".join(block.lines)
        base: tuple[Role, ...] = ("heading",) if block.kind == "heading" else ()
        if self._paint.color:
            lines = [painted(line, self._paint) for line in lines_of(spans(text, base))]
        else:
            lines = text.split("\n")  # its signs alone show what is bold
        if block.kind == "quote":
            sign = self._paint("rule", _QUOTE * block.marker.count(">"))
            return [f"{sign}{line}" for line in lines]
        marker, hanging = block.marker, " " * len(block.marker)
        if block.kind == "heading":
            marker, hanging = ("" if self._paint.color else f"{marker} "), ""
        first = marker if block.begins else hanging
        return [f"{first if not number else hanging}{line}".rstrip() for number, line in enumerate(lines)]
