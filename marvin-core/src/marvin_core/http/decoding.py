"""Compressed responses: one layer of compression at most, undone in pieces of a bounded size."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import cast

import httpx

from ..api.errors import ToolError

ACCEPTED = "gzip, deflate"
"""What is asked for. Other formats have no decompression in Python's library that can be bounded."""
BODY = "marvin_body"
"""The extension of a request that says how its response is read: `raw` leaves it as it comes, for `aiter_raw`."""

_GZIP = ("gzip", "x-gzip")
_COMPRESSIONS = (*_GZIP, "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz")
_MEMBER = b"\x1f\x8b"
"""How a member of a gzip body begins."""
_PIECE = 64 * 1024
_PIECES_AT_ONCE = 16
"""After so many the event loop gets its turn."""
_MEMBERS = 10_000
"""Parts of one gzip body. Empty ones add nothing to its size, and each costs a copy of what follows it."""
_REDIRECT = 64 * 1024
"""Bytes of the body of a redirect, which is a note for people: httpx reads all of it, and keeps it."""


class DecodingTransport(httpx.AsyncBaseTransport):
    """Decompresses the responses of another transport; httpx would undo any number of layers without a bound."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; its response is not compressed any more, and its headers do not say that it was."""
        response = await self._inner.handle_async_request(request)
        layers = _layers(response.headers.get("content-encoding"))
        if not layers or request.extensions.get(BODY) == "raw":
            return response
        gone = (b"content-encoding", b"content-length")
        return httpx.Response(
            response.status_code,
            headers=[(name, value) for name, value in response.headers.raw if name.lower() not in gone],
            stream=_Decoded(cast("httpx.AsyncByteStream", response.stream), layers),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()


class LimitedTransport(httpx.AsyncBaseTransport):
    """Ends responses that are larger than tools may read: `body` bytes, or `download` where they are read raw."""

    def __init__(self, inner: httpx.AsyncBaseTransport, *, body: int, download: int) -> None:
        self._inner = inner
        self._body = body
        self._download = download

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; reading its response past the limit raises `ToolError`. A redirect's body is cut there."""
        response = await self._inner.handle_async_request(request)
        stream = cast("httpx.AsyncByteStream", response.stream)
        if response.has_redirect_location:
            response.stream = _Limited(stream, _REDIRECT)
            return response
        name, limit = ("download", self._download) if request.extensions.get(BODY) == "raw" else ("body", self._body)
        text = (
            f"{request.url.host} sends more than {limit:,} bytes, which are the limit. Ask for something smaller. "
            f"The user can set limits.{name} in config.yaml."
        )
        response.stream = _Limited(stream, limit, text)
        return response

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()


class _Limited(httpx.AsyncByteStream):
    """A body that fails with `text` where it is larger than the limit, or without one ends there."""

    def __init__(self, inner: httpx.AsyncByteStream, limit: int, text: str = "") -> None:
        self._inner = inner
        self._limit = limit
        self._text = text

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for data in self._inner:
            size += len(data)
            if size > self._limit and self._text:
                raise ToolError(self._text)
            if size > self._limit:
                return
            yield data

    async def aclose(self) -> None:
        await self._inner.aclose()


def _layers(header: str | None) -> tuple[str, ...]:
    """The compressions that a `content-encoding` header names; some servers put other things there."""
    if not header:
        return ()
    return tuple(name for part in header.split(",") if (name := part.strip().lower()) in _COMPRESSIONS)


class _Decoded(httpx.AsyncByteStream):
    """The body of a response, decompressed."""

    def __init__(self, inner: httpx.AsyncByteStream, layers: tuple[str, ...]) -> None:
        self._inner = inner
        self._layers = layers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        inflater = _inflater(self._layers)
        async for data in self._inner:
            for count, piece in enumerate(inflater.pieces(data), 1):
                yield piece
                if not count % _PIECES_AT_ONCE:
                    await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._inner.aclose()


def _inflater(layers: tuple[str, ...]) -> Inflater:
    if len(layers) > 1:
        raise httpx.DecodingError(f"it is compressed {len(layers)} times over ({', '.join(layers)[:60]})")
    if layers[0] in _GZIP:
        return Inflater(gzip=True)
    if layers[0] == "deflate":
        return Inflater(gzip=False)
    raise httpx.DecodingError(f"it is compressed as {layers[0]}, which was not asked for")


class Inflater:
    """Undoes gzip or deflate, in pieces of a bounded size."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._begin = b""
        self._members = 1
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if gzip else None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What comes out of this data, and of what was held back before.

        Raises:
            httpx.DecodingError: it is not compressed so.
        """
        try:
            yield from self._pieces(data)
        except zlib.error as error:
            raise httpx.DecodingError(str(error)) from error

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        data, self._begin = self._begin + data, b""
        if self._inflate is None:
            if len(data) < 2:  # the two bytes of zlib's header
                self._begin = data
                return
            # Some servers send the bare format, without zlib's header.
            is_zlib = data[0] & 0x0F == zlib.DEFLATED and not int.from_bytes(data[:2], "big") % 31
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
        full = False
        while data or full:
            inflate = self._inflate
            if inflate.eof:
                if self._gzip and data == _MEMBER[:1]:
                    self._begin = data  # the rest of what tells another member is still to come
                    return
                if not self._gzip or not data.startswith(_MEMBER):
                    return  # what stands behind the end is nothing
                self._members += 1
                if self._members > _MEMBERS:
                    raise httpx.DecodingError(f"it is compressed in more than {_MEMBERS:,} parts")
                self._inflate = inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            piece = inflate.decompress(data, _PIECE)
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            full = len(piece) == _PIECE and not inflate.eof  # more may wait, though all of the input was taken
            if piece:
                yield piece
