"""Removes control sequences from text of models, services, tools and files, before a terminal interprets them."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, TypeAlias

# Characters that could move the cursor, set colours, reorder or hide text: C0 but newline and tab, DEL, C1, bidi marks.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Printable characters, according to Python, that a terminal shows as nothing or as a space."""
_STRING_STARTS = "]PX^_"
_C1_STRINGS = "\x90\x98\x9d\x9e\x9f"

_SEQUENCE = (
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x00-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*+(?![\[\]PX^_])[0-~]"
)
"""A complete control sequence according to ECMA-48: with parameters, with a string, or a short one."""

_State: TypeAlias = Literal["text", "return", "escape", "escape end", "sequence", "string", "string end"]


class TerminalFilter:
    """Removes terminal sequences from a text that arrives in pieces, even if a piece ends inside a sequence.

    The content of a sequence is removed as well: a title, a link, parameters. A sequence without an end removes at most
    the rest of its line. A carriage return is kept only at the end of a line; elsewhere it would overwrite the line.
    The time is linear in the length of the text.
    """

    def __init__(self) -> None:
        self._state: _State = "text"

    def __call__(self, text: str) -> str:
        """The next piece without control sequences."""
        # Nearly all pieces return here: matching an expression would cost more than all the rest.
        if self._state == "text" and (text.isprintable() or text.replace("\n", "").isprintable()):
            return text
        kept: list[str] = []
        place = 0
        while place < len(text):
            place = self._step(text, place, kept)
        return "".join(kept)

    def _step(self, text: str, place: int, kept: list[str]) -> int:
        """Process the next part; returns the position after it, which may be the same one in another state."""
        if self._state == "text":
            found = _pattern(f"[{_CONTROLS}]").search(text, place)
            end = found.start() if found else len(text)
            kept.append(text[place:end])
            if found:
                self._state = _begun(text[end])
            return end + 1
        if self._state == "return":
            self._state = "text"
            kept.append("\r" if text[place] == "\n" else "")
            return place
        if self._state == "sequence":
            end = _end_of(r"[ -?]*", text, place)
            if end < len(text):
                self._state = "text"
                end += "@" <= text[end] <= "~"
            return end
        if self._state == "string":
            found = _pattern(r"[\x00-\x1f\x7f-\x9f]").search(text, place)
            end = found.start() if found else len(text)
            if found:
                self._state = "string end" if text[end] == "\x1b" else "text"
                end += text[end] in "\x07\x1b\x9c"
            return end
        return self._after_escape(text, place)

    def _after_escape(self, text: str, place: int) -> int:
        if self._state == "string end":
            self._state = "text" if text[place] == "\\" else "escape"
            return place + (text[place] == "\\")
        end = _end_of(r"[ -/]*", text, place)
        if end > place:
            self._state = "escape end"
        if end == len(text):
            return end
        if self._state == "escape" and text[end] in f"[{_STRING_STARTS}":
            self._state = "sequence" if text[end] == "[" else "string"
            return end + 1
        self._state = "text"
        return end + ("0" <= text[end] <= "~")


def _begun(character: str) -> _State:
    """The state that a control character begins."""
    if character in "\x1b\r":
        return "escape" if character == "\x1b" else "return"
    if character == "\x9b":
        return "sequence"
    return "string" if character in _C1_STRINGS else "text"


def _end_of(pattern: str, text: str, place: int) -> int:
    found = _pattern(pattern).match(text, place)
    return found.end() if found else place


def disarm(text: str) -> str:
    """The text without control characters; newlines and tabs stay."""
    return TerminalFilter()(text)


def folded(text: str) -> str:
    """The text as a terminal shows it after lines have overwritten themselves, as progress bars do.

    Of the parts of a line between carriage returns, the last one that is not blank is kept. Control characters are not
    removed.
    """
    if "\r" not in text:
        return text
    return "\n".join(_last_state(line) if "\r" in line else line for line in text.split("\n"))


def _last_state(line: str) -> str:
    end = "\r" if line.endswith("\r") else ""
    states = (state for state in reversed(line.split("\r")) if disarm(state).strip())
    return next(states, "") + end


def without_sequences(text: str) -> str:
    """The text without complete terminal sequences; incomplete ones stay. Control characters are not removed.

    Use it before code that removes or replaces single control characters: otherwise the rest of a sequence would become
    text.
    """
    return text if text.isprintable() else _pattern(_SEQUENCE).sub("", text)


def exact(text: str) -> str:
    """The text with an escape for each invisible character, for a person who has to judge what runs.

    Controls, marks that reorder or join text, blanks that look like a space, and characters that are not assigned are
    written as Python writes them (`\x1b`, `\u202e`); newlines and tabs stay. Nothing is left out. If there is an
    escape, backslashes of the text are doubled, so that they cannot be mistaken for one.
    """
    plain = text.replace("\n", "").replace("\t", "")
    if plain.isprintable() and (plain.isascii() or not _pattern(f"[{_BLANKS}]").search(plain)):
        return text
    return "".join(map(_seen, text))


def exact_line(text: str) -> str:
    """The same on one line: newlines and tabs become escapes as well. For quotations in Marvin's own messages."""
    if "\n" not in text and "\t" not in text:
        return exact(text)
    return "".join(
        character.encode("unicode_escape").decode() if character in "\n\t" else _seen(character) for character in text
    )


def _seen(character: str) -> str:
    if character in "\n\t" or (character.isprintable() and character != "\\" and not _is_blank(character)):
        return character
    return character.encode("unicode_escape").decode("ascii")


def _is_blank(character: str) -> bool:
    return not character.isascii() and _pattern(f"[{_BLANKS}]").match(character) is not None


def json_for_terminals(text: str) -> str:
    """JSON with escapes for control characters and for halves of surrogate pairs.

    JSON itself escapes C0 only. The value stays the same, so programs read what was written.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return _pattern("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]").sub(
        lambda found: f"\\u{ord(found[0]):04x}", text
    )


@cache
def _pattern(expression: str) -> re.Pattern[str]:
    """Compiled when first needed: not at a start."""
    return re.compile(expression)
