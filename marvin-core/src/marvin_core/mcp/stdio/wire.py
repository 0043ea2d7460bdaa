"""The process of a server, and its messages, with limits.

A message is a line of JSON. A long line is parsed in a thread. A line that never ends, a message that is too large or
too complex to be read, or a server that never stops sending, ends the connection: a call may wait for that message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from ...api.processes import Conversation, Processes
from ...util.threads import in_thread
from ...util.untrusted_json import parse_json
from .direct import ANSWER, NO_ANSWER, DirectCalls

LONGEST_LINE = 16_000_000
"""The maximum size of a message in bytes."""
FLOOD = 64_000_000
"""The maximum number of bytes that a server may send between two requests."""
_LONG = 100_000
"""The minimum size of a message that is parsed in a thread."""
_ERRORS_KEPT = 2_000
"""The number of last bytes of standard error that are kept, to explain a crash."""
_NO_MESSAGE = 20
"""The maximum number of lines between two requests that are not messages: some programs print what they do."""
_LAST_WORDS = 1.0
"""Seconds in which a program that takes no more input may end and say why."""


class Wire:
    """The process of a server, and its messages.

    Args:
        ended: called once with the reason when the stream has ended.
    """

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._tell = ended
        self._rest = bytearray()
        self._lines: deque[bytes] = deque()
        self._arrived = asyncio.Event()  # set until all lines have been passed on
        self._received = self._strange = 0
        self._errors = bytearray()
        self._talk: Conversation | None = None
        self.calls = DirectCalls(self._write, self.give_up_soon)
        self._over = asyncio.Event()
        self._end = ""
        self.fault = ""
        """Why the stream has ended; empty while it is open."""

    async def start(
        self, processes: Processes, argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, outside: bool
    ) -> None:
        """Start the program. Raises `ToolError` if that fails."""
        self._talk = await processes.converse(
            argv, on_output=self._take, on_end=self._ended, on_error=self._keep, cwd=cwd, env=env, outside=outside
        )

    def send(self, message: SessionMessage) -> None:
        """Write a message without blocking. Raises `ToolError` if the program has ended, or does not read."""
        if isinstance(message.message, JSONRPCRequest):
            self.calls.learn(message.message)
        line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._write(line.encode(), is_request=isinstance(message.message, JSONRPCRequest))

    async def messages(self) -> AsyncGenerator[SessionMessage]:
        """The messages for the SDK, until the stream ends."""
        try:
            while True:
                while self._lines:
                    line = self._lines.popleft()
                    try:
                        value = await in_thread(partial(_parsed, line)) if len(line) > _LONG else _parsed(line)
                    except ValueError as error:
                        self.give_up(f"it sent a message that cannot be read: {error}")
                        return
                    if not self.calls.take(value):
                        message = _message(value)
                        if message is None:
                            self._strange += 1
                            if self._strange > _NO_MESSAGE:
                                self.give_up("it sends what is no JSON-RPC")
                            continue
                        yield message
                    if self._lines:  # a server that sends much holds up nobody else
                        await asyncio.sleep(0)
                if self._end:
                    self.give_up(self._end)
                if self.fault:
                    return
                self._arrived.clear()
                await self._arrived.wait()
        finally:
            self.calls.end()

    def give_up(self, fault: str) -> None:
        """Stop reading."""
        if not self.fault:
            self.fault = fault
            self._rest.clear()
            self._arrived.set()
            self._over.set()
            self._tell(fault)

    async def give_up_soon(self, fault: str) -> None:
        """Stop reading because the program takes no input. If it ends within a second, its own reason is the fault."""
        try:
            with anyio.move_on_after(_LAST_WORDS):
                await self._over.wait()
        finally:
            self.give_up(fault)

    async def close(self) -> None:
        """Stop the program."""
        self.give_up("it was ended")
        if self._talk is not None:
            await self._talk.close()

    def _write(self, line: bytes, *, is_request: bool) -> None:
        if is_request:  # an answer to the server's own request resets nothing
            self._received = self._strange = 0
        if self._talk is not None:
            self._talk.send(line + b"\n")

    def _take(self, chunk: bytes) -> None:
        if self.fault:
            return
        self._received += len(chunk)
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
            self._lines.extend(line for line in lines if line.strip())
            self._arrived.set()
        self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            self.give_up(f"it sent a message of more than {LONGEST_LINE // 1_000_000} MB")
        elif self._received > FLOOD:
            self._lines.clear()
            self.give_up(f"it sent more than {FLOOD // 1_000_000} MB that nobody asked for")

    def _keep(self, chunk: bytes) -> None:
        self._errors += chunk
        del self._errors[:-_ERRORS_KEPT]

    def _ended(self) -> None:
        said = self._errors.decode("utf-8", "replace").strip()
        last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
        self._end = f"it ended: {last}" if last else "it ended by itself"
        if not self._arrived.is_set():  # else an answer may be among the lines that wait
            self.give_up(self._end)


def _parsed(line: bytes) -> Any:
    """The value of a line, whose invalid UTF-8 is replaced; None if it is no JSON.

    Raises:
        ValueError: it is too large, nested too deeply, or has too many values.
    """
    try:
        return parse_json(line.decode("utf-8-sig", "replace"), LONGEST_LINE)
    except JSONDecodeError:
        return None


def _message(value: Any) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
    except ValueError:
        is_answer = isinstance(value, dict) and "method" not in value and not ANSWER.isdisjoint(value)
        number = value.get("id") if is_answer else None
        if type(number) not in (int, str):
            return None
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=number, error=NO_ANSWER))  # a request waits for it
