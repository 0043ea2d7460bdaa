"""The contract between a session and the interface that shows it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ..events import Event, Unsubscribe
from ..messages import ToolOutput
from ..records import Record
from ..tools import ToolSpec


class TurnResult(Record):
    """How a prompt ended: its text, and the error that ended it, if one did."""

    text: str
    error: Exception | None = None
    cancelled: bool = False


class SessionControl(Protocol):
    """What an interface can do with a session."""

    @property
    def id(self) -> str: ...
    @property
    def provider_name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def working_dir(self) -> Path: ...
    @property
    def configured(self) -> bool:
        """Whether a model answers; without one only tools can be called."""
        ...

    @property
    def busy(self) -> bool: ...
    @property
    def commands(self) -> Mapping[str, Command]: ...
    @property
    def tools(self) -> Sequence[ToolSpec]: ...

    def subscribe(self, listener: Callable[[Event], None]) -> Unsubscribe:
        """Have every event from now on passed to the listener, which must return at once."""
        ...

    async def submit(self, text: str) -> TurnResult:
        """Run one prompt to its end. Cancelling the awaiting task cancels the prompt."""
        ...

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Run one call by hand, through the same dispatch as a model's."""
        ...

    async def close(self) -> None:
        """End jobs, connections and resources."""
        ...

    def kill(self) -> None:
        """Kill every child process at once; for leaving without `close`."""
        ...


class UI(Protocol):
    """An interface. It owns the event loop, since each toolkit brings its own."""

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """Show the session until the user leaves; returns the exit code.

        `prompt`, where given, is submitted first.
        """
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices."""
        ...


class UISpec(Record):
    """An interface as data; `factory` is `module:callable`, called without arguments."""

    name: str
    factory: str


class Command(Record):
    """A slash command of the interactive interfaces.

    `run` gets the session and the text behind the name, and returns what to show, or None.
    """

    name: str
    help: str
    run: CommandFunction


CommandFunction: TypeAlias = Callable[[SessionControl, str], Awaitable[str | None]]
