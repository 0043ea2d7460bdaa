"""What the sub-commands of packs get."""

from __future__ import annotations

from typing import Protocol

from .config import Config
from .tool_context import PackContext


class CliContext(PackContext, Protocol):
    """What a sub-command of a pack gets, as `obj` of typer's context.

    A sub-command declares a parameter `context: typer.Context` and takes `run: CliContext = context.obj`. Settings,
    secrets and folders are those of the pack that brings it.
    """

    @property
    def config(self) -> Config:
        """What flags, variables and config.yaml ask for."""
        ...

    def write(self, text: str) -> None:
        """Write to standard output, without what a terminal would take for a command. No newline is added."""
        ...

    def warn(self, text: str) -> None:
        """Write a line to standard error."""
        ...
