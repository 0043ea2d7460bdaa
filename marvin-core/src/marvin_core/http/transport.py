"""Direct HTTP/1.1 connections on asyncio and h11, behind httpx's public transport interface.

httpx's own transport takes longer to import, and passes a burst of data on in many pieces; it is still used for
proxies.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import h11
import httpx

from .connect import Dialer, SocketStreams, within

if TYPE_CHECKING:
    import ssl

_Origin: TypeAlias = tuple[str, str, int]
_PORTS = {"http": 80, "https": 443}
_HEADER_LIMIT = 100 * 1024
_READ_SIZE = 128 * 1024
_Form: TypeAlias = tuple[str, bytes, int, list[tuple[bytes, bytes]]]
_FRAMING = {b"content-length", b"transfer-encoding"}
_END = h11.EndOfMessage()
_REPEATABLE = ("GET", "HEAD", "OPTIONS", "TRACE")
"""Methods that change nothing on the server, even if a request is repeated."""


ACCEPTED = "gzip, deflate"
"""The requested formats. For others, Python's library has no decompression with a size limit."""
BODY = "marvin_body"
"""The extension of a request that says how its response is read: `raw` leaves it compressed, for `aiter_raw`."""
SENT = "marvin_sent"
"""The extension of a request with a function to call when the request was sent, while the server works on it."""


class _ClosedUnanswered(Exception):
    """A kept connection ended before any part of a response arrived."""


class _Exchange(httpx.AsyncByteStream):
    """One connection, and the body of the response that is read from it."""

    def __init__(self, streams: SocketStreams, release: Callable[[_Exchange], None]) -> None:
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEADER_LIMIT)
        self.kept_since: float | None = None
        self._validated: tuple[_Form, h11.Request] | None = None
        """The form of the last request, and its head without the length."""
        self._reader, self._writer = streams
        self._read = 0
        self._arrived: select.poll | None = None
        self._release = release

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    def is_quiet(self) -> bool:
        """Whether nothing has arrived since the last response, not even the end of the connection.

        Unrequested data belong to no request: an additional response, or the 408 of a server that stopped waiting.
        """
        reader = self._reader
        if reader.arrived != self._read or reader.at_eof() or reader.exception() or self._writer.is_closing():
            return False
        # Data that the event loop has not seen yet.
        if self._arrived is None:
            self._arrived = select.poll()
            self._arrived.register(self._writer.get_extra_info("socket").fileno(), select.POLLIN)
        return not self._arrived.poll(0)

    async def send(self, request: httpx.Request, body: bytes) -> h11.Response:
        """Send a request and wait for the head of its response."""
        self._limits: dict[str, float | None] = request.extensions.get("timeout", {})
        try:
            self._writer.write(self._encoded(request, body))
        except h11.LocalProtocolError:
            # Its text would show the header, which may contain a key.
            raise httpx.LocalProtocolError("the request is not valid HTTP: check its headers") from None
        if self._writer.transport.get_write_buffer_size():  # most requests are with the system by now
            try:
                await within(self._limits.get("write"), httpx.WriteTimeout("timed out"), self._writer.drain())
            except OSError:
                pass  # a server may answer and close before it has read all
        request.extensions.get(SENT, int)()
        # One limit for the whole head: interim responses and single bytes do not extend it.
        return await within(self._limits.get("read"), httpx.ReadTimeout("timed out"), self._head())

    def _encoded(self, request: httpx.Request, body: bytes) -> bytes:
        """The bytes of a request.

        h11 composes the head. It does not see the length of a body, nor the body: it needs neither to read the
        response. A head that differs from the one before only in its length is therefore validated no second time.
        """
        method, target, headers = request.method, request.url.raw_path, request.headers.raw
        length = (b"Content-Length", b"%d" % len(body))
        others = [header for header in headers if header != length]
        form = (method, target, len(headers), others)
        if self._validated is None or self._validated[0] != form:
            names = {name.lower() for name, _ in others}
            if len(others) == len(headers) or names & _FRAMING:
                events = (h11.Request(method=method, target=target, headers=headers), h11.Data(data=body), _END)
                return b"".join([self.http.send(event) or b"" for event in events])
            self._validated = form, h11.Request(method=method, target=target, headers=others)
        head = self.http.send(self._validated[1]) or b""
        self.http.send(_END)
        return b"%sContent-Length: %d\r\n\r\n%b" % (head.removesuffix(b"\r\n"), len(body), body)

    async def _head(self) -> h11.Response:
        while not isinstance(event := self._event(), h11.Response):
            if event is h11.NEED_DATA:
                await self._receive()
            elif not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError("the server changed to another protocol")
        return event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        while True:
            try:
                event = self._event()
            except httpx.RemoteProtocolError:
                if parts:
                    yield b"".join(parts)  # data before the error
                raise
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
                continue
            if parts:
                yield b"".join(parts)
                parts.clear()
            if event is not h11.NEED_DATA:
                return
            limit = self._limits.get("read")
            if limit is None:
                await self._receive()
            else:
                await within(limit, httpx.ReadTimeout("timed out"), self._receive())

    def _event(self) -> object:
        try:
            return self.http.next_event()
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from None

    async def _receive(self) -> None:
        begun = self.http.their_state is not h11.SEND_RESPONSE or bool(self.http.trailing_data[0])
        try:
            data = await self._reader.read(_READ_SIZE)
        except OSError as error:
            if not begun and self.kept_since is not None:
                raise _ClosedUnanswered(str(error)) from None
            raise httpx.ReadError(str(error)) from None
        if not data and self.http.their_state is h11.SEND_RESPONSE:
            if not begun and self.kept_since is not None:
                raise _ClosedUnanswered
            raise httpx.RemoteProtocolError("the connection was closed")
        self._read += len(data)
        self.http.receive_data(data)

    async def aclose(self) -> None:
        """Release the connection: for the next request if the response was read completely, otherwise close it."""
        self._release(self)


