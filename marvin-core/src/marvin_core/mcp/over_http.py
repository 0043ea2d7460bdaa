"""A server at an address: the streamable HTTP transport of the official SDK, with the user's headers and log-in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from ..api.config import McpServer
from .stdio import FLOOD, LONGEST_LINE

_CONNECT = 15.0
_READ = 300.0
"""Seconds between two pieces of an answer: a long call may be silent for a while."""


class Bounded(httpx2.AsyncBaseTransport):
    """A transport whose answers end where they are larger than anybody can use."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Hand on the answer, with a limit on its size."""
        response = await self._inner.handle_async_request(request)
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = _Limited(stream)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _Limited(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = FLOOD
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the server sent more than {FLOOD // 1_000_000} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def over_http(server: McpServer, auth: httpx2.Auth | None = None) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a server at an address."""
    client = httpx2.AsyncClient(
        headers=dict(server.headers),
        auth=auth,
        timeout=httpx2.Timeout(_CONNECT, read=_READ),
        transport=Bounded(httpx2.AsyncHTTPTransport(retries=0)),
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(client)
        streams = await stack.enter_async_context(
            streamable_http_client(server.url, http_client=client, max_sse_event_size=LONGEST_LINE)
        )
        yield streams
