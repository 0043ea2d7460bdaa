"""The tools, prompts and resources of servers, and their cache, which a session that uses no server does not read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any
from zlib import crc32

from ..api.config import McpServer
from ..api.record import Record
from ..api.tools import ToolSpec
from ..util.state_files import write_cache
from .cached import FILE, FORMAT, CachedServers, access_of, common, setup_of
from .naming import tool_name

_CALLS = f"{__package__}.calls"
_READ = "read_resource"
_TOLD = 20
"""The maximum number of resources that are listed for the model."""
_READS = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "Its URI, as the server names it."}},
    "required": ["uri"],
}
_EACH = ("name", "called", "description", "parameters")
"""The fields of a tool that the cache has elsewhere than in the last line of its server."""


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


def resource_tool_name(server: str) -> str:
    """The name of the tool that reads a server's resources."""
    return tool_name(server, _READ)


def offered(server: McpServer, listing: Listing) -> Iterator[tuple[ToolSpec, ListedTool | None]]:
    """The tools that Marvin offers for a server: each of its own, and one that reads its resources, with None."""
    for tool in listing.tools:
        yield (
            ToolSpec(
                name=tool.name,
                description=tool.description,
                parameters=tool.parameters,
                access=access_of(server, tool.called),
                module=_CALLS,
                **common(server.name),
            ),
            tool,
        )
    reader = resource_tool_name(server.name)
    if listing.resources and all(tool.name != reader for tool in listing.tools):
        yield (
            ToolSpec(
                name=reader,
                description=f"Read a resource of the MCP server {server.name}.{_known(listing)}",
                parameters=_READS,
                access=access_of(server, None),
                module=_CALLS,
                **common(server.name),
            ),
            None,
        )


def _known(listing: Listing) -> str:
    """The first resources of a server, for the model."""
    lines = [f"\n- {uri}: {said}" for uri, said in islice(listing.named.items(), _TOLD)]
    more = len(listing.named) - len(lines)
    return "".join([" It has:", *lines, f"\nand {more:,} more" if more > 0 else ""]) if lines else ""


class Listings:
    """The listings of all servers, in one file of the cache folder.

    Args:
        folder: the cache folder.
        cached: the content of the file, if it was read already.
    """

    def __init__(self, folder: Path, cached: CachedServers | None = None) -> None:
        self._folder = folder
        self._cached = cached
        self._writing = Lock()  # servers are asked in parallel, and no listing may be lost

    def of(self, server: McpServer) -> Listing | None:
        """The last listing of a server; None if its configuration was changed since then, or there is none."""
        cached = self._read()
        entry = cached.of(server)
        try:
            return None if entry is None or "names" not in entry else _listing(entry, _lines(cached, entry))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def keep(self, server: McpServer, listing: Listing) -> None:
        """Store the listing of a server. Blocks."""
        specs = list(offered(server, listing))
        entry = {
            "setup": setup_of(server),
            "names": [spec.name for spec, _ in specs],
            "called": [tool and tool.called for _, tool in specs],
            "named": bool(listing.named),
        }
        tools = [
            {"description": spec.description, "parameters": spec.parameters, "module": spec.module} for spec, _ in specs
        ]
        with self._writing:
            self._write({**self._kept(), server.name: (entry, [*tools, _rest(listing)])})

    def was_late(self, server: McpServer) -> bool:
        """Whether the last attempt to ask a server with this configuration took long and failed."""
        entry = self._read().of(server)
        return entry is not None and bool(entry.get("late"))

    def keep_late(self, server: McpServer) -> None:
        """Store that an attempt took long and failed, unless there is a listing. Blocks."""
        with self._writing:
            self._cached = None
            if self.of(server) is None:
                self._write({**self._kept(), server.name: ({"setup": setup_of(server), "late": True}, [])})

    def forget(self, name: str) -> None:
        """Invalidate the listing of a server, so that it is fetched again on next use. Blocks."""
        with self._writing:
            kept = self._kept()
            if kept.pop(name, None) is not None:
                self._write(kept)

    def _kept(self) -> dict[str, tuple[dict[str, Any], list[Any]]]:
        """The entry and the lines of each server, read again: another Marvin may have changed the file meanwhile."""
        self._cached = None
        cached = self._read()
        kept = {}
        for name, entry in cached.entries.items():
            try:
                kept[name] = entry, _lines(cached, entry)
            except (KeyError, TypeError, ValueError, AttributeError):  # damaged
                continue
        return kept

    def _write(self, kept: Mapping[str, tuple[dict[str, Any], list[Any]]]) -> None:
        servers: dict[str, Any] = {}
        lines: list[Any] = []
        for name, (entry, own) in kept.items():
            servers[name] = {**entry, "first": len(lines)}
            lines += own
        content = [{"format": FORMAT, "servers": servers}, *lines]
        text = "\n".join(json.dumps(one, separators=(",", ":")) for one in content)  # as `write_cache` writes it
        write_cache(self._folder / FILE, *content, crc32(text.encode()))
        self._cached = None

    def _read(self) -> CachedServers:
        if self._cached is None:
            self._cached = CachedServers(self._folder)
        return self._cached


def _lines(cached: CachedServers, entry: Mapping[str, Any]) -> list[Any]:
    """The lines of a server: one for each tool, and one with all else; none for a server that was late."""
    if "names" not in entry:
        return []
    count = len(entry["names"]) + 1
    lines = list(map(json.loads, cached.text.lines(entry["first"], count)))
    if len(lines) != count:
        raise ValueError("lines are missing")
    return lines


def _rest(listing: Listing) -> dict[str, Any]:
    """What a start does not need."""
    return {
        "tools": [
            {name: value for name, value in tool.as_dict().items() if name not in _EACH} for tool in listing.tools
        ],
        "prompts": [prompt.as_dict() for prompt in listing.prompts],
        "instructions": listing.instructions,
        "resources": listing.resources,
        "named": dict(listing.named),
        "left_out": list(listing.left_out),
    }


def _listing(entry: Mapping[str, Any], lines: Sequence[Any]) -> Listing:
    rest = lines[-1]
    own = zip(entry["names"], entry["called"], lines, rest["tools"], strict=False)  # without that for resources
    return Listing(
        tools=tuple(
            ListedTool(name=name, called=called, description=line["description"], parameters=line["parameters"], **more)
            for name, called, line, more in own
        ),
        prompts=tuple(ListedPrompt(**{**one, "arguments": tuple(one["arguments"])}) for one in rest["prompts"]),
        instructions=str(rest["instructions"]),
        resources=bool(rest["resources"]),
        named={str(uri): str(said) for uri, said in rest["named"].items()},
        left_out=tuple(map(str, rest["left_out"])),
    )
