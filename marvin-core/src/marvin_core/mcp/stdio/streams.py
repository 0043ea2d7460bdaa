"""The standard input and output of a server as streams of the official SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage

from ...api.errors import ToolError
from .wire import Wire


class _Incoming:
    """The messages of a server, as the SDK reads them: in its own task, without handing them over to another."""

    def __init__(self, wire: Wire) -> None:
        self._messages = wire.messages()

    async def receive(self) -> SessionMessage:
        """The next message. Raises `anyio.EndOfStream` after the last one."""
        try:
            return await anext(self._messages)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        return await anext(self._messages)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop reading."""
        await self._messages.aclose()


class _Outgoing:
    """The messages to a server, written at once."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._closed = False

    async def send(self, message: SessionMessage) -> None:
        """Write a message. Raises `anyio.BrokenResourceError` if the program has ended, or does not read."""
        if self._closed:
            raise anyio.ClosedResourceError
        try:
            self._wire.send(message)
        except ToolError as error:
            await self._wire.give_up_soon(str(error))
            raise anyio.BrokenResourceError from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Write nothing more."""
        self._closed = True


@asynccontextmanager
async def over_stdio(wire: Wire) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a server's program, which is stopped when the context ends."""
    try:
        yield _Incoming(wire), _Outgoing(wire)
    finally:
        with anyio.CancelScope(shield=True):
            await wire.close()
