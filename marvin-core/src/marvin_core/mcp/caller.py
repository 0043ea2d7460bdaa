"""What a call gives a server while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Caller(Protocol):
    """The person's answers, and a place for the progress: a part of `ToolContext`."""

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Tell the user how far the call is."""
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices."""
        ...

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> str:
        """Ask the user what may be answered in any words."""
        ...
