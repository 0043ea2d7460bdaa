"""Requests of programs to a proxy: tunnels and plain requests of HTTP, and connections of SOCKS 5."""

from __future__ import annotations

import re

from ..api.record import Record
from ..util.patterns.hosts import folded

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSAFE = re.compile(rb"[\x00\r\n]")
_LARGEST_PORT = 65_535
# Headers of one connection and not of the request: RFC 9110, section 7.6.1. `Transfer-Encoding` and `Trailer` stay,
# since the body is forwarded unchanged.
_OF_CONNECTION = {b"connection", b"proxy-connection", b"keep-alive", b"te", b"upgrade", b"host"}
_OF_PROXY = (b"proxy-authorization", b"proxy-authenticate")


class ProxyRequest(Record):
    """The request of a program to a proxy. `host` is in normal form.

    `method`, `target` and `headers` are empty for a tunnel. The target is the path; the headers lack those that are
    only for the proxy.
    """

    host: str
    port: int
    method: bytes = b""
    target: bytes = b""
    headers: tuple[bytes, ...] = ()

    @property
    def is_tunnel(self) -> bool:
        """Whether bytes are forwarded unchanged."""
        return not self.method

    @property
    def authority(self) -> str:
        """The host and the port, as in a URL."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def head(self, *, to_proxy: bool = False, authorization: str = "") -> bytes:
        """The head of a plain request for the host itself, or for the next proxy."""
        start = f"http://{self.authority}".encode() if to_proxy else b""
        host = self.authority.removesuffix(":80").encode()
        lines = [b"%s %s%s HTTP/1.1" % (self.method, start, self.target), b"Host: " + host, *self.headers]
        lines += [f"Proxy-Authorization: {authorization}".encode()] if authorization else []
        # One request for each connection: the next one could be for another host.
        return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def parse_request(head: bytes) -> ProxyRequest:
    """A request from its head, including the empty line.

    Raises:
        ValueError: a proxy cannot forward it; the text says why.
    """
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if any(_UNSAFE.search(line) for line in (first, *lines)):
        raise ValueError("its head contains a control character")
    method, target, version = [*first.split(b" "), b"", b"", b""][:3]
    if first.count(b" ") != 2 or not _TOKEN.fullmatch(method) or not version.startswith(b"HTTP/1."):
        raise ValueError("its first line is not valid HTTP/1.1")
    if method == b"CONNECT":
        host, port = _authority(target, None)
        return ProxyRequest(host=host, port=port)
    if not target[:7].lower() == b"http://":
        raise ValueError("a proxy accepts CONNECT, or a full address that begins with http://")
    rest = target[7:].partition(b"#")[0]
    end = min((at for mark in b"/?" if (at := rest.find(mark)) >= 0), default=len(rest))
    host, port = _authority(rest[:end], 80)
    path = rest[end:] if rest[end : end + 1] == b"/" else b"/" + rest[end:]
    return ProxyRequest(host=host, port=port, method=method, target=path, headers=_passed_on(lines))


def _passed_on(lines: list[bytes]) -> tuple[bytes, ...]:
    named = set(_OF_CONNECTION)
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name):
            raise ValueError("one of its headers has no name")
        if name.lower() == b"connection":
            # Without its length, a request would end elsewhere than its sender means.
            named.update(part.strip().lower() for part in value.split(b","))
    named -= {b"content-length", b"transfer-encoding"}
    named.update(_OF_PROXY)
    return tuple(line for line in lines if line.partition(b":")[0].lower() not in named)


def _authority(text: bytes, default: int | None) -> tuple[str, int]:
    """The host in normal form, and the port. Only ASCII is valid here: names in other scripts begin with `xn--`."""
    found = re.fullmatch(rb"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", text)
    if found is None or (found[2] is None and default is None):
        raise ValueError("it has no host and port")
    port = int(found[2]) if found[2] is not None else default or 0
    return folded(found[1].decode()), checked_port(port)


def checked_port(port: int) -> int:
    """The port. Raises `ValueError` if it is invalid."""
    if not 0 < port <= _LARGEST_PORT:
        raise ValueError("it has no port")
    return port
