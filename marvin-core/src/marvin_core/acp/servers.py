"""The MCP servers that an editor adds to a session."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from acp import schema

from ..api.config import McpServer
from ..api.errors import ConfigError
from ..config.mcp_servers import server_of

GivenServer: TypeAlias = schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio
ORIGIN = "the editor"
_MOST = 100
_FORBIDDEN = re.compile(r"[^A-Za-z0-9.-]+|_{2,}")
_VARIABLE = re.compile(r"\$\{[A-Za-z_]")


def servers_given(found: Sequence[GivenServer] | None, warn: Callable[[str], None]) -> Mapping[str, McpServer]:
    """The servers, by valid names. Unusable ones are reported and left out."""
    servers: dict[str, McpServer] = {}
    for one in list(found or ())[:_MOST]:
        try:
            server = _server(one)
            servers[server.name] = server
        except ConfigError as error:
            warn(str(error))
    return servers


def _server(given: GivenServer) -> McpServer:
    entry: dict[str, Any]
    if isinstance(given, schema.McpServerStdio):
        entry = {"command": given.command, "args": given.args, "env": {one.name: one.value for one in given.env}}
    elif isinstance(given, schema.HttpMcpServer):
        entry = {"url": given.url, "headers": {one.name: one.value for one in given.headers}}
    else:
        raise ConfigError(
            f"The server {given.name!r:.80} of the editor was left out: Marvin supports only servers that use stdio or "
            "HTTP."
        )
    if _VARIABLE.search(repr(entry)):  # otherwise the value of a user's variable would replace it
        raise ConfigError(
            f"The server {given.name!r:.80} of the editor was left out: it has ${{...}} in a value. Name it in "
            "mcp_servers of config.yaml: there, ${...} stands for a variable."
        )
    name = _FORBIDDEN.sub("-", given.name).strip("-._")[:64] or "server"
    return server_of(name, entry, ORIGIN)
