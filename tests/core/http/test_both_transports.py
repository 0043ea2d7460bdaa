"""Marvin's own transport against httpx's: whatever a server sends, both make the same of it.

The full run has 3,000 mutated responses; `pytest -m slow` creates it.
"""

from __future__ import annotations

import asyncio
import gzip
import random
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

import httpx
import pytest

from marvin_core.http.client import HttpSettings, make_client
from marvin_core.http.connect import Dialer
from marvin_core.http.transport import DecodingTransport, DirectTransport

Outcome: TypeAlias = tuple[object, ...]
Server: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SILENCE = 0.5
GENEROUS = 50.0
BESIDE = 4
NO_ANSWER = ("the connection was closed", "Server disconnected without sending a response.")


def ours() -> httpx.AsyncBaseTransport:
    return DecodingTransport(DirectTransport(None, Dialer(0.25), keep_alive=GENEROUS))


def theirs() -> httpx.AsyncBaseTransport:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return DecodingTransport(httpx.AsyncHTTPTransport(verify=context, trust_env=False))


async def outcome(client: httpx.AsyncClient, url: str, method: str = "POST") -> Outcome:
    """What a client makes of one response: all that it says, or the kind of the error and what came before it."""
    body: list[bytes] = []
    head: Outcome = ()
    try:
        async with client.stream(method, url, content=b"hello") as response:
            reason = response.extensions["reason_phrase"]
            head = (response.status_code, response.http_version, reason, tuple(response.headers.raw))
            async for data in response.aiter_raw():
                body.append(data)  # noqa: PERF401  # what came before an error counts
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        # A connection that is closed with bytes unread is reset or ended, whichever is noticed first.
        lost = isinstance(error, httpx.ReadError) or (not head and str(error) in NO_ANSWER)
        return (*head, b"".join(body), "lost" if lost else type(error).__name__)
    return (*head, b"".join(body))


async def outcomes(transport: httpx.AsyncBaseTransport, url: str, silence: float = GENEROUS) -> list[Outcome]:
    """What a client makes of two responses in a row."""
    timeout = httpx.Timeout(GENEROUS, read=silence)
    async with httpx.AsyncClient(transport=transport, timeout=timeout, trust_env=False) as client:
        first = await outcome(client, url)
        for _ in range(20):
            await asyncio.sleep(0)  # the server closes, where it does: who asks before that has lost a race
        return [first, await outcome(client, url)]


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[str]:
    """The address of such a server."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await server(reader, writer)
        except (OSError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass  # the client went away, or the test is over
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as made:
        yield f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}/"


async def both(server: Server, silence: float = GENEROUS) -> tuple[list[Outcome], list[Outcome]]:
    """What both transports make of the responses of a server."""
    async with listening(server) as url:
        return await outcomes(ours(), url, silence), await outcomes(theirs(), url, silence)


# Mutated responses

WHOLE: Sequence[bytes] = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nhello world",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: yes\r\nOther: no\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nup to the end",
    b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\netag: x\r\ncontent-length: 10\r\n\r\n",
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 4\r\n\r\nboom",
    b"HTTP/1.1 302 Found\r\nlocation: /there\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 25\r\n\r\n" + gzip.compress(b"hello", mtime=0),
    b"HTTP/1.1 200 OK\r\nx-one: a\r\nx-one: b\r\nX-Two:\r\nx-three:   c  \r\ncontent-length: 0\r\n\r\n",
)
ALIEN = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b";", b"0", b"9", b"f", b"\xff", b"\t", b"-1", b"HTTP/1.1 "),
    *(b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n", b"connection: close\r\n", b"0\r\n\r\n", b"x" * 500),
    *(b"transfer-encoding: gzip\r\n", b"content-encoding: gzip, gzip\r\n", b" folded\r\n", b"upgrade: h2c\r\n"),
)


def mutated(number: int) -> tuple[list[bytes], bool]:
    """A response with some damage, cut into reads; and whether the server closes after it."""
    dice = random.Random(number)
    said = bytearray(dice.choice(WHOLE))
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        start = dice.randrange(len(said) + 1)
        end = min(len(said), start + dice.choice((1, 1, 2, 5, 20)))
        match dice.randrange(6):
            case 0:
                said[start:end] = b""
            case 1:
                said[start:start] = dice.choice(ALIEN)
            case 2:
                said[start:end] = bytes(dice.randrange(256) for _ in range(end - start))
            case 3:
                said[start:start] = said[start:end]
            case 4:
                del said[start:]
            case 5:
                said = bytearray(bytes(said).replace(b"\r\n", b"\n", dice.choice((-1, 1, 2))))
        said = said or bytearray(b"x")
    cuts = sorted(dice.randrange(len(said)) for _ in range(dice.choice((0, 0, 1, 3, 8))))
    ends = [*cuts, len(said)]
    reads = [bytes(said[start:end]) for start, end in zip([0, *cuts], ends, strict=True)]
    return [read for read in reads if read], dice.random() < 0.98


def saying(reads: Sequence[bytes], *, closes: bool = True) -> Server:
    """A server that answers each connection's request with these reads."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"hello")
        for read in reads:
            writer.write(read)
            await writer.drain()
            await asyncio.sleep(0)
        if not closes:
            await reader.read()

    return serve


