"""The MCP servers of a session, and their tools. A server with a cached listing is started only on first use."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

from ..api.config import McpServer
from ..api.errors import MarvinError
from ..api.tools import Tool, ToolSpec
from ..util.threads import in_thread
from .connection import Connection, Surroundings
from .listed import ListedTool, Listing, Listings, offered

LONG = 3.0
"""Seconds that a prompt waits for slow servers. They continue to start, and a later prompt can use them."""


class Offering(Protocol):
    """The toolbox of a session."""

    def add(self, spec: ToolSpec, tool: Tool | None = None) -> None: ...
    def hold(self, name: str, reason: str) -> None: ...


class Servers:
    """The servers, by their names.

    Args:
        configured: the servers that may be used.
        listings: their cached listings.
        toolbox: the tools of the session, which new ones join.
        around: the dependencies of connections.
    """

    def __init__(
        self, configured: Mapping[str, McpServer], listings: Listings, toolbox: Offering, around: Surroundings
    ) -> None:
        self.configured = configured
        self._listings = listings
        self._listed: dict[str, tuple[str, ListedTool | None]] = {}
        self._connections: dict[str, Connection] = {}
        self._toolbox = toolbox
        self._stale: set[str] = set()
        self._around = around.replace(changed=lambda server: self._stale.add(server.name))
        self.known: dict[str, Listing] = {}
        """The known listings by name; servers without one are missing."""
        for name, server in self.configured.items():
            if (listing := listings.of(server)) is not None:
                self.known[name] = listing
                self._specs(name)

    def find(self, spec: ToolSpec) -> Tool | None:
        """The tool of a specification from these servers; None for any other. Blocks to import the validation."""
        if spec.name not in self._listed:
            return None
        from .calls import resource_tool, tool_of

        server, listed = self._listed[spec.name]
        connection = self.connection(server)
        return resource_tool(spec, connection) if listed is None else tool_of(spec, listed, connection)

    def connection(self, name: str) -> Connection:
        """The connection to a server, opened on first use."""
        if name not in self._connections:
            self._connections[name] = Connection(self.configured[name], self._around)
        return self._connections[name]

    def state(self, name: str) -> str:
        """The status of a server, as shown to the user."""
        connection = self._connections.get(name)
        return "not started" if connection is None else connection.state

    def unknown(self) -> list[str]:
        """The names of servers without a listing, or with one that has changed."""
        return [name for name in self.configured if name not in self.known or name in self._stale]

    def was_late(self, name: str) -> bool:
        """Whether the last attempt to ask a server took long and failed."""
        return self._listings.was_late(self.configured[name])

    async def learn(self, name: str) -> str:
        """Fetch the listing of a server. An attempt that takes long and fails is stored for later runs.

        Returns:
            the reason for a failure; empty after success.
        """
        begun = time.monotonic()
        try:
            await self.ask(name)
        except MarvinError as error:
            if time.monotonic() - begun > LONG and not self.connection(name).closed:
                await in_thread(partial(self._listings.keep_late, self.configured[name]))
            return str(error)
        return ""

    async def ask(self, name: str) -> Listing:
        """Fetch the listing of one server, and offer its tools. Raises `ToolError` if that fails."""
        from .listing import listing_of  # imports nothing of the SDK by itself

        connection = self.connection(name)
        was_stale = name in self._stale
        self._stale.discard(name)  # before it is asked: the list may change again meanwhile
        try:
            listing = await connection.use(lambda client: listing_of(client, name))
        except BaseException:
            if was_stale:
                self._stale.add(name)
            raise
        before = {spec.name for spec in self._specs(name)} if name in self.known else set()
        self.known[name] = listing
        await in_thread(partial(self._listings.keep, self.configured[name], listing))
        specs = self._specs(name)
        for spec in specs:
            self._toolbox.add(spec)
        for gone in before - {spec.name for spec in specs}:
            self._toolbox.hold(gone, f"the MCP server {name} no longer has it")
        return listing

    def _specs(self, name: str) -> Sequence[ToolSpec]:
        """The tools of a known server, which `find` finds from now on."""
        specs = list(offered(self.configured[name], self.known[name]))
        self._listed.update({spec.name: (name, tool) for spec, tool in specs})
        return [spec for spec, _ in specs]
