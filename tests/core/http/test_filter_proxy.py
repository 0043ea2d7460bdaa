"""The proxy that leads commands to the hosts they may reach: every way to ask it, and every way around it."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import ConfigError
from marvin_core.api.timeouts import Timeouts
from marvin_core.http.addresses import AddressGuard
from marvin_core.http.client import HttpSettings, TlsContext
from marvin_core.http.filter_proxy import FilterProxy
from marvin_core.http.outward import Outward, is_direct
from marvin_core.http.proxy_requests import parse_request
from marvin_core.util.patterns.hosts import HostList

GENEROUS = 50.0
OPEN = ("localhost", "127.0.0.1")
"""What the address guard lets pass here, so that there is something to reach."""


class Rig:
    """A proxy for some hosts, and a server behind it that says what it received."""

    def __init__(self, proxy: int, server: int, received: list[bytes], asked: list[tuple[str, int]]) -> None:
        self.proxy = proxy
        self.server = server
        self.received = received
        self.asked = asked

    async def say(self, *said: bytes) -> bytes:
        """What the proxy answers to these bytes, to the end of its connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy)
        for piece in said:
            writer.write(piece)
        writer.write_eof()
        try:
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()


@asynccontextmanager
async def rig(
    hosts: Sequence[str],
    *,
    addresses: Sequence[str] = OPEN,
    most: int = 20,
    timeout: float = GENEROUS,
    **settings: Any,
) -> AsyncIterator[Rig]:
    allowed = HostList(hosts)
    received: list[bytes] = []
    asked: list[tuple[str, int]] = []

    async def decide(host: str, port: int) -> str:
        asked.append((host, port))
        return "" if allowed.allows(host, port) else f"{host} is not allowed"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(65_536))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nserved")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    listener = socket.create_server(("127.0.0.1", 0))
    given_settings = HttpSettings(timeouts=Timeouts(http=GENEROUS), **settings)
    outward = Outward(given_settings, AddressGuard(addresses), TlsContext().get)
    proxy = FilterProxy(decide, outward, lambda host, port: None, timeout=timeout, most=most)
    await proxy.serve(listener)
    try:
        yield Rig(listener.getsockname()[1], server.sockets[0].getsockname()[1], received, asked)
    finally:
        await proxy.close()
        server.close()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(GENEROUS):
            await work()

    asyncio.run(limited())


def socks(host: bytes, port: int, *, command: int = 1, kind: int = 3, methods: bytes = b"\0") -> bytes:
    size = bytes([len(host)]) if kind == 3 else b""
    request = bytes([5, command, 0, kind]) + size + host + port.to_bytes(2, "big")
    return bytes([5, len(methods)]) + methods + request


# What may be reached.


def test_a_tunnel_passes_bytes_on_as_they_are() -> None:
    async def work() -> None:
        async with rig(["localhost"]) as one:
            said = await one.say(b"CONNECT LOCALHOST.:%d HTTP/1.1\r\n\r\n" % one.server, b"\0\r\n\xff not HTTP at all")
            assert said == b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n\r\nserved"
            assert one.received == [b"\0\r\n\xff not HTTP at all"]
            assert one.asked == [("localhost", one.server)]

    run(work)


def test_a_plain_request_reaches_its_host_without_what_is_between_the_program_and_the_proxy() -> None:
    async def work() -> None:
        async with rig(["localhost"]) as one:
            head = (
                b"POST http://localhost:%d/a?b#c HTTP/1.1\r\nHost: elsewhere.example\r\n"
                b"Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nX-Hop: 1\r\n"
                b"Connection: keep-alive, X-Hop\r\nContent-Length: 3\r\n\r\n"
            )
            assert (await one.say(head % one.server, b"xyz")).endswith(b"served")
            expected = b"POST /a?b HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 3\r\nConnection: close\r\n\r\nxyz"
            assert b"".join(one.received) in (expected % one.server, (expected % one.server)[:-3])

    run(work)


def test_socks_reaches_names_and_addresses() -> None:
    async def work() -> None:
        async with rig(OPEN) as one:
            for host, kind in ((b"localhost", 3), (b"127.0.0.1", 3), (bytes([127, 0, 0, 1]), 1)):
                said = await one.say(socks(host, one.server, kind=kind), b"hello")
                assert said == b"\5\0" + b"\5\0\0\1" + bytes(6) + b"HTTP/1.1 200 OK\r\n\r\nserved"
            assert one.received == [b"hello"] * 3

    run(work)


# What may not.


