"""HTTP clients: proxies, certificates and timeouts come from the configuration, never from the environment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..api.errors import ConfigError
from ..api.limits import Limits
from ..api.record import Record
from ..api.timeouts import Timeouts

if TYPE_CHECKING:
    import ssl

    import httpx

    from .addresses import AddressGuard

TlsSource: TypeAlias = "Callable[[], ssl.SSLContext]"
_Mounts: TypeAlias = "dict[str, httpx.AsyncBaseTransport | None]"
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
"""Hosts that are never reached through a proxy, for which they would be the proxy's own machine."""
_COMPRESSIONS = ("brotli", "brotlicffi", "zstandard")
"""Packages that httpx imports if they are installed, for example for packs. Marvin decompresses responses itself."""


class HttpSettings(Record):
    """The settings of all clients.

    The proxies are URLs, `no_proxy` is a comma-separated list of hosts, and `ca_file` is a PEM file that replaces the
    system's certificates. `timeouts.http` limits connecting and sending. `transport` chooses between Marvin's own
    transport for direct connections and httpx's for all. `limits` apply with a guard, see `make_client`.
    """

    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: str = ""
    ca_file: str = ""
    transport: Literal["direct", "stock"] = "direct"
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()


class TlsContext:
    """The TLS context, created in a daemon thread in parallel with the rest of the start; OpenSSL takes about 35 ms."""

    def __init__(self, ca_file: str = "") -> None:
        self._ca_file = ca_file
        self._thread: threading.Thread | None = None
        self._context: ssl.SSLContext | None = None
        self._error: Exception | None = None

    def start(self) -> None:
        """Start creating it; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._build, name="tls-context", daemon=True)
            self._thread.start()

    def get(self) -> ssl.SSLContext:
        """The context; waits until it is ready.

        Raises:
            ConfigError: the certificates cannot be read.
        """
        self.start()
        if self._thread is not None:
            self._thread.join()
        if self._context is None:
            raise ConfigError(
                f"The certificates {self._ca_file or 'of this system'} cannot be loaded: {self._error}. "
                "Set `ca_file` in config.yaml, or SSL_CERT_FILE, to a readable PEM file."
            )
        return self._context

    def _build(self) -> None:
        import ssl

        try:
            self._context = ssl.create_default_context(cafile=self._ca_file or _certificates())
        except OSError as error:
            self._error = error


def _certificates() -> str | None:
    """certifi's file if the system has no certificates of its own; otherwise None."""
    import ssl

    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath:
        return None
    import certifi

    return certifi.where()


def load_httpx() -> None:
    """Import httpx without its command line, and without compressions that Marvin never requests."""
    if "httpx" not in sys.modules:
        # httpx imports its own command line (click, rich, pygments) if installed: 60 of its 75 ms.
        sys.modules["httpx._main"] = None  # type: ignore[assignment]
        unused = [name for name in _COMPRESSIONS if name not in sys.modules]
        sys.modules.update(dict.fromkeys(unused))  # type: ignore[arg-type]
        try:
            import httpx  # noqa: F401
        finally:
            for name in unused:  # packs may want them
                del sys.modules[name]


