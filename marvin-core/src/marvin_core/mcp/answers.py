"""What servers may ask of Marvin while they are connected: the person's answers and the working directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import Client
from pydantic import FileUrl

from ..api.config import McpServer
from ..api.errors import MarvinError
from ..util.terminal_text import disarm, exact_line
from ..util.text import cut
from ..version import __version__

if TYPE_CHECKING:
    from .caller import Caller

_LISTS_CHANGED = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
)
_YES, _NO, _LEAVE = "yes", "no", "do not answer"
_LONGEST_QUESTION = 2_000
_MOST_FIELDS = 20


def client_for(
    transport: Any, server: McpServer, root: Callable[[], Path], callers: Sequence[Caller], changed: Callable[[], None]
) -> Client:
    """The SDK's client over a transport.

    Args:
        root: the working directory as it is now.
        callers: those whose calls run, the newest last.
        changed: called where the server says that its lists have changed.
    """

    async def roots(context: Any) -> types.ListRootsResult:
        folder = root()
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(folder.as_uri()), name=folder.name)])

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        if not callers:
            return types.ElicitResult(action="cancel")
        try:
            return await _answered(server.name, params, callers[-1])
        except MarvinError:  # nobody is there to ask
            return types.ElicitResult(action="cancel")

    async def heed(message: Any) -> None:
        if isinstance(message, _LISTS_CHANGED):
            changed()

    return Client(
        transport,
        client_info=types.Implementation(name="marvin", version=__version__),
        elicitation_callback=elicit,
        list_roots_callback=roots,
        message_handler=heed,
        cache=None,
    )


async def _answered(server: str, asked: types.ElicitRequestParams, caller: Caller) -> types.ElicitResult:
    said = cut(disarm(asked.message), _LONGEST_QUESTION)
    head = f"The MCP server {server} asks: {said}"
    if isinstance(asked, types.ElicitRequestURLParams):
        question = f"{head}\nIt wants you to open {exact_line(cut(asked.url))}. Did you do that?"
        done = await caller.ask(question, [_YES, _NO])
        return types.ElicitResult(action="accept" if done == _YES else "decline")
    schema = asked.requested_schema
    fields: Mapping[str, Any] = schema.get("properties") or {}
    if not fields:
        agreed = await caller.ask(head, [_YES, _NO])
        return types.ElicitResult(action="accept" if agreed == _YES else "decline", content={})
    required = set(schema.get("required") or ())
    content: dict[str, Any] = {}
    for number, (name, field) in enumerate(list(fields.items())[:_MOST_FIELDS]):
        value = await _field(head if number == 0 else f"The MCP server {server} asks further:", name, field, caller)
        if value is None and name in required:
            return types.ElicitResult(action="decline")
        if value is not None:
            content[name] = value
    return types.ElicitResult(action="accept", content=content)


async def _field(head: str, name: str, field: Mapping[str, Any], caller: Caller) -> Any:
    """The person's value for a field of a form; None where they give none."""
    kind = field.get("type")
    what = cut(disarm(str(field.get("title") or name)), 200)
    more = f" ({cut(disarm(str(field['description'])), 500)})" if field.get("description") else ""
    question = f"{head}\n{what}{more}"
    if kind == "boolean":
        answer = await caller.ask(question, [_YES, _NO, _LEAVE])
        return None if answer == _LEAVE else answer == _YES
    choices = [str(one) for one in field.get("enum") or [each.get("const") for each in field.get("oneOf") or ()]]
    if choices:
        answer = await caller.ask(question, [*map(exact_line, choices), _LEAVE])
        return next((one for one in choices if exact_line(one) == answer), None)
    while True:
        text = (await caller.ask_text(question)).strip()
        if not text:
            return None
        if kind not in ("integer", "number"):
            return text
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            question = f"{what} takes a number."
