"""HTTP clients: both transports behave the same; proxies, certificates and time-outs come from the settings."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from marvin_core.api.errors import ConfigError
from marvin_core.api.timeouts import Timeouts
from marvin_core.config.load import load
from marvin_core.http.client import HttpSettings, TlsContext, make_client
from marvin_core.http.clients import Clients
from marvin_core.http.connect import race
from marvin_core.testing import ModelServer, document, hang, hang_after, paced, raw, text
from tests.support.certificates import self_signed
from tests.support.chatting import TRANSPORTS, Transport

transports = pytest.mark.parametrize("transport", TRANSPORTS)


@asynccontextmanager
async def client_for(url: str = "", **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    silence, tls, wait = options.pop("silence", 50.0), options.pop("tls", None), options.pop("wait", 50.0)
    settings = HttpSettings(timeouts=Timeouts(http=wait), **options)
    async with make_client(settings, url, timeout_read=silence, tls=tls) as client:
        yield client


def post(server: ModelServer, *, content: bytes = b"{}", url: str = "", times: int = 1, **options: Any) -> list[str]:
    """The bodies of the answers to so many requests, one after the other on one client."""

    async def run() -> list[str]:
        async with client_for(url or server.url, **options) as client:
            return [(await client.post("/chat/completions", content=content)).text for _ in range(times)]

    return asyncio.run(run())


def in_new_process(code: str, folder: Path | None = None) -> str:
    """What the code prints; the modules of a folder can be imported by it."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
        timeout=150,
        env={"PYTHONPATH": str(folder)} if folder else {},
    )
    return done.stdout.strip()


# Start-up


def test_httpx_comes_without_its_command_line(tmp_path: Path) -> None:
    """Where click is installed httpx imports it, and rich and pygments with it, for its own command line."""
    (tmp_path / "click.py").write_text("print('click was imported')")
    load = """
        import sys
        from marvin_core.http.client import load_httpx
        load_httpx()
        import httpx
        assert httpx.AsyncClient and httpx.get
        print([name for name in ("click", "rich", "pygments") if name in sys.modules])
        """
    assert in_new_process(load, tmp_path) == "[]"
    assert "click was imported" in in_new_process("try: import httpx\nexcept Exception: pass", tmp_path)


def test_httpx_comes_without_compressions_that_nobody_asks_for(tmp_path: Path) -> None:
    """Programs of packs bring them, and each start would load their libraries; whoever wants them gets them."""
    for name in ("brotli", "zstandard"):
        (tmp_path / f"{name}.py").write_text(f"print('{name} was imported')")
    load = """
        import sys
        from marvin_core.http.client import load_httpx
        load_httpx()
        print([name for name in ("brotli", "brotlicffi", "zstandard") if name in sys.modules])
        import brotli
        """
    assert in_new_process(load, tmp_path) == "[]\nbrotli was imported"


def test_an_httpx_that_is_imported_already_is_left_alone() -> None:
    code = """
        import sys, httpx
        before = sys.modules.get("httpx._main", "absent")
        from marvin_core.http.client import load_httpx
        load_httpx()
        print(before is sys.modules.get("httpx._main", "absent"))
        """
    assert in_new_process(code) == "True"


def test_a_direct_request_over_http_loads_neither_the_stock_transport_nor_certificates() -> None:
    with ModelServer(text("Hi")) as server:
        out = in_new_process(
            f"""
            import asyncio, sys
            from marvin_core.http.client import HttpSettings, make_client

            def certificates():
                raise AssertionError("a TLS context for http://")

            async def run():
                async with make_client(HttpSettings(), timeout_read=50.0, tls=certificates) as client:
                    return (await client.post("{server.url}/chat/completions", content=b"{{}}")).status_code

            print(asyncio.run(run()), [name for name in ("httpcore", "anyio", "certifi") if name in sys.modules])
            """
        )
    assert out == "200 []"


# Both transports


@transports
def test_a_body_in_chunks_with_a_length_or_until_the_end(transport: Transport) -> None:
    body = "x" * 3_000_000
    for framing in ("chunked", "length", "close"):
        steps = tuple(body[start : start + 70_000].encode() for start in range(0, len(body), 70_000))
        with ModelServer(raw(b"").replace(steps=steps, framing=framing)) as server:
            assert post(server, transport=transport) == [body]


