"""Which addresses tools may reach: what is private or this machine is refused in every spelling and at every step."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import AddressRefused
from marvin_core.config.load import load
from marvin_core.http.addresses import AddressGuard, is_public
from marvin_core.http.clients import Clients
from marvin_core.testing import Answer, ModelServer, document, raw, text

REFUSED = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "100.64.0.1", "100.127.255.255", "192.0.0.192", "198.18.0.1", "224.0.0.1", "239.255.255.250"),
    *("240.0.0.1", "255.255.255.255", "192.0.2.1", "203.0.113.9", "192.88.99.1"),
    *("::1", "::", "fe80::1", "fe80::1%lo", "fc00::1", "fd12:3456::1", "ff02::1", "fec0::1", "::ffff:127.0.0.1"),
    *("::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("64:ff9b:1::1", "2002:7f00:1::1", "2002:a00:1::", "2001::1", "2001:db8::1", "3fff::1", "100::1", "5f00::1"),
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450::1"]
PUBLIC += ["::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"]
SPELLINGS = ["127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "0", "[::ffff:127.0.0.1]"]
SPELLINGS += ["localhost", "LOCALHOST.", "[::1]", "127.0.0.1"]


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_not_of_the_public_internet(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(AddressRefused, match="allow_addresses"):
        AddressGuard().check("somewhere.example", 80, ["8.8.8.8", address])


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_of_the_public_internet(address: str) -> None:
    AddressGuard().check("somewhere.example", 80, [address])


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_as_itself(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    for outer in (
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x0064FF9B << 96) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1),
    ):
        assert is_public(outer) == is_public(inner)


@given(st.ip_addresses())
def test_whatever_python_calls_private_is_refused(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        embedded = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
        assert embedded or not is_public(address)


@pytest.mark.parametrize(
    ("allowed", "host", "address"),
    [
        ("10.1.0.0/16", "intranet.example", "10.1.2.3"),
        ("10.1.2.3", "intranet.example", "10.1.2.3"),
        ("10.1.0.0/16", "intranet.example", "::ffff:10.1.2.3"),
        ("fd00::/8", "intranet.example", "fd00::5"),
        ("[::1]", "::1", "::1"),
        ("intranet.example", "Intranet.Example.", "10.9.9.9"),
        ("intranet.example", "wiki.intranet.example", "10.9.9.9"),
        ("*.intranet.example", "wiki.intranet.example", "10.9.9.9"),
        (" localhost ", "localhost", "127.0.0.1"),
    ],
)
def test_what_the_configuration_allows(allowed: str, host: str, address: str) -> None:
    guard = AddressGuard([allowed])
    guard.check(host, 80, [address])
    guard.check_behind_proxy(host, 80) if host in ("localhost", "::1") else None
    with pytest.raises(AddressRefused):
        guard.check("elsewhere.example", 80, ["10.9.9.8"])


def test_the_server_of_a_setting_is_reached_on_its_own_port_only() -> None:
    guard = AddressGuard()
    for url in ("http://localhost:8080/base", "https://box.lan", "no url", "http://[::1", ""):
        guard.trust(url)
    guard.check("localhost", 8080, ["127.0.0.1"])
    guard.check("box.lan", 443, ["192.168.0.9"])
    for host, port in (("localhost", 80), ("box.lan", 80), ("127.0.0.1", 8080)):
        with pytest.raises(AddressRefused):
            guard.check(host, port, ["127.0.0.1"])


@pytest.mark.parametrize("host", [*(one.strip("[]") for one in SPELLINGS), "printer", "nas.local", "metadata.internal"])
def test_a_proxy_is_not_asked_for_what_is_private(host: str) -> None:
    """A name that this machine does not know is left to the proxy, unless it is one of a private network."""
    with pytest.raises(AddressRefused):
        AddressGuard().check_behind_proxy(host, 80)
    AddressGuard().check_behind_proxy("no-such-host.invalid", 80)


# The clients


def client_of(folder: Path, yaml: str = "", **env: str) -> tuple[Clients, httpx.AsyncClient]:
    (folder / "config.yaml").write_text(yaml, "utf-8")
    config, _ = load([], {"HOME": str(folder), "MARVIN_HOME": str(folder), **env}, cwd=folder)
    clients = Clients(config)
    return clients, clients.for_tools()


def get(folder: Path, url: str, yaml: str = "", **env: str) -> str:
    async def run() -> str:
        clients, client = client_of(folder, yaml, **env)
        try:
            return (await client.get(url, follow_redirects=True)).text
        finally:
            await clients.close()

    return asyncio.run(run())


@pytest.mark.parametrize("transport", ["direct", "stock"])
@pytest.mark.parametrize("host", SPELLINGS)
def test_tools_do_not_reach_this_machine(tmp_path: Path, host: str, transport: str) -> None:
    with ModelServer() as server:
        # Some spellings are no address at all here.
        with pytest.raises(
            (AddressRefused, httpx.ConnectError, httpx.InvalidURL), match=r"allow_addresses|known|Invalid"
        ):
            get(tmp_path, f"http://{host}:{server.port}/v1/models", f"transport: {transport}\n")
        assert server.requests == []


def test_a_redirect_to_this_machine_is_not_followed(tmp_path: Path) -> None:
    with ModelServer() as inner, Redirects(f"http://127.0.0.1:{inner.port}/v1/models") as outer:
        with pytest.raises(AddressRefused):
            get(tmp_path, f"http://localhost:{outer.port}/", "allow_addresses: [localhost]\n")
        assert (len(outer.requests), inner.requests) == (1, [])


def test_an_address_that_is_allowed_is_reached(tmp_path: Path) -> None:
    for yaml in ("allow_addresses: [127.0.0.0/8]\n", "allow_addresses: [127.0.0.1]\n"):
        with ModelServer() as server:
            assert "scripted" in get(tmp_path, f"http://127.0.0.1:{server.port}/v1/models", yaml)


def test_behind_a_proxy_private_hosts_are_refused_here(tmp_path: Path) -> None:
    with ModelServer(text("never")) as proxy:
        for host in ("10.0.0.1", "169.254.169.254", "0xa000001", "nas.local"):
            with pytest.raises(AddressRefused):
                get(tmp_path, f"http://{host}/", HTTP_PROXY=f"http://127.0.0.1:{proxy.port}")
        assert proxy.requests == []
        get(tmp_path, "http://no-such-host.invalid/", HTTP_PROXY=f"http://127.0.0.1:{proxy.port}")
        assert [asked.path for asked in proxy.requests] == ["http://no-such-host.invalid/"]


def test_model_services_of_the_user_are_reached_wherever_they_are(tmp_path: Path) -> None:
    async def run(url: str) -> str:
        clients, _ = client_of(tmp_path)
        try:
            return (await clients.for_model(url).get(f"{url}/models")).text
        finally:
            await clients.close()

    with ModelServer() as server:
        assert "scripted" in asyncio.run(run(server.url))


# What tools read is bounded


def read(folder: Path, answer: Answer, yaml: str, extensions: Sequence[tuple[str, str]] = ()) -> bytes:
    async def run(url: str) -> bytes:
        clients, client = client_of(folder, f"allow_addresses: [127.0.0.1]\n{yaml}")
        try:
            return (await client.post(url, extensions=dict(extensions))).content
        finally:
            await clients.close()

    with ModelServer(answer) as server:
        return asyncio.run(run(server.url))


def test_a_body_has_a_limit(tmp_path: Path) -> None:
    from marvin_core.api.errors import ToolError

    body = document({"a": "x" * 1000})
    assert len(read(tmp_path, body, "limits: {body: 2000}")) > 1000
    with pytest.raises(ToolError, match=r"more than 900 bytes.*limits\.body"):
        read(tmp_path, body, "limits: {body: 900}")
    assert len(read(tmp_path, body, "limits: {body: 900}", [("marvin_body", "raw")])) > 1000
    with pytest.raises(ToolError, match=r"limits\.download"):
        read(tmp_path, body, "limits: {download: 900}", [("marvin_body", "raw")])


class Redirects(ModelServer):
    def __init__(self, target: str) -> None:
        self._target = target
        super().__init__()

    def answer_to(self, request: object) -> Answer:
        """A redirect, whatever is asked for."""
        return Answer(status=302, headers=(("location", self._target),), framing="length")


@pytest.mark.parametrize("extensions", [{}, {"marvin_body": "raw"}], ids=["read", "raw"])
def test_the_body_of_a_redirect_is_not_gathered(tmp_path: Path, extensions: dict[str, str]) -> None:
    """The library reads and keeps it, so that a redirect without an end would fill the memory of any tool."""

    async def run(url: str) -> httpx.Response:
        clients, client = client_of(tmp_path, "allow_addresses: [127.0.0.1]\nlimits: {body: 90000, download: 90000}\n")
        try:
            return await client.post(url, follow_redirects=True, extensions=extensions)
        finally:
            await clients.close()

    moved = raw(b"x" * 1_000_000, {"location": "/there"}, status=302)
    with ModelServer(moved) as server:
        response = asyncio.run(run(server.url))
    assert response.url.path == "/there"
    assert [len(passed.content) < 90_000 for passed in response.history] == [True]


def test_parts_of_a_compressed_body_are_counted(tmp_path: Path) -> None:
    """Empty ones add nothing to what is read, however many come."""
    empty = gzip.compress(b"")
    headers = {"content-encoding": "gzip", "content-type": "text/plain"}
    assert read(tmp_path, raw(empty * 5_000 + gzip.compress(b"end"), headers), "") == b"end"
    with pytest.raises(httpx.DecodingError, match="parts"):
        read(tmp_path, raw(empty * 50_000, headers), "")
