"""The analysis of a shell command: its parts, its dangers, and the programs that it runs."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from .dangers import Danger
from .shell_words import Word

Level: TypeAlias = Literal["deep", "unparsed", "hidden", "unnamed"]


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


class Part(NamedTuple):
    """One command that would run."""

    text: str
    """As people read it."""
    lines: tuple[str, ...]
    """What deny and ask rules look at: with and without the folder of its name, assignments and redirections."""
    line: str
    """What allow rules look at."""
    needs_rule: bool
    """Whether an allow rule must cover it."""


class Input(NamedTuple):
    """What a command finds on its standard input: nothing, a text, or something that is not known."""

    kind: Literal["none", "text", "unknown"] = "none"
    text: str = ""
    downloads: bool = False
    is_piped: bool = False


class Reading:
    """What was found out about a command."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.dangers: list[tuple[Danger, str]] = []
        self.unknown: dict[Level, str] = {}
        """Why not all is known: it cannot be parsed, runs code that is not to be seen, or a name is no literal."""
