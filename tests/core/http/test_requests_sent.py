"""What Marvin's own transport sends, against httpx's: the same requests, one after another on one connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from marvin_core.http.connect import Dialer
from marvin_core.http.transport import DirectTransport

Sent = tuple[bytes, list[bytes], bytes]


def ours() -> httpx.AsyncBaseTransport:
    return DirectTransport(None, Dialer(0.25), keep_alive=50.0)


def theirs() -> httpx.AsyncBaseTransport:
    return httpx.AsyncHTTPTransport(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), trust_env=False)


async def in_pieces() -> AsyncIterator[bytes]:
    for number in range(3):
        yield b"piece %d\n" % number


def requests(client: httpx.AsyncClient, url: str) -> list[httpx.Request]:
    """Requests that resemble the one before, and that differ in each part of their head."""
    key = {"authorization": "Bearer one"}
    return [
        client.build_request("POST", f"{url}/a", content=b"x" * 10, headers=key),
        client.build_request("POST", f"{url}/a", content=b"x" * 200_000, headers=key),
        client.build_request("POST", f"{url}/a", content=b"Content-Length: 7\r\n\r\n", headers=key),
        client.build_request("POST", f"{url}/a", content=b"", headers=key),
        client.build_request("POST", f"{url}/a", content=b"x", headers={"authorization": "Bearer two"}),
        client.build_request("POST", f"{url}/b", content=b"x", headers={"authorization": "Bearer two"}),
        client.build_request("PUT", f"{url}/b", content=b"x", headers={"authorization": "Bearer two"}),
        client.build_request("PUT", f"{url}/b", content=b"x", headers=[("x-same", "1"), ("x-same", "2")]),
        client.build_request("PUT", f"{url}/b", content=b"x", headers=[("x-same", "2"), ("x-same", "1")]),
        client.build_request("GET", f"{url}/b"),
        client.build_request("GET", f"{url}/b", content=b"a body"),
        client.build_request("POST", f"{url}/c", content=in_pieces()),
        client.build_request("POST", f"{url}/c", content=b"x", headers={"content-length": "1"}),
        client.build_request("DELETE", f"{url}/c?ä=ö", content=b"12"),
        client.build_request("POST", f"{url}/c", content=b"last", headers={"connection": "close"}),
        client.build_request("POST", f"{url}/c", content=b"on a new one"),
    ]


async def read(reader: asyncio.StreamReader) -> Sent | None:
    """One request; a body in pieces is put together."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    named = dict(header.lower().split(b": ", 1) for header in headers)
    body = b""
    if named.get(b"transfer-encoding") == b"chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        body = await reader.readexactly(int(named.get(b"content-length", 0)))
    return line, sorted(headers), body


@asynccontextmanager
async def serving(taken: list[Sent]) -> AsyncIterator[tuple[str, list[asyncio.Task[None]]]]:
    """A server that keeps what it receives; its address and the task of each connection."""
    connections: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.append(task)
        while (sent := await read(reader)) is not None:
            taken.append(sent)
            last = b"connection: close" in [header.lower() for header in sent[1]]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"Connection: close\r\n" * last + b"\r\nok")
            if last:
                break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections
        await asyncio.gather(*connections)


async def received(transport: httpx.AsyncBaseTransport) -> tuple[list[Sent], int]:
    """What a server receives, and by how many connections."""
    taken: list[Sent] = []
    async with serving(taken) as (url, connections), httpx.AsyncClient(transport=transport) as client:
        for request in requests(client, url):
            request.headers["host"] = "service.test"
            answer = await client.send(request)
            assert answer.text == "ok"
    return taken, len(connections)


def test_a_server_receives_what_it_receives_from_httpx() -> None:
    """Each part of a head counts, and a body that looks like a header changes nothing."""
    from_us, connections = asyncio.run(received(ours()))
    from_them, _ = asyncio.run(received(theirs()))
    assert from_us == from_them
    assert connections == 2


@pytest.mark.parametrize(("name", "value"), [("x-key", "a\r\nx-more: b"), ("x-key", "a\nb"), ("x key", "a")])
def test_a_header_that_would_add_lines_is_refused_after_good_ones_too(name: str, value: str) -> None:
    """What is known of an earlier head is not taken for this one."""

    async def refused() -> None:
        async with serving([]) as (url, _), httpx.AsyncClient(transport=ours()) as client:
            assert (await client.post(url, content=b"x", headers={"x-key": "a"})).text == "ok"
            with pytest.raises(httpx.LocalProtocolError):
                await client.post(url, content=b"x", headers={name: value})

    asyncio.run(refused())
