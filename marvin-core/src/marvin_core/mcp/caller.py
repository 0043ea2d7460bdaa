"""The parts of a running call that a server can use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol

from ..api.errors import ToolError

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


class Calling:
    """The caller of a running call. A question that is open when no call runs any more is withdrawn.

    The question may be that of another call: a server does not say to which one it belongs.
    """

    def __init__(self, caller: Caller, over: asyncio.Event) -> None:
        self._caller = caller
        self._over = over
        self.progress = caller.progress

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask the user; see `Caller`."""
        return await self._asked(self._caller.ask(question, choices))

    async def ask_text(self, question: str, choices: Sequence[str] = ()) -> str:
        """Ask the user for free text; see `Caller`."""
        return await self._asked(self._caller.ask_text(question, choices))

    async def _asked(self, asking: Awaitable[str]) -> str:
        asked, over = asyncio.ensure_future(asking), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait((asked, over), return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return await asked
            raise ToolError("The call in which this was asked is over.")
        finally:
            asked.cancel()
            over.cancel()
            await asyncio.gather(asked, over, return_exceptions=True)


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
