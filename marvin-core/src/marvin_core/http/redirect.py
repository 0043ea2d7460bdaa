"""Receives the redirect after a login in the browser: a temporary server on this machine only (RFC 8252)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import asyncio

_PAGE = "<!DOCTYPE html><html><head><meta charset=utf-8><title>Marvin</title></head><body><p>{}</p></body></html>"
_STATUS = {200: "OK", 400: "Bad Request", 404: "Not Found"}


class Redirect:
    """The server that the browser is redirected to at the end of a login.

    Args:
        path: the path of the redirect.
        take: gets the query of the redirect; returns false if it does not belong to this login.
        limit: the time limit of one request in seconds.
    """

    def __init__(self, path: str, take: Callable[[str], bool], limit: float) -> None:
        self._path = path
        self._take = take
        self._limit = limit

    @asynccontextmanager
    async def listening(self, ports: Sequence[int]) -> AsyncIterator[int | None]:
        """Listen on the first free port of these, 0 for any; returns it, or None if all are in use."""
        import asyncio

        server = None
        for port in ports:
            try:
                server = await asyncio.start_server(self._serve, "127.0.0.1", port)
                break
            except OSError:
                continue  # something else listens there
        try:
            yield server.sockets[0].getsockname()[1] if server else None
        finally:
            if server is not None:
                server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of the browser, or of another program."""
        import asyncio

        try:
            async with asyncio.timeout(self._limit):
                target = (await reader.readline()).split(b" ")[1].decode("ascii", "replace")
                while (await reader.readline()).strip():
                    pass
                status, text = self._answer(target)
                body = _PAGE.format(text).encode()
                head = f"HTTP/1.1 {status} {_STATUS[status]}\r\ncontent-type: text/html; charset=utf-8\r\n"
                head += f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
                writer.write(head.encode() + body)
                await writer.drain()
        except (OSError, TimeoutError, ValueError, IndexError):
            pass  # no browser, or it closed the connection: continue to wait
        finally:
            writer.close()

    def _answer(self, target: str) -> tuple[int, str]:
        parts = urlsplit(target)
        if parts.path != self._path:
            return 404, "There is nothing here."
        if not self._take(parts.query):
            return 400, "This is not the login that Marvin is waiting for. Open the address that Marvin shows again."
        return 200, "You can close this page and go back to Marvin."
