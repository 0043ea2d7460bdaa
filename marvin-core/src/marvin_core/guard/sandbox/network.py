"""The network of a sandbox: its policy, and the proxy for its commands."""

from __future__ import annotations

import socket
from typing import Protocol

from ...api.config import NetworkPolicy


class SandboxNetwork(Protocol):
    """The network as the session decides it."""

    @property
    def policy(self) -> NetworkPolicy:
        """What commands may reach, as it is now."""
        ...

    @property
    def is_filtered(self) -> bool:
        """Whether commands reach the network through a proxy only."""
        ...

    async def serve(self, listener: socket.socket) -> None:
        """Have the proxy serve a listening socket that was opened on the loopback inside of the sandbox."""
        ...

    def mark(self) -> int:
        """Where the list of refusals ends now, for `refused_since`."""
        ...

    def refused_since(self, mark: int) -> tuple[str, ...]:
        """The hosts with their ports that were refused since a mark, each once."""
        ...

    async def close(self) -> None:
        """End every connection."""
        ...


class PlainNetwork:
    """A network without a proxy: commands have it as it is, or have each other."""

    is_filtered = False

    def __init__(self, policy: NetworkPolicy) -> None:
        self.policy = policy

    async def serve(self, listener: socket.socket) -> None:
        """Nothing: the socket is closed."""
        listener.close()

    def mark(self) -> int:
        """Always the same: nothing is refused by name."""
        return 0

    def refused_since(self, mark: int) -> tuple[str, ...]:
        """None."""
        return ()

    async def close(self) -> None:
        """Nothing."""
