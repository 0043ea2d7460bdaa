"""Every wire format through proxies and with certificate authorities of one's own, as the environment sets them."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

from marvin_core import testing
from marvin_core.api.errors import ProviderError, Unreachable
from marvin_core.api.providers import Endpoint, Provider, Secret
from marvin_core.http.clients import Clients
from marvin_core.providers.codex.tokens import TokenFile, Tokens
from marvin_core.providers.selection.catalog import WIRES
from marvin_core.testing import Answer, ModelServer
from tests.support import answers_anthropic, answers_ollama, answers_responses
from tests.support.chatting import TIMEOUTS, answer_of, text_of
from tests.support.engine import settled

ANSWERS: dict[str, Callable[..., Answer]] = {
    "chat-completions": testing.text,
    "messages": answers_anthropic.text,
    "responses": answers_responses.text,
    "codex": answers_responses.text,
    "ollama": answers_ollama.text,
}
HOST = "models.test"
wires = pytest.mark.parametrize("wire", sorted(ANSWERS))
ELSEWHERE = {"copilot", "local"}
"""Copilot's program makes its own connections, with the variables of its environment; `local` makes none."""


def test_every_wire_format_is_tried_here() -> None:
    assert ANSWERS.keys() == WIRES.keys() - ELSEWHERE


class Asked(NamedTuple):
    """An answer, or why there was none."""

    text: str
    failure: ProviderError | None


def ask(wire: str, base_url: str, folder: Path, env: dict[str, str], yaml: str = "") -> Asked:
    """One answer from the service at an address, with these variables set."""
    config, _ = settled(folder, env=env, yaml=yaml)
    module, _, factory = WIRES[wire].partition(":")
    key = Secret("sk-0123456789")
    endpoint = Endpoint(
        provider="acme", base_url=base_url, model="m", key=key, key_hint="ACME_KEY", profile_folder=folder
    )
    TokenFile(folder, TIMEOUTS).save(Tokens(access=key, refresh=Secret("unused"), account="", auth_url=""))

    async def run() -> Asked:
        clients = Clients(config)
        clients.expect(base_url)
        made: Provider = getattr(import_module(module), factory)(endpoint, lambda: clients.for_model(base_url))
        try:
            return Asked(text_of(await answer_of(made)), None)
        except ProviderError as failure:
            return Asked("", failure)
        finally:
            await clients.close()

    return asyncio.run(run())


