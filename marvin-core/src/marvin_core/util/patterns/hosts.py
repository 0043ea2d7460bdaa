"""Hosts in settings: `example.com`, `*.example.com`, with a port to allow only that port."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from ...api.record import Record

_LARGEST_PORT = 65_535
_LONGEST = 253
"""Characters of a name: RFC 1035, section 2.3.4, without the final dot."""
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*")
_FORM = "Write a host, as in example.org, *.example.com or git.example.com:443"


class HostPattern(Record):
    """One entry of a list of hosts. With `below` it matches all sub-domains of the name, but not the name itself."""

    name: str
    below: bool = False
    port: int | None = None
    """None matches every port."""

    def fits(self, host: str, port: int) -> bool:
        """Whether it matches a host in the form that `folded` returns."""
        is_named = host.endswith(f".{self.name}") if self.below else host == self.name
        return is_named and self.port in (None, port)


def host_pattern(text: str) -> HostPattern:
    """An entry of a list of hosts.

    Raises:
        ValueError: it is not a host; the text says why, and how to write one.
    """
    written = text.strip()
    if "://" in written:
        raise ValueError(f"{text!r} is the address of a page. {_FORM}, without scheme and path.")
    name, port = _split(written)
    below = name.startswith("*.")
    try:
        plain = folded(name.removeprefix("*."))
    except ValueError:
        raise ValueError(f"{text!r} is not a host. {_FORM}, without scheme and path.") from None
    if below and _is_address(plain):
        raise ValueError(f"{text!r} is not a host: an IP address has no sub-domains. {_FORM}.")
    return HostPattern(name=plain, below=below, port=port)


def _split(written: str) -> tuple[str, int | None]:
    """The name and the port of an entry; an IPv6 address with a port is in brackets."""
    if written.count(":") > 1 and not written.startswith("["):
        return written, None
    head, colon, digits = written.rpartition(":")
    if not colon or written.endswith("]"):
        return written, None
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and 0 < int(digits) <= _LARGEST_PORT):
        raise ValueError(
            f"{written!r} has no valid port after the colon: ports are from 1 to {_LARGEST_PORT}. {_FORM}."
        )
    return head, int(digits)


def folded(host: str) -> str:
    """A host in normal form, for comparison; addresses as Python writes them.

    Raises:
        ValueError: it is not a host, or too long for a name.
    """
    plain = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if len(plain) > _LONGEST + 1:
        raise ValueError("longer than a host name can be")
    try:
        return str(ipaddress.ip_address(plain))
    except ValueError:
        pass
    name = plain.removesuffix(".").lower()
    if not name.isascii():
        name = name.encode("idna").decode("ascii")  # UnicodeError is a ValueError
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ValueError("not a host name")
    return name


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class HostList:
    """The hosts that may be reached. Another thread can read it while one adds to it."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self._entries: dict[str, HostPattern] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: str) -> None:
        """Add an entry. Raises `ValueError` as `host_pattern` does."""
        self._entries = {**self._entries, entry.strip(): host_pattern(entry)}

    def entries(self) -> tuple[str, ...]:
        """The entries as they were written."""
        return tuple(self._entries)

    def allows(self, host: str, port: int) -> bool:
        """Whether an entry matches a host, in the form of `folded`, and this port."""
        return any(pattern.fits(host, port) for pattern in self._entries.values())
