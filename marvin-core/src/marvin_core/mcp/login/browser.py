"""The browser part of a login: opens the page, and receives the redirect on this machine."""

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
"""The maximum length of the reason of a failed login, in characters."""
_LONGEST = 8_000
"""The maximum length of the address of a login page, in characters."""


class Browser:
    """The login to one server. If the user cannot be asked, the error says how to log in.

    Args:
        known: the stored data of an earlier login, whose port and registered client are used again.
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
        """The redirect URI."""
        return f"http://127.0.0.1:{self._port}{_PATH}"

    def check(self) -> None:
        """Raise `LoginNeeded` if the user cannot be asked now."""
        if not self._page.may():
            raise LoginNeeded(self._server.name)

    async def open(self, url: str) -> None:
        """Listen for the redirect of a login page. Raises `LoginNeeded` if the page or the port cannot be used."""
        self.check()
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or len(url) > _LONGEST:
            raise LoginNeeded(
                self._server.name, f"its login page has an address that cannot be opened: {exact_line(url[:_REASON])}"
            )
        self._state = next(iter(parse_qs(parts.query).get("state", [])), "")
        self._came = asyncio.get_running_loop().create_future()
        redirect = Redirect(_PATH, self._take, self._timeouts.http)
        if await self._stack.enter_async_context(redirect.listening((self._port,))) is None:
            why = f"its login leads back to port {self._port}, which is in use. Close what listens there, or log out"
            raise LoginNeeded(self._server.name, why)
        self._url = url

    async def came_back(self) -> Mapping[str, str]:
        """Show the page, and return the parameters of the redirect.

        Raises:
            LoginNeeded: the login was denied, or timed out.
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
        """Accept the final address of a browser on another machine; false if it belongs to another login."""
        return self._take(urlsplit(address.strip()).query)

    def _take(self, query: str) -> bool:
        from hmac import compare_digest

        given = {name: values[0] for name, values in parse_qs(query).items()}
        # The state proves that the redirect belongs to this login (RFC 6749, section 10.12).
        if self._came is None or not compare_digest(given.get("state", "").encode(), self._state.encode()):
            return False
        if not self._came.done():
            self._came.set_result(given)
        return True


async def open_page(url: str, variable: Callable[[str], str | None]) -> None:
    """Open a page in the browser, if there is a desktop or the user has set a browser."""
    if any(variable(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        import webbrowser

        await in_thread(lambda: webbrowser.open(url))


def _port_of(known: Mapping[str, Any]) -> int:
    """The redirect port of the registered client; 0 if it has none."""
    try:
        return urlsplit(str(known["client"]["redirect_uris"][0])).port or 0
    except (KeyError, IndexError, TypeError, ValueError):
        return 0


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
