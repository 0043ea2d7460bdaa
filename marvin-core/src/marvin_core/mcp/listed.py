"""The cached tools, prompts and resources of servers, so that a session starts without contacting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

from ..api.config import McpServer
from ..api.record import Record
from ..util.state_files import read_trusted_json, write_cache

_FORMAT = 2


class ListedTool(Record):
    """A tool of a server as Marvin offers it."""

    name: str
    """Its name in Marvin."""
    called: str
    """Its name on the server."""
    description: str
    parameters: Mapping[str, Any]
    """Its schema in the normal form."""
    schema: Mapping[str, Any]
    """The server's original schema, against which calls are validated."""
    reads_only: bool = False
    """Whether the server declares it read-only, which is not verified."""


class ListedPrompt(Record):
    """A prompt of a server: its name on the server, its description, and its parameters, required ones first."""

    name: str
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: int = 0


class Listing(Record):
    """The tools, prompts and resources of a server."""

    tools: tuple[ListedTool, ...] = ()
    prompts: tuple[ListedPrompt, ...] = ()
    instructions: str = ""
    resources: bool = False
    """Whether the server offers resources."""
    named: Mapping[str, str] = MappingProxyType({})
    """The first resources: descriptions by URI."""
    left_out: tuple[str, ...] = ()
    """The tools that cannot be offered, each with the reason."""


class Listings:
    """The listings of all servers, in one file of the cache folder.

    Args:
        folder: the cache folder.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "mcp-servers.json"
        self._kept: dict[str, Any] | None = None
        self._writing = Lock()  # servers are asked in parallel, and no listing may be lost

    def of(self, server: McpServer) -> Listing | None:
        """The last listing of a server; None if its configuration was changed since then, or there is none."""
        kept = self._read().get(server.name)
        if not isinstance(kept, dict) or kept.get("setup") != _setup(server):
            return None
        try:
            return _listing(kept["listing"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def keep(self, server: McpServer, listing: Listing) -> None:
        """Store the listing of a server. Blocks."""
        with self._writing:
            self._kept = None  # another Marvin may have changed the file meanwhile
            kept = self._read()
            kept[server.name] = {"setup": _setup(server), "listing": _stated(listing)}
            write_cache(self._path, {"format": _FORMAT, "servers": kept})

    def was_late(self, server: McpServer) -> bool:
        """Whether the last attempt to ask a server with this configuration took long and failed."""
        kept = self._read().get(server.name)
        return isinstance(kept, dict) and kept.get("setup") == _setup(server) and bool(kept.get("late"))

    def keep_late(self, server: McpServer) -> None:
        """Store that an attempt took long and failed, unless there is a listing. Blocks."""
        with self._writing:
            self._kept = None
            kept = self._read()
            if self.of(server) is None:
                kept[server.name] = {"setup": _setup(server), "late": True}
                write_cache(self._path, {"format": _FORMAT, "servers": kept})

    def forget(self, name: str) -> None:
        """Invalidate the listing of a server, so that it is fetched again on next use. Blocks."""
        with self._writing:
            kept = self._read()
            if kept.pop(name, None) is not None:
                write_cache(self._path, {"format": _FORMAT, "servers": kept})

    def _read(self) -> dict[str, Any]:
        if self._kept is None:
            found = read_trusted_json(self._path)
            right = isinstance(found, dict) and found.get("format") == _FORMAT
            self._kept = dict(found["servers"]) if right and isinstance(found.get("servers"), dict) else {}
        return self._kept


def _setup(server: McpServer) -> Sequence[Any]:
    """The cache key: the configuration of a server, without values of variables or headers."""
    return [server.command, *server.args, server.cwd, server.url, sorted(server.env), sorted(server.headers)]


def _stated(listing: Listing) -> dict[str, Any]:
    return {
        "tools": [tool.as_dict() for tool in listing.tools],
        "prompts": [prompt.as_dict() for prompt in listing.prompts],
        "instructions": listing.instructions,
        "resources": listing.resources,
        "named": dict(listing.named),
        "left_out": list(listing.left_out),
    }


def _listing(kept: Mapping[str, Any]) -> Listing:
    return Listing(
        tools=tuple(ListedTool(**one) for one in kept["tools"]),
        prompts=tuple(ListedPrompt(**{**one, "arguments": tuple(one["arguments"])}) for one in kept["prompts"]),
        instructions=str(kept["instructions"]),
        resources=bool(kept["resources"]),
        named={str(uri): str(said) for uri, said in kept["named"].items()},
        left_out=tuple(map(str, kept["left_out"])),
    )
