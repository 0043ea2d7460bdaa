"""Events as lines of text: colors by role, light Markdown, tools, diffs. Nothing is drawn twice."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Literal, TypeAlias

from ..api.events import ToolExecutionEnd, ToolExecutionStart
from ..api.messages import Shown
from ..util.terminal_text import disarm
from ..util.text import counted

Role: TypeAlias = Literal[
    "user",
    "marvin",
    "rule",
    "thinking",
    "heading",
    "bold",
    "italic",
    "struck",
    "link",
    "code",
    "keyword",
    "string",
    "number",
    "comment",
    "function",
    "tool",
    "error",
    "notice",
    "faint",
    "added",
    "removed",
    "changed",
    "place",
]
DARK: Mapping[str, str] = {
    "user": "32;1",
    "marvin": "36;1",
    "rule": "90",
    "thinking": "90;3",
    "heading": "1;4",
    "bold": "1",
    "italic": "3",
    "struck": "9",
    "link": "4",
    "code": "36",
    "keyword": "35",
    "string": "32",
    "number": "36",
    "comment": "90",
    "function": "34",
    "tool": "35",
    "error": "31",
    "notice": "33",
    "faint": "90",
    "added": "32",
    "removed": "31",
    "changed": "7",
    "place": "36",
}
"""The terminal codes of each role in the theme `dark`."""
_ARGUMENTS = 20
"""The maximum number of arguments in the line of a call."""
SHOWN = 100
"""The number of shown characters of an argument, and of the first line of an output."""
DIFF_LINES = 40
"""The maximum number of shown lines of a diff; the others are counted."""
OUTPUT_LINES = 400
"""The maximum number of shown lines of a manual call's output: half from the beginning, half from the end."""

_JOINER = "\u200d"
_JOINED = 32
"""The maximum number of characters that may be drawn as one. A longer sequence is not text, and is broken anywhere."""
_SKINS = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_FLAGS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))
_ITEM = re.compile(r"\s*(?:[-*+] |\d{1,3}[.)] |> ?)?")
_COLUMN = re.compile(r" *\S+(?: \S+)*  +(?=\S)")
_HANGING = "     "
_USUAL_COLUMNS = 80
_COLUMNS_OF_A_FILE = 120

Measure: TypeAlias = Callable[[str], int]
"""Returns the width of a text in columns."""


def clean(text: str) -> str:
    """The text without control characters, and with spaces for tabs, whose width depends on their position."""
    return disarm(text).replace("\r", "").expandtabs(4)


class Paint:
    """Colors by role, or no colors."""

    def __init__(self, color: bool, codes: Callable[[], Mapping[str, str]] = lambda: DARK) -> None:
        self._color = color
        self._codes = codes

    @property
    def color(self) -> bool:
        """Whether there are colors."""
        return self._color

    def styled(self, roles: Sequence[Role], text: str) -> str:
        """A text in several roles at once, such as bold and code."""
        if not self._color or not text or not roles:
            return text
        codes = self._codes()
        return f"\x1b[{';'.join(codes[role] for role in dict.fromkeys(roles))}m{text}\x1b[0m"

    def __call__(self, role: Role, text: str) -> str:
        """The text in the color of its role, line by line."""
        if not self._color or not text:
            return text
        code = self._codes()[role]
        return "\n".join(f"\x1b[{code}m{line}\x1b[0m" if line else line for line in text.split("\n"))


def _split(line: str, width: int, measure: Measure) -> tuple[str, str]:
    """The first row of a line and the rest: broken after a space or a wide character, otherwise where necessary."""
    used, space = 0, 0
    for index, character in enumerate(line):
        columns = measure(character)
        if used + columns > width:
            place = before_joined(line, index if columns > 1 or character == " " else space or index, measure)
            return line[:place].rstrip(), line[place:].lstrip()
        used += columns
        if (character == " " and line[:index].strip()) or columns > 1:
            space = index + 1
    return line, ""


def before_joined(line: str, place: int, measure: Measure) -> int:
    """The position, or the one before the characters that are drawn as one there: accents, families, flags."""
    begin, least = place, max(0, place - _JOINED)
    while begin > least and _goes_with(line, begin, measure):
        begin -= 1
    return begin if begin > least and line[least:begin].strip() else place


