"""Direct HTTP/1.1 connections on asyncio and h11, behind httpx's public transport interface.

httpx's own takes longer to import and hands a burst on piece by piece; it still serves proxies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import h11
import httpx

from .connect import SocketStreams, dial, within

if TYPE_CHECKING:
    import ssl

_Origin: TypeAlias = tuple[str, str, int]
_PORTS = {"http": 80, "https": 443}
_HEADER_LIMIT = 100 * 1024
_READ_SIZE = 256 * 1024


class _ClosedUnanswered(Exception):
    """The connection ended before anything of a response came."""


class _Exchange(httpx.AsyncByteStream):
    """One connection, and the body of the response that it is reading."""

    def __init__(self, streams: SocketStreams, release: Callable[[_Exchange], None]) -> None:
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADER_LIMIT)
        self.reader, self._writer = streams
        self.abort = self._writer.transport.abort
        self._release = release

    async def send(self, request: httpx.Request, body: bytes) -> h11.Response:
        self._limits: dict[str, float | None] = request.extensions.get("timeout", {})
        target, headers = request.url.raw_path, request.headers.raw
        try:
            head = h11.Request(method=request.method, target=target, headers=headers)
            events = (head, h11.Data(data=body), h11.EndOfMessage())
            self._writer.write(b"".join([self.http.send(event) or b"" for event in events]))
        except h11.LocalProtocolError:
            # Its text would show the header, which may hold a key.
            raise httpx.LocalProtocolError("the request is not valid HTTP: check its headers") from None
        try:
            await within(self._limits.get("write"), httpx.WriteTimeout, self._writer.drain())
        except OSError:
            pass  # a server may answer and close before it has read all
        while not isinstance(event := self._event(), h11.Response):
            if event is h11.NEED_DATA:
                await self._receive()
        return event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        while True:
            try:
                event = self._event()
            except httpx.RemoteProtocolError:
                if parts:
                    yield b"".join(parts)  # what came before the error
                raise
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
                continue
            if parts:
                yield b"".join(parts)
                parts.clear()
            if event is not h11.NEED_DATA:
                return
            await self._receive()

    def _event(self) -> object:
        try:
            return self.http.next_event()
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from None

    async def _receive(self) -> None:
        begun = self.http.their_state is not h11.SEND_RESPONSE or self.http.trailing_data[0]
        try:
            data = await within(self._limits.get("read"), httpx.ReadTimeout, self.reader.read(_READ_SIZE))
        except OSError as error:
            raise (httpx.ReadError if begun else _ClosedUnanswered)(str(error)) from None
        if not data and not begun:
            raise _ClosedUnanswered("the connection was closed")
        self.http.receive_data(data)

    async def aclose(self) -> None:
        self._release(self)


class DirectTransport(httpx.AsyncBaseTransport):
    """Keeps one idle connection an origin. `tls` gives the context for https://, None refuses such URLs.

    `connect_stagger` is in seconds, see `connect.dial`.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext] | None, *, connect_stagger: float) -> None:
        self._tls = tls
        self._stagger = connect_stagger
        self._idle: dict[_Origin, _Exchange] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        if url.scheme not in _PORTS or not url.host or (url.scheme == "https" and self._tls is None):
            raise httpx.UnsupportedProtocol("this client needs an http:// URL, or https:// where it has TLS")
        origin = (url.scheme, url.host, url.port or _PORTS[url.scheme])
        body = await request.aread()
        kept = self._idle.pop(origin, None)
        try:
            if kept is not None:
                return await self._respond(kept, request, body)
        except _ClosedUnanswered:
            pass  # the server gave up the idle connection: once more, on a new one
        try:
            return await self._respond(await self._connect(origin, request), request, body)
        except _ClosedUnanswered as error:
            raise httpx.RemoteProtocolError(str(error)) from None

    async def _respond(self, exchange: _Exchange, request: httpx.Request, body: bytes) -> httpx.Response:
        try:
            head = await exchange.send(request, body)
        except BaseException:
            exchange.abort()
            raise
        extensions = {"http_version": b"HTTP/" + head.http_version, "reason_phrase": head.reason}
        headers = head.headers.raw_items()
        return httpx.Response(head.status_code, headers=headers, stream=exchange, extensions=extensions)

    async def _connect(self, origin: _Origin, request: httpx.Request) -> _Exchange:
        context = self._tls() if origin[0] == "https" and self._tls is not None else None
        limit = request.extensions.get("timeout", {}).get("connect")
        streams = await dial(origin[1], origin[2], context, limit, self._stagger)
        return _Exchange(streams, partial(self._release, origin))

    def _release(self, origin: _Origin, exchange: _Exchange) -> None:
        if exchange.http.our_state is exchange.http.their_state is h11.DONE and origin not in self._idle:
            exchange.http.start_next_cycle()
            self._idle[origin] = exchange
        elif self._idle.get(origin) is not exchange:
            exchange.abort()

    async def aclose(self) -> None:
        while self._idle:
            _, exchange = self._idle.popitem()  # by name: a writer that is dropped before it is closed complains
            exchange.abort()
