"""Events as lines that are written once, from top to bottom: for the eye, and for a screen reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from ..api.messages import Shown, Table
from ..util.shown import ROWS, cell_text, columns_of, shown_lines
from ..util.terminal_text import TerminalFilter, disarm, exact
from ..util.text import counted, local_time, one_line
from .quoted import Quoting
from .rendering import Paint, clean, outcome_line, shown_rows

if TYPE_CHECKING:
    from ..api.controls import SaidEntry
    from ..api.events import ToolExecutionEnd, ToolExecutionStart

_TABLE_RULE = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_LONGEST_TABLE = 10_000
"""The number of characters of lines that are delayed because they may form a table."""
_ARGUMENT = 200
"""The number of shown characters of an argument."""
_UNBROKEN = 100_000
"""The number of columns of a header without its command: the terminal wraps it, like all other text here."""
_MOST_ROWS = 200
"""The maximum number of rows of a command. No key shows the rest here."""


class SpokenQuoting(Quoting):
    """Quotes texts for a screen reader: a word before each line, lines of a diff in words, nothing folded."""

    def rows(self, text: str, most: int = 0, *, diff: bool = False) -> Iterator[str]:
        """A text with every character; if it has more than `most` lines, it is cut, and a note says so."""
        lines = text.expandtabs(4).split("\n")
        lines = [_quoted_change(number, line) for number, line in enumerate(lines)] if diff else lines
        left = len(lines) - most if most else 0
        for line in lines[: most or None]:
            yield f"quoted: {line}"
        if left > 0:
            yield f"{counted(left, 'line')} left out here; view tells all of it"


class LineWriting:
    """Lines for the eye."""

    quoting: type[Quoting] = Quoting
    """How third-party texts are quoted in a question."""

    sign = "> "
    """The sign before a line of the user."""
    working = "Still working"
    """The message if there is no output for some time."""

    def __init__(self) -> None:
        self._paint = Paint(color=False)
        self._clean = TerminalFilter()

    def text(self, delta: str) -> str:
        """The output for a piece of an answer."""
        return self._clean(delta)

    def end_text(self) -> str:
        """The output at the end of an answer's text, which ends its line."""
        self._clean = TerminalFilter()
        return ""

    def call(self, event: ToolExecutionStart, command: str, width: int) -> str:
        """The start of a call, with the whole parameter `command`, in rows of this width."""
        from .drawing.calls import header_rows

        quoting = Quoting(self._paint, width - 3, columns_of)
        return "\n".join(header_rows(event, command, quoting, _UNBROKEN, columns_of, most=_MOST_ROWS))

    def outcome(self, event: ToolExecutionEnd, width: int) -> str:
        """The result of a call and what it displays, in rows of this width."""
        from .drawing.diffs import diff_rows

        shown = shown_rows(event.show, width, columns_of)
        return "\n".join([outcome_line(event), *diff_rows(event.details, self._paint), *shown])

    def choices(self, sign: str) -> str:
        """The possible answers, as part of the question."""
        return sign

    def chosen(self, sign: str, line: str) -> str:
        """The typed line in the words that the question accepts."""
        return line

    def replay(self, entries: Sequence[SaidEntry]) -> str:
        """The earlier messages of a resumed session."""
        rows = [f"(Earlier, {local_time(entries[0].time)})" if entries and entries[0].time else "(Earlier)"]
        for entry in entries:
            rows.append(f"{self.sign if entry.role == 'user' else ''}{clean(entry.text)}" if entry.text else "")
            rows.append(f"  ({', '.join(map(one_line, entry.calls))})" if entry.calls else "")
        return "\n".join(filter(None, rows)) if entries else ""


