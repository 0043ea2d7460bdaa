"""A transport that redirects every request to one port of this machine."""

from __future__ import annotations

import httpx

from ..api.timeouts import Timeouts
from ..http.connect import Dialer
from ..http.transport import DirectTransport


class Redirecting(httpx.AsyncBaseTransport):
    """Marvin's own transport, connected to another address. The header `url_header` has the original URL."""

    def __init__(self, port: int, url_header: str, connect_stagger: float) -> None:
        self._port = port
        self._url_header = url_header
        self._direct = DirectTransport(None, Dialer(connect_stagger), keep_alive=Timeouts().keep_alive)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.scheme not in ("http", "https") or not request.url.host:
            raise httpx.UnsupportedProtocol("this client needs an http:// or https:// URL")
        headers = request.headers.copy()
        headers[self._url_header] = str(request.url.copy_with(fragment=None))
        url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)
        redirected = httpx.Request(
            request.method, url, headers=headers, stream=request.stream, extensions=request.extensions
        )
        return await self._direct.handle_async_request(redirected)

    async def aclose(self) -> None:
        await self._direct.aclose()
