"""The servers of one session: those of the user, and those of a project that the user trusts."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from ..api.config import Config
from ..api.session import Command
from ..api.tools import Tool, ToolSpec
from ..config.mcp_servers import filled_in
from ..config.secrets import Secrets
from .connection import Surroundings
from .listed import Listings
from .prompts import prompt_commands
from .servers import Servers

if TYPE_CHECKING:
    from ..engine.parts import SessionParts

_PATIENCE = 3.0
"""Seconds that the prompt of a chat waits for servers that nobody has asked before. They go on, for the next one."""


class SessionServers:
    """The `ToolSource` of a session."""

    def __init__(self, servers: Servers, secrets: Secrets) -> None:
        self.servers = servers
        self._secrets = secrets
        self._parts: SessionParts | None = None
        self._learning: asyncio.Task[None] | None = None
        self._told: set[str] = set()

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools of the servers that were asked before."""
        return self.servers.specs()

    def commands(self) -> tuple[Command, ...]:
        """The prompts of these servers."""
        return tuple(prompt_commands(self.servers))

    def find(self, spec: ToolSpec) -> Tool | None:
        """The tool of a spec of ours."""
        return self.servers.find(spec)

    def attach(self, parts: SessionParts) -> None:
        """Take the session that it serves."""
        self._parts = parts
        around = Surroundings(
            processes=parts.processes,
            root=lambda: parts.workspace.root,
            filled_in=partial(filled_in, variable=self._secrets.setting),
            keep=parts.resources.get,
            start=parts.config.timeouts.server,
        )
        self.servers.attach(parts.toolbox, around)

    async def ready(self) -> None:
        """Ask the servers whose tools are not known: to the end where nobody is there, else for some seconds."""
        if self._parts is None or not self.servers.unknown():
            return
        if self._learning is None or self._learning.done():
            self._learning = asyncio.ensure_future(self._learn(self._parts))
        await asyncio.wait([self._learning], timeout=None if self._parts.setup.asker is None else _PATIENCE)

    async def _learn(self, parts: SessionParts) -> None:
        names = ", ".join(self.servers.unknown())
        parts.bus.tell(f"Asking the MCP server {names} for its tools …")
        for name, fault in (await self.servers.learn()).items():
            if name not in self._told:
                self._told.add(name)
                parts.bus.warn(fault)


def session_servers(config: Config, secrets: Secrets) -> SessionServers | None:
    """The servers that a session may use; None where there are none."""
    if all(server.off for server in config.mcp_servers.values()):
        return None
    return SessionServers(Servers(config.mcp_servers, Listings(config.cache_folder)), secrets)
