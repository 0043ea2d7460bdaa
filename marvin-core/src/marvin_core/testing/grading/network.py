"""The network of a check: every host answers, each time in another way, and nothing leaves the process."""

from __future__ import annotations

import asyncio

import httpx

_JSON = {"content-type": "application/json"}
_ANSWERS: tuple[tuple[int, dict[str, str], bytes], ...] = (
    (404, _JSON, b'{"error": "not found"}'),
    (200, _JSON, b"{}"),
    (200, {"content-type": "text/html"}, b"<html><body>Welcome</body></html>"),
    (500, {}, b""),
    (200, _JSON, b'{"cut": '),
    (200, _JSON, b"[]"),
    (429, {"retry-after": "30"}, b""),
    (200, {"content-type": "text/plain"}, b""),
)


class Network(httpx.AsyncBaseTransport):
    """Answers every request; `requests` are the addresses that were asked, `reached` is set in silence."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.reached = asyncio.Event()
        self._answer = 0
        self._silent = False

    def choose(self, number: int) -> None:
        """Answer in another way from now on."""
        self._answer = number % len(_ANSWERS)

    def fall_silent(self) -> None:
        """Answer no more."""
        self._silent = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, or nothing for ever."""
        self.requests.append(str(request.url.copy_with(query=None)))
        if self._silent:
            self.reached.set()
            await asyncio.get_running_loop().create_future()
        status, headers, content = _ANSWERS[self._answer]
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))
