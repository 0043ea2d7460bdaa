"""What is said of a connection that fails, and of an answer that is none: what happened, and what to do."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path

import pytest

from marvin_core.api.errors import ProviderError, StreamBroken, Unreachable
from marvin_core.api.providers import ClientFactory, Endpoint
from marvin_core.http.client import HttpSettings, TlsContext, make_client
from marvin_core.providers.chat_completions.provider import ChatCompletions
from marvin_core.providers.http.provider import HttpProvider
from marvin_core.providers.ollama.provider import Ollama
from tests.support.certificates import self_signed
from tests.support.chatting import TIMEOUTS, TRANSPORTS, Transport, answer_of, endpoint

transports = pytest.mark.parametrize("transport", TRANSPORTS)


@contextmanager
def raw_server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of a server that does this with each connection, and then closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with suppress(OSError), connection:
                    connection.settimeout(50)
                    serve(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def failure(
    url: str, transport: Transport, create: Callable[[Endpoint, ClientFactory], HttpProvider] = ChatCompletions
) -> ProviderError:
    async def run() -> ProviderError:
        settings = HttpSettings(transport=transport, timeouts=TIMEOUTS)
        tls = TlsContext()
        made = create(endpoint(url), lambda: make_client(settings, timeout_read=50.0, tls=tls.get))
        async with aclosing(made) as provider:
            with pytest.raises(ProviderError) as raised:
                await answer_of(provider)
            return raised.value

    return asyncio.run(run())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls"))


@transports
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_a_server_that_speaks_only_old_tls(transport: Transport, certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1

    def serve(connection: socket.socket) -> None:
        context.wrap_socket(connection, server_side=True).close()

    with raw_server(serve) as port:
        found = failure(f"https://127.0.0.1:{port}/v1", transport)
    assert isinstance(found, Unreachable)
    assert "The server supports only old, insecure versions of TLS. It needs TLS 1.2 or newer" in str(found)
    assert "Is the server running?" not in str(found)


@transports
def test_a_server_that_speaks_no_tls(transport: Transport) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")

    with raw_server(serve) as port:
        for create in (ChatCompletions, Ollama):
            found = failure(f"https://127.0.0.1:{port}/v1", transport, create)
            assert isinstance(found, Unreachable)
            assert "The server does not use TLS. Correct the base URL: http:// instead of https://" in str(found)
            assert "running?" not in str(found)


@transports
@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_server_that_hangs_up_while_tls_begins(transport: Transport, how: str) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(65_536)
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")

    with raw_server(serve) as port:
        found = failure(f"https://127.0.0.1:{port}/v1", transport)
    assert isinstance(found, Unreachable)
    assert "Is the server running?" not in str(found)
    assert "ConnectError" not in str(found)
    assert "TLS" in str(found)


@transports
@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
    ],
    ids=["chunk", "length", "no HTTP"],
)
def test_an_answer_that_is_no_http_is_not_called_none(transport: Transport, answer: bytes) -> None:
    def serve(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(answer)

    with raw_server(serve) as port:
        found = failure(f"http://127.0.0.1:{port}/v1", transport)
    assert isinstance(found, StreamBroken)
    assert " gave no usable answer: " in str(found)
    assert str(found).endswith(". Try again.")
