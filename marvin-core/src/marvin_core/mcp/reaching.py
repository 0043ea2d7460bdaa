"""Connects to servers at addresses, with the user's login unless the configuration sets `Authorization`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from ..api.config import Config, McpServer
from .login.browser import Browser, open_page
from .login.kept import LoginPage, Logins
from .login.oauth import Login
from .over_http import over_http


class Reaching:
    """Opens connections to the servers of a run.

    Args:
        variable: returns the value of an environment variable.
    """

    def __init__(self, config: Config, logins: Logins, variable: Callable[[str], str | None]) -> None:
        self._config = config
        self._logins = logins
        self._variable = variable

    def streams(
        self, server: McpServer, page: LoginPage, told: Callable[[str], None]
    ) -> AbstractAsyncContextManager[tuple[Any, Any]]:
        """The streams of a server. `told` is called with the error of each message."""
        if any(name.lower() == "authorization" for name in server.headers):
            return over_http(server, self._config, None, told)
        opened = page.replace(show=partial(self._opened, page))
        browser = Browser(server, self._logins.of(server), self._config.timeouts, opened)
        return over_http(server, self._config, Login(server, self._logins, browser), told)

    async def _opened(self, page: LoginPage, url: str) -> bool:
        await open_page(url, self._variable)
        return await page.show(url)
