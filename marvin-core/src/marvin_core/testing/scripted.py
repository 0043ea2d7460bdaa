"""A provider that replays a script: for tests of what stands above the providers."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import TypeAlias

from ..providers.base import Delta, Request

ScriptStep: TypeAlias = Delta | BaseException


class ScriptedProvider:
    """Answers each request with the next list of its script: deltas to yield, and errors to raise.

    `requests` records what it was asked. A request too many raises AssertionError.
    """

    def __init__(
        self,
        *script: Sequence[ScriptStep],
        name: str = "scripted",
        model: str = "scripted",
        context_window: int | None = None,
        max_tools: int | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.context_window = context_window
        self.max_tools = max_tools
        self.requests: list[Request] = []
        self.closed = False
        self._script = deque(script)

    def script(self, *script: Sequence[ScriptStep]) -> None:
        """Add answers to the script."""
        self._script.extend(script)

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The next answer of the script."""
        self.requests.append(request)
        if not self._script:
            raise AssertionError(f"script exhausted: this is request {len(self.requests)}")
        for step in self._script.popleft():
            if isinstance(step, BaseException):
                raise step
            yield step

    async def aclose(self) -> None:
        """Remember that it was closed."""
        self.closed = True