class DirectTransport(httpx.AsyncBaseTransport):
    """Keeps one idle connection for each origin. `tls` returns the context for https://, None refuses such URLs.

    An idle connection is kept for `keep_alive` seconds, and only while nothing arrives on it.
    """

    def __init__(self, tls: Callable[[], ssl.SSLContext] | None, dialer: Dialer, *, keep_alive: float) -> None:
        self._tls = tls
        self._dialer = dialer
        self._keep_alive = keep_alive
        self._idle: dict[_Origin, _Exchange] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of the response is read as it arrives."""
        url = request.url
        if url.scheme not in _PORTS or not url.host or (url.scheme == "https" and self._tls is None):
            raise httpx.UnsupportedProtocol("this client needs an http:// URL, or https:// if it has TLS")
        origin = (url.scheme, url.host, url.port or _PORTS[url.scheme])
        body = await _body(request)
        kept = self._kept(origin)
        try:
            if kept is not None:
                return await self._respond(kept, request, body)
        except _ClosedUnanswered:
            if request.method not in _REPEATABLE:
                # The server may have processed it: the caller, which counts costs, decides whether to send it again.
                text = "the connection was closed before any part of an answer arrived"
                raise httpx.RemoteProtocolError(text) from None
        return await self._respond(await self._connect(origin, request), request, body)

    def _kept(self, origin: _Origin) -> _Exchange | None:
        """The idle connection to an origin, if it is usable."""
        kept = self._idle.pop(origin, None)
        if kept is None or kept.kept_since is None:
            return None
        if _now() - kept.kept_since < self._keep_alive and kept.is_quiet():
            return kept
        kept.abort()
        return None

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
        streams = await self._dialer.dial(origin[1], origin[2], context, limit)
        return _Exchange(streams, partial(self._release, origin))

    def _release(self, origin: _Origin, exchange: _Exchange) -> None:
        http = exchange.http
        is_done = http.our_state is http.their_state is h11.DONE
        # Bytes after the end of a response do not belong to the next response.
        if is_done and not http.trailing_data[0] and origin not in self._idle:
            http.start_next_cycle()
            exchange.kept_since = _now()
            self._idle[origin] = exchange
        elif self._idle.get(origin) is not exchange:
            exchange.abort()

    async def aclose(self) -> None:
        """Close the idle connections."""
        while self._idle:
            _, exchange = self._idle.popitem()  # by name: a writer that is dropped before it is closed complains
            exchange.abort()


class DecodingTransport(httpx.AsyncBaseTransport):
    """Decompresses the responses of another transport; httpx would undo any number of layers without a limit."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its response is decompressed, and its headers do not mention the compression."""
        response = await self._inner.handle_async_request(request)
        if "content-encoding" not in response.headers or request.extensions.get(BODY) == "raw":
            return response
        from .decoding import decoded  # services stream their answers as they are

        return decoded(response)

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()


async def _body(request: httpx.Request) -> bytes:
    """The body of a request. httpx's own way takes longer for one that is in memory."""
    stream = request.stream
    return b"".join(stream) if isinstance(stream, httpx.ByteStream) else await request.aread()


def _now() -> float:
    return asyncio.get_running_loop().time()
