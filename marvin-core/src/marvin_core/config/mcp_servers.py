"""What stands below `mcp_servers:` in config.yaml, and in the `.mcp.json` of a project."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..api.config import McpServer
from ..api.errors import ConfigError
from ..util.text import hint_at
from ..util.untrusted_json import parse_json

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_LISTS = ("args", "read_only")
_TEXTS = ("command", "cwd", "url")
_MAPPINGS = ("env", "headers")
_SWITCHES = ("sandbox", "off")
_REPOSITORYS = frozenset({"command", "args", "env", "cwd", "url", "headers"})
"""What a project may say of its servers; what widens what they may do is the user's to say."""
_LARGEST = 1_000_000
_MOST = 100


def mcp_servers(settings: Mapping[str, Any], origin: str) -> Mapping[str, McpServer]:
    """The servers, by their names. Raises `ConfigError` where an entry is none."""
    return {name: _server(name, entry, f"mcp_servers.{name} in {origin}", origin) for name, entry in settings.items()}


def servers_of_project(content: bytes, origin: str) -> Mapping[str, McpServer]:
    """The servers of a `.mcp.json`: what other programs know besides is passed over.

    Raises:
        ConfigError: where it is no such file, or an entry is no server.
    """
    try:
        found = parse_json(content, _LARGEST)["mcpServers"]
        entries = {str(name): dict(entry) for name, entry in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f'{origin} does not have the form {{"mcpServers": {{NAME: {{...}}}}}}. Correct it.') from None
    if len(entries) > _MOST:
        raise ConfigError(f"{origin} names {len(entries):,} servers; {_MOST} are the most. Remove some.")
    kept = {name: {key: entry[key] for key in _REPOSITORYS & entry.keys()} for name, entry in entries.items()}
    return mcp_servers(kept, origin)


def _server(name: str, entry: Mapping[str, Any], place: str, origin: str) -> McpServer:
    if not _NAME.fullmatch(name) or "__" in name:
        raise ConfigError(
            f"{place}: {name!r:.80} is no name of a server. Use letters, digits, '-', '.' and single '_'."
        )
    values: dict[str, Any] = {}
    for key, value in entry.items():
        if key in _TEXTS and isinstance(value, str):
            values[key] = value.strip()
        elif key in _SWITCHES and isinstance(value, bool):
            values[key] = value
        elif key in _LISTS and isinstance(value, list) and all(isinstance(one, (str, int, float)) for one in value):
            values[key] = tuple(map(str, value))
        elif key in _MAPPINGS and isinstance(value, dict) and all(isinstance(one, str) for one in value.values()):
            values[key] = {str(one): text for one, text in value.items()}
        else:
            raise ConfigError(f"{place}: {_problem(key)}")
    server = McpServer(name=name, origin=origin, **values)
    if bool(server.command) == bool(server.url):
        raise ConfigError(f"{place} needs a command or a url, and not both.")
    if server.url and not re.match(r"https?://[^/]", server.url):
        raise ConfigError(f"{place}: url takes an address such as https://mcp.example.com/mcp.")
    if "\0" in "".join((server.command, *server.args, *server.env, *server.env.values(), server.cwd)):
        raise ConfigError(f"{place} holds a character that no program can be given (NUL).")
    return server


def _problem(key: str) -> str:
    if key in _LISTS:
        return f"{key} takes a list of texts."
    if key in _MAPPINGS:
        return f"{key} takes names, each with a text."
    if key in (*_TEXTS, *_SWITCHES):
        return f"{key} takes {'a text' if key in _TEXTS else 'true or false'}."
    known = (*_TEXTS, *_LISTS, *_MAPPINGS, *_SWITCHES)
    return f"unknown key {key!r}. {hint_at(key, known, 'Known keys: ' + ', '.join(sorted(known)) + '.')}"


def filled_in(server: McpServer, variable: Callable[[str], str | None]) -> McpServer:
    """The server with the values of the variables that it names.

    Raises:
        ConfigError: where a variable is not set, and nothing stands for it.
    """

    def value(found: re.Match[str]) -> str:
        given = variable(found[1])
        if given is None and found[2] is None:
            raise ConfigError(
                f"The MCP server {server.name} ({server.origin}) needs the variable {found[1]}, which is not set. "
                "Set it, and start Marvin again."
            )
        return given or found[2] or ""

    def filled(text: str) -> str:
        return _VARIABLE.sub(value, text)

    return server.replace(
        command=filled(server.command),
        args=tuple(map(filled, server.args)),
        env={name: filled(text) for name, text in server.env.items()},
        cwd=filled(server.cwd),
        url=filled(server.url),
        headers={name: filled(text) for name, text in server.headers.items()},
    )