class SpokenWriting(LineWriting):
    """Lines for a screen reader: the speaker is named, tables become `header: value`, and no sign requires sight."""

    quoting = SpokenQuoting
    sign = "You: "
    working = "Marvin is working"

    def __init__(self) -> None:
        super().__init__()
        self._begun = False
        self._passing = False
        """Whether the current line belongs to no table."""
        self._line = ""
        self._table: list[str] = []

    def text(self, delta: str) -> str:
        """A piece of an answer; lines that may belong to a table are delayed until it is complete."""
        said = "".join(self._piece(piece) for piece in re.split(r"(?<=\n)", super().text(delta)) if piece)
        return self._named(said)

    def _named(self, said: str) -> str:
        if self._begun:
            return said
        if not said.strip():  # blank lines before the first word would stand between it and who says it
            return ""
        self._begun = True
        return f"Marvin: {said.lstrip()}"

    def _piece(self, piece: str) -> str:
        """The output for a piece of a line, which may end the line."""
        ended = piece.endswith("\n")
        if self._passing:
            self._passing = not ended
            return piece
        line, self._line = self._line + piece, ""
        if line.startswith("|") and len(line) + sum(map(len, self._table)) < _LONGEST_TABLE:
            if ended:
                self._table.append(line)
            else:
                self._line = line
            return ""
        self._passing = not ended
        return self._tables() + line

    def _tables(self) -> str:
        rows, self._table = self._table, []
        return spoken_rows(rows)

    def end_text(self) -> str:
        """The table at the end of an answer, if there is one."""
        if self._line:
            self._table.append(self._line)
        said = self._named(self._tables())
        self._line, self._begun, self._passing = "", False, False
        super().end_text()
        return said

    def call(self, event: ToolExecutionStart, command: str, width: int) -> str:
        """The start of a call, with one argument a line, and a whole command."""
        given = [
            f"{name}: {exact(value) if name == command and isinstance(value, str) else one_line(str(value), _ARGUMENT)}"
            for name, value in event.arguments.items()
        ]
        return clean(". ".join([f"Tool {event.name}", *given]))

    def outcome(self, event: ToolExecutionEnd, width: int) -> str:
        """The result of a call; the lines of a diff are described as added and removed."""
        from .drawing.diffs import diff_rows

        rows = [f"Tool {outcome_line(event).strip()}"]
        rows += _spoken_changes([row.removeprefix("     ") for row in diff_rows(event.details, self._paint)])
        return clean("\n".join([*filter(None, rows), *spoken_items(event.show)]))

    def choices(self, sign: str) -> str:
        """Words separated by slashes, as a numbered list."""
        words = _words(sign)
        return f"{', '.join(f'{number} {word}' for number, word in enumerate(words, 1))}: " if words else sign

    def chosen(self, sign: str, line: str) -> str:
        """The word for a number."""
        words, asked = _words(sign), line.strip().rstrip(".)")
        return words[int(asked) - 1] if asked in map(str, range(1, len(words) + 1)) else line

    def replay(self, entries: Sequence[SaidEntry]) -> str:
        """The earlier messages, each with its author."""
        names = {"user": "You", "assistant": "Marvin"}
        rows = []
        for entry in entries:
            when = f", {local_time(entry.time)}" if entry.time else ""
            tools = f" Tools: {', '.join(map(one_line, entry.calls))}." if entry.calls else ""
            rows.append(f"{names[entry.role]}{when}: {clean(entry.text)}{tools}")
        return "\n".join(["Earlier messages:", *rows]) if rows else ""


def _words(sign: str) -> list[str]:
    """The choices in a text such as `[yes/no] `; none if numbers are answers themselves."""
    inner = sign.strip().removeprefix("[").removesuffix("]")
    words = inner.split("/")
    is_list = sign.strip().startswith("[") and len(words) > 1 and all(word.isalpha() for word in words)
    return words if is_list else []


def _quoted_change(number: int, line: str) -> str:
    """A line of a diff that a question quotes, with every character."""
    names = {"+": "added: ", "-": "removed: ", "@": "place: "}
    return line if number < 2 else f"{names.get(line[:1], '')}{line[1:]}"  # the first two are the names of the file


def _spoken_changes(lines: Sequence[str]) -> list[str]:
    """The lines of a diff in words."""
    told = []
    names = {"+": "added: ", "-": "removed: "}
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if line.startswith("--- ") and following.startswith("+++ "):
            told.append(f"Difference of {following.removeprefix('+++ ')}")
            continue
        is_name = bool(told) and told[-1] == f"Difference of {line.removeprefix('+++ ')}"
        if is_name or line.startswith("@@"):
            continue
        told.append(f"{names[line[0]]}{line[1:]}" if line[:1] in names else line.strip())
    return told


def spoken_rows(lines: Sequence[str]) -> str:
    """The rows of a Markdown table as `header: value`; lines that form no table are unchanged."""
    if len(lines) < 2 or not _TABLE_RULE.fullmatch(lines[1].strip()):
        return "".join(lines)
    header = _cells(lines[0])
    return "".join(f"{_spoken_row(number, header, _cells(line))}\n" for number, line in enumerate(lines[2:], 1))


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", inner)]


def _spoken_row(number: int, header: Sequence[str], cells: Sequence[str]) -> str:
    named = [f"{header[place]}: {cell}" if place < len(header) else cell for place, cell in enumerate(cells) if cell]
    return f"Row {number}. {'; '.join(named)}."


def spoken_items(show: Sequence[Shown]) -> list[str]:
    """What a tool displays, in words."""
    lines: list[str] = []
    for item in show:
        if not isinstance(item, Table):
            lines += shown_lines([item])
            continue
        if item.title:
            lines.append(one_line(disarm(item.title)))
        header = [cell_text(name) for name in item.columns]
        told = item.rows[:ROWS]
        lines += [_spoken_row(number, header, [*map(cell_text, row)]) for number, row in enumerate(told, 1)]
        left = len(item.rows) - len(told) + max(0, item.omitted)
        lines += [f"{counted(left, 'more row')}."] if left else []
    return lines
