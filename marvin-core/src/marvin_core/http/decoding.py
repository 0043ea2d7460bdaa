"""Decompresses responses: at most one layer of compression, in pieces of limited size."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import cast

import httpx

_GZIP = ("gzip", "x-gzip")
_COMPRESSIONS = (*_GZIP, "deflate", "br", "zstd", "compress", "x-compress", "dcb", "dcz")
_MEMBER = b"\x1f\x8b"
"""The beginning of a member of a gzip body."""
_PIECE = 64 * 1024
_PIECES_AT_ONCE = 16
"""The number of pieces after which the event loop gets control."""
_MEMBERS = 10_000
"""The maximum number of members of a gzip body. Empty members have no output, but each costs a copy of the rest."""


def decoded(response: httpx.Response) -> httpx.Response:
    """The response without its compression; its headers do not mention the compression either."""
    layers = _layers(response.headers.get("content-encoding"))
    if not layers:
        return response
    gone = (b"content-encoding", b"content-length")
    return httpx.Response(
        response.status_code,
        headers=[(name, value) for name, value in response.headers.raw if name.lower() not in gone],
        stream=_Decoded(cast("httpx.AsyncByteStream", response.stream), layers),
        extensions=response.extensions,
    )


def _layers(header: str | None) -> tuple[str, ...]:
    """The compressions in a `content-encoding` header; some servers put other values there."""
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
    """Decompresses gzip or deflate in pieces of limited size."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._begin = b""
        self._members = 1
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if gzip else None

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """The output for this data and for earlier data that waited.

        Raises:
            httpx.DecodingError: it is not compressed in this format.
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
            # Some servers send the raw format, without zlib's header.
            is_zlib = data[0] & 0x0F == zlib.DEFLATED and not int.from_bytes(data[:2], "big") % 31
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
        full = False
        while data or full:
            inflate = self._inflate
            if inflate.eof:
                if self._gzip and data == _MEMBER[:1]:
                    self._begin = data  # the rest of the mark of another member is still missing
                    return
                if not self._gzip or not data.startswith(_MEMBER):
                    return  # bytes after the end are ignored
                self._members += 1
                if self._members > _MEMBERS:
                    raise httpx.DecodingError(f"it is compressed in more than {_MEMBERS:,} parts")
                self._inflate = inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
            piece = inflate.decompress(data, _PIECE)
            data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
            full = len(piece) == _PIECE and not inflate.eof  # more may wait, though all of the input was taken
            if piece:
                yield piece
