"""What a call gives a server while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

_MOST_QUESTIONS = 10
TOO_MANY = f"Only {_MOST_QUESTIONS} questions are asked in one call."


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


class Questions:
    """Counts what a server asks the person in one call: the call's clock stands still meanwhile."""

    def __init__(self) -> None:
        self._caller: Caller | None = None
        self._asked = 0

    def may_ask(self, caller: Caller) -> bool:
        """Whether one more question may be asked in the call of this caller; it counts from now on."""
        if caller is not self._caller:
            self._caller, self._asked = caller, 0
        self._asked += 1
        return self._asked <= _MOST_QUESTIONS
