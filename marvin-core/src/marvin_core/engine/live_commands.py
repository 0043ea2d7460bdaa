"""The slash commands of a session: its own, and those that servers bring while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ..api.session import Command

if TYPE_CHECKING:
    from .parts import SessionSetup
    from .ports import ToolSource


def commands_of(setup: SessionSetup) -> Mapping[str, Command]:
    """The slash commands by their names; those of servers as they are known at the moment of each look."""
    own = {command.name: command for command in setup.commands}
    return own if setup.tool_source is None or not own else LiveCommands(own, setup.tool_source)


class LiveCommands(Mapping[str, Command]):
    """The session's own commands, and those of a source, which come first."""

    def __init__(self, own: Mapping[str, Command], source: ToolSource) -> None:
        self._own = own
        self._source = source

    def _all(self) -> Mapping[str, Command]:
        return {**self._own, **{command.name: command for command in self._source.commands()}}

    def __getitem__(self, name: str) -> Command:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
