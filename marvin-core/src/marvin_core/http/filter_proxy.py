"""A proxy that connects programs only to hosts that they may reach: HTTP with CONNECT, and SOCKS 5.

Its caller decides which hosts these are. The proxy looks names up itself, and connects to the address that was checked.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import httpx

from ..api.errors import ToolError
from ..util.patterns.hosts import folded
from .outward import Refused
from .proxy_requests import ProxyRequest, checked_port, parse_request

if TYPE_CHECKING:
    from .outward import Outward

_Decide: TypeAlias = "Callable[[str, int], Awaitable[str]]"
NoteRefused: TypeAlias = "Callable[[str, int], None]"
"""Called for an allowed host and port whose address may not be reached: programs do not show the proxy's answer."""

_HEAD = 64 * 1024
_PIECE = 64 * 1024
_SOCKS = 5
# RFC 1928, sections 3, 4 and 6.
_NO_LOGIN, _NO_METHOD = 0, 0xFF
_CONNECT = 1
_V4, _NAME, _V6 = 1, 3, 4
_GRANTED, _NOT_ALLOWED, _UNREACHABLE, _NO_COMMAND, _NO_ADDRESS = 0, 2, 4, 7, 8


class _Failed(Exception):
    """There is no connection. `status` is the HTTP status, `code` the SOCKS one."""

    def __init__(self, why: str, status: str, code: int) -> None:
        super().__init__(why)
        self.status = status
        self.code = code


class FilterProxy:
    """Serves programs on listening sockets: at most `most` connections at a time, with a request within `timeout`
    seconds."""

    def __init__(
        self, decide: _Decide, outward: Outward, note_refused: NoteRefused, *, timeout: float, most: int
    ) -> None:
        self._decide = decide
        self._note_refused = note_refused
        self._outward = outward
        self._timeout = timeout
        self._most = most
        self._servers: list[asyncio.Server] = []
        self._running: set[asyncio.Task[None]] = set()

    async def serve(self, listener: socket.socket) -> None:
        """Serve the programs that connect to a socket, which may belong to another network namespace."""
        listener.setblocking(False)
        self._servers.append(await asyncio.start_server(self._accept, sock=listener, limit=_HEAD))

    async def close(self) -> None:
        """Close all connections, and stop listening."""
        for server in self._servers:
            server.close()
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._running) >= self._most:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._connection(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = 0
        try:
            try:
                async with asyncio.timeout(self._timeout):
                    first = (await reader.readexactly(1))[0]
                    request = await (_socks_request(reader, writer) if first == _SOCKS else _request(first, reader))
            except _Failed as failure:
                writer.write(_answer(failure, is_socks=first == _SOCKS))
                return
            await self._serve_one(request, reader, writer, is_socks=first == _SOCKS)
        except (OSError, EOFError, TimeoutError):
            pass  # the program closed the connection, or never sent a request
        finally:
            writer.close()

    async def _serve_one(
        self, request: ProxyRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_socks: bool
    ) -> None:
        try:
            inward, outward = await self._opened(request)
        except _Failed as failure:
            writer.write(_answer(failure, is_socks=is_socks))
            return
        try:
            if is_socks:
                writer.write(_socks_reply(_GRANTED))
            elif request.is_tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as both:
                both.create_task(_passed(reader, outward))
                both.create_task(_passed(inward, writer))
        except* OSError:
            pass  # one side failed: the other one notices the end of its connection
        finally:
            outward.transport.abort()

    async def _opened(self, request: ProxyRequest) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        why = await self._decide(request.host, request.port)
        if why:
            raise _Failed(why, "403 Forbidden", _NOT_ALLOWED)
        try:
            async with asyncio.timeout(self._timeout):
                return await self._outward.open(request)
        except ToolError as error:  # an address of this machine or of a private network
            self._note_refused(request.host, request.port)
            raise _Failed(str(error), "403 Forbidden", _NOT_ALLOWED) from error
        except (httpx.TransportError, OSError, Refused) as error:
            text = f"{request.authority} could not be reached: {error}"
            raise _Failed(text, "502 Bad Gateway", _UNREACHABLE) from error


async def _request(first: int, reader: asyncio.StreamReader) -> ProxyRequest:
    try:
        return parse_request(bytes([first]) + await reader.readuntil(b"\r\n\r\n"))
    except asyncio.LimitOverrunError as error:
        text = f"The head of the request has more than {_HEAD:,} bytes."
        raise _Failed(text, "431 Request Header Fields Too Large", _NOT_ALLOWED) from error
    except ValueError as error:
        raise _Failed(f"The request cannot be passed on: {error}.", "400 Bad Request", _NOT_ALLOWED) from error


async def _socks_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ProxyRequest:
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    writer.write(bytes([_SOCKS, _NO_LOGIN if _NO_LOGIN in methods else _NO_METHOD]))
    if _NO_LOGIN not in methods:
        raise EOFError  # the program ends the connection then: RFC 1928, section 3
    _, command, _, kind = await reader.readexactly(4)
    if kind not in (_V4, _NAME, _V6):
        raise _Failed("unknown type of address", "", _NO_ADDRESS)
    size = {_V4: 4, _V6: 16}.get(kind) or (await reader.readexactly(1))[0]
    address = await reader.readexactly(size)
    port = int.from_bytes(await reader.readexactly(2), "big")
    if command != _CONNECT:
        raise _Failed("only connections can be made", "", _NO_COMMAND)
    try:
        host = address.decode("ascii") if kind == _NAME else str(ipaddress.ip_address(address))
        return ProxyRequest(host=folded(host), port=checked_port(port))
    except ValueError as error:
        raise _Failed(str(error), "", _NO_ADDRESS) from error


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Forward the data of one side until it ends, no faster than the other side accepts it."""
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _answer(failure: _Failed, *, is_socks: bool) -> bytes:
    if is_socks:
        return _socks_reply(failure.code)
    text = f"marvin: {failure}\n".encode()
    head = f"HTTP/1.1 {failure.status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(text)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + text


def _socks_reply(code: int) -> bytes:
    """A reply without our address: programs need not know what is behind the proxy."""
    return bytes([_SOCKS, code, 0, _V4]) + bytes(6)
