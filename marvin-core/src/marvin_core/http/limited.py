"""The client of tools: with limits for the size of responses and for waiting times."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, cast

import httpx

from ..api.errors import ToolError
from ..api.timeouts import Timeouts
from .transport import BODY

_REDIRECT = 64 * 1024
"""Bytes of the body of a redirect, which is a note for people: httpx reads and keeps all of it."""


class LimitedClient(httpx.AsyncClient):
    """A client that also has the waiting times of tools, for code that makes requests with it."""

    def __init__(self, timeouts: Timeouts, **options: Any) -> None:
        super().__init__(**options)
        self.timeouts = timeouts


def no_cookies() -> CookieJar:
    """A cookie jar that stores nothing."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))


class LimitedTransport(httpx.AsyncBaseTransport):
    """Ends responses that are larger than tools may read: `body` bytes, or `download` if they are read raw."""

    def __init__(self, inner: httpx.AsyncBaseTransport, *, body: int, download: int) -> None:
        self._inner = inner
        self._body = body
        self._download = download

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; reading more of its response than the limit raises `ToolError`. A redirect's body is cut
        there."""
        response = await self._inner.handle_async_request(request)
        stream = cast("httpx.AsyncByteStream", response.stream)
        if response.has_redirect_location:
            response.stream = _Limited(stream, _REDIRECT)
            return response
        name, limit = ("download", self._download) if request.extensions.get(BODY) == "raw" else ("body", self._body)
        text = (
            f"{request.url.host} sends more than {limit:,} bytes, which is the limit. Request something smaller. The "
            f"user can set limits.{name} in config.yaml."
        )
        response.stream = _Limited(stream, limit, text)
        return response

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()


class _Limited(httpx.AsyncByteStream):
    """A body that fails with `text` if it is larger than the limit; without `text` it ends there."""

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
