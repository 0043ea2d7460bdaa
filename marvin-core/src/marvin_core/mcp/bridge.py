"""Connects the SDK's client library to Marvin's HTTP transport, with its proxies, certificates, limits and timeouts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import httpx
import httpx2

from ..api.errors import MarvinError
from .stdio.wire import FLOOD

_FAREWELL = 3.0
"""The maximum seconds for a server to process the end of a session."""


class Bridge(httpx2.AsyncBaseTransport):
    """Sends the requests of `httpx2` with `httpx`.

    Args:
        client_for: returns the client for a URL.
        told: called after each message to the server, with the error or, on success, an empty string.
    """

    def __init__(self, client_for: Callable[[str], httpx.AsyncClient], told: Callable[[str], None]) -> None:
        self._client_for = client_for
        self._told = told

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and stream the response up to a size limit."""
        url = str(request.url)
        client = self._client_for(url)
        # Both libraries add the same headers; those of this request take precedence.
        own = [(name, value) for name, value in request.headers.raw if name.lower() != b"accept-encoding"]
        sent = client.build_request(request.method, url, headers=own, content=await request.aread())
        if request.method == "DELETE":
            sent.extensions["timeout"] = dict.fromkeys(("connect", "read", "write", "pool"), _FAREWELL)
        try:
            answer = await client.send(sent, stream=True, follow_redirects=False)
        except (httpx.HTTPError, httpx.InvalidURL, MarvinError) as error:
            self._told(f"{type(error).__name__}: {error}")
            raise _as_theirs(error) from error
        if request.method == "POST":
            self._told(f"HTTP {answer.status_code}" if answer.status_code >= 400 else "")
        return httpx2.Response(answer.status_code, headers=answer.headers.raw, stream=_Body(answer, self._told))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, answer: httpx.Response, told: Callable[[str], None]) -> None:
        self._answer = answer
        self._told = told

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = FLOOD
        try:
            async for chunk in self._answer.aiter_raw():
                left -= len(chunk)
                if left < 0:
                    said = f"it sent more than {FLOOD // 1_000_000} MB"
                    self._told(said)
                    raise httpx2.ReadError(said)
                yield chunk
        except httpx.HTTPError as error:
            self._told(f"{type(error).__name__}: {error}")
            raise _as_theirs(error) from error

    async def aclose(self) -> None:
        await self._answer.aclose()


def _as_theirs(error: Exception) -> Exception:
    """The error as an exception of `httpx2`."""
    kind = getattr(httpx2, type(error).__name__, httpx2.ConnectError)
    made: Exception = kind(str(error))
    return made
