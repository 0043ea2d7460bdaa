"""The connection to a server: opened on first use, reopened after an error, closed with the session.

Only `connect` imports the SDK, which takes two seconds: in a thread, and only when a server is used.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..api.config import McpServer
from ..api.errors import ToolError
from ..api.processes import Processes
from ..api.record import Record
from ..api.tools import ToolResult
from ..config.program import command_name
from ..util.failures import is_failure, shown, told
from ..util.imports import load_module
from ..util.terminal_text import disarm, exact_line
from ..util.text import cut, one_line
from ..util.threads import in_thread
from .caller import Caller, Calling
from .login.kept import LoginPage

if TYPE_CHECKING:
    from mcp import Client

    from ..api.providers import Request
    from ..conversation.aside import PartialAnswer
    from .stdio.wire import Wire

T = TypeVar("T")

_ERROR_SHOWN = 2_000
_LOGGED_IN, _NO = "I am logged in", "no"
_ENDING = 5.0
"""The seconds for a connection to close, and again for its cancellation."""
_EXTRA = "marvin-core[mcp]"
_CLOSED = "Connection closed"
"""The SDK's words for the end of a connection."""


class Surroundings(Record):
    """The dependencies of a connection."""

    processes: Processes
    root: Callable[[], Path]
    """The current working directory."""
    filled_in: Callable[[McpServer], McpServer]
    """Inserts the values of variables into the configuration. Raises `ConfigError` if one is not set."""
    keep: Callable[[Callable[[], AbstractAsyncContextManager[Any]]], Awaitable[Any]]
    """Enters a context manager once, and exits it when the session closes."""
    start: float
    """The maximum seconds for a server to become ready."""
    reach: Callable[[McpServer, LoginPage, Callable[[str], None]], AbstractAsyncContextManager[Any]]
    """Opens the streams of a server at an address. The last argument is called with the error of each message."""
    ask_model: Callable[[Request], Awaitable[PartialAnswer]]
    """Requests an answer from the model for a server."""
    attended: bool = False
    """Whether a user is there to log in."""
    changed: Callable[[McpServer], None] = lambda _: None
    """Called when a server reports that its lists have changed."""


