"""The loopback server that receives the redirect of a login. Source: RFC 8252, section 7.3"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

HOST = "127.0.0.1"
PATH = "/callback"
_HEAD = 16 * 1024
"""Bytes of a request's head at most."""
_PAGE = "<!doctype html><meta charset=utf-8><title>Marvin</title><p>{}</p>"
_THANKS = "Thank you. You can close this page and continue in the chat."
_REFUSED = "The login was refused. You can close this page."
_STRANGE = "This belongs to no login in progress. You can close this page."
_NOTHING = "There is nothing here."


class Loopback:
    """Receives the answers to logins during the session.

    Any page in a browser can send requests here, so only an answer with the state of a pending login
    counts; nobody else knows it. `limit` is the timeout of a browser's request, in seconds.
    """

    def __init__(self) -> None:
        self.port = 0
        self.limit = 1.0
        self._answers: dict[str, str] = {}

    @property
    def redirect(self) -> str:
        """The redirect URI."""
        return f"http://{HOST}:{self.port}{PATH}"

    def expect(self, state: str) -> None:
        """Accept one answer with this state."""
        self._answers.setdefault(state, "")

    def taken(self, state: str) -> str:
        """The answer with a state as a query string, which is removed; empty before it has come."""
        answer = self._answers.get(state, "")
        if answer:
            del self._answers[state]
        return answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one request of a browser."""
        try:
            async with asyncio.timeout(self.limit):
                status, text = self._told(await reader.readuntil(b"\r\n\r\n"))
                page = _PAGE.format(text).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(page)}\r\n"
                    "Connection: close\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n\r\n".encode()
                )
                writer.write(page)
                await writer.drain()
        except (OSError, EOFError, ValueError, IndexError, asyncio.LimitOverrunError):
            pass  # not a browser, or a slow one
        finally:
            writer.close()

    def _told(self, head: bytes) -> tuple[str, str]:
        method, target = head.decode("ascii", "replace").split(" ", 2)[:2]
        parts = urlsplit(target)
        if method != "GET" or parts.path != PATH:
            return "404 Not Found", _NOTHING
        fields = parse_qs(parts.query)
        state = fields.get("state", [""])[0]
        if state not in self._answers or not ("code" in fields or "error" in fields):
            return "400 Bad Request", _STRANGE
        # The first answer counts: reloading the page sends the same code, which is used up.
        self._answers[state] = self._answers[state] or parts.query
        return "200 OK", _REFUSED if "error" in fields else _THANKS


@asynccontextmanager
async def loopback() -> AsyncIterator[Loopback]:
    """The server, a resource of the session."""
    waiting = Loopback()
    server = await asyncio.start_server(waiting.serve, HOST, 0, limit=_HEAD)
    waiting.port = server.sockets[0].getsockname()[1]
    try:
        yield waiting
    finally:
        server.close()
