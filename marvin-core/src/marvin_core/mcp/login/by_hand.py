"""`marvin mcp login NAME`: logs in to a server and stores the login."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from mcp import Client, MCPError

from ...api.config import Config, McpServer
from ...api.errors import MarvinError
from ...util.failures import shown
from ...util.terminal_text import exact_line
from ...util.threads import in_thread
from ..over_http import over_http
from .browser import Browser, open_page
from .kept import LoginPage, Logins
from .oauth import Login


class LoggingIn:
    """One login to a server.

    Args:
        say: shows a text to the user.
        read_line: reads a pasted line, and blocks; empty at the end of input. None in a non-interactive run.
        variable: returns the value of an environment variable.
    """

    def __init__(
        self,
        server: McpServer,
        config: Config,
        say: Callable[[str], None],
        read_line: Callable[[], str] | None,
        variable: Callable[[str], str | None],
    ) -> None:
        self._server = server
        self._config = config
        self._say = say
        self._read_line = read_line
        self._variable = variable
        self._logins = Logins(config.config_folder, config.timeouts)
        page = LoginPage(show=self._show)
        self._browser = Browser(server, self._logins.of(server), config.timeouts, page)
        self._shown = False

    async def run(self) -> str:
        """Log the user in; returns the message to show.

        Raises:
            MarvinError: the server cannot be reached, or the login failed.
        """
        server, config = self._server, self._config
        await in_thread(partial(self._logins.keep, server, {"tokens": None}))
        try:
            async with asyncio.timeout(config.timeouts.login + config.timeouts.server):
                transport = over_http(server, config, Login(server, self._logins, self._browser), lambda status: None)
                async with Client(transport, cache=None) as client:
                    if client.server_capabilities.tools is not None:
                        await client.list_tools(cache_mode="refresh")
        except TimeoutError:
            raise MarvinError(f"The MCP server {server.name} did not finish the login in time. Try again.") from None
        except Exception as error:
            raise MarvinError(f"The login to the MCP server {server.name} failed: {_why(error)}") from error
        if not self._shown:
            return f"The MCP server {server.name} wants no login."
        return f"You are logged in to {server.name}; {self._logins.path} keeps the login."

    async def _show(self, url: str) -> bool:
        self._shown = True
        self._say(f"Open this address in a browser, and log in:\n\n{exact_line(url)}\n")
        await open_page(url, self._variable)
        if self._read_line is None:
            await asyncio.Event().wait()
        assert self._read_line is not None
        self._say("If the browser cannot come back here, paste the address that it ends at, and press Enter.")
        while line := await in_thread(self._read_line):
            if self._browser.take(line):
                return True
            if line.strip():
                self._say("That is not the address at the end of this login. Copy all of it, with `code` and `state`.")
        return True


def _why(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error.error.message if isinstance(error, MCPError) else shown(error)
