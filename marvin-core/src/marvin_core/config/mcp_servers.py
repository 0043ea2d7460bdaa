"""The MCP servers in `mcp_servers:` of config.yaml, and in the `.mcp.json` of a project."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any, Protocol

from ..api.config import McpServer
from ..api.errors import ConfigError
from ..util.untrusted_json import parse_json

_VARIABLE = r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}"
_LETTERS = frozenset(string.ascii_letters + string.digits)
_IN_NAMES = _LETTERS | frozenset("_.-")
_LONGEST_NAME = 64
_LISTS = ("args", "read_only")
_TEXTS = ("command", "cwd", "url", "client_id", "client_secret", "sampling")
_MAPPINGS = ("env", "headers")
_SWITCHES = ("sandbox", "off")
_NUMBERS = ("login_port",)
_KINDS: Mapping[str, str] = {
    **dict.fromkeys(_NUMBERS, "a number"),
    **dict.fromkeys(_LISTS, "a list of texts"),
    **dict.fromkeys(_TEXTS, "a text"),
    **dict.fromkeys(_MAPPINGS, "names, each with a text"),
    **dict.fromkeys(_SWITCHES, "true or false"),
}
_REPOSITORYS = frozenset({"command", "args", "env", "cwd", "url", "headers"})
"""The keys that a project may set. Only the user may set the keys that grant permissions."""
_SAMPLING = ("deny", "ask", "allow")
_LARGEST = 1_000_000
_MOST = 100


class Variables(Protocol):
    """The environment variables of a run. Some of them hold keys."""

    def holds_key(self, name: str) -> bool: ...
    def setting(self, name: str) -> str | None: ...


def servers_of_project(content: bytes, origin: str) -> Mapping[str, McpServer]:
    """The servers of a `.mcp.json`. Keys of other programs are ignored.

    Raises:
        ConfigError: the file has another form, or an entry is invalid.
    """
    try:
        found = parse_json(content, _LARGEST)["mcpServers"]
        entries = {str(name): dict(entry) for name, entry in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f'{origin} does not have the form {{"mcpServers": {{NAME: {{...}}}}}}. Correct it.') from None
    if len(entries) > _MOST:
        raise ConfigError(f"{origin} names {len(entries):,} servers; the maximum is {_MOST}. Remove some.")
    kept = {name: {key: entry[key] for key in _REPOSITORYS & entry.keys()} for name, entry in entries.items()}
    return {name: server_of(name, entry, origin).replace(of_project=True) for name, entry in kept.items()}


def server_of(name: str, entry: Mapping[str, Any], origin: str) -> McpServer:
    """The server with these keys. Raises `ConfigError` if they are invalid."""
    place = f"mcp_servers.{name} in {origin}"
    values: dict[str, Any] = {}
    for key, value in entry.items():
        if key in _TEXTS and isinstance(value, str):
            values[key] = value.strip()
        elif key in (_SWITCHES if isinstance(value, bool) else _NUMBERS) and isinstance(value, int):
            values[key] = value
        elif key in _LISTS and isinstance(value, list) and all(isinstance(one, (str, int, float)) for one in value):
            values[key] = tuple(map(str, value))
        elif key in _MAPPINGS and isinstance(value, dict) and all(isinstance(one, str) for one in value.values()):
            values[key] = {str(one): text for one, text in value.items()}
        else:
            raise ConfigError(f"{place}: {key} takes {_KINDS[key]}.")
    server = McpServer(name=name, origin=origin, **values)
    if said := problem_of(name, server):
        raise ConfigError(f"{place}: {said}.")
    return server


def problem_of(name: str, server: Any) -> str:
    """The error of a server entry; empty if it is valid. `server` has the fields of `McpSettings`."""
    # Without regular expressions: a start checks the servers of a project, and would compile them.
    if not 0 < len(name) <= _LONGEST_NAME or name[0] not in _LETTERS or not _IN_NAMES.issuperset(name) or "__" in name:
        return f"{name!r:.80} is not a valid server name: use letters, digits, '-', '.' and single '_'"
    if bool(server.command) == bool(server.url):
        return "needs either a command or a url, not both"
    if server.url and not re.match(r"https?://[^/]", server.url):
        return "url takes an address such as https://mcp.example.com/mcp"
    env = server.env or {}
    if server.sampling not in _SAMPLING:
        return f"sampling takes {', '.join(_SAMPLING)}"
    if not 0 <= server.login_port < 65_536:
        return "login_port takes a port, or 0 for a free one"
    if "\0" in "".join((server.command, *server.args, *env, *env.values(), server.cwd)):
        return "holds a character that no program can be given (NUL)"
    return ""


def filled_in(server: McpServer, secrets: Variables) -> McpServer:
    """The server with the values of its `${VARIABLE}` references.

    Raises:
        ConfigError: a variable is not set and has no default, or a project's server refers to a variable with a key,
            which the project could send anywhere.
    """

    def value(found: re.Match[str]) -> str:
        if server.of_project and secrets.holds_key(found[1]):
            raise ConfigError(
                f"The MCP server {server.name} of the project ({server.origin}) wants the variable {found[1]}, which "
                "holds a key of yours. Marvin gives no key to a project's server. If you want that, set the server "
                "up under mcp_servers in config.yaml."
            )
        given = secrets.setting(found[1])
        if given is None and found[2] is None:
            raise ConfigError(
                f"The MCP server {server.name} ({server.origin}) needs the variable {found[1]}, which is not set. "
                "Set it, and start Marvin again."
            )
        return given or found[2] or ""

    def filled(text: str) -> str:
        return re.sub(_VARIABLE, value, text)

    return server.replace(
        command=filled(server.command),
        args=tuple(map(filled, server.args)),
        env={name: filled(text) for name, text in server.env.items()},
        cwd=filled(server.cwd),
        url=filled(server.url),
        headers={name: filled(text) for name, text in server.headers.items()},
        client_id=filled(server.client_id),
        client_secret=filled(server.client_secret),
    )