@pytest.mark.parametrize(
    "request_head",
    [
        b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n",
        b"CONNECT localhost.evil.example:443 HTTP/1.1\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example?localhost HTTP/1.1\r\n\r\n",
    ],
)
def test_another_host_is_refused_by_its_name(request_head: bytes) -> None:
    async def work() -> None:
        async with rig(["localhost"]) as one:
            said = await one.say(request_head)
            assert said.startswith(b"HTTP/1.1 403 Forbidden\r\n")
            assert b"evil.example is not allowed" in said
            assert not one.received

    run(work)


def test_an_allowed_name_that_leads_to_this_machine_is_refused() -> None:
    """A name may be looked up as anything: that of an allowed host, too, must not lead to what is private."""

    async def work() -> None:
        names = ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "::ffff:127.0.0.1", "169.254.169.254"]
        async with rig(names, addresses=()) as one:
            for name in names:
                shown = f"[{name}]" if ":" in name else name
                said = await one.say(f"CONNECT {shown}:{one.server} HTTP/1.1\r\n\r\n".encode())
                assert said.startswith(b"HTTP/1.1 403"), name
                assert b"private network" in said
                said = await one.say(socks(name.encode(), one.server))
                assert said[2:4] == b"\5\2", name
            assert not one.received

    run(work)


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET https://localhost/ HTTP/1.1\r\n\r\n",
        b"GET http://user@localhost/ HTTP/1.1\r\n\r\n",
        b"GET http://localhost\\@evil.example/ HTTP/1.1\r\n\r\n",
        b"GET http://localhost%00.evil.example/ HTTP/1.1\r\n\r\n",
        b"GET http://localhost:99999/ HTTP/1.1\r\n\r\n",
        b"GET http:///x HTTP/1.1\r\n\r\n",
        b"GET http://localhost/ HTTP/2\r\n\r\n",
        b"GET  http://localhost/ HTTP/1.1\r\n\r\n",
        b"GET http://localhost/ HTTP/1.1\r\nA: b\nHost: evil\r\n\r\n",
        b"GET http://localhost/ HTTP/1.1\r\n folded: x\r\n\r\n",
        b"GET http://localhost/\0 HTTP/1.1\r\n\r\n",
        b"G\xffT http://localhost/ HTTP/1.1\r\n\r\n",
        b"CONNECT localhost HTTP/1.1\r\n\r\n",
        b"CONNECT localhost:0 HTTP/1.1\r\n\r\n",
        b"CONNECT :443 HTTP/1.1\r\n\r\n",
        b"CONNECT http://localhost:443 HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_for_a_proxy_reaches_nobody(head: bytes) -> None:
    async def work() -> None:
        async with rig(["localhost"]) as one:
            assert (await one.say(head)).startswith(b"HTTP/1.1 400 ")
            assert not one.asked

    run(work)


@given(st.binary(max_size=200))
def test_any_head_is_a_request_or_an_error(data: bytes) -> None:
    plain, tunnel = b"GET http://" + data + b" HTTP/1.1", b"CONNECT " + data + b":1 HTTP/1.1"
    for head in (data, plain, tunnel, b"GET http://a/ HTTP/1.1\r\n" + data):
        try:
            request = parse_request(head + b"\r\n\r\n")
        except ValueError:
            continue
        sent = request.head()
        assert sent.count(b"\r\n\r\n") == 1
        assert sent.lower().count(b"\r\nhost:") == 1


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (socks(b"evil.example", 443), b"\5\2"),
        (socks(b"localhost", 80, command=2), b"\5\7"),
        (socks(b"localhost", 80, command=3), b"\5\7"),
        (socks(b"localhost", 80, kind=9), b"\5\x08"),
        (socks(b"local\0host", 80), b"\5\x08"),
        (socks(b"localhost", 0), b"\5\x08"),
        (socks(b"localhost", 80, methods=b"\2"), b""),
    ],
)
def test_what_socks_refuses(said: bytes, code: bytes) -> None:
    async def work() -> None:
        async with rig(["localhost"]) as one:
            assert (await one.say(said))[2:4] == code
            assert not one.received

    run(work)


# Bounds.


def test_a_head_without_end_is_refused() -> None:
    async def work() -> None:
        async with rig(["localhost"]) as one:
            said = await one.say(b"GET http://localhost/ HTTP/1.1\r\n", b"a: b\r\n" * 20_000)
            assert said == b"" or said.startswith(b"HTTP/1.1 431 ")  # what is unread may break the connection off
            assert not one.asked

    run(work)


