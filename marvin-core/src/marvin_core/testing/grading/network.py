"""The simulated network of a check: every host answers, in varying ways, and no request leaves the process."""

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
    """Answers every request. `requests` are the requested addresses; a request without an answer sets `reached`."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.reached = asyncio.Event()
        self._answer = 0
        self._silent = False

    def choose(self, number: int) -> None:
        """Use the answer with this number from now on."""
        self._answer = number % len(_ANSWERS)

    def fall_silent(self) -> None:
        """Stop answering."""
        self._silent = True

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer, or wait for ever."""
        self.requests.append(str(request.url.copy_with(query=None)))
        if self._silent:
            self.reached.set()
            await asyncio.get_running_loop().create_future()
        status, headers, content = _ANSWERS[self._answer]
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(content))