def make_client(
    settings: HttpSettings,
    base_url: str = "",
    *,
    timeout_read: float,
    tls: TlsSource | None,
    guard: AddressGuard | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> httpx.AsyncClient:
    """A client whose read timeout is `timeout_read` seconds since the last byte.

    `tls` returns the TLS context and is called when one is first needed; None makes a client for http:// only.
    `transport` replaces the one that the settings choose. Redirects are not followed. With a `guard`, only addresses
    that it allows are reached, responses are no larger than `limits` allow, and no cookies are stored: data of one call
    must not reach the next one.

    Raises:
        ConfigError: a proxy is not a usable URL.
    """
    load_httpx()
    import httpx

    from ..version import __version__
    from .cookies import ModelClient
    from .transport import ACCEPTED, DecodingTransport

    timeouts, limits = settings.timeouts, settings.limits
    make: Callable[..., httpx.AsyncClient] = ModelClient
    finished: Callable[[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport] = DecodingTransport
    if guard is not None:
        from .limited import LimitedClient, LimitedTransport, no_cookies

        make = partial(LimitedClient, timeouts, cookies=no_cookies())

        def finished(inner: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
            return LimitedTransport(DecodingTransport(inner), body=limits.body, download=limits.download)

    return make(
        base_url=base_url,
        headers={"user-agent": f"marvin/{__version__}", "accept-encoding": ACCEPTED},
        timeout=httpx.Timeout(timeouts.http, read=timeout_read),
        transport=finished(transport or _unproxied(settings, tls, guard)),
        mounts={pattern: proxied and finished(proxied) for pattern, proxied in _proxies(settings, tls, guard).items()},
        trust_env=False,
    )


def _unproxied(settings: HttpSettings, tls: TlsSource | None, guard: AddressGuard | None) -> httpx.AsyncBaseTransport:
    timeouts = settings.timeouts
    # httpx's own transport looks addresses up itself, so it might connect to one that was not checked.
    if settings.transport == "stock" and guard is None:
        return _stock(tls)
    from .connect import Dialer
    from .transport import DirectTransport

    return DirectTransport(tls, Dialer(timeouts.connect_stagger, guard), keep_alive=timeouts.keep_alive)


def _stock(tls: TlsSource | None, proxy: httpx.Proxy | None = None) -> httpx.AsyncBaseTransport:
    import httpx

    from .proxied import HeadDeadline

    # No connection is kept: httpx would take bytes after the end of a response for the next one.
    limits = httpx.Limits(max_keepalive_connections=0)
    stock = httpx.AsyncHTTPTransport(verify=_context(tls), trust_env=False, proxy=proxy, limits=limits)
    return HeadDeadline(stock, proxy.url if proxy is not None else None)


def _context(tls: TlsSource | None) -> ssl.SSLContext:
    import ssl

    # Without a source: a context that trusts nobody, which is cheap and makes https:// URLs fail.
    return tls() if tls is not None else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _proxies(settings: HttpSettings, tls: TlsSource | None, guard: AddressGuard | None) -> _Mounts:
    """The transports by httpx's URL patterns; None for URLs that do not use a proxy."""
    mounts: _Mounts = {}
    skipped = [host.strip() for host in settings.no_proxy.split(",") if host.strip()]
    if "*" in skipped:
        return mounts
    if settings.http_proxy:
        mounts["http://"] = _through(settings.http_proxy, "http_proxy", None, guard)
    if settings.https_proxy and tls is not None:
        mounts["https://"] = _through(settings.https_proxy, "https_proxy", tls, guard)
    if mounts:
        patterns = map(_pattern, (*_THIS_MACHINE, *skipped))
        mounts.update((pattern, None) for pattern in patterns if _is_usable(pattern))
    return mounts


def _through(url: str, setting: str, tls: TlsSource | None, guard: AddressGuard | None) -> httpx.AsyncBaseTransport:
    import httpx

    from .proxied import GuardedProxy

    try:
        proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
        if not proxy.url.host:
            raise ValueError("no host")
        transport = _stock(tls, proxy)
        return transport if guard is None else GuardedProxy(transport, guard)
    except (ValueError, httpx.InvalidURL, ImportError) as error:
        # The URL may contain a password, so it is not shown.
        raise ConfigError(
            f"The setting {setting} is not a usable proxy ({type(error).__name__}). "
            "Give it as http://HOST:PORT, or unset it."
        ) from None


def _is_usable(pattern: str) -> bool:
    """Whether httpx supports it. Networks such as `::1/128`, which other programs support, are left out."""
    import httpx

    try:
        return bool(httpx.URL(pattern))
    except httpx.InvalidURL:
        return False


def _pattern(host: str) -> str:
    """A host of `no_proxy` as httpx's URL pattern: a domain includes its sub-domains."""
    import ipaddress

    if "://" in host:
        return host
    name = host.lstrip("*.")
    try:
        address: Any = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return f"all://{name}" if name.split(":")[0] == "localhost" else f"all://*{name}"
    return f"all://[{address}]" if address.version == 6 else f"all://{address}"
