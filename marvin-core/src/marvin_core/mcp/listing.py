"""Fetches the lists of a server, page by page, and converts them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.tools import LONGEST_DESCRIPTION
from ..util.schemas.normal_form import Room, normal_form
from ..util.terminal_text import disarm
from ..util.text import counted, cut, one_line
from ..util.threads import in_thread
from .listed import ListedPrompt, ListedTool, Listing
from .naming import tool_names

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import PaginatedResult, Prompt, Tool

T = TypeVar("T")
P = TypeVar("P", bound="PaginatedResult")
MOST_TOOLS = 1_000
_PAGES = 100
_LARGEST_SCHEMA = 200_000
"""The maximum length of a schema as JSON, and of its expanded definitions, in characters."""
_LARGEST = 4_000_000
"""The maximum length of all tools of a server, which are read at each start, in characters."""
_LARGEST_PAGES = 16_000_000
"""The maximum length of all pages of a list, in characters."""
_LONGEST_NAME = 300
_LONGEST_PROMPT = 300
_MOST_ARGUMENTS = 20
_LONGEST_INSTRUCTIONS = 2_000
_MOST_RESOURCES = 500
_LONGEST_URI = 500


async def listing_of(client: Client, server: str) -> Listing:
    """Fetch the listing of a server. Of two tools with one name, the first is offered. Raises exceptions of the SDK."""
    can = client.server_capabilities
    tools = await _all(client.list_tools, lambda page: page.tools) if can.tools is not None else []
    prompts = await _all(client.list_prompts, lambda page: page.prompts) if can.prompts is not None else []
    left_out: list[str] = []
    offered = await in_thread(lambda: list(_offered(tools, left_out)))
    by_called = {tool.called: tool for tool in reversed(offered)}
    names = tool_names(server, [tool.name for tool in tools if tool.name in by_called])
    return Listing(
        tools=tuple(by_called[called].replace(name=name) for name, called in names.items()),
        prompts=tuple(_prompt(prompt) for prompt in prompts if _is_short(prompt)),
        resources=can.resources is not None,
        named=await _resources(client) if can.resources is not None else {},
        instructions=cut(disarm(client.instructions or ""), _LONGEST_INSTRUCTIONS),
        left_out=tuple(left_out),
    )


async def _resources(client: Client) -> Mapping[str, str]:
    """The first resources; empty if a server has resources but no list of them."""
    from mcp import MCPError

    try:
        found = await _all(client.list_resources, lambda page: page.resources)
    except MCPError:
        return {}
    named = {one.uri: one.title or one.description or one.name for one in found if _is_word(one.uri)}
    return {uri: cut(one_line(disarm(said)), _LONGEST_PROMPT) for uri, said in list(named.items())[:_MOST_RESOURCES]}


def _is_word(uri: str) -> bool:
    """Whether a URI can be typed after `@`."""
    return len(uri) <= _LONGEST_URI and uri.isprintable() and uri.split() == [uri]


async def _all(page_at: Callable[..., Awaitable[P]], of: Callable[[P], Sequence[T]]) -> list[T]:
    """The items of all pages, up to a maximum."""
    found: list[T] = []
    cursor: str | None = None
    left = _LARGEST_PAGES
    for _ in range(_PAGES):
        page = await page_at(cursor=cursor, cache_mode="refresh")
        found += of(page)
        cursor = page.next_cursor
        left -= len(page.model_dump_json())
        if not cursor or len(found) >= MOST_TOOLS or left <= 0:
            break
    return found[:MOST_TOOLS]


def _offered(tools: Sequence[Tool], left_out: list[str]) -> Iterator[ListedTool]:
    left = _LARGEST
    for number, tool in enumerate(tools):
        if left <= 0:
            left_out.append(f"{counted(len(tools) - number, 'more tool')}: the server brings too much")
            return
        room = Room(_LARGEST_SCHEMA)
        try:
            left -= _size_of(tool)
            parameters = _parameters(tool.input_schema, room)
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            left_out.append(
                f"{cut(one_line(tool.name), 80)}: its parameters cannot be described ({cut(str(error), 200)})"
            )
            continue
        finally:
            left -= _LARGEST_SCHEMA - room.left
        hints = tool.annotations
        text = tool.description or tool.title or (hints.title if hints else None) or "The server says nothing of it."
        yield ListedTool(
            name="",
            called=tool.name,
            description=cut(disarm(text), LONGEST_DESCRIPTION),
            parameters=parameters,
            schema=tool.input_schema,
            reads_only=bool(hints and hints.read_only_hint),
        )


def _size_of(tool: Tool) -> int:
    """The length of a tool in characters, as stored. Raises `ValueError` if it is too long."""
    from json import dumps

    if len(tool.name) > _LONGEST_NAME:
        raise ValueError("its name is too long")
    size = len(dumps(tool.input_schema))
    if size > _LARGEST_SCHEMA:
        raise ValueError(f"they take more than {_LARGEST_SCHEMA:,} characters")
    return 2 * size + min(len(tool.description or ""), LONGEST_DESCRIPTION)


def _parameters(schema: Mapping[str, Any], room: Room) -> dict[str, Any]:
    made = normal_form(schema, room)
    if made.get("type", "object") != "object" or not isinstance(made.get("properties", {}), dict):
        raise ValueError("they are no object")
    return {"type": "object", **made, "properties": made.get("properties", {})}


def _is_short(prompt: Prompt) -> bool:
    """Whether its names are short enough to type."""
    names = [prompt.name, *(one.name for one in prompt.arguments or ())]
    return max(map(len, names)) <= _LONGEST_NAME


def _prompt(prompt: Prompt) -> ListedPrompt:
    arguments = sorted(prompt.arguments or (), key=lambda one: not one.required)[:_MOST_ARGUMENTS]
    return ListedPrompt(
        name=prompt.name,
        description=cut(one_line(disarm(prompt.description or prompt.title or "")), _LONGEST_PROMPT),
        arguments=tuple(one.name for one in arguments),
        required=sum(bool(one.required) for one in arguments),
    )
