"""Answers the requests of connected servers: for user input, the working directory, and sampling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from pydantic import FileUrl

from ..api.config import McpServer
from ..api.errors import MarvinError
from ..api.record import Record
from ..util.terminal_text import disarm, exact_line
from ..util.text import cut, to_json
from ..version import __version__
from .caller import TOO_MANY, Questions
from .sampling import Ask, Sampling

if TYPE_CHECKING:
    from .caller import Caller

_LISTS_CHANGED = (
    types.ToolListChangedNotification,
    types.PromptListChangedNotification,
)
_NO_FORM = "A form has fields that are none, or choices that are too many or too long to be shown."
_YES, _NO, _LEAVE = "yes", "no", "do not answer"
_LONGEST_QUESTION = 2_000
_MOST_FIELDS = 20
_MOST_CHOICES, _LONGEST_CHOICE = 200, 200
"""The maximum number of choices of a field, and the maximum length of a choice, in characters."""
_TRIES = 5
"""The maximum number of attempts per field. If all answers are invalid, the default of the field is used."""


class Answering(Record):
    """The dependencies of the answers to a server.

    `root` returns the current working directory, `callers` are the running calls, newest last, `changed` is called when
    the server reports that its lists have changed, and `ask` requests an answer from the model.
    """

    server: McpServer
    root: Callable[[], Path]
    callers: Sequence[Caller]
    changed: Callable[[], None]
    ask: Ask


def client_for(transport: Any, answering: Answering) -> Client:
    """The SDK's client over a transport."""
    server, root, callers, changed = answering.server, answering.root, answering.callers, answering.changed
    questions = Questions()
    sampling = None if server.sampling == "deny" else Sampling(server, callers, answering.ask, questions).answer

    async def roots(context: Any) -> types.ListRootsResult:
        folder = root()
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(folder.as_uri()), name=folder.name)])

    async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        if not callers:
            return types.ElicitResult(action="cancel")
        if not questions.may_ask(callers[-1]):
            return types.ErrorData(code=types.INVALID_REQUEST, message=TOO_MANY)
        if isinstance(params, types.ElicitRequestFormParams) and not _can_be_asked(params.requested_schema):
            return types.ErrorData(code=types.INVALID_PARAMS, message=_NO_FORM)
        try:
            return await _answered(server.name, params, callers[-1])
        except MarvinError:  # the run is not interactive
            return types.ElicitResult(action="cancel")

    async def heed(message: Any) -> None:
        if isinstance(message, _LISTS_CHANGED):
            changed()

    return Client(
        transport,
        client_info=types.Implementation(name="marvin", version=__version__),
        elicitation_callback=elicit,
        sampling_callback=sampling,
        list_roots_callback=roots,
        message_handler=heed,
        cache=None,
    )


def take_results(client: Client) -> None:
    """Take the results of calls as they come.

    The SDK would validate them against the server's own schema, without a limit: a regular expression in it could hold
    the event loop for years. It would also request the list of tools first.
    """

    async def taken(name: str, result: types.CallToolResult) -> None:
        pass

    client.session.validate_tool_result = taken  # type: ignore[method-assign]


async def given_to(client: Client, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a server asks for before it gives a result: arguments with which the SDK continues the call.

    Raises:
        MCPError: it asks for something that is refused.
        ValueError: it does not ask for anything valid.
    """
    asked = types.InputRequiredResult.model_validate(answer, by_name=False)
    given: types.InputResponses = {}
    for key, request in (asked.input_requests or {}).items():
        meta = request.params.meta if request.params else None
        context = ClientRequestContext(session=client.session, request_id=key, meta=meta)
        response = await client.session.dispatch_input_request(context, request)
        if isinstance(response, types.ErrorData):
            raise MCPError.from_error_data(response)
        given[key] = response
    return {"input_responses": given or None, "request_state": asked.request_state}


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
    """Ask for the value of a form field. Without a valid answer, return its default, or None if it has none."""
    kind, default = field.get("type"), field.get("default")
    what = cut(disarm(str(field.get("title") or name)), 200)
    more = f" ({cut(disarm(str(field['description'])), 500)})" if field.get("description") else ""
    usual = "" if default is None else f"\nWithout an answer: {cut(exact_line(to_json(default)), 200)}"
    question = f"{head}\n{what}{more}{usual}"
    if kind == "boolean":
        answer = await caller.ask(question, [_YES, _NO, _LEAVE])
        return default if answer == _LEAVE else answer == _YES
    if kind == "array":
        return await _several(question, _choices(field.get("items") or {}), default, caller)
    if choices := _choices(field):
        answer = await caller.ask(question, [*map(exact_line, choices), _LEAVE])
        return next((one for one in choices if exact_line(one) == answer), default)
    for _ in range(_TRIES):
        text = (await caller.ask_text(question)).strip()
        if not text:
            return default
        if kind not in ("integer", "number"):
            return text
        try:
            value = int(text) if kind == "integer" else float(text)
            if math.isfinite(value):
                return value
        except (ValueError, OverflowError):  # an integer may have more digits than a float
            pass
        question = f"{what} takes a number."
    return default


def _can_be_asked(schema: Mapping[str, Any]) -> bool:
    """Whether every field of a form is valid, with few and short enough choices to show."""
    fields = schema.get("properties") or {}
    try:
        offered = [_choices(one) or _choices(one.get("items") or {}) for one in fields.values()]
    except (AttributeError, TypeError):
        return False
    return all(len(each) <= _MOST_CHOICES and max(map(len, each), default=0) <= _LONGEST_CHOICE for each in offered)


def _choices(field: Mapping[str, Any]) -> Sequence[str]:
    """The allowed values of a field; empty if any value is allowed."""
    named = field.get("oneOf") or field.get("anyOf") or ()
    return [str(one) for one in field.get("enum") or [each.get("const") for each in named]]


async def _several(question: str, choices: Sequence[str], default: Any, caller: Caller) -> Any:
    """Ask for several values, separated by commas. Without a valid answer, return the default."""
    listed = f"\nSeveral of these, with commas between them: {', '.join(map(exact_line, choices))}" if choices else ""
    for _ in range(_TRIES):
        text = (await caller.ask_text(question + listed)).strip()
        if not text:
            return default
        given = [word.strip() for word in text.split(",") if word.strip()]
        wrong = [word for word in given if choices and word not in choices]
        if not wrong:
            return given
        question = f"{wrong[0]} is none of them."
    return default
