"""Calls of tools that a server's program gets, and answers, without the layers of the SDK between.

The SDK makes several objects of each message on its way, which takes longer than many servers work. It still opens the
connection, answers what a server asks, and makes the first call of a connection: later ones carry what it added there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeGuard

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData, JSONRPCRequest

from ...api.errors import ToolError

_CALL, _PROGRESS, _CANCELLED = "tools/call", "notifications/progress", "notifications/cancelled"
_FIRST = 1_000_000_000
"""The first id of these calls; the SDK counts its own from 1."""
_TRACED = frozenset(("traceparent", "tracestate", "baggage"))
"""What the SDK adds to each request of a traced run, with values of its own."""
_MARK = "progressToken"
ANSWER = frozenset(("jsonrpc", "result", "error"))
"""The fields of which an answer has some; a program may print its log as JSON."""
NO_ANSWER = ErrorData(code=INTERNAL_ERROR, message="the answer has neither a result nor an error")
"""The error of an answer that is invalid."""

Progress = Callable[[float, "float | None", "str | None"], None]
"""Called with the progress of a call: how much is done, of how much, and a text."""


class Send(Protocol):
    """Writes a line to the server. Raises `ToolError` if the program has ended, or does not read."""

    def __call__(self, line: bytes, *, is_request: bool) -> None: ...


class _Call(NamedTuple):
    answer: asyncio.Future[dict[str, Any]]
    progress: Progress


class DirectCalls:
    """The calls of one connection.

    Args:
        give_up: ends the connection, since the program takes no input.
    """

    def __init__(self, send: Send, give_up: Callable[[str], Awaitable[None]]) -> None:
        self._send = send
        self._give_up = give_up
        self._meta: dict[str, Any] | None = None
        self._running: dict[int, _Call] = {}
        self._next = _FIRST
        self._is_over = False

    @property
    def are_possible(self) -> bool:
        """Whether a call of the SDK has shown what belongs into one."""
        return self._meta is not None and not self._is_over

    def learn(self, request: JSONRPCRequest) -> None:
        """Note what the SDK adds to a call, unless it differs from call to call."""
        if self._meta is None and request.method == _CALL:
            meta: Mapping[str, Any] = (request.params or {}).get("_meta") or {}
            if _TRACED.isdisjoint(meta):
                self._meta = {name: value for name, value in meta.items() if name != _MARK}

    async def call(self, tool: str, arguments: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
        """The result of a call, as the server sent it.

        Raises:
            MCPError: the server answers with an error, or the connection ends.
        """
        if self._meta is None or self._is_over:
            raise _closed()
        number, self._next = self._next, self._next + 1
        params = {"name": tool, "arguments": arguments, "_meta": {**self._meta, _MARK: number}}
        call = _Call(asyncio.get_running_loop().create_future(), progress)
        self._running[number] = call
        try:
            self._write({"id": number, "method": _CALL, "params": params})
        except ToolError as error:
            del self._running[number]
            await self._give_up(str(error))
            raise _closed() from error
        try:
            return await call.answer
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            del self._running[number]

    def take(self, message: Any) -> bool:
        """Whether a message concerns a call of these, also one that is over; what it says is passed on."""
        if not isinstance(message, dict):
            return False
        if message.get("method") == _PROGRESS:
            return self._took_progress(message.get("params"))
        if "method" in message or ANSWER.isdisjoint(message) or (number := _number(message.get("id"))) is None:
            return False
        call = self._running.get(number)
        if call is not None and not call.answer.done():
            _settle(call.answer, message)
        return True

    def end(self) -> None:
        """End the calls that still run, as the stream has ended."""
        self._is_over = True
        for call in self._running.values():
            if not call.answer.done():
                call.answer.set_exception(_closed())

    def _took_progress(self, params: Any) -> bool:
        if not isinstance(params, dict):
            return False
        done, total, text = params.get("progress"), params.get("total"), params.get("message")
        if (number := _number(params.get(_MARK))) is None:
            return _is_beyond_floats(done) or _is_beyond_floats(total)  # they would end the connection of the SDK
        call = self._running.get(number)
        if call is None or call.answer.done() or not _is_amount(done):
            return True
        try:
            call.progress(done, total if _is_amount(total) else None, text if isinstance(text, str) else None)
        except Exception as error:
            call.answer.set_exception(error)
        return True

    def _cancel(self, number: int) -> None:
        params = {"requestId": number, "reason": "caller cancelled"}
        try:
            self._write({"method": _CANCELLED, "params": params}, is_request=False)
        except ToolError:
            pass  # nobody works on it any more

    def _write(self, message: Mapping[str, Any], *, is_request: bool = True) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        self._send(line.encode("utf-8", "replace"), is_request=is_request)


def _settle(answer: asyncio.Future[dict[str, Any]], message: Mapping[str, Any]) -> None:
    if isinstance(result := message.get("result"), dict):
        answer.set_result(result)
        return
    try:
        said = ErrorData.model_validate(message.get("error"))
    except ValueError:
        said = NO_ANSWER
    answer.set_exception(MCPError(code=said.code, message=said.message, data=said.data))


def _number(value: Any) -> int | None:
    """An id of these calls; some servers send large numbers back as 1e+09, or as texts."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(_FIRST)):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= _FIRST else None


def _is_amount(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and not _is_beyond_floats(value)


def _is_beyond_floats(value: Any) -> bool:
    return isinstance(value, int) and value.bit_length() >= sys.float_info.max_exp


def _closed() -> MCPError:
    return MCPError(code=CONNECTION_CLOSED, message="Connection closed")
