"""Parses command-line options like getopt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from ...util.patterns.texts import GAPS, is_known
from .shell_words import Word

Words: TypeAlias = Sequence[Word]


class Options(NamedTuple):
    """The options of a wrapper for getopt: letters with a value, letters without, long names (`name=`)."""

    valued: str = ""
    flags: str = ""
    long: str = ""
    operands: int = 0
    """The number of words between the options and the command."""
    attached: str = ""
    """Letters with an optional value, which is the rest of their word."""


Found: TypeAlias = "list[tuple[str, Word | None]]"


def read_options(words: Words, options: Options, *, mixed: bool = False) -> tuple[Found, list[Word]] | None:
    """The options of a command, and the words after them; `mixed` if options may stand among operands.

    None if a word is an unknown option, or may be an option.
    """
    found: Found = []
    rest: list[Word] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        text = word.text
        if text == "--":
            return found, [*rest, *queue]
        if text.startswith(GAPS) or (text.startswith("-") and not is_known(text)):
            return None
        if not text.startswith("-") or text == "-":
            rest.append(word)
            if mixed:
                continue
            return found, [*rest, *queue]
        parsed = _long(text, options) if text.startswith("--") else _cluster(text, options)
        if parsed is None:
            return None
        for letter, value in parsed:
            if value is None:
                found.append((letter, None))
            elif value == "":
                if not queue:
                    return None
                found.append((letter, queue.pop(0)))
            else:
                found.append((letter, Word(value)))
    return found, rest


def _long(text: str, options: Options) -> list[tuple[str, str | None]] | None:
    """A long option, which may be abbreviated if unambiguous; an empty value means that the next word holds it."""
    name, equals, value = text[2:].partition("=")
    known = options.long.split()
    fitting = [one for one in known if one.rstrip("=") == name] or [one for one in known if one.startswith(name)]
    if len(fitting) != 1:
        return None
    if equals and not value:
        return [(fitting[0].rstrip("="), None)]
    if fitting[0].endswith("="):
        return [(fitting[0].rstrip("="), value if equals else "")]
    return [(fitting[0], value or None)]


def _cluster(text: str, options: Options) -> list[tuple[str, str | None]] | None:
    found: list[tuple[str, str | None]] = []
    for at, letter in enumerate(text[1:], 2):
        if letter in options.valued:
            return [*found, (letter, text[at:])]
        if letter in options.attached:
            return [*found, (letter, text[at:] or None)]
        if letter not in options.flags:
            return None
        found.append((letter, None))
    return found
