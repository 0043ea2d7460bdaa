"""The MCP servers of one session: from the user's configuration, and from a trusted project.

A start needs the names of their tools only. All else is imported when a server is used, or shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING

from ..api.config import Config
from ..api.session import Command
from ..api.tools import Tool, ToolSpec
from ..config.secrets import Secrets
from .cached import GROUP, LOGINS, CachedServers

if TYPE_CHECKING:
    from ..engine.parts import SessionParts
    from .live import LiveServers
    from .servers import Servers


class SessionServers:
    """The `ToolSource` of a session."""

    def __init__(self, config: Config, secrets: Secrets) -> None:
        self._configured = {name: server for name, server in config.mcp_servers.items() if not server.off}
        self._cached = CachedServers(config.cache_folder)
        tools = {name: self._cached.tools(server) for name, server in self._configured.items()}
        self._are_known = None not in tools.values()
        self.specs: tuple[ToolSpec, ...] = tuple(spec for known in tools.values() for spec in known or ())
        """The tools of the servers with a listing."""
        self._secrets = secrets
        self._parts: SessionParts | None = None
        self._live: LiveServers | None = None
        self._making = Lock()  # tools are loaded in threads

    @property
    def servers(self) -> Servers:
        """The servers, in an attached session."""
        return self._in_use().servers

    def commands(self, own: Mapping[str, Command]) -> Mapping[str, Command]:
        """The session's own commands, with `/mcp` and the prompts of these servers."""
        return _LiveCommands(own, lambda: self._in_use().commands())

    def resources(self) -> Mapping[str, str]:
        """The resources of these servers."""
        known = map(self._cached.of, self._configured.values())
        return self._in_use().resources() if self._live or any(one and one.get("named") for one in known) else {}

    def find(self, spec: ToolSpec) -> Tool | None:
        """The tool of a specification from these servers; None for any other."""
        return self._in_use().servers.find(spec) if spec.group == GROUP else None

    def attach(self, parts: SessionParts) -> None:
        """Set the session."""
        self._parts = parts

    async def ready(self) -> None:
        """Fetch missing listings, as `LiveServers.ready`."""
        if self._live is not None or not self._are_known:
            await self._in_use().ready()

    def _in_use(self) -> LiveServers:
        with self._making:
            if self._live is None:
                from .live import LiveServers

                assert self._parts is not None
                self._live = LiveServers(self._configured, self._cached, self._secrets, self._parts)
            return self._live


class _LiveCommands(Mapping[str, Command]):
    """The session's own commands and the commands of servers. If names are equal, the server's command is used."""

    def __init__(self, own: Mapping[str, Command], of_servers: Callable[[], Iterable[Command]]) -> None:
        self._own = own
        self._of_servers = of_servers

    def _all(self) -> Mapping[str, Command]:
        return {**self._own, **{command.name: command for command in self._of_servers()}}

    def __getitem__(self, name: str) -> Command:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def session_servers(config: Config, secrets: Secrets) -> SessionServers | None:
    """The servers that a session may use; None if there are none."""
    if all(server.off for server in config.mcp_servers.values()):
        return None
    if any(server.url for server in config.mcp_servers.values()):
        secrets.watch(config.config_folder / LOGINS, _secrets_of_logins)
    return SessionServers(config, secrets)


def _secrets_of_logins(text: str) -> Iterable[str]:
    from .login.kept import secrets_in

    return secrets_in(text)
