"""Additions to httpx's own transport: timeouts for proxies, and the hosts for which a proxy may be used."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx

from ..util.threads import in_thread
from .connect import within

if TYPE_CHECKING:
    from .addresses import AddressGuard

_PORTS = {"http": 80, "https": 443}


class _Phases:
    """The phase of a request, from the events of the transport; each phase has its own time limit."""

    def __init__(self, silence: float | None, limit: asyncio.Timeout) -> None:
        self._silence = silence
        self._limit = limit
        self.connected = False

    async def told(self, event: str, info: dict[str, Any]) -> None:
        """Process an event of the transport."""
        sends = event.endswith(".send_request_headers.started") and info["request"].method != b"CONNECT"
        if sends:
            self.connected = True
            self._limit.reschedule(None)  # each write has a limit of its own
        elif self.connected and event.endswith(".receive_response_headers.started"):
            seconds = self._silence
            self._limit.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)


class HeadDeadline(httpx.AsyncBaseTransport):
    """Limits the time until the head of a response: a proxy's tunnel counts as connecting, interim responses as
    silence."""

    def __init__(self, inner: httpx.AsyncBaseTransport, proxy: httpx.URL | None) -> None:
        self._inner = inner
        # Without user and password.
        self._proxy = f"the proxy {proxy.scheme}://{proxy.netloc.decode()}" if proxy is not None else ""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through the other transport."""
        timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        phases: _Phases | None = None
        connect = timeouts.get("connect")
        try:
            async with asyncio.timeout(connect) as limit:
                phases = _Phases(timeouts.get("read"), limit)
                request.extensions["trace"] = phases.told
                return await self._inner.handle_async_request(request)
        except TimeoutError:
            if phases is not None and phases.connected:
                raise httpx.ReadTimeout("timed out") from None
            raise self._late(request, connect) from None
        except httpx.ConnectTimeout:
            raise self._late(request, connect) from None
        except (httpx.ConnectError, httpx.ProxyError) as error:
            if not self._proxy:
                raise
            raise type(error)(f"{error} (through {self._proxy})") from error
        finally:
            request.extensions.pop("trace", None)

    def _late(self, request: httpx.Request, limit: float | None) -> httpx.ConnectTimeout:
        what = f"{self._proxy} opened no connection" if self._proxy else "no connection"
        port = request.url.port or _PORTS.get(request.url.scheme)
        return httpx.ConnectTimeout(f"{what} to {request.url.host}, port {port}, within {limit or 0:g} s")

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()


class GuardedProxy(httpx.AsyncBaseTransport):
    """Uses a proxy only for hosts that the guard allows."""

    def __init__(self, inner: httpx.AsyncBaseTransport, guard: AddressGuard) -> None:
        self._inner = inner
        self._guard = guard

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through the proxy."""
        host, port = request.url.host, request.url.port or _PORTS.get(request.url.scheme, 0)
        limit = request.extensions.get("timeout", {}).get("connect")
        late = httpx.ConnectTimeout(f"{host} could not be looked up within {limit or 0:g} s")
        await within(limit, late, in_thread(lambda: self._guard.check_behind_proxy(host, port)))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the other transport."""
        await self._inner.aclose()