class Connection:
    """The connection to one server. `client` returns the connected client of the SDK."""

    def __init__(self, server: McpServer, around: Surroundings) -> None:
        self.server = server
        self.callers: list[Caller] = []
        """The running calls, newest last: questions of the server go to the newest."""
        self.closed = False
        """Whether the session has closed the connection."""
        self._idle = asyncio.Event()
        self._refusal: ToolError | None = None
        self._trouble = ""
        self._patience: asyncio.Timeout | None = None
        self._around = around
        self._fault = ""
        self._client: Client | None = None
        self._wire: Wire | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._making = asyncio.Lock()
        self._lasting = self._until_closed  # always the same object, as it is a key

    @property
    def state(self) -> str:
        """The status, as shown to the user."""
        return "running" if self._client is not None else (self._fault or "not started")

    async def client(self) -> Client:
        """The connected client.

        Raises:
            ToolError: the server cannot be reached; the text says why, and what to do.
        """
        if self._client is not None and not self._fault:
            return self._client
        async with self._making:
            await self._around.keep(self._lasting)
            if self._fault and self._task is not None:
                await _ended(self._task)  # clean up a broken connection first
                if not self._task.done():
                    raise self._unreachable("its last connection does not end")
            if self._client is None:
                await self._connect()
            assert self._client is not None
            return self._client

    async def use(self, work: Callable[[Client], Awaitable[T]], caller: Caller | None = None) -> T:
        """Call a function with the client.

        Raises:
            ToolError: the server cannot be reached, answers with an error, or disconnects.
        """
        if caller is not None:
            if not self.callers:
                self._idle = asyncio.Event()
            caller = Calling(caller, self._idle)
            self.callers.append(caller)
        try:
            client = await self.client()
            return await work(client)
        except Exception as error:
            if _is_end(error) and not self._fault:
                self._fault = self._trouble or "the connection ended"
                self._closing.set()
            if self._fault and self._task is not None:
                await _ended(self._task)
            raise self._explained(error) from error
        finally:
            if caller is not None:
                self.callers.remove(caller)
                if not self.callers:
                    self._idle.set()

    async def call(self, tool: str, arguments: Mapping[str, Any], caller: Caller) -> ToolResult:
        """Call a tool. Raises the same errors as `use`."""
        from .answers import given_to
        from .results import result_in, result_of

        def tell(progress: float, total: float | None, message: str | None) -> None:
            caller.progress(cut(one_line(disarm(message or "")), 200), progress, total)

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            tell(progress, total, message)

        async def work(client: Client) -> ToolResult:
            direct = self._wire.calls if self._wire is not None else None
            given: Mapping[str, Any] = {}
            if direct is not None and direct.are_possible:
                answer = await direct.call(tool, arguments, tell)
                found = result_in(answer)
                if found is not None:
                    return found
                given = await given_to(client, answer)
            return result_of(await client.call_tool(tool, dict(arguments), progress_callback=progress, **given))

        return await self.use(work, caller)

    async def close(self) -> None:
        """Close the connection, and stop the server if it was started here, even while it is starting."""
        self.closed = True
        self._closing.set()
        if self._task is not None:
            if self._client is None:
                self._task.cancel()
            await _ended(self._task)
        self._client = None

    async def _connect(self) -> None:
        server = self._around.filled_in(self.server)
        await _load_sdk(self.server)
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        ready.add_done_callback(lambda done: done.cancelled() or done.exception())  # the waiting task may be gone
        self._fault, self._refusal, self._trouble = "", None, ""
        self._closing = asyncio.Event()
        self._task = asyncio.ensure_future(self._hold(server, ready, self._closing))
        try:
            async with asyncio.timeout(self._around.start) as self._patience:
                self._client = await asyncio.shield(ready)
        except TimeoutError:
            self._task.cancel()
            await _ended(self._task)
            self._fault = f"it was not ready within {self._around.start:g} s"
            raise self._unreachable(self._fault) from None
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        finally:
            self._patience = None

    async def _hold(self, server: McpServer, ready: asyncio.Future[Client], closing: asyncio.Event) -> None:
        """Keep the client open in one task, since the SDK requires the same task at both ends."""
        from .answers import take_results

        wire: Wire | None = None
        try:
            async with AsyncExitStack() as stack:
                if server.url:
                    page = LoginPage(show=self._show, may=lambda: self._around.attended and bool(self.callers))
                    transport = self._around.reach(server, page, self._told)
                else:
                    wire = self._wire = await self._started(server, closing)
                    from .stdio.streams import over_stdio

                    transport = over_stdio(wire)
                client = await stack.enter_async_context(self._sdk_client(transport))
                take_results(client)
                if not ready.done():
                    ready.set_result(client)
                await closing.wait()
        except BaseException as error:
            if not is_failure(error):
                raise
            cause = _innermost(error)
            if isinstance(cause, ToolError):
                self._refusal = self._unreachable(str(cause))
            why = wire.fault if wire is not None and wire.fault else shown(cause)
            self._fault = f"{why or 'it broke off'}{self._of_http}"
            if not ready.done():
                ready.set_exception(self._unreachable(self._fault))
        finally:
            if self._closing is closing:  # else the start was cancelled, and the next connection is there
                self._client = self._wire = None
                if wire is not None:
                    self._fault = self._fault or wire.fault
            if wire is not None:
                await asyncio.shield(wire.close())
            if not ready.done():
                ready.set_exception(self._unreachable(self._fault or "it was ended"))

    async def _started(self, server: McpServer, closing: asyncio.Event) -> Wire:
        from .stdio.wire import Wire

        def ended(why: str) -> None:
            if self._closing is closing:
                self._fault = why
            closing.set()

        wire = Wire(ended)
        root = self._around.root()
        await wire.start(
            self._around.processes,
            [server.command, *server.args],
            root / server.cwd if server.cwd else root,
            server.env,
            outside=not server.sandbox,
        )
        return wire

    @asynccontextmanager
    async def _until_closed(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self.close()

    def _sdk_client(self, transport: Any) -> Client:
        from .answers import Answering, client_for

        around = self._around
        return client_for(
            transport,
            Answering(
                server=self.server,
                root=around.root,
                callers=self.callers,
                changed=lambda: around.changed(self.server),
                ask=around.ask_model,
            ),
        )

    async def _show(self, url: str) -> bool:
        """Ask the user to log in on a page; returns whether they did. The timeouts are paused meanwhile."""
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(None)
        question = f"The MCP server {self.server.name} wants a login. Open this address in a browser, and log in there:"
        return await self.callers[-1].ask(f"{question}\n{exact_line(url)}", [_LOGGED_IN, _NO]) == _LOGGED_IN

    def _told(self, trouble: str) -> None:
        self._trouble = trouble

    @property
    def _of_http(self) -> str:
        """The error of the last message to an address, if any."""
        return f" ({self._trouble})" if self._trouble else ""

    def _unreachable(self, why: str) -> ToolError:
        text = cut(disarm(why), _ERROR_SHOWN).rstrip(".")
        return ToolError(
            f"The MCP server {self.server.name} cannot be used: {text}. Nothing was done. "
            f"Correct this, then run `{command_name()} mcp test {self.server.name}`."
        )

    def _explained(self, error: Exception) -> Exception:
        from mcp import MCPError

        if self._refusal is not None:
            return self._refusal
        if isinstance(error, ToolError):
            return error
        if self._fault and (_is_end(error) or not isinstance(error, MCPError)):  # else it answered before it ended
            return ToolError(
                f"The MCP server {self.server.name} broke off in the call: {cut(disarm(self._fault), _ERROR_SHOWN)}. "
                "Part of it may have been done. The next call starts the server again."
            )
        text = error.error.message if isinstance(error, MCPError) else told(error)
        return ToolError(f"The MCP server {self.server.name} says: {cut(disarm(text), _ERROR_SHOWN)}{self._of_http}")


async def _load_sdk(server: McpServer) -> None:
    try:
        for name in ("answers", "reaching") if server.url else ("answers",):
            await in_thread(partial(load_module, f"{__package__}.{name}"))
    except ImportError as error:
        raise ToolError(
            f"The MCP server {server.name} needs the Python package mcp ({error}). "
            f"Install it with `pip install '{_EXTRA}'`."
        ) from error


async def _ended(task: asyncio.Task[None]) -> None:
    """Wait until a connection has closed. Cancel it after a timeout, and wait once more as long."""
    _, late = await asyncio.wait([task], timeout=_ENDING)
    if late:
        task.cancel()
        await asyncio.wait([task], timeout=_ENDING)


def _is_end(error: Exception) -> bool:
    """Whether an error of the SDK means that the connection has closed."""
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    # Servers have errors of their own with the same code.
    return isinstance(error, MCPError) and (error.error.code, error.error.message) == (CONNECTION_CLOSED, _CLOSED)


def _innermost(error: BaseException) -> BaseException:
    """The first cause in nested exception groups, as task groups raise them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