@transports
def test_a_slow_reader_gets_everything(transport: Transport) -> None:
    async def run(server: ModelServer) -> int:
        size = 0
        async with client_for(server.url, transport=transport) as client:
            async with client.stream("POST", "/chat/completions", content=b"{}") as response:
                async for data in response.aiter_bytes():
                    await asyncio.sleep(0.002)
                    size += len(data)
        return size

    with ModelServer(raw(b"x" * 20_000_000)) as server:
        assert asyncio.run(run(server)) == 20_000_000


@transports
def test_a_large_body_is_sent_whole(transport: Transport) -> None:
    content = b"y" * 10_000_000
    with ModelServer(text("Hi")) as server:
        post(server, content=content, transport=transport)
        assert server.requests[0].content == content


@transports
def test_a_compressed_body(transport: Transport) -> None:
    packed = raw(gzip.compress(b"hello" * 100), {"content-encoding": "gzip"})
    with ModelServer(packed) as server:
        assert post(server, transport=transport) == ["hello" * 100]


@transports
def test_a_name_with_several_addresses(transport: Transport) -> None:
    """`localhost` is ::1 as well on most machines, where nothing listens."""
    with ModelServer(text("Hi")) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        assert "Hi" in post(server, url=url, transport=transport)[0]


def test_connections_are_reused() -> None:
    """By Marvin's own transport: httpx's would take bytes behind the end of a response for the next one."""
    with ModelServer(text("a"), document({}), text("c")) as server:
        post(server, times=3)
        assert [asked.connection for asked in server.requests] == [1, 1, 1]


@transports
def test_an_answer_that_was_not_read_to_its_end_costs_its_connection(transport: Transport) -> None:
    async def run(server: ModelServer) -> None:
        async with client_for(server.url, transport=transport) as client:
            async with client.stream("POST", "/chat/completions", content=b"{}") as response:
                async for _ in response.aiter_bytes():
                    break
            assert (await client.post("/chat/completions", content=b"{}")).status_code == 200

    with ModelServer(hang_after(400, text("x" * 300, chunks=3)), text("b")) as server:
        asyncio.run(run(server))
        assert server.requests[0].gone.wait(50)
        assert [asked.connection for asked in server.requests] == [1, 2]


@transports
def test_requests_side_by_side(transport: Transport) -> None:
    async def run(server: ModelServer) -> list[int]:
        async with client_for(server.url, transport=transport) as client:
            ask = [client.post("/chat/completions", content=b"{}") for _ in range(4)]
            return [answer.status_code for answer in await asyncio.gather(*ask)]

    with ModelServer(*[paced(0.02, text("x"))] * 4) as server:
        assert asyncio.run(run(server)) == [200] * 4


@transports
def test_silence_raises_a_read_time_out(transport: Transport) -> None:
    for answer in (hang(), hang_after(100, text("x" * 300, chunks=3))):
        with ModelServer(answer) as server, pytest.raises(httpx.ReadTimeout):
            post(server, silence=0.2, transport=transport)


CHAT, CODING, TOOLS = (httpx.Timeout(30.0, read=read) for read in (180.0, 900.0, 30.0))


def clients_of(folder: Path, *argv: str, yaml: str = "") -> Clients:
    """The clients of a run that was started so, with nothing set in the environment."""
    (folder / "config.yaml").write_text(yaml, "utf-8")
    config, _ = load(list(argv), {"HOME": str(folder), "MARVIN_HOME": str(folder)}, cwd=folder)
    return Clients(config)


def test_a_chat_waits_180_s_for_a_silent_model_and_a_non_interactive_run_900_s(tmp_path: Path) -> None:
    """I31: whatever the service's URL; connecting takes no longer than for tools."""

    async def run(clients: Clients, expected: httpx.Timeout) -> None:
        for url in ("http://127.0.0.1:1/v1", "https://models.invalid/v1"):
            assert clients.for_model(url).timeout == expected
        assert clients.for_tools().timeout == TOOLS
        await clients.close()

    asyncio.run(run(clients_of(tmp_path), CHAT))
    asyncio.run(run(clients_of(tmp_path, "--plain"), CHAT))
    asyncio.run(run(clients_of(tmp_path, "--non-interactive", "--prompt", "Hi"), CODING))


