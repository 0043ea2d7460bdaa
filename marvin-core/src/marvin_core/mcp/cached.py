"""The cached lists of servers, as far as a start needs them, so that it contacts no server.

All servers share one file. Its first line has an entry for each server. The next lines are those of the servers: one
for each tool with its description and parameters, then one with all else. The last line is a checksum of the others. A
start parses the first line only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import Any
from zlib import crc32

from ..api.config import McpServer
from ..api.tools import Access, ToolSpec
from ..plugins.stored import LateText, late_tools
from ..util.state_files import read_trusted, trusted_json

FILE = "mcp-servers.json"
FORMAT = 3
GROUP = "mcp"
LOGINS = "mcp-logins.json"
"""The file with the logins, in the configuration folder."""
_READS: frozenset[Access] = frozenset({"read", "net"})
_ALL: frozenset[Access] = frozenset({"read", "net", "write", "exec"})


class CachedServers:
    """The content of the file, which is empty if it is missing, incomplete or of another version."""

    def __init__(self, folder: Path) -> None:
        content = read_trusted(folder / FILE) or b""
        found = trusted_json(content[: content.find(b"\n")])
        right = isinstance(found, dict) and found.get("format") == FORMAT and isinstance(found.get("servers"), dict)
        end = content.rfind(b"\n")
        whole = right and content[end + 1 :] == b"%d" % crc32(memoryview(content)[:end])
        self.entries: dict[str, Any] = found["servers"] if whole else {}
        """The entries of the first line, by the names of the servers."""
        self.text = LateText(content)
        """The other lines."""

    def of(self, server: McpServer) -> dict[str, Any] | None:
        """The entry of a server; None if its configuration was changed since then, or there is none."""
        entry = self.entries.get(server.name)
        return entry if isinstance(entry, dict) and entry.get("setup") == setup_of(server) else None

    def tools(self, server: McpServer) -> list[ToolSpec] | None:
        """The tools of a server, whose descriptions and parameters are parsed on first use; None if it is not known."""
        entry = self.of(server)
        if entry is None or "names" not in entry:
            return None
        try:
            return self._tools(server, entry)
        except (KeyError, TypeError, ValueError):  # damaged
            return None

    def _tools(self, server: McpServer, entry: dict[str, Any]) -> list[ToolSpec]:
        pairs, fields = zip(entry["names"], entry["called"], strict=True), common(server.name)
        found: list[ToolSpec] = []
        for access, same in groupby(pairs, lambda one: access_of(server, one[1])):
            names = [name for name, _ in same]
            found += late_tools(names, {**fields, "access": access}, self.text, entry["first"] + len(found))
        return found


def setup_of(server: McpServer) -> Sequence[Any]:
    """The cache key: the configuration of a server, without values of variables or headers."""
    return [server.command, *server.args, server.cwd, server.url, sorted(server.env), sorted(server.headers)]


def common(server: str) -> dict[str, Any]:
    """The fields that all tools of a server share."""
    return {"group": GROUP, "parallel": True, "source": f"MCP server {server}"}


def access_of(server: McpServer, called: str | None) -> frozenset[Access]:
    """The access of a tool: all kinds, unless the user declares it read-only. The server's claim is ignored.

    Args:
        called: its name on the server; None for the tool that reads its resources.
    """
    if called is None or any(fnmatchcase(called, pattern) for pattern in server.read_only):
        return _READS
    return _ALL
