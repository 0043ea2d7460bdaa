"""The HTTP clients of a run, made when they are first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .config import Config
from .errors import ConfigError
from .http import HttpSettings, TlsContext, make_client

if TYPE_CHECKING:
    import httpx


class Clients:
    """One client for the model service, one that all tools share.

    Raises:
        ConfigError: where `transport:` in config.yaml is neither direct nor stock.
    """

    def __init__(self, config: Config) -> None:
        if config.transport not in ("direct", "stock"):
            raise ConfigError(f"transport: is {config.transport!r} in config.yaml; use direct or stock.")
        self._settings = HttpSettings(
            http_proxy=config.http_proxy,
            https_proxy=config.https_proxy,
            no_proxy=config.no_proxy,
            ca_file=config.ca_file,
            transport="direct" if config.transport == "direct" else "stock",
            waits=config.waits,
        )
        waits = config.waits
        self._idle = waits.model_idle_coding if config.coding else waits.model_idle
        self._tls = TlsContext(config.ca_file)
        self._model: httpx.AsyncClient | None = None
        self._tools: httpx.AsyncClient | None = None

    def expect(self, url: str) -> None:
        """Begin with what a request to this URL will need, while the rest starts."""
        if url.startswith("https://"):
            self._tls.start()

    def for_model(self, url: str) -> httpx.AsyncClient:
        """The client for the model service at this URL."""
        if self._model is None:
            tls = self._tls.get if url.startswith("https://") else None
            self._model = make_client(self._settings, timeout_read=self._idle, tls=tls)
        return self._model

    def for_tools(self) -> httpx.AsyncClient:
        """The client of the tools."""
        if self._tools is None:
            self._tools = make_client(self._settings, timeout_read=self._settings.waits.http, tls=self._tls.get)
        return self._tools

    async def close(self) -> None:
        """Close their connections."""
        for client in filter(None, (self._model, self._tools)):
            await client.aclose()
