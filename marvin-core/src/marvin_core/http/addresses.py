"""The addresses that tools may reach: those of the public internet, and those that the configuration allows."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

from ..api.errors import AddressRefused

_Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# Written out because Python versions differ in what they call private or global. The registries:
# https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry.
_SPECIAL_4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
            *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
        ),
    )
)
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""IPv4 addresses in NAT64 form, as used by networks without IPv4."""
_LOCAL_NAMES = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "localdomain")


def is_public(address: _Address) -> bool:
    """Whether an address belongs to the public internet; for one that contains an IPv4 address, that address
    decides."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    if address.ipv4_mapped is not None:
        return is_public(address.ipv4_mapped)
    if address.sixtofour is not None:
        return is_public(address.sixtofour)
    if address in _TRANSLATED:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return address in _GLOBAL_6 and not any(address in network for network in _SPECIAL_6)


class AddressGuard:
    """Lets tools reach public addresses, and those in `allow_addresses:` of config.yaml.

    Args:
        allowed: host names, which include their sub-domains, addresses, and networks such as 10.1.0.0/16.
    """

    def __init__(self, allowed: Iterable[str] = ()) -> None:
        self._names: list[str] = []
        self._networks: list[_Network] = []
        self._trusted: set[tuple[str, int | None]] = set()
        for entry in allowed:
            try:
                self._networks.append(ipaddress.ip_network(entry.strip().strip("[]"), strict=False))
            except ValueError:
                self._names.append(_folded(entry))

    def trust(self, url: str) -> None:
        """Let tools reach the server of this URL, which the user named."""
        try:
            parts = urlsplit(url)
            if parts.hostname:
                self._trusted.add((_folded(parts.hostname), parts.port or _port(parts.scheme)))
        except ValueError:
            return  # no URL: the request itself reports it

    def check(self, host: str, port: int, addresses: Sequence[str]) -> None:
        """Check the addresses of a host after its look-up.

        Raises:
            AddressRefused: one of them is neither public nor allowed.
        """
        if self._is_allowed(host, port):
            return
        for text in addresses:
            address = ipaddress.ip_address(text)
            if not (is_public(address) or any(self._is_in(address, network) for network in self._networks)):
                raise _refused(host, text)

    def check_behind_proxy(self, host: str, port: int) -> None:
        """Check a host whose address a proxy will look up. Blocks.

        A host that can be looked up here must be public. Any other one is left to the proxy, except for names of this
        machine and of private networks.

        Raises:
            AddressRefused: it is neither public nor allowed.
        """
        name = _folded(host)
        if self._is_allowed(host, port):
            return
        try:
            infos = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            last = name.rpartition(".")[2]
            # A proxy may accept a number as an address that is none here.
            if "." not in name or last in _LOCAL_NAMES or last[:1].isdigit():
                raise _refused(host, "") from None
            return
        self.check(host, port, [str(info[4][0]) for info in infos])

    def _is_allowed(self, host: str, port: int) -> bool:
        name = _folded(host)
        if (name, port) in self._trusted:
            return True
        return any(name == allowed or name.endswith(f".{allowed}") for allowed in self._names)

    def _is_in(self, address: _Address, network: _Network) -> bool:
        return any(one.version == network.version and one in network for one in _forms(address))


def refused_host(guard: AddressGuard, url: str) -> str:
    """The host of an http(s) URL that a guard refuses; empty if it is allowed. Blocks."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _port(parts.scheme)
    except ValueError:
        return ""
    if not host or port is None:
        return ""
    try:
        guard.check_behind_proxy(host, port)
    except AddressRefused:
        return host
    return ""


def _forms(address: _Address) -> Iterator[_Address]:
    yield address
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        yield address.ipv4_mapped


def _folded(host: str) -> str:
    return host.strip().strip("[]").removeprefix("*").strip(".").lower()


def _port(scheme: str) -> int | None:
    return {"http": 80, "https": 443}.get(scheme)


def _refused(host: str, address: str) -> AddressRefused:
    where = f" ({address})" if address and address != host else ""
    return AddressRefused(
        f"{host}{where} is an address of this machine or of a private network, which tools may not reach. Use a "
        "public address. Only the user can allow this one, with allow_addresses in config.yaml."
    )
