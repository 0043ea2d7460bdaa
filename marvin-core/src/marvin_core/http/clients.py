"""The HTTP clients of a run, created when first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..api.config import Config
from ..api.errors import ConfigError
from .client import HttpSettings, TlsContext, make_client

if TYPE_CHECKING:
    import httpx

    from .addresses import AddressGuard
    from .filter_proxy import NoteRefused
    from .proxy_thread import Decide, ProxyThread


class Clients:
    """The clients for model services, and one that all tools share.

    Raises:
        ConfigError: `transport:` in config.yaml is neither direct nor stock.
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
            timeouts=config.timeouts,
            limits=config.limits,
        )
        self._allowed = config.allow_addresses
        self._guard: AddressGuard | None = None
        self._coding = config.coding
        self._tls = TlsContext(config.ca_file)
        self._models: dict[bool, httpx.AsyncClient] = {}
        self._tools: httpx.AsyncClient | None = None

    def expect(self, url: str) -> None:
        """Start preparing a request to this URL while the rest of Marvin starts."""
        if url.startswith("https://"):
            self._tls.start()

    def for_model(self, url: str) -> httpx.AsyncClient:
        """The client for the model service at this URL."""
        secure = url.startswith("https://")
        if secure not in self._models:
            tls = self._tls.get if secure else None
            self._models[secure] = make_client(self._settings, timeout_read=self._silence(), tls=tls)
        return self._models[secure]

    def _silence(self) -> float:
        timeouts = self._settings.timeouts
        return timeouts.model_idle_coding if self._coding else timeouts.model_idle

    def patient(self, coding: bool) -> None:
        """Use the read timeouts of coding mode, or those of a chat."""
        import httpx

        self._coding = coding
        for client in self._models.values():
            client.timeout = httpx.Timeout(self._settings.timeouts.http, read=self._silence())

    def for_tools(self) -> httpx.AsyncClient:
        """The client of the tools. On this machine and in private networks it reaches only what the configuration
        allows."""
        if self._tools is None:
            silence, tls, guard = self._settings.timeouts.http, self._tls.get, self._addresses()
            self._tools = make_client(self._settings, timeout_read=silence, tls=tls, guard=guard)
        return self._tools

    def lasting(self, silence: float) -> httpx.AsyncClient:
        """A separate client for a server that the user named, with this read timeout in seconds."""
        return make_client(self._settings, timeout_read=silence, tls=self._tls.get)

    def proxy(self, decide: Decide, note_refused: NoteRefused = lambda host, port: None) -> ProxyThread:
        """A proxy for programs, with the network settings of the tools, restricted to hosts that `decide` allows.

        Args:
            note_refused: called for such a host whose address is of this machine or of a private network.

        Raises:
            ConfigError: a configured proxy cannot be used.
        """
        from .outward import Outward
        from .proxy_thread import ProxyThread

        outward = Outward(self._settings, self._addresses(), self._tls.get)
        limits, timeouts = self._settings.limits, self._settings.timeouts
        return ProxyThread(decide, outward, note_refused, timeout=timeouts.http, most=limits.proxy_connections)

    def refused_host(self, url: str) -> str:
        """The host of a URL that tools cannot reach because it is on this machine or in a private network. Blocks.

        Empty if they can reach it, and for texts that are not http(s) URLs.
        """
        from .addresses import refused_host

        return refused_host(self._addresses(), url)

    def trust(self, url: str) -> None:
        """Let tools reach the server of this URL, which the user named in a setting."""
        self._addresses().trust(url)

    def _addresses(self) -> AddressGuard:
        from .addresses import AddressGuard

        if self._guard is None:
            self._guard = AddressGuard(self._allowed)
        return self._guard

    async def close(self) -> None:
        """Close their connections."""
        for client in filter(None, (*self._models.values(), self._tools)):
            await client.aclose()
