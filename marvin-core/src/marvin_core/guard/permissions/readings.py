"""The analysis of a shell command: its parts, its dangers, and the programs that it runs."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from .dangers import Danger
from .shell_words import Word

Level: TypeAlias = Literal["deep", "unparsed", "hidden", "unnamed"]


Dialect: TypeAlias = Literal["same", "bash", "posix", "other"]


class Inner(NamedTuple):
    """A program that a command runs in addition to itself.

    `command`: words; `loose`: words of which any may begin a command; `script`: a text for a shell, the words joined;
    `input`: the standard input; `file`: a script in a file; `hidden`: code that cannot be read. If it is not `certain`,
    it runs only if the words mean what they appear to mean.
    """

    kind: Literal["command", "loose", "script", "input", "file", "hidden"]
    words: tuple[Word, ...] = ()
    place: Word | None = None
    """The folder that it runs in, if a word names one."""
    certain: bool = True
    by_find: bool = False
    dialect: Dialect = "same"
    """The shell that reads a script: the one that runs this command, bash, or one limited to POSIX."""


class Part(NamedTuple):
    """One command that would run."""

    text: str
    """The text that people see."""
    lines: tuple[str, ...]
    """The texts for deny and ask rules: with and without the folder of its name, assignments and redirections."""
    line: str
    """The text for allow rules."""
    needs_rule: bool
    """Whether an allow rule must match it."""


class Input(NamedTuple):
    """The standard input of a command: nothing, a text, or unknown."""

    kind: Literal["none", "text", "unknown"] = "none"
    text: str = ""
    downloads: bool = False
    is_piped: bool = False


class Reading:
    """The result of the analysis of a command."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.dangers: list[tuple[Danger, str]] = []
        self.unknown: dict[Level, str] = {}
        """Why the analysis is incomplete: a syntax error, code that cannot be read, or a name that is not literal."""
