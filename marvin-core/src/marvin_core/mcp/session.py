"""The MCP servers of one session: from the user's configuration, and from a trusted project."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ..api.config import Config, McpServer
from ..api.errors import ToolError
from ..api.messages import Text
from ..api.providers import OFFLINE, Secret
from ..api.session import Command
from ..api.tools import Tool, ToolSpec
from ..config.mcp_servers import filled_in, secrets_of
from ..config.program import command_name
from ..config.secrets import Secrets
from .commands import LiveCommands, mcp_command
from .connection import Surroundings
from .listed import Listings
from .login.kept import LoginPage, Logins, secrets_in
from .prompts import prompt_commands
from .servers import LONG, Servers

if TYPE_CHECKING:
    from ..api.providers import Request
    from ..conversation.aside import PartialAnswer
    from ..engine.parts import SessionParts


class SessionServers:
    """The `ToolSource` of a session."""

    def __init__(self, servers: Servers, secrets: Secrets) -> None:
        self.servers = servers
        self._secrets = secrets
        self._parts: SessionParts | None = None
        self._learning: dict[str, asyncio.Task[None]] = {}
        self._told: set[str] = set()

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools of the servers with a listing."""
        return self.servers.specs()

    def commands(self, own: Mapping[str, Command]) -> Mapping[str, Command]:
        """The session's own commands, with `/mcp` and the prompts of these servers."""
        return LiveCommands(own, lambda: (mcp_command(self.servers), *prompt_commands(self.servers)))

    def resources(self) -> Mapping[str, str]:
        """The resources of these servers."""
        known = self.servers.known.items()
        return {f"{name}:{uri}": said for name, listing in known for uri, said in listing.named.items()}

    def find(self, spec: ToolSpec) -> Tool | None:
        """The tool of a specification from these servers; None for any other."""
        return self.servers.find(spec)

    def attach(self, parts: SessionParts) -> None:
        """Set the session."""
        self._parts = parts
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
        self.servers.attach(parts.toolbox, around)

    def _filled_in(self, server: McpServer) -> McpServer:
        found = filled_in(server, self._secrets)
        for value in secrets_of(found):
            self._secrets.learn(Secret(value))
        return found

    def _streams(
        self, server: McpServer, page: LoginPage, told: Callable[[str], None]
    ) -> AbstractAsyncContextManager[Any]:
        from .reaching import Reaching

        assert self._parts is not None
        logins = Logins(self._parts.config.config_folder, self._parts.config.timeouts)
        return Reaching(self._parts.config, logins, self._secrets.setting).streams(server, page, told)

    async def _asked(self, request: Request) -> PartialAnswer:
        """The model's answer to a server's request; secrets are removed from both."""
        from ..conversation.aside import Aside

        parts = self._parts
        provider = None if parts is None else parts.model.summarizer()
        if parts is None or provider is None or provider.name == OFFLINE:
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
        if self._parts is None or not (unknown := self.servers.unknown()):
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


def session_servers(config: Config, secrets: Secrets) -> SessionServers | None:
    """The servers that a session may use; None if there are none."""
    if all(server.off for server in config.mcp_servers.values()):
        return None
    if any(server.url for server in config.mcp_servers.values()):
        secrets.watch(Logins(config.config_folder, config.timeouts).path, secrets_in)
    return SessionServers(Servers(config.mcp_servers, Listings(config.cache_folder)), secrets)
