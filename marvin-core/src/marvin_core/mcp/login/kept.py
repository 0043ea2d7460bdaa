"""Stored logins of servers: a file in the configuration folder that only this user can read."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from ...api.config import McpServer
from ...api.errors import ToolError
from ...api.record import Record
from ...api.timeouts import Timeouts
from ...config.program import command_name
from ...util.state_files import renewing, replace_file, set_aside, update_file
from ...util.untrusted_json import parse_json
from ..cached import LOGINS

_SECRETS = ("access_token", "refresh_token", "client_secret", "registration_access_token")


class LoginNeeded(ToolError):
    """There is no login, or the server rejects it; the text says what to do."""

    def __init__(self, server: str, why: str = "it wants a login") -> None:
        super().__init__(f"{why}. Run `{command_name()} mcp login {server}`")


class LoginPage(Record):
    """Shows the login page to the user. Both functions are called in the event loop."""

    show: Callable[[str], Awaitable[bool]]
    """Shows the address of the page while the login is pending. It returns false to end the login."""
    may: Callable[[], bool] = lambda: True
    """Whether the user can be asked now."""


class Logins:
    """`mcp-logins.json`: for each server its tokens, the registered client, and their issuer.

    Args:
        folder: the configuration folder.
    """

    def __init__(self, folder: Path, timeouts: Timeouts) -> None:
        self.path = folder / LOGINS
        self._timeouts = timeouts

    def of(self, server: McpServer) -> Mapping[str, Any]:
        """The login of a server at its address; empty if there is none."""
        entry = self._entries().get(server.name)
        return entry if isinstance(entry, dict) and entry.get("url") == server.url else {}

    def keep(self, server: McpServer, values: Mapping[str, Any]) -> None:
        """Update these parts of a login. Blocks.

        Raises:
            MarvinError: another process holds the lock of the file for too long.
            OSError: the file cannot be written.
        """

        def changed(content: bytes | None) -> bytes:
            entries = _parsed(content)
            if entries is None:
                set_aside(self.path)
                entries = {}
            before = entries.get(server.name)
            old = before if isinstance(before, dict) and before.get("url") == server.url else {}
            entries[server.name] = {**old, "url": server.url, **values}
            return json.dumps(entries, indent=1).encode()

        if not self.path.exists():
            replace_file(self.path, b"{}")
        self.path.chmod(0o600)  # otherwise a copied file would keep its mode
        update_file(self.path, changed, self._timeouts)

    def forget(self, name: str) -> bool:
        """Delete a login; returns whether there was one. Blocks; raises the same errors as `keep`."""
        found = False

        def changed(content: bytes | None) -> bytes | None:
            nonlocal found
            entries = _parsed(content) or {}
            found = entries.pop(name, None) is not None
            return json.dumps(entries, indent=1).encode() if found else None

        if self.path.exists():
            update_file(self.path, changed, self._timeouts)
        return found

    def renewing(self) -> AbstractAsyncContextManager[None]:
        """Lock the renewal of a login, since a refresh token may be valid only once."""
        return renewing(self.path, self._timeouts)

    def _entries(self) -> dict[str, Any]:
        try:
            return _parsed(self.path.read_bytes()) or {}
        except OSError:
            return {}


def secrets_in(text: str) -> Iterable[str]:
    """The secrets in the text of the file."""
    entries = _parsed(text.encode()) or {}
    parts = [part for entry in entries.values() if isinstance(entry, dict) for part in entry.values()]
    found = [part[name] for part in parts if isinstance(part, dict) for name in _SECRETS if part.get(name)]
    return [value for value in found if isinstance(value, str)]


def _parsed(content: bytes | None) -> dict[str, Any] | None:
    """The content of the file; None if it is not valid."""
    if content is None:
        return {}
    try:
        found = parse_json(content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