def test_who_never_says_what_it_wants_is_left() -> None:
    async def work() -> None:
        async with rig(["localhost"], timeout=0.05) as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.proxy)
            writer.write(b"CONNECT loc")
            assert await reader.read() == b""
            writer.close()

    run(work)


def test_no_more_connections_at_a_time_than_allowed() -> None:
    async def work() -> None:
        async with rig(["localhost"], most=3) as one:
            held = [await asyncio.open_connection("127.0.0.1", one.proxy) for _ in range(3)]
            tunnel = b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % one.server
            for reader, writer in held:
                writer.write(tunnel)
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            assert await one.say(tunnel, b"x") == b""
            for _, writer in held:
                writer.close()
            while not await one.say(tunnel, b"x"):  # the ends of the others have to be noticed first
                pass

    run(work)


def test_an_end_on_one_side_lets_the_other_one_finish() -> None:
    async def work() -> None:
        async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert await reader.read() == b"all of it"  # to the end that the program sent
            writer.write(b"answered")
            writer.close()

        async with rig(["localhost"]) as one, await asyncio.start_server(late, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert (await one.say(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % port, b"all of it")).endswith(b"answered")

    run(work)


def test_nothing_is_left_when_it_is_closed() -> None:
    async def work() -> None:
        async with rig(["localhost"]) as one:
            reader, writer = await asyncio.open_connection("127.0.0.1", one.proxy)
            writer.write(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % one.server)
            await reader.readuntil(b"\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", one.proxy)

    run(work)


def test_an_unreachable_host_is_told() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        async with rig(["localhost", "no-such-name.invalid"]) as one:
            for host in ("localhost", "no-such-name.invalid"):
                said = await one.say(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
                assert said.startswith(b"HTTP/1.1 502 "), said
                assert b"could not be reached" in said

    run(work)


# By way of the user's own proxy.


def test_what_is_allowed_goes_on_to_the_users_proxy() -> None:
    async def work() -> None:
        heads: list[bytes] = []

        async def next_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            if heads[-1].startswith(b"CONNECT"):
                writer.write(await reader.read(100))
            writer.close()

        async with await asyncio.start_server(next_proxy, "127.0.0.1", 0) as server:
            url = f"http://me:se%20cret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
            hosts = ["far.invalid-but-asked.example", "localhost"]
            async with rig(hosts, http_proxy=url, https_proxy=url, no_proxy="") as one:
                said = await one.say(f"CONNECT {hosts[0]}:443 HTTP/1.1\r\n\r\n".encode(), b"echo")
                assert said.endswith(b"echo")
                await one.say(f"GET http://{hosts[0]}/x HTTP/1.1\r\n\r\n".encode())
                login = b"Proxy-Authorization: Basic " + base64.b64encode(b"me:se cret")
                assert heads[0].startswith(f"CONNECT {hosts[0]}:443 HTTP/1.1\r\n".encode())
                assert heads[1].startswith(f"GET http://{hosts[0]}:80/x HTTP/1.1\r\n".encode())
                assert all(login in head for head in heads)
                # This machine is reached without it, and what is refused reaches neither.
                assert (await one.say(b"CONNECT localhost:%d HTTP/1.1\r\n\r\n" % one.server, b"x")).endswith(b"served")
                assert (await one.say(b"CONNECT other.example:443 HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 403")
                assert len(heads) == 2

    run(work)


def test_what_the_users_proxy_refuses_is_told() -> None:
    async def work() -> None:
        async def next_proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(next_proxy, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with rig(["a.example"], https_proxy=url) as one:
                said = await one.say(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
                assert said.startswith(b"HTTP/1.1 502 ")
                assert b"407 Proxy Authentication Required" in said

    run(work)


@pytest.mark.parametrize("url", ["socks5://h:1", "http://", "http://me:secret@:1", "http://h:99999"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_setting(url: str) -> None:
    with pytest.raises(ConfigError, match="https_proxy") as failure:
        Outward(HttpSettings(https_proxy=url), AddressGuard(), TlsContext().get)
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize(
    ("host", "no_proxy", "direct"),
    [
        ("a.example", "", False),
        ("a.example", "*", True),
        ("a.example", "b.example, a.example", True),
        ("x.a.example", "a.example", True),
        ("x.a.example", ".a.example", True),
        ("x.a.example", "*.a.example", True),
        ("xa.example", "a.example", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("::1", "[::1]", True),
        ("a.example", "10.0.0.0/8,::/0", False),
    ],
)
def test_which_hosts_are_reached_without_it(host: str, no_proxy: str, direct: bool) -> None:
    assert is_direct(host, no_proxy) == direct