def _goes_with(line: str, place: int, measure: Measure) -> bool:
    """Whether the character at a position is drawn together with the one before it."""
    character = line[place]
    if line[place - 1] == _JOINER or character in _SKINS or measure(character) == 0:
        return True
    if character not in _FLAGS:
        return False
    begin, least = place, max(0, place - _JOINED)
    while begin > least and line[begin - 1] in _FLAGS:
        begin -= 1
    return (place - begin) % 2 == 1  # two letters make a flag


def wrapped(text: str, width: int, measure: Measure, hanging: str | None = None) -> str:
    """The text, wrapped between words at this width, for text that is read and not copied.

    A continued row begins with `hanging`, or below the beginning of the line's text: after the sign of a list item, or
    after the name in a table.
    """
    rows: list[str] = []
    for line in text.split("\n"):
        rest = line
        begin = _beginning(line, width) if hanging is None else hanging
        while _exceeds(rest, width, measure):
            row, rest = _split(rest, width, measure)
            rows.append(row)
            rest = rest and begin + rest
        rows.append(rest)
    return "\n".join(rows)


def _exceeds(text: str, width: int, measure: Measure) -> bool:
    """Whether a text is wider than this; only as much of it as fits is examined."""
    used = 0
    for character in text if len(text) * 2 > width else "":
        used += measure(character)
        if used > width:
            return True
    return False


def for_people(text: str, descriptor: int) -> str:
    """The text, wrapped for a terminal, which would break words in the middle."""
    return wrapped(text, columns_at(descriptor), len) if os.isatty(descriptor) else text


def columns_at(descriptor: int) -> int:
    """The number of columns for text: those of the output's terminal, otherwise a default."""
    if not os.isatty(descriptor):
        return _COLUMNS_OF_A_FILE
    columns = os.get_terminal_size(descriptor).columns or _USUAL_COLUMNS  # some terminals do not know theirs
    return max(10, columns - 1)


def _beginning(line: str, width: int) -> str:
    """The spaces before the continued rows of a line."""
    item = _ITEM.match(line)
    indent = len(item[0]) if item else 0
    column = _COLUMN.match(line)
    if column:
        indent = len(column[0]) if len(column[0]) <= width // 2 else indent + 4
    return " " * min(indent, width // 2)


def shortened(text: str, width: int, measure: Measure) -> str:
    """The text, or as much of it as fits into one row."""
    if measure(text) <= width:
        return text
    row, _ = _split(text, width - 1, measure)
    return f"{row}…"


def bounded_output(text: str, most: int = OUTPUT_LINES) -> str:
    """The text, or its first and last lines if it has more than `most`."""
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    count = len(lines) - most
    are = "is" if count == 1 else "are"
    left = f"… {counted(count, 'line')} {are} left out here; ask for a part, or have it written to a file."
    return "\n".join([*lines[: most // 2], left, *lines[len(lines) - most // 2 :]])


def call_line(event: ToolExecutionStart) -> str:
    """The start of a call; cut arguments are marked."""
    shown = [_argument(name, value) for name, value in islice(event.arguments.items(), _ARGUMENTS)]
    shown += ["…"] if len(event.arguments) > _ARGUMENTS else []
    return clean(f"  🔧 {event.name}({', '.join(shown)})")


def _argument(name: str, value: object) -> str:
    """An argument; of a text with several lines, the first one and the number of lines. The diff and Ctrl+O show them
    all.
    """
    lines = value.strip("\n").split("\n") if isinstance(value, str) else []
    if len(lines) < 2:
        return _marked(f"{name}={value!r}")
    return f"{_marked(f'{name}={lines[0]!r}').removesuffix('…')}… ({counted(len(lines), 'line')})"


def _marked(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def outcome_line(event: ToolExecutionEnd) -> str:
    """The result of a call; without the output if the output follows anyway, as in manual calls and without a model."""
    text = event.text.strip()
    refused = f"Error: {event.name} was not run"
    if event.is_error and text.startswith(refused):
        text = text[len(refused) :].lstrip(":, ")
        ended = f"{_HANGING}not run"
    else:
        ended = f"{_HANGING}{'failed' if event.is_error else 'done'} in {event.elapsed:.1f} s"
    first = text.partition("\n")[0][:SHOWN]
    return ended if event.origin != "model" or not first else clean(f"{ended}: {first}")


def shown_rows(show: Sequence[Shown], width: int, measure: Measure) -> Sequence[str]:
    """What a tool displays, in rows of this width."""
    if not show:
        return ()
    from ..util.shown import shown_lines

    lines = shown_lines(show, max(1, width - len(_HANGING)), measure)
    return [f"{_HANGING}{line}".rstrip() for line in lines]