class Tunnels:
    """A proxy that opens tunnels, all of them to one port of this machine; `asked` is what it was asked for.

    With `refusal` it answers that instead.
    """

    def __init__(self, port: int, refusal: bytes) -> None:
        self.asked: list[str] = []
        self._target = port
        self._refusal = refusal
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop, and cut every tunnel."""
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        head = b""
        with suppress(OSError):
            while not head.endswith(b"\r\n\r\n"):
                head += client.recv(1)
            self.asked.append(head.split(b"\r\n")[0].decode())
            if self._refusal:
                client.sendall(self._refusal)
                return
            target = socket.create_connection(("127.0.0.1", self._target))
            self._open.append(target)
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            threading.Thread(target=_pump, args=(target, client), daemon=True).start()
            _pump(client, target)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def tunnel(port: int, refusal: bytes = b"") -> Iterator[tuple[str, list[str]]]:
    """Such a proxy: its address, and what it was asked for."""
    proxy = Tunnels(port, refusal)
    try:
        yield proxy.url, proxy.asked
    finally:
        proxy.close()


class Authority(NamedTuple):
    """The certificate of an authority of one's own, and a server's that it signed."""

    certificate: Path
    server: ssl.SSLContext


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("authority")
    (folder / "san.txt").write_text(f"subjectAltName=DNS:{HOST},IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for line in (
        f"req -x509 {key} -days 2 -subj /CN=Authority -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.pem",
        f"req {key} -subj /CN={HOST} -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san.txt -out server.pem",
    ):
        subprocess.run([program, *line.split()], cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")
    return Authority(folder / "ca.pem", context)


@wires
def test_through_an_http_proxy(wire: str, tmp_path: Path) -> None:
    with ModelServer(ANSWERS[wire]("Hi")) as proxy:
        env = {"HTTP_PROXY": f"http://127.0.0.1:{proxy.port}"}
        assert ask(wire, f"http://{HOST}/v1", tmp_path, env).text == "Hi"
        assert proxy.requests[0].path.startswith(f"http://{HOST}/")


@wires
@pytest.mark.parametrize("transport", ["direct", "stock"])
def test_through_a_tunnel_with_tls_and_an_authority_of_ones_own(
    wire: str, transport: str, authority: Authority, tmp_path: Path
) -> None:
    """The proxy carries the connection and does not see into it."""
    with ModelServer(ANSWERS[wire]("Hi"), tls=authority.server) as server, tunnel(server.port) as (proxy, asked):
        env = {"HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(authority.certificate)}
        assert ask(wire, f"https://{HOST}/v1", tmp_path, env, f"transport: {transport}\n").text == "Hi"
        assert set(asked) == {f"CONNECT {HOST}:443 HTTP/1.1"}
        assert (
            len(
                [
                    asked
                    for asked in server.requests
                    if asked.path.endswith(("/api/chat", "/completions", "/messages", "/responses"))
                ]
            )
            == 1
        )


@wires
def test_no_proxy_leads_past_it(wire: str, authority: Authority, tmp_path: Path) -> None:
    """To a host that does not exist, so that going there fails; the proxy is not asked."""
    with tunnel(1) as (proxy, asked):
        env = {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "NO_PROXY": "other.test, .no-such-host.invalid"}
        for scheme in ("http", "https"):
            failure = ask(wire, f"{scheme}://api.no-such-host.invalid/v1", tmp_path, env).failure
            assert isinstance(failure, Unreachable)
        assert asked == []


@wires
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_never_reached_through_a_proxy(wire: str, host: str, tmp_path: Path) -> None:
    """A proxy elsewhere has no way to a model that runs here."""
    with ModelServer(ANSWERS[wire]("Hi")) as server, tunnel(1) as (proxy, asked):
        env = {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy}
        assert ask(wire, f"http://{host}:{server.port}/v1", tmp_path, env).text == "Hi"
        assert asked == []


@wires
@pytest.mark.parametrize("setting", ["SSL_CERT_FILE", "ca_file"])
def test_tls_with_an_authority_of_ones_own(wire: str, setting: str, authority: Authority, tmp_path: Path) -> None:
    env = {"SSL_CERT_FILE": str(authority.certificate)} if setting == "SSL_CERT_FILE" else {}
    yaml = "" if env else f"ca_file: {authority.certificate}\n"
    with ModelServer(ANSWERS[wire]("Hi"), tls=authority.server) as server:
        assert ask(wire, f"https://127.0.0.1:{server.port}/v1", tmp_path, env, yaml).text == "Hi"


@wires
@pytest.mark.parametrize("through_proxy", [False, True])
def test_an_unknown_authority_is_refused_with_what_to_set(
    wire: str, through_proxy: bool, authority: Authority, tmp_path: Path
) -> None:
    with ModelServer(ANSWERS[wire]("Hi"), tls=authority.server) as server, tunnel(server.port) as (proxy, _):
        env = {"HTTPS_PROXY": proxy} if through_proxy else {}
        host = HOST if through_proxy else f"127.0.0.1:{server.port}"
        failure = ask(wire, f"https://{host}/v1", tmp_path, env).failure
        assert isinstance(failure, Unreachable)
        assert server.requests == []
    assert "certificate" in str(failure)
    assert "SSL_CERT_FILE" in str(failure)
    assert "ca_file" in str(failure)


@wires
def test_a_proxy_that_refuses_says_so(wire: str, tmp_path: Path) -> None:
    with tunnel(1, b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n") as (proxy, _):
        failure = ask(wire, f"https://{HOST}/v1", tmp_path, {"HTTPS_PROXY": proxy}).failure
    assert isinstance(failure, Unreachable)
    assert "407" in str(failure)
    assert "proxy" in str(failure)


@wires
def test_a_proxy_that_is_not_there_says_so(wire: str, tmp_path: Path) -> None:
    """I24: and does not show the password that its address may hold."""
    env = {"HTTPS_PROXY": "http://me:hunter2@127.0.0.1:1", "HTTP_PROXY": "http://me:hunter2@127.0.0.1:1"}
    for scheme in ("http", "https"):
        failure = ask(wire, f"{scheme}://{HOST}/v1", tmp_path, env).failure
        assert isinstance(failure, Unreachable)
        assert "proxy" in str(failure)
        assert "hunter2" not in str(failure)
