"""Events as lines of text: colours by role, Markdown touched lightly, tools, diffs. Nothing is ever drawn twice."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from ..api.events import ToolExecutionEnd, ToolExecutionStart
from ..api.messages import Shown
from ..util.terminal_text import disarm

Role: TypeAlias = Literal[
    "user", "heading", "bold", "code", "tool", "error", "notice", "faint", "added", "removed", "place"
]
_CODES: Mapping[Role, str] = {
    "user": "36;1",
    "heading": "1",
    "bold": "1",
    "code": "36",
    "tool": "35",
    "error": "31",
    "notice": "33",
    "faint": "90",
    "added": "32",
    "removed": "31",
    "place": "36",
}
SHOWN = 100
"""Characters of an argument, and of the first line of an output, that a tool line shows."""
DIFF_LINES = 40
"""Lines of a diff that are shown; the rest is counted."""
OUTPUT_LINES = 400
"""Lines of an output, of a call made by hand, that are shown: half of them its first, half its last ones."""

DARK = cast("Mapping[str, str]", _CODES)
"""What the theme `dark` draws each role with."""

_JOINER = "\u200d"
_FENCE = re.compile(r"\s*(```|~~~)")
_HEADING = re.compile(r"#{1,6} ")
_INLINE = re.compile(r"(?P<code>`[^`\n]+`)|(?P<bold>\*\*[^*\n]+\*\*)")
_ITEM = re.compile(r"\s*(?:[-*+] |\d{1,3}[.)] |> ?)?")
_COLUMN = re.compile(r" *\S+(?: \S+)*  +(?=\S)")
_HANGING = "     "
_USUAL_COLUMNS = 80
_COLUMNS_OF_A_FILE = 120

Measure: TypeAlias = Callable[[str], int]
"""How many columns a text takes."""


def clean(text: str) -> str:
    """The text without what could steer the terminal, with spaces for tabs: their width depends on where they stand."""
    return disarm(text).replace("\r", "").expandtabs(4)


class Paint:
    """Colours by role, or none."""

    def __init__(self, color: bool, codes: Callable[[], Mapping[str, str]] = lambda: DARK) -> None:
        self._color = color
        self._codes = codes

    def __call__(self, role: Role, text: str) -> str:
        """The text in the colour of its role, line by line."""
        if not self._color or not text:
            return text
        code = self._codes()[role]
        return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in text.split("\n"))


class Markdown:
    """The text of an answer as it arrives: whole rows to write, and the row that is not complete yet.

    Words stay as they are; headings, bold text and code get colours. Prose is broken between words at the
    width; code is not broken, so that it can be copied.
    """

    def __init__(self, paint: Paint, measure: Measure) -> None:
        self._paint = paint
        self._measure = measure
        self._line = ""
        self._rest = ""
        self._indent = ""
        self._broken = False
        self._fenced = False

    def feed(self, delta: str, width: int) -> list[str]:
        """The rows that this piece of text completes."""
        self._line += delta
        *complete, self._line = self._line.split("\n")
        rows: list[str] = []
        for line in complete:
            rows += self._rows(clean(line), width)
            rows.append(self._styled(self._rest))
            self._toggle(line)
            self._broken = False
        if self._line and not self._fenced:
            full = self._rows(clean(self._line), width)
            if full:
                rows += full
                self._line = self._rest
        return rows

    def open_row(self, limit: int) -> str:
        """The row that is not complete yet, as it looks so far; of a long one its end, `limit` characters of it."""
        return self._styled(clean(self._line[-limit:]))

    def end(self) -> list[str]:
        """The last row, if there is text in it; the next answer starts afresh."""
        rows = [self._styled(clean(self._line))] if self._line.strip() else []
        self._line, self._broken, self._fenced = "", False, False
        return rows

    def _rows(self, line: str, width: int) -> list[str]:
        """The full rows of a line; what is left over is in `_rest`."""
        rows: list[str] = []
        unbroken = self._fenced or (not self._broken and (line.startswith("|") or _FENCE.match(line)))
        while not unbroken and len(line) * 2 > width and self._measure(line) > width:
            if not self._broken:
                match = _ITEM.match(line)
                self._indent = " " * min(len(match[0]) if match else 0, width // 3)
            row, rest = _split(line, width, self._measure)
            rows.append(self._styled(row))
            line = self._indent + rest
            self._broken = True
        self._rest = line
        return rows

    def _toggle(self, line: str) -> None:
        if not self._broken and _FENCE.match(line):
            self._fenced = not self._fenced

    def _styled(self, row: str) -> str:
        if self._fenced or _FENCE.match(row):
            return self._paint("code", row)
        if not self._broken and _HEADING.match(row):
            return self._paint("heading", row)
        return _INLINE.sub(lambda found: self._paint("code" if found["code"] else "bold", found[0]), row)


def _split(line: str, width: int, measure: Measure) -> tuple[str, str]:
    """The line's first row and what follows: broken behind a space or a wide character, else where it must be."""
    used, space = 0, 0
    for index, character in enumerate(line):
        columns = measure(character)
        if used + columns > width:
            place = _before_joined(line, index if columns > 1 or character == " " else space or index, measure)
            return line[:place].rstrip(), line[place:].lstrip()
        used += columns
        if (character == " " and line[:index].strip()) or columns > 1:
            space = index + 1
    return line, ""


