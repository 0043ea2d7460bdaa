"""What is found out about a shell command."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from .dangers import Danger

Level: TypeAlias = Literal["deep", "unparsed", "hidden", "unnamed"]


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
