"""What a command runs besides itself."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from .shell_words import Word

Dialect: TypeAlias = Literal["same", "bash", "posix", "other"]


class Inner(NamedTuple):
    """What a command runs besides itself.

    `command`: words; `loose`: words that may be a command, from any of them on; `script`: a text for a shell, the words
    joined; `input`: what comes in through standard input; `file`: a script in a file; `hidden`: code that is nowhere
    to be seen. What is not `certain` runs only if the words mean what they seem to.
    """

    kind: Literal["command", "loose", "script", "input", "file", "hidden"]
    words: tuple[Word, ...] = ()
    place: Word | None = None
    """The folder that it runs in, where a word says so."""
    certain: bool = True
    by_find: bool = False
    dialect: Dialect = "same"
    """Which shell reads a script: the one that runs this command, bash, one that knows only what POSIX has."""