@pytest.mark.parametrize("argv", [(), ("--non-interactive", "--prompt", "Hi")], ids=["chat", "non-interactive"])
def test_a_switch_of_the_mode_counts_for_the_clients_that_there_are_and_for_later_ones(
    argv: tuple[str, ...], tmp_path: Path
) -> None:
    """I31: tools wait as before."""

    async def run() -> None:
        clients = clients_of(tmp_path, *argv)
        plain, tools = clients.for_model("http://127.0.0.1:1/v1"), clients.for_tools()
        clients.patient(coding=True)
        secure = clients.for_model("https://models.invalid/v1")
        assert [client.timeout for client in (plain, secure, tools)] == [CODING, CODING, TOOLS]
        clients.patient(coding=False)
        assert [client.timeout for client in (plain, secure, tools)] == [CHAT, CHAT, TOOLS]
        assert clients.for_model("http://127.0.0.1:2/v1") is plain, "it is the client that providers have"
        await clients.close()

    asyncio.run(run())


def test_the_configuration_may_set_other_limits_for_silence(tmp_path: Path) -> None:
    async def run() -> None:
        clients = clients_of(tmp_path, yaml="timeouts: {model_idle: 20, model_idle_coding: 40.5}\n")
        client = clients.for_model("http://127.0.0.1:1/v1")
        assert client.timeout.read == 20.0
        clients.patient(coding=True)
        assert client.timeout.read == 40.5
        await clients.close()

    asyncio.run(run())


