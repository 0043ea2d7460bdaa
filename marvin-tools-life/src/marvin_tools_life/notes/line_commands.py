"""Line commands: REPLACE, INSERT and DELETE by line numbers, each followed by its text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from marvin_core import Hunk, PatchError, Record

_COMMAND = re.compile(
    r"(?:(?P<insert>INSERT)(?:[ \t]+(?P<side>AFTER|BEFORE))?|(?P<change>REPLACE|DELETE))[ \t]+(?:LINES?[ \t]+)?"
    r"(?P<first>\d{1,9}|END)(?:[ \t]*(?:-|,|\.\.|:(?=\d)|to)[ \t]*(?P<last>\d{1,9}|END))?[ \t]*(?P<colon>:)?[ \t]*",
    re.IGNORECASE,
)
_HELP = (
    "Send commands such as 'REPLACE 3-5', 'INSERT 7' (after line 7; 0 is the top) or 'DELETE 2', each on a separate "
    "line with its text on the lines below."
)


class LineCommand(Record):
    """Replaces the lines from `first` to `last`, counted from 1, with `text`.

    If `last` is the line before `first`, nothing is replaced, and the text is inserted before `first`.
    """

    first: int
    last: int
    text: str


def has_commands(patch: str) -> bool:
    """Whether a text starts with a line command."""
    first = patch.strip("\n").partition("\n")[0].rstrip("\r")
    return _COMMAND.fullmatch(first) is not None


def read_commands(patch: str, total: int) -> list[LineCommand]:
    """The commands of a text, ordered by line.

    Args:
        total: how many lines there are.

    Raises:
        PatchError: a command is malformed, names missing lines, or two commands change the same lines.
    """
    commands: list[LineCommand] = []
    lines = patch.replace("\r\n", "\n").strip("\n").split("\n")
    at = 0
    # If the commands are in capitals, `insert 2` in lower case is text.
    is_loud = lines[0].split()[0].isupper()
    while at < len(lines):
        head = _COMMAND.fullmatch(lines[at])
        if head is None:
            raise PatchError(f"{lines[at][:80]!r} is not a line command. {_HELP}")
        end = next((i for i in range(at + 1, len(lines)) if _begins(lines[i], is_loud=is_loud)), len(lines))
        commands.append(_command(head, lines[at + 1 : end], total))
        at = end
    commands.sort(key=lambda command: (command.first, command.last))
    for one, other in pairwise(commands):
        if other.first <= one.last:
            raise PatchError(f"Two commands change line {other.first}. Combine them into one.")
    return commands


def _begins(line: str, *, is_loud: bool) -> bool:
    """Whether a line is a command rather than text of the one above."""
    return _COMMAND.fullmatch(line) is not None and (not is_loud or line.split()[0].isupper())


def as_hunks(commands: Sequence[LineCommand], lines: Sequence[str]) -> tuple[Hunk, ...]:
    """The commands as hunks for these lines, which have no line ends."""
    return tuple(_hunk(command, lines) for command in commands)


def _command(head: re.Match[str], text: list[str], total: int) -> LineCommand:
    written = head[0].strip()
    first = _number(head["first"], total)
    last = _number(head["last"], total) if head["last"] else first
    body = "".join(f"{line}\n" for line in text)
    if head["insert"]:
        if head["last"]:
            raise PatchError(f"{written!r} has two lines, but text is inserted after one. {_HELP}")
        place = first if (head["side"] or "").upper() == "BEFORE" else first + 1
        if not 1 <= place <= total + 1:
            raise PatchError(f"{written!r}: the note has {total:,} lines. Read it with file_read_lines.")
        if not text:
            raise PatchError(f"{written!r} has no text below it. {_HELP}")
        return LineCommand(first=place, last=place - 1, text=body)
    if not 1 <= first <= last <= total:
        raise PatchError(f"{written!r}: the note has {total:,} lines. Read it with file_read_lines.")
    deletes = head["change"].upper() == "DELETE"
    if deletes and any(text):
        raise PatchError(f"{written!r} has text below it. Use REPLACE, or leave the text out.")
    if not deletes and not text:
        raise PatchError(f"{written!r} has no text below it. {_HELP}")
    return LineCommand(first=first, last=last, text="" if deletes else body)


def _number(written: str, total: int) -> int:
    return total if written.upper() == "END" else int(written)


def _hunk(command: LineCommand, lines: Sequence[str]) -> Hunk:
    old = "".join(f"{line}\n" for line in lines[command.first - 1 : command.last])
    return Hunk(old=old, new=command.text, by_lines=True, line=command.first, in_order=True)
