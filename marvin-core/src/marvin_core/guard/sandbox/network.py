"""The network of a sandbox: its policy, and the proxy for its commands."""

from __future__ import annotations

import socket
from typing import Protocol

from ...api.config import NetworkPolicy


class SandboxNetwork(Protocol):
    """The network that the session grants."""

    @property
    def policy(self) -> NetworkPolicy:
        """The network that commands may reach now."""
        ...

    @property
    def is_filtered(self) -> bool:
        """Whether commands reach the network through a proxy only."""
        ...

    async def serve(self, listener: socket.socket) -> None:
        """Let the proxy serve a listening socket that was opened on the loopback interface inside the sandbox."""
        ...

    def mark(self) -> int:
        """A mark for the current end of the list of refusals, for `refused_since`."""
        ...

    def refused_since(self, mark: int) -> tuple[str, ...]:
        """The hosts and ports that were refused since a mark, without duplicates."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class PlainNetwork:
    """A network without a proxy: commands reach the network directly, or only each other."""

    is_filtered = False

    def __init__(self, policy: NetworkPolicy) -> None:
        self.policy = policy

    async def serve(self, listener: socket.socket) -> None:
        """Close the socket; there is no proxy to serve it."""
        listener.close()

    def mark(self) -> int:
        """A constant mark: nothing is refused by name."""
        return 0

    def refused_since(self, mark: int) -> tuple[str, ...]:
        """Always empty."""
        return ()

    async def close(self) -> None:
        """Does nothing: there are no connections."""
