"""Connections from the filtering proxy to allowed hosts, through the user's proxy if there is one."""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from ..api.errors import ConfigError
from ..api.record import Record
from ..util.threads import in_thread
from .connect import Dialer, SocketStreams

if TYPE_CHECKING:
    from .addresses import AddressGuard
    from .client import HttpSettings, TlsSource
    from .proxy_requests import ProxyRequest

_THIS_MACHINE = "localhost,127.0.0.0/8,::1"
_HEAD = 64 * 1024
_PORTS = {"http": 80, "https": 443}


class Refused(Exception):
    """The user's proxy does not connect to a host; the text is its answer."""


class _NextProxy(Record):
    secure: bool
    host: str
    port: int
    authorization: str


class Outward:
    """Opens connections according to the settings.

    Args:
        guard: the allowed addresses; it is consulted after a name is looked up.
        tls: returns the TLS context, for a proxy with https://.

    Raises:
        ConfigError: a configured proxy cannot be used.
    """

    def __init__(self, settings: HttpSettings, guard: AddressGuard, tls: TlsSource) -> None:
        self._timeout = settings.timeouts.http
        self._guard = guard
        self._tls = tls
        self._dialer = Dialer(settings.timeouts.connect_stagger, guard)
        self._to_proxy = Dialer(settings.timeouts.connect_stagger)
        self._no_proxy = f"{_THIS_MACHINE},{settings.no_proxy}"
        self._tunnels = _next_proxy(settings.https_proxy, "https_proxy")
        self._plain = _next_proxy(settings.http_proxy, "http_proxy")

    async def open(self, request: ProxyRequest) -> SocketStreams:
        """A connection on which the request has begun: its head was sent, or its tunnel is open.

        Raises:
            AddressRefused, httpx.TransportError, OSError, Refused: there is none.
        """
        proxy = self._tunnels if request.is_tunnel else self._plain
        if proxy is None or is_direct(request.host, self._no_proxy):
            streams = await self._dialer.dial(request.host, request.port, None, self._timeout)
            if not request.is_tunnel:
                streams[1].write(request.head())
            return streams
        # The next proxy looks the name up; if it can be looked up here, it is checked all the same.
        await in_thread(lambda: self._guard.check_behind_proxy(request.host, request.port))
        tls = await in_thread(self._tls) if proxy.secure else None
        streams = await self._to_proxy.dial(proxy.host, proxy.port, tls, self._timeout)
        if request.is_tunnel:
            await self._tunnel(streams, proxy, request)
        else:
            streams[1].write(request.head(to_proxy=True, authorization=proxy.authorization))
        return streams

    async def _tunnel(self, streams: SocketStreams, proxy: _NextProxy, request: ProxyRequest) -> None:
        reader, writer = streams
        name = f"CONNECT {request.authority} HTTP/1.1\r\nHost: {request.authority}\r\n"
        login = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
        try:
            writer.write(f"{name}{login}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
        except (EOFError, ValueError) as error:  # it ended, or has no end
            writer.transport.abort()
            raise Refused("it did not answer") from error
        except BaseException:
            writer.transport.abort()
            raise
        status = head.split(b"\r\n", 1)[0].decode("ascii", "replace")
        if status[9:10] != "2":
            writer.transport.abort()
            raise Refused(status[:100])


def _next_proxy(url: str, setting: str) -> _NextProxy | None:
    if not url:
        return None
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("no proxy of HTTP")
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
        return _NextProxy(
            secure=parts.scheme == "https",
            host=parts.hostname,
            port=parts.port or _PORTS[parts.scheme],
            authorization=f"Basic {b64encode(login.encode()).decode()}" if login else "",
        )
    except ValueError as error:
        # The URL may contain a password, so it is not shown.
        raise ConfigError(
            f"The setting {setting} is not a proxy that commands can use ({type(error).__name__}). Give it as "
            "http://HOST:PORT, or unset it."
        ) from None


def is_direct(host: str, no_proxy: str) -> bool:
    """Whether a host is reached without a proxy, according to a list as in NO_PROXY."""
    for entry in filter(None, (part.strip().lower() for part in no_proxy.split(","))):
        name = entry.lstrip("*.").strip("[]")
        if entry == "*" or host == name or (name and host.endswith(f".{name}")) or _is_in(host, name):
            return True
    return False


def _is_in(host: str, network: str) -> bool:
    if "/" not in network:
        return False
    try:
        address, wanted = ipaddress.ip_address(host), ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
    return address.version == wanted.version and address in wanted
