"""The parts of a running call that a server can use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

_MOST_QUESTIONS = 10
TOO_MANY = f"Only {_MOST_QUESTIONS} questions are asked in one call."


class Caller(Protocol):
    """The part of `ToolContext` that reports progress and asks the user."""

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Report the progress of the call to the user."""
        ...

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; the answer is one of the choices."""
        ...

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> str:
        """Ask the user for free text."""
        ...


class Questions:
    """Counts a server's questions in one call. They are limited, since the call's timeout pauses meanwhile."""

    def __init__(self) -> None:
        self._caller: Caller | None = None
        self._asked = 0

    def may_ask(self, caller: Caller) -> bool:
        """Whether another question is allowed in the call of this caller; counts it."""
        if caller is not self._caller:
            self._caller, self._asked = caller, 0
        self._asked += 1
        return self._asked <= _MOST_QUESTIONS
