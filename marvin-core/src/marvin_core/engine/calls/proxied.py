"""A proxy for programs of tools that make their own requests: it reaches the same addresses as the HTTP client."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from ...guard.sandbox.proxy_environment import proxy_environment
from ..ports import ToolClients

_LOOPBACK = "127.0.0.1"
_EXCEPTIONS = ("NO_PROXY", "no_proxy", "npm_config_noproxy")


class Leading:
    """A factory for a session resource: the variables that direct a program to a proxy while the proxy is running."""

    def __init__(self, clients: ToolClients) -> None:
        self._clients = clients

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Leading) and other._clients is self._clients

    def __hash__(self) -> int:
        return hash(id(self._clients))

    def __call__(self) -> AbstractAsyncContextManager[dict[str, str]]:
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[dict[str, str]]:
        proxy = self._clients.proxy(_anywhere)
        try:
            listener = socket.create_server((_LOOPBACK, 0))
            port = listener.getsockname()[1]
            await proxy.serve(listener)
            # No host bypasses the proxy, not even this machine: the proxy decides whether it may be reached.
            yield {**proxy_environment(port), **dict.fromkeys(_EXCEPTIONS, "")}
        finally:
            await proxy.close()


async def _anywhere(host: str, port: int) -> str:
    """Every host: the addresses are checked when the connection is made."""
    return ""
