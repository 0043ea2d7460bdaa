"""The slash command `/mcp`: the servers of the session, their status, and what they offer."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.errors import UsageError
from ..api.session import Command, SessionControl
from ..util.terminal_text import exact_line
from ..util.text import counted, cut, unknown_name
from .servers import Servers

_SHOWN = 100
_MOST = 50
_COMMAND = "mcp"


def mcp_command(servers: Servers) -> Command:
    """Return the slash command."""

    async def run(session: SessionControl, words: str) -> str:
        name, _, action = words.strip().partition(" ")
        if not name:
            return "\n".join(_line(servers, each) for each in servers.configured)
        if name not in servers.configured:
            raise UsageError(unknown_name("server", name, servers.configured))
        if action.strip() not in ("", "test"):
            raise UsageError("Use /mcp, /mcp NAME, or /mcp NAME test.")
        if action.strip():
            await servers.ask(name)
        return "\n".join([_line(servers, name), *_brought(servers, name)])

    return Command(
        name=_COMMAND,
        help="the servers (MCP); with a name, its tools, prompts and resources; with test, ask it again",
        run=run,
        takes="[NAME [test]]",
    )


def _line(servers: Servers, name: str) -> str:
    """The status of a server, and the numbers of its tools, prompts and resources."""
    listing, state = servers.known.get(name), exact_line(cut(servers.state(name), 2 * _SHOWN))
    if listing is None:
        return f"{name}: {state}; not asked yet what it brings"
    numbers = (
        counted(len(listing.tools), "tool"),
        counted(len(listing.prompts), "prompt"),
        counted(len(listing.named), "resource"),
    )
    return f"{name}: {state}; {', '.join(numbers)}"


def _brought(servers: Servers, name: str) -> Iterator[str]:
    listing = servers.known.get(name)
    if listing is None:
        return
    lines = [f"  {tool.name}  {_first(tool.description)}" for tool in listing.tools]
    lines += [f"  /{name}:{exact_line(prompt.name)}  {_first(prompt.description)}" for prompt in listing.prompts]
    lines += [f"  @{name}:{exact_line(uri)}  {_first(said)}" for uri, said in listing.named.items()]
    lines += [f"  not offered: {exact_line(left_out)}" for left_out in listing.left_out]
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"  and {len(lines) - _MOST:,} more"


def _first(text: str) -> str:
    return exact_line(text.partition("\n")[0][:_SHOWN])
