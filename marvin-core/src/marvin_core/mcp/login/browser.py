"""The part of a login that happens in the user's browser: its page is opened, and it comes back to this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ...api.config import McpServer
from ...api.timeouts import Timeouts
from ...http.redirect import Redirect
from ...util.terminal_text import exact_line
from ...util.text import one_line
from ...util.threads import in_thread
from .kept import LoginNeeded, LoginPage

_PATH = "/callback"
_REASON = 200
"""The most characters of why a login failed."""
_LONGEST = 8_000
"""Characters of the address of a page for logging in."""


class Browser:
    """One server's login. Where the user cannot be asked, whoever needs it is told how to get it.

    Args:
        known: what is kept of an earlier login: its port, and with that the client that was registered, hold on.
    """

    def __init__(self, server: McpServer, known: Mapping[str, Any], timeouts: Timeouts, page: LoginPage) -> None:
        self._server = server
        self._timeouts = timeouts
        self._page = page
        self._url = ""
        self._port = server.login_port or _port_of(known) or _free_port()
        self._came: asyncio.Future[Mapping[str, str]] | None = None
        self._state = ""
        self._stack = AsyncExitStack()

    @property
    def address(self) -> str:
        """Where the browser is sent to at the end."""
        return f"http://127.0.0.1:{self._port}{_PATH}"

    def check(self) -> None:
        """Raises `LoginNeeded` where the user cannot be asked now."""
        if not self._page.may():
            raise LoginNeeded(self._server.name)

    async def open(self, url: str) -> None:
        """Begin to wait, and open the page."""
        self.check()
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or len(url) > _LONGEST:
            raise LoginNeeded(
                self._server.name, f"it leads to what is no page for a login: {exact_line(url[:_REASON])}"
            )
        self._state = next(iter(parse_qs(parts.query).get("state", [])), "")
        self._came = asyncio.get_running_loop().create_future()
        redirect = Redirect(_PATH, self._take, self._timeouts.http)
        if await self._stack.enter_async_context(redirect.listening((self._port,))) is None:
            why = f"its login leads back to port {self._port}, which is in use. Close what listens there, or log out"
            raise LoginNeeded(self._server.name, why)
        self._url = url

    async def came_back(self) -> Mapping[str, str]:
        """What the browser brought.

        Raises:
            LoginNeeded: where the login was denied, or nobody logged in.
        """
        assert self._came is not None
        async with self._stack:
            asking = asyncio.ensure_future(self._page.show(self._url))
            try:
                async with asyncio.timeout(self._timeouts.login):
                    waiting: list[asyncio.Future[Any]] = [asking, self._came]
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    if asking.done() and not asking.result() and not self._came.done():
                        raise LoginNeeded(self._server.name, "nobody logged in")
                    given = await self._came
            except TimeoutError:
                raise LoginNeeded(self._server.name, f"nobody logged in within {self._timeouts.login:g} s") from None
            finally:
                asking.cancel()
        if not given.get("code"):
            why = given.get("error_description") or given.get("error") or "no code came back"
            raise LoginNeeded(self._server.name, f"the login was not granted: {one_line(why, _REASON).rstrip('.')}")
        return given

    def take(self, address: str) -> bool:
        """Take the address that a browser of another machine ended at; false where it is none of this login."""
        return self._take(urlsplit(address.strip()).query)

    def _take(self, query: str) -> bool:
        from hmac import compare_digest

        given = {name: values[0] for name, values in parse_qs(query).items()}
        # Whoever does not know the state can neither log in as somebody else nor end the login.
        if self._came is None or not compare_digest(given.get("state", "").encode(), self._state.encode()):
            return False
        if not self._came.done():
            self._came.set_result(given)
        return True


async def open_page(url: str, variable: Callable[[str], str | None]) -> None:
    """Open a page in the browser, where there is a desktop or the user names a browser."""
    if any(variable(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        import webbrowser

        await in_thread(lambda: webbrowser.open(url))


def _port_of(known: Mapping[str, Any]) -> int:
    """The port of the client that was registered."""
    try:
        return urlsplit(str(known["client"]["redirect_uris"][0])).port or 0
    except (KeyError, IndexError, TypeError, ValueError):
        return 0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