def differences(numbers: Iterator[int]) -> list[tuple[int, list[Outcome], list[Outcome]]]:
    found = []

    async def compare_in_turn() -> None:
        for number in numbers:
            reads, closes = mutated(number)
            mine, its = await both(saying(reads, closes=closes), GENEROUS if closes else SILENCE)
            # On a connection that stays open, a second request depends on what stands behind the first response: there
            # the two differ on purpose, as a test below has it.
            compared = 2 if closes else 1
            if mine[:compared] != its[:compared]:
                found.append((number, mine, its))

    async def run() -> None:
        await asyncio.gather(*[compare_in_turn() for _ in range(BESIDE)])  # some servers are silent for a while

    asyncio.run(run())
    return found


@pytest.mark.slow
def test_mutated_responses_mean_the_same_to_both() -> None:
    assert differences(iter(range(250))) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_thousand_mutated_responses_mean_the_same_to_both() -> None:
    assert differences(iter(range(3_000))) == []


# Servers of every kind


def said(*parts: bytes) -> Server:
    return saying(parts)


def head(*lines: str, status: str = "HTTP/1.1 200 OK", body: bytes = b"") -> Server:
    return said("\r\n".join([status, *lines, "", ""]).encode("latin-1") + body)


async def closes_at_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The end comes before the request is read."""


async def closes_after_the_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"hello")


def resets(first: bytes) -> Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"hello")
        writer.write(first)
        await writer.drain()
        await asyncio.sleep(0.05)  # the client has read it
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return serve


async def answers_before_the_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig")
    await writer.drain()
    await reader.readuntil(b"hello")


async def single_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"hello")
    for byte in WHOLE[1]:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0)


async def keeps_open(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readuntil(b"hello")
        writer.write(WHOLE[0])


async def half_closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"hello")
    writer.write(WHOLE[0][:-3])
    writer.write_eof()
    await reader.read()


async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = await reader.readuntil(b"hello")
    lines = sorted(line for line in request.split(b"\r\n\r\n")[0].split(b"\r\n") if not line.startswith(b"Host"))
    body = b"\n".join(lines) + request.split(b"\r\n\r\n")[1]
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))


OK = "content-length: 2"
CHUNKED = "transfer-encoding: chunked"
SERVERS: Mapping[str, Server] = {
    "closes at once": closes_at_once,
    "closes after the request": closes_after_the_request,
    "resets at once": resets(b""),
    "resets in the head": resets(b"HTTP/1.1 200 OK\r\n"),
    "resets after the head": resets(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"),
    "resets in the body": resets(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab"),
    "resets in a chunk": resets(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab"),
    "answers before the request": answers_before_the_request,
    "single bytes": single_bytes,
    "keeps the connection": keeps_open,
    "half closes": half_closes,
    "echoes the request": echoes,
    "speaks SSH": said(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "speaks SMTP": said(b"220 mail.example ESMTP\r\n"),
    "speaks TLS": said(b"\x15\x03\x01\x00\x02\x02\x46"),
    "speaks HTTP/2": said(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80"),
    "speaks HTTP/0.9": said(b"<html>hello</html>"),
    "speaks HTTP/1.0": head(status="HTTP/1.0 200 OK", body=b"until the end"),
    "speaks HTTP/1.0 and keeps": head(OK, "connection: keep-alive", status="HTTP/1.0 200 OK", body=b"ok"),
    "speaks HTTP/1.2": head(OK, status="HTTP/1.2 200 OK", body=b"ok"),
    "speaks HTTP/2.0 in text": head(OK, status="HTTP/2.0 200 OK", body=b"ok"),
    "speaks ICY": head(OK, status="ICY 200 OK", body=b"ok"),
    "lower-case version": head(OK, status="http/1.1 200 OK", body=b"ok"),
    "no reason": head(OK, status="HTTP/1.1 200", body=b"ok"),
    "no reason but a space": head(OK, status="HTTP/1.1 200 ", body=b"ok"),
    "a long reason": head(OK, status="HTTP/1.1 200 " + "x" * 5000, body=b"ok"),
    "a reason that is not ASCII": head(OK, status="HTTP/1.1 200 Gr\xfc\xdf", body=b"ok"),
    "status 99": head(OK, status="HTTP/1.1 99 Low", body=b"ok"),
    "status 600": head(OK, status="HTTP/1.1 600 High", body=b"ok"),
    "status 1000": head(OK, status="HTTP/1.1 1000 High", body=b"ok"),
    "status in words": head(OK, status="HTTP/1.1 OK 200", body=b"ok"),
    "blank lines first": said(b"\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    "line ends without CR": said(b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok"),
    "line ends without LF": said(b"HTTP/1.1 200 OK\rcontent-length: 2\r\rok"),
    "a header of 90 KB": head("x-long: " + "x" * 90_000, OK, body=b"ok"),
    "a header of 110 KB": head("x-long: " + "x" * 110_000, OK, body=b"ok"),
    "a thousand headers": head(*(f"x-{number}: {number}" for number in range(1000)), OK, body=b"ok"),
    "headers without an end": said(b"HTTP/1.1 200 OK\r\n", *[b"x: y\r\n" * 1000] * 30),
    "a header without a colon": head("nonsense", OK, body=b"ok"),
    "a header without a name": head(": x", OK, body=b"ok"),
    "a space before the colon": head("content-length : 2", body=b"ok"),
    "a folded header": head("x-folded: a", " b", OK, body=b"ok"),
    "a NUL in a header": head("x: a\0b", OK, body=b"ok"),
    "a header in Latin-1": head("x: \xe4\xf6", OK, body=b"ok"),
    "a cookie twice": head("set-cookie: a=1", "set-cookie: b=2", OK, body=b"ok"),
    "a length twice": head(OK, OK, body=b"ok"),
    "two lengths": head(OK, "content-length: 3", body=b"ok!"),
    "two lengths in one": head("content-length: 2, 2", body=b"ok"),
    "a negative length": head("content-length: -2", body=b"ok"),
    "a length with a sign": head("content-length: +2", body=b"ok"),
    "a length in hex": head("content-length: 0x2", body=b"ok"),
    "an empty length": head("content-length:", body=b"ok"),
    "a huge length": head("content-length: 99999999999999999999", body=b"ok"),
    "a length and chunks": head(OK, CHUNKED, body=b"2\r\nok\r\n0\r\n\r\n"),
    "more than the length": head(OK, body=b"ok and more"),
    "less than the length": head("content-length: 9", body=b"ok"),
    "chunked twice": head(CHUNKED, CHUNKED, body=b"2\r\nok\r\n0\r\n\r\n"),
    "gzip, chunked": head("transfer-encoding: gzip, chunked", body=b"2\r\nok\r\n0\r\n\r\n"),
    "identity as an encoding of the transfer": head("transfer-encoding: identity", OK, body=b"ok"),
    "chunks in upper case": head("Transfer-Encoding: CHUNKED", body=b"A\r\n0123456789\r\n0\r\n\r\n"),
    "chunks with zeros before": head(CHUNKED, body=b"0000002\r\nok\r\n00000\r\n\r\n"),
    "a chunk size without an end": head(CHUNKED, body=b"1" * 500),
    "a huge chunk size": head(CHUNKED, body=b"ffffffffffffffffffffffff\r\nok"),
    "a chunk size of no digits": head(CHUNKED, body=b"\r\nok\r\n0\r\n\r\n"),
    "a chunk with an extension": head(CHUNKED, body=b'2;name="value;x"\r\nok\r\n0\r\n\r\n'),
    "a chunk longer than it says": head(CHUNKED, body=b"2\r\nokay\r\n0\r\n\r\n"),
    "chunks without their end": head(CHUNKED, body=b"2\r\nok\r\n"),
    "chunks with bare LF": head(CHUNKED, body=b"2\nok\n0\n\n"),
    "thousands of chunks": head(CHUNKED, body=b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"),
    "trailers": head(CHUNKED, body=b"2\r\nok\r\n0\r\na: b\r\n\r\n"),
    "trailers that are wrong": head(CHUNKED, body=b"2\r\nok\r\n0\r\nnonsense\r\n\r\n"),
    "trailers without an end": head(CHUNKED, body=b"2\r\nok\r\n0\r\n" + b"a: b\r\n" * 30_000),
    "204 with a body": head(OK, status="HTTP/1.1 204 No Content", body=b"ok"),
    "304 with a body": head(OK, status="HTTP/1.1 304 Not Modified", body=b"ok"),
    "101": head("upgrade: websocket", "connection: upgrade", status="HTTP/1.1 101 Switching Protocols", body=b"xx"),
    "100 and then nothing": head(status="HTTP/1.1 100 Continue"),
    "100 with a body": head(OK, status="HTTP/1.1 100 Continue", body=b"ok"),
    "a thousand times 100": said(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + WHOLE[0]),
    "one layer of gzip": head("content-encoding: gzip", body=gzip.compress(b"hello")),
    "two layers of gzip": head("content-encoding: gzip, gzip", body=gzip.compress(gzip.compress(b"hello"))),
    "gzip that is none": head("content-encoding: gzip", body=b"hello"),
    "a redirect": head("location: /there", "content-length: 0", status="HTTP/1.1 307 Temporary Redirect"),
}


def test_there_are_servers_of_seventy_kinds() -> None:
    assert len(SERVERS) >= 70


@pytest.mark.parametrize("kind", SERVERS)
def test_a_server_means_the_same_to_both(kind: str) -> None:
    mine, its = asyncio.run(both(SERVERS[kind]))
    assert mine == its


def test_two_responses_in_one_packet_are_two_answers_to_httpx_only() -> None:
    """The one difference: bytes behind the end of a response are no answer to the next request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"hello")
        writer.write(WHOLE[0] + WHOLE[8])
        with suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"hello")

    mine, its = asyncio.run(both(serve))
    assert [one[0] for one in mine] == [200, 200]
    assert [one[0] for one in its] == [200, 500]


def test_as_marvin_uses_it_httpx_does_not_take_them_either() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"hello")
        writer.write(WHOLE[0] + WHOLE[8])
        await reader.read()

    async def run() -> list[Outcome]:
        async with listening(serve) as url:
            async with make_client(HttpSettings(transport="stock"), timeout_read=GENEROUS, tls=None) as client:
                return [await outcome(client, url), await outcome(client, url)]

    assert [one[0] for one in asyncio.run(run())] == [200, 200]
