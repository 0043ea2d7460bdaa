"""The MCP servers of a session that uses or shows one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ..api.config import McpServer
from ..api.errors import ToolError
from ..api.messages import Text
from ..api.providers import OFFLINE, Secret
from ..api.session import Command
from ..config.mcp_servers import filled_in
from ..config.program import command_name
from ..config.secret_files import secrets_of_server
from ..config.secrets import Secrets
from .cached import CachedServers
from .commands import mcp_command
from .connection import Surroundings
from .listed import Listings
from .login.kept import LoginPage, Logins
from .prompts import prompt_commands
from .servers import LONG, Servers

if TYPE_CHECKING:
    from ..api.providers import Request
    from ..conversation.aside import PartialAnswer
    from ..engine.parts import SessionParts


class LiveServers:
    """The servers of a session, and what it does with all of them."""

    def __init__(
        self, configured: Mapping[str, McpServer], cached: CachedServers, secrets: Secrets, parts: SessionParts
    ) -> None:
        self._secrets = secrets
        self._parts = parts
        self._learning: dict[str, asyncio.Task[None]] = {}
        self._told: set[str] = set()
        around = Surroundings(
            processes=parts.processes,
            root=lambda: parts.workspace.root,
            filled_in=self._filled_in,
            keep=parts.resources.get,
            start=parts.config.timeouts.server,
            reach=self._streams,
            ask_model=self._asked,
            attended=parts.setup.asker is not None,
        )
        listings = Listings(parts.config.cache_folder, cached)
        self.servers = Servers(configured, listings, parts.toolbox, around)

    def commands(self) -> Iterator[Command]:
        """`/mcp`, and the prompts of the servers."""
        yield mcp_command(self.servers)
        yield from prompt_commands(self.servers)

    def resources(self) -> Mapping[str, str]:
        """The resources of the servers."""
        known = self.servers.known.items()
        return {f"{name}:{uri}": said for name, listing in known for uri, said in listing.named.items()}

    def _filled_in(self, server: McpServer) -> McpServer:
        found = filled_in(server, self._secrets)
        for value in secrets_of_server(found):
            self._secrets.learn(Secret(value))
        return found

    def _streams(
        self, server: McpServer, page: LoginPage, told: Callable[[str], None]
    ) -> AbstractAsyncContextManager[Any]:
        from .reaching import Reaching

        logins = Logins(self._parts.config.config_folder, self._parts.config.timeouts)
        return Reaching(self._parts.config, logins, self._secrets.setting).streams(server, page, told)

    async def _asked(self, request: Request) -> PartialAnswer:
        """The model's answer to a server's request; secrets are removed from both."""
        from ..conversation.aside import Aside

        parts = self._parts
        provider = parts.model.summarizer()
        if provider is None or provider.name == OFFLINE:
            raise ToolError("No model is set up here.")
        clean = parts.redactor.text
        messages = tuple(
            message.replace(
                content=tuple(
                    block.replace(text=clean(block.text)) if isinstance(block, Text) else block
                    for block in message.content
                )
            )
            for message in request.messages
        )
        aside = Aside(provider=provider, meter=parts.meter, bus=parts.bus)
        async with asyncio.timeout(parts.config.timeouts.summary):
            came = await aside.ask(request.replace(system=clean(request.system), messages=messages))
        came.text = clean(came.text)
        return came

    async def ready(self) -> None:
        """Fetch missing listings: without a time limit in a non-interactive run, else for some seconds.

        A server that was late in an earlier run gets no more than these seconds in any run.
        """
        if not (unknown := self.servers.unknown()):
            return
        new = [name for name in unknown if name not in self._learning or self._learning[name].done()]
        if new:
            self._parts.bus.tell(f"Asking the MCP server {', '.join(new)} for its tools …")
        late = {name for name in unknown if self.servers.was_late(name)}
        for name in new:
            self._learning[name] = asyncio.ensure_future(self._learn(name, self._parts))
        await asyncio.wait([self._learning[name] for name in unknown], timeout=LONG)
        if self._parts.setup.asker is not None:
            return
        if awaited := [self._learning[name] for name in unknown if name not in late]:
            await asyncio.wait(awaited)
        for name in sorted(late - self._told):
            if not self._learning[name].done():
                self._told.add(name)
                self._parts.bus.warn(
                    f"The MCP server {name} is not ready yet, and was not when it was last asked. The run continues "
                    f"without it. `{command_name()} mcp test {name}` waits for it."
                )

    async def _learn(self, name: str, parts: SessionParts) -> None:
        fault = await self.servers.learn(name)
        if fault and name not in self._told:
            self._told.add(name)
            parts.bus.warn(fault)
