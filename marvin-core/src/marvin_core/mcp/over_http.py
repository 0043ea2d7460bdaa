"""Servers at an address: the streamable HTTP transport of the official SDK, with the user's headers and login."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import httpx2
from mcp.client.streamable_http import streamable_http_client

from ..api.config import Config, McpServer
from ..http.clients import Clients
from ..util.threads import in_thread
from .bridge import Bridge
from .stdio.wire import LONGEST_LINE

_READ = 300.0
"""The maximum seconds between two pieces of a response: a long call may be silent for a while."""


@asynccontextmanager
async def over_http(
    server: McpServer, config: Config, auth: httpx2.Auth | None, told: Callable[[str], None]
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a server at an address.

    Args:
        auth: the login, if there is one.
        told: called after each message to the server, with the error or, on success, an empty string.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(http_client(server, config, auth, told))
        streams = await stack.enter_async_context(
            streamable_http_client(server.url, http_client=client, max_sse_event_size=LONGEST_LINE)
        )
        yield streams


@asynccontextmanager
async def http_client(
    server: McpServer, config: Config, auth: httpx2.Auth | None, told: Callable[[str], None]
) -> AsyncIterator[httpx2.AsyncClient]:
    """The client of the SDK's HTTP library for a server; see `over_http`.

    A server names its login service. A public server cannot use this to reach an address of this machine or of a
    private network.
    """
    clients = Clients(config)
    own = clients.lasting(_READ)
    public = not await in_thread(lambda: clients.refused_host(server.url))
    place = _origin(server.url)

    def client_for(url: str) -> httpx.AsyncClient:
        return clients.for_tools() if public and _origin(url) != place else own

    try:
        async with httpx2.AsyncClient(
            headers=dict(server.headers), auth=auth, timeout=None, transport=Bridge(client_for, told)
        ) as client:
            yield client
    finally:
        await own.aclose()
        await clients.close()


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), port