def _before_joined(line: str, place: int, measure: Measure) -> int:
    """The place, or the one before the characters that are drawn as one there, as accents and families are."""
    begin = place
    while begin and (line[begin - 1] == _JOINER or measure(line[begin]) == 0):
        begin -= 1
    return begin if line[:begin].strip() else place


def wrapped(text: str, width: int, measure: Measure, hanging: str | None = None) -> str:
    """The text with its lines broken between words at the width, for what is to be read and not to be copied.

    What goes on in a further row begins with `hanging`, else below where the text of the line begins: that of an item
    behind its sign, that of a table behind its name.
    """
    rows: list[str] = []
    for line in text.split("\n"):
        rest = line
        begin = _beginning(line, width) if hanging is None else hanging
        while measure(rest) > width:
            row, rest = _split(rest, width, measure)
            rows.append(row)
            rest = rest and begin + rest
        rows.append(rest)
    return "\n".join(rows)


def for_people(text: str, descriptor: int) -> str:
    """The text, wrapped where it goes to a terminal, which would break it in the middle of words."""
    return wrapped(text, columns_at(descriptor), len) if os.isatty(descriptor) else text


def columns_at(descriptor: int) -> int:
    """The columns that text may take: those of the terminal that it goes to, else a usual number of them."""
    if not os.isatty(descriptor):
        return _COLUMNS_OF_A_FILE
    columns = os.get_terminal_size(descriptor).columns or _USUAL_COLUMNS  # some terminals do not know theirs
    return max(10, columns - 1)


def _beginning(line: str, width: int) -> str:
    """The spaces with which the further rows of a line begin."""
    item = _ITEM.match(line)
    indent = len(item[0]) if item else 0
    column = _COLUMN.match(line)
    if column:
        indent = len(column[0]) if len(column[0]) <= width // 2 else indent + 4
    return " " * min(indent, width // 2)


def shortened(text: str, width: int, measure: Measure) -> str:
    """The text, or as much of it as one row has room for."""
    if measure(text) <= width:
        return text
    row, _ = _split(text, width - 1, measure)
    return f"{row}…"


def bounded_output(text: str, most: int = OUTPUT_LINES) -> str:
    """The text, or its first and last lines where it has more than `most`."""
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    left = f"… {len(lines) - most:,} lines are left out here; ask for a part, or have it written to a file."
    return "\n".join([*lines[: most // 2], left, *lines[len(lines) - most // 2 :]])


def call_line(event: ToolExecutionStart) -> str:
    """A call that begins; what is cut of its arguments is marked."""
    shown = ", ".join(_marked(f"{name}={value!r}") for name, value in event.arguments.items())
    return clean(f"  🔧 {event.name}({shown})")


def _marked(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def outcome_line(event: ToolExecutionEnd) -> str:
    """How a call ended; where its output follows anyway, made by hand or without a model, nothing of that."""
    text = event.text.strip()
    refused = f"Error: {event.name} was not run"
    if event.is_error and text.startswith(refused):
        text = text[len(refused) :].lstrip(":, ")
        ended = f"{_HANGING}not run"
    else:
        ended = f"{_HANGING}{'failed' if event.is_error else 'done'} in {event.elapsed:.1f} s"
    first = text.partition("\n")[0][:SHOWN]
    return ended if event.origin != "model" or not first else clean(f"{ended}: {first}")


def call_rows(event: ToolExecutionStart, width: int, measure: Measure) -> str:
    """A call that begins, in rows of this width."""
    return wrapped(call_line(event), width, measure, _HANGING)


def outcome_rows(event: ToolExecutionEnd, width: int, measure: Measure) -> str:
    """How a call ended: in one row of this width, unless it failed."""
    line = outcome_line(event)
    return wrapped(line, width, measure, _HANGING) if event.is_error else shortened(line, width, measure)


def diff_lines(details: Mapping[str, Any] | None, paint: Paint) -> Sequence[str]:
    """The diff of an edit, if there is one among the details; a long one is cut."""
    diff = (details or {}).get("diff")
    if not isinstance(diff, str) or not diff.strip():
        return ()
    lines = clean(diff).rstrip("\n").split("\n")
    shown = [f"{_HANGING}{_diff_line(line, paint)}" for line in lines[:DIFF_LINES]]
    left = len(lines) - DIFF_LINES
    return [*shown, paint("faint", f"{_HANGING}… {left:,} more lines")] if left > 0 else shown


def shown_rows(show: Sequence[Shown], width: int, measure: Measure) -> Sequence[str]:
    """What a tool shows people, in rows of this width."""
    if not show:
        return ()
    from ..util.shown import shown_lines

    lines = shown_lines(show, max(1, width - len(_HANGING)), measure)
    return [f"{_HANGING}{line}".rstrip() for line in lines]


def _diff_line(line: str, paint: Paint) -> str:
    if line.startswith(("---", "+++")):
        return paint("faint", line)
    roles: Mapping[str, Role] = {"+": "added", "-": "removed", "@": "place"}
    role = roles.get(line[:1])
    return paint(role, line) if role else line
