"""The contract of an interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .record import Record
from .session import SessionControl


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
