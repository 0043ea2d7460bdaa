"""An MCP server that offers Marvin's tools to other programs, under the user's permissions."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import mcp_types as types
import uvicorn
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError, NoBackChannelError

from ..api.errors import MarvinError, ToolError
from ..api.events import CallOrigin, Event, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from ..api.messages import Image, Text, ToolOutput
from ..api.session import SessionControl
from ..api.tools import SEARCH, ToolSpec
from ..config.program import command_name
from ..version import __version__

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_CALLER: ContextVar[ServerRequestContext[Any, Any] | None] = ContextVar("caller", default=None)
"""The client's request that the current task handles."""


class Served(Protocol):
    """The part of a session that is served."""

    @property
    def tools(self) -> Sequence[ToolSpec]: ...
    async def call_tool(self, name: str, arguments: Mapping[str, Any], origin: CallOrigin) -> ToolOutput: ...
    def subscribe(self, listener: Callable[[Event], None]) -> Any: ...


class AsksClient:
    """The interface of a served session. It asks the user of the client that sent the current request."""

    def run(self, session: SessionControl, prompt: str | None) -> int:
        """Raise `NotImplementedError`: `serve_stdio` and `serve_http` run the session."""
        raise NotImplementedError

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Ask with fixed choices. Raises `ToolError` without an answer."""
        given = await _asked(question, {"type": "string", "enum": list(choices)})
        if given not in choices:
            raise ToolError(_NOT_YES)
        return given

    async def ask_text(self, question: str, choices: Sequence[str]) -> str:
        """Ask for free text. Raises `ToolError` without an answer."""
        named = f" For example: {', '.join(choices)}" if choices else ""
        return await _asked(f"{question}{named}", {"type": "string"})


async def _asked(question: str, answer: Mapping[str, Any]) -> str:
    """Ask the user of the client, and return the answer.

    Raises:
        ToolError: the client does not support questions, or nobody answers.
    """
    context = _CALLER.get()
    form: dict[str, Any] = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
    try:
        if context is None or not context.session.check_client_capability(_CAN_ASK):
            raise ToolError(_NOBODY.format(command_name()))
        reply = await context.session.elicit_form(question, form, context.request_id)
    except (MCPError, NoBackChannelError) as error:
        raise ToolError(_NOBODY.format(command_name())) from error
    given = (reply.content or {}).get("answer")
    if reply.action != "accept" or not isinstance(given, str):
        raise ToolError(_NOT_YES)
    return given


_OF_CONVERSATIONS = frozenset({"state"})
_CAN_ASK = types.ClientCapabilities(elicitation=types.ElicitationCapability())
_NOT_YES = "The person did not say yes, so nothing was done."
_NOBODY = (
    "This call needs approval, and the client cannot ask a person. Nothing was done. To allow it, add a rule to "
    "permissions.allow in config.yaml; `{} permissions test` shows which rule matches."
)


class ToolServer:
    """Serves the tools of a session to any number of clients."""

    def __init__(self, session: Served) -> None:
        self._session = session
        self._requests: dict[str, ServerRequestContext[Any, Any]] = {}
        self._sending: set[Any] = set()
        session.subscribe(self._heed)
        self.server: Server[Any] = Server(
            "marvin", version=__version__, on_list_tools=self._list, on_call_tool=self._call
        )

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The offered tools, without those that only make sense in a conversation."""
        return [spec for spec in self._session.tools if spec.name != SEARCH and spec.access != _OF_CONVERSATIONS]

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(spec) for spec in self.specs])

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        _CALLER.set(context)
        if all(spec.name != params.name for spec in self.specs):
            return _failed(f"There is no tool {params.name!r:.100} here.")
        try:
            output = await self._session.call_tool(params.name, params.arguments or {}, "model")
        except MarvinError as error:
            return _failed(str(error))
        return types.CallToolResult(content=[_block(block) for block in output.content], is_error=output.is_error)

    def _heed(self, event: Event) -> None:
        """Forward the progress of a call."""
        if isinstance(event, ToolExecutionStart):
            context = _CALLER.get()
            if context is not None:
                self._requests[event.call_id] = context
        elif isinstance(event, ToolExecutionUpdate):
            context = self._requests.get(event.call_id)
            if context is not None:
                self._tell(context, event)
        elif isinstance(event, ToolExecutionEnd):
            self._requests.pop(event.call_id, None)

    def _tell(self, context: ServerRequestContext[Any, Any], event: ToolExecutionUpdate) -> None:
        done = event.done if event.done is not None else 0.0
        sending = asyncio.ensure_future(context.session.report_progress(done, event.total, event.text))
        self._sending.add(sending)
        sending.add_done_callback(self._sent)

    def _sent(self, sending: Any) -> None:
        self._sending.discard(sending)
        if not sending.cancelled():
            sending.exception()  # the client has disconnected


def _tool(spec: ToolSpec) -> types.Tool:
    return types.Tool(
        name=spec.name,
        description=spec.description,
        input_schema=dict(spec.parameters),
        annotations=types.ToolAnnotations(
            read_only_hint=spec.reads_only, destructive_hint=spec.changes, open_world_hint="net" in spec.access
        ),
    )


def _block(block: Text | Image) -> types.TextContent | types.ImageContent:
    if isinstance(block, Text):
        return types.TextContent(text=block.text)
    return types.ImageContent(data=block.data, mime_type=block.media_type)


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


class OnlyWithToken:
    """Accepts only requests with the token; all others are rejected before their body is read."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):
                head = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": head})
                await send({"type": "http.response.body", "body": b"The token is missing or wrong.\n"})
                return
        await self._app(scope, receive, send)


class _Web(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not handle signals: the run does so."""
        yield


async def serve_stdio(session: Served) -> None:
    """Serve one client on standard input and output until it disconnects."""
    served = ToolServer(session).server
    async with stdio_server() as (read, write):
        await served.run(read, write, served.create_initialization_options())


async def serve_http(session: Served, place: tuple[int, float], token: str, ready: Callable[[int], None]) -> None:
    """Serve on this machine's loopback address until cancelled.

    Args:
        place: the port (0 for a free one), and the maximum seconds for open responses to finish at the end.
        token: the token that each request must have.
        ready: called with the port, once it is open.

    Raises:
        MarvinError: the port is in use.
    """
    port, closing = place
    app = OnlyWithToken(ToolServer(session).server.streamable_http_app(), token)
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise MarvinError(f"Port {port} cannot be opened: {error.strerror}. Choose another one with --http.") from error
    with listening:
        limit = max(1, int(closing))
        config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=limit)
        program = _Web(config)
        ready(listening.getsockname()[1])
        serving = asyncio.ensure_future(program.serve([listening]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            program.should_exit = True  # if it is cancelled itself, it prints a traceback
            await serving
            raise