@contextmanager
def deaf_server(*, full: bool, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """A server that accepts no connection, with its queue of waiting ones full or not."""
    with socket.socket() as listener:
        listener.bind((host, port))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(3 if full else 0)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"http://{host}:{listener.getsockname()[1]}"
        for one in waiting:
            one.close()


@transports
def test_a_server_that_takes_no_connection(transport: Transport) -> None:
    async def run(url: str) -> None:
        async with client_for(url, wait=0.3, transport=transport) as client:
            await client.post("/")

    with deaf_server(full=True) as url, pytest.raises(httpx.ConnectTimeout):
        asyncio.run(run(url))


@transports
def test_a_server_that_reads_nothing(transport: Transport) -> None:
    async def run(url: str) -> None:
        async with client_for(url, wait=0.3, silence=30.0, transport=transport) as client:
            await client.post("/", content=b"z" * 50_000_000)

    with deaf_server(full=False) as url, pytest.raises(httpx.WriteTimeout):
        asyncio.run(run(url))


@transports
@pytest.mark.parametrize("url", ["http://no-such-host.invalid/", "http://127.0.0.1:1/"])
def test_nobody_there(transport: Transport, url: str) -> None:
    async def run() -> None:
        async with client_for(transport=transport) as client:
            await client.get(url)

    with pytest.raises(httpx.ConnectError):
        asyncio.run(run())


@asynccontextmanager
async def rude_server(said: bytes) -> AsyncIterator[str]:
    """A server that answers a request with these bytes and closes the connection."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(said)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@transports
@pytest.mark.parametrize("garbage", [b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"])
def test_a_server_that_does_not_speak_http(transport: Transport, garbage: bytes) -> None:
    async def run() -> None:
        async with rude_server(garbage) as url, client_for(transport=transport) as client:
            await client.get(url)

    with pytest.raises(httpx.RemoteProtocolError):
        asyncio.run(run())


@transports
def test_what_came_before_an_error_is_not_lost(transport: Transport) -> None:
    """Though both came in one read."""
    said = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nno length\r\n"
    seen: list[bytes] = []

    async def run() -> None:
        async with rude_server(said) as url, client_for(transport=transport) as client:
            async with client.stream("GET", url) as response:
                async for data in response.aiter_bytes():
                    seen.append(data)  # noqa: PERF401

    with pytest.raises(httpx.RemoteProtocolError):
        asyncio.run(run())
    assert b"".join(seen) == b"hello"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second loopback address")
def test_an_address_that_does_not_answer_costs_its_head_start_only() -> None:
    """A broken IPv6 must not cost the whole time-out."""

    async def run(port: int) -> None:
        _, writer = await asyncio.wait_for(race(["127.0.0.2", "127.0.0.1"], port, None, "", 0.05), 50)
        assert writer.get_extra_info("peername")[0] == "127.0.0.1"
        writer.close()

    with ModelServer() as server, deaf_server(full=True, host="127.0.0.2", port=server.port):
        asyncio.run(run(server.port))


def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """I21: only config reads it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere")
    for transport in TRANSPORTS:
        with ModelServer(text("Hi")) as server:
            assert "Hi" in post(server, transport=transport)[0]


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PEM file with a key and a certificate for 127.0.0.1 that signs itself."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def https_server(certificate: Path) -> Iterator[ModelServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with ModelServer(text("a"), text("b"), tls=context) as server:
        yield server


@transports
def test_https_with_certificates_of_ones_own(
    transport: Transport, https_server: ModelServer, certificate: Path
) -> None:
    tls = TlsContext(str(certificate))
    tls.start()
    answers = post(https_server, times=2, tls=tls.get, transport=transport)
    assert ["a" in answers[0], "b" in answers[1]] == [True, True]
    assert {asked.connection for asked in https_server.requests} == ({1} if transport == "direct" else {1, 2})


@transports
def test_an_unknown_certificate_is_refused(transport: Transport, https_server: ModelServer) -> None:
    with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
        post(https_server, tls=TlsContext().get, transport=transport)
    assert https_server.requests == []


@transports
def test_a_client_made_for_http_only_reaches_no_https(transport: Transport, https_server: ModelServer) -> None:
    with pytest.raises((httpx.ConnectError, httpx.UnsupportedProtocol)):
        post(https_server, tls=None, transport=transport)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_certificates_that_cannot_be_read(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match="ca_file") as raised:
        TlsContext(str(path)).get()
    assert str(path) in str(raised.value)


# Proxies


@transports
def test_requests_go_through_the_proxy(transport: Transport) -> None:
    with ModelServer(text("Hi")) as proxy:
        address = f"127.0.0.1:{proxy.port}"
        for given in (f"http://{address}", address):
            proxy.script(text("Hi"))
            answers = post(proxy, url="http://acme.example/v1", http_proxy=given, transport=transport)
            assert "Hi" in answers[0]
            assert proxy.requests[-1].path == "http://acme.example/v1/chat/completions"


def test_https_asks_the_proxy_for_a_tunnel() -> None:
    with ModelServer() as proxy:
        proxy_url = f"http://127.0.0.1:{proxy.port}"
        with pytest.raises(httpx.ProxyError):
            post(proxy, url="https://acme.example/v1", https_proxy=proxy_url, tls=TlsContext().get)


@pytest.mark.parametrize(
    ("no_proxy", "host"),
    [
        ("*", "127.0.0.1"),
        ("acme.example, 127.0.0.1", "127.0.0.1"),
        ("localhost", "localhost"),
        ("[::1],127.0.0.1", "127.0.0.1"),
        ("10.0.0.0/8,::1/128,fd00::/8,a b", "127.0.0.1"),
    ],
)
def test_hosts_that_are_reached_without_the_proxy(no_proxy: str, host: str) -> None:
    with ModelServer(text("Hi")) as server, ModelServer() as proxy:
        url, proxy_url = f"http://{host}:{server.port}/v1", f"http://127.0.0.1:{proxy.port}"
        assert "Hi" in post(server, url=url, http_proxy=proxy_url, no_proxy=no_proxy)[0]
        assert proxy.requests == []


@pytest.mark.parametrize("no_proxy", ["acme.invalid", ".acme.invalid", "*.acme.invalid", "http://api.acme.invalid"])
def test_sub_domains_are_reached_without_the_proxy(no_proxy: str) -> None:
    """No such host exists, so going there fails; going through the proxy would not."""
    with ModelServer(text("never")) as proxy:
        proxy_url = f"http://127.0.0.1:{proxy.port}"
        with pytest.raises(httpx.ConnectError):
            post(proxy, url="http://api.acme.invalid/", http_proxy=proxy_url, no_proxy=no_proxy)
        assert proxy.requests == []


def test_other_hosts_still_use_the_proxy() -> None:
    with ModelServer(text("Hi")) as proxy:
        proxy_url = f"http://127.0.0.1:{proxy.port}"
        post(proxy, url="http://badacme.example/", http_proxy=proxy_url, no_proxy="acme.example,10.0.0.1")
        assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    "proxy", ["gopher://me:hunter2@proxy.example", "socks5://me:hunter2@proxy.example:1080", "http://"]
)
def test_a_proxy_that_cannot_be_used(proxy: str) -> None:
    """I24: the URL of a proxy may hold a password."""
    with pytest.raises(ConfigError, match="http_proxy") as raised:
        make_client(HttpSettings(http_proxy=proxy), timeout_read=50.0, tls=None)
    assert "hunter2" not in str(raised.value)
