"""Notices of a non-interactive run to the topic of --ntfy. They neither delay the run nor make it fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from ..api.config import Config
from ..http.clients import Clients
from ..kit.notices import NTFY, NtfyServer, PushPriority
from ..kit.ntfy import Notifier

_TITLE = "Marvin"


class Notices:
    """The notices of one run, sent one after the other in the background.

    Args:
        warn: called at the end with one line if notices were not delivered.
    """

    def __init__(self, config: Config, warn: Callable[[str], None]) -> None:
        self._topic = config.ntfy
        self._clients = Clients(config)
        if config.ntfy_url:
            self._clients.trust(config.ntfy_url)
        server = NtfyServer(address=config.ntfy_url or NTFY)
        self._notifier = Notifier(self._clients.for_tools(), self._topic, server, config.timeouts)
        self._warn = warn

    def send(self, text: str, title: str = "", priority: str = "default") -> None:
        """Queue a notice. Returns at once; the event loop must be running."""
        self._notifier.send(text, title=title or _TITLE, priority=cast("PushPriority", priority))

    async def aclose(self) -> None:
        """Wait for notices that are not sent yet, for at most `timeouts.notice_end` seconds."""
        why = await self._notifier.close()
        await self._clients.close()
        if why:
            self._warn(f"Notifications to the topic {self._topic} were not delivered: {why}")
