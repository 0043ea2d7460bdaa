"""Connections that are kept, that hang and that are lost: what belongs to no request is never taken for its answer."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.http.client import HttpSettings, TlsContext, make_client
from marvin_core.http.connect import CountingReader, Dialer, race
from tests.support.chatting import TRANSPORTS, Transport

transports = pytest.mark.parametrize("transport", TRANSPORTS)
Conversation = Callable[["Caller"], Awaitable[None]]
LIMIT = 0.3
"""What is to be over soon; all other waits are far longer."""
GENEROUS = 50.0


def answer(body: str, status: str = "200 OK", *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return ("\r\n".join(head) + f"\r\n\r\n{body}").encode()


class Caller:
    """A connection as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, served: RawServer) -> None:
        self.reader = reader
        self.writer = writer
        self.served = served

    async def request(self) -> bytes:
        """The next request, whole; empty where the client went away."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = await self.reader.read(1)
            if not byte:
                return b""
            head += byte
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        request = head + await self.reader.readexactly(length)
        self.served.requests.append(request)
        return request

    async def say(self, said: bytes) -> None:
        """Send bytes."""
        self.writer.write(said)
        await self.writer.drain()


class RawServer:
    """What each connection does is a function; the last one serves all further connections."""

    def __init__(self, *conversations: Conversation) -> None:
        self.requests: list[bytes] = []
        self.connections = 0
        self._conversations = conversations
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        number = min(self.connections, len(self._conversations) - 1)
        self.connections += 1
        try:
            await self._conversations[number](Caller(reader, writer, self))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            writer.close()


@asynccontextmanager
async def raw_server(*conversations: Conversation) -> AsyncIterator[RawServer]:
    server = RawServer(*conversations)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        yield server


def client_for(transport: Transport = "direct", **options: Any) -> httpx.AsyncClient:
    silence = options.pop("silence", GENEROUS)
    timeouts = Timeouts(http=options.pop("wait", GENEROUS), keep_alive=options.pop("keep_alive", GENEROUS))
    settings = HttpSettings(transport=transport, timeouts=timeouts, **options)
    return make_client(settings, timeout_read=silence, tls=TlsContext().get)


async def good(caller: Caller) -> None:
    while await caller.request():
        await caller.say(answer("good"))


async def until_gone(caller: Caller) -> None:
    while await caller.reader.read(1):
        pass


# What comes on an idle connection


@transports
@pytest.mark.parametrize("pause", [0.0, 0.05])
@pytest.mark.parametrize(
    "late", [answer("POISONED"), answer("", "408 Request Timeout", "connection: close"), b"x", b""]
)
def test_what_comes_on_an_idle_connection_is_no_answer(transport: Transport, late: bytes, pause: float) -> None:
    """Whether the bytes come in the packet of the response before, or in one of their own, or only the end comes."""

    async def bad(caller: Caller) -> None:
        await caller.request()
        if pause:
            await caller.say(answer("first"))
            await asyncio.sleep(pause)
            await caller.say(late)
        else:
            await caller.say(answer("first") + late)
        if late:
            await good(caller)  # whoever asks here is misled

    async def run() -> tuple[list[str], int]:
        async with raw_server(bad, good) as server, client_for(transport) as client:
            first = await client.post(server.url, content=b"1")
            await asyncio.sleep(2 * pause)
            second = await client.post(server.url, content=b"2")
            return [first.text, second.text], len(server.requests)

    assert asyncio.run(run()) == (["first", "good"], 2)


def test_what_came_while_the_loop_was_busy_is_seen_as_well() -> None:
    """Nobody has read it from the socket yet when the next request is made."""

    async def run() -> str:
        release = asyncio.Event()

        async def bad(caller: Caller) -> None:
            await caller.request()
            await caller.say(answer("first"))
            await release.wait()
            os.write(caller.writer.get_extra_info("socket").fileno(), answer("POISONED"))

        async with raw_server(bad, good) as server, client_for() as client:
            await client.post(server.url)
            release.set()
            await asyncio.sleep(0)  # the server has sent, in this very turn of the loop
            return (await client.post(server.url)).text

    assert asyncio.run(run()) == "good"


def test_an_idle_connection_is_kept_for_a_while_only() -> None:
    async def run(keep_alive: float) -> int:
        async with raw_server(good) as server, client_for(keep_alive=keep_alive) as client:
            for _ in range(3):
                assert (await client.post(server.url)).text == "good"
            return server.connections

    assert asyncio.run(run(GENEROUS)) == 1
    assert asyncio.run(run(0.0)) == 3


# Requests that may have been worked on


async def eats_the_second(caller: Caller) -> None:
    await caller.request()
    await caller.say(answer("first"))
    await caller.request()


@transports
def test_a_post_that_may_have_been_worked_on_is_not_sent_again(transport: Transport) -> None:
    async def run() -> int:
        async with raw_server(eats_the_second) as server, client_for(transport) as client:
            assert (await client.post(server.url, content=b"1")).text == "first"
            if transport == "stock":  # it keeps no connection
                return 2
            with pytest.raises(
                httpx.RemoteProtocolError, match="the connection was closed before any part of an answer arrived"
            ):
                await client.post(server.url, content=b"2")
            return len(server.requests)

    assert asyncio.run(run()) == 2


def test_a_request_that_changes_nothing_is_made_once_more() -> None:
    async def run() -> tuple[str, int]:
        async with raw_server(eats_the_second, good) as server, client_for() as client:
            await client.get(server.url)
            return (await client.get(server.url)).text, len(server.requests)

    assert asyncio.run(run()) == ("good", 3)


def test_no_request_is_made_a_third_time() -> None:
    async def eats(caller: Caller) -> None:
        await caller.request()

    async def run() -> int:
        async with raw_server(eats_the_second, eats) as server, client_for() as client:
            await client.get(server.url)
            with pytest.raises(httpx.RemoteProtocolError):
                await client.get(server.url)
            return len(server.requests)

    assert asyncio.run(run()) == 3


# What hangs


def assert_silent(serve: Callable[[Caller], Awaitable[None]], transport: Transport) -> None:
    """What such a server sends counts as silence, which ends."""

    async def run() -> None:
        async with raw_server(serve) as server, client_for(transport, silence=LIMIT) as client:
            async with asyncio.timeout(GENEROUS):
                await client.post(server.url)

    with pytest.raises(httpx.ReadTimeout):
        asyncio.run(run())


@transports
@pytest.mark.parametrize("drop", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n", b"x"])
def test_interim_responses_and_single_bytes_of_a_header_end_no_silence(transport: Transport, drop: bytes) -> None:
    async def drips(caller: Caller) -> None:
        await caller.request()
        if drop == b"x":
            await caller.say(b"HTTP/1.1 200 OK\r\nx-long: ")
        while True:
            await caller.say(drop)
            await asyncio.sleep(LIMIT / 10)

    assert_silent(drips, transport)


@transports
def test_a_flood_of_interim_responses_ends_too(transport: Transport) -> None:
    async def floods(caller: Caller) -> None:
        await caller.request()
        while True:
            await caller.say(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    assert_silent(floods, transport)


@transports
def test_a_proxy_that_never_opens_the_tunnel_is_named_in_time(transport: Transport) -> None:
    async def run(proxy: str) -> str:
        async with client_for(transport, wait=LIMIT, https_proxy=proxy) as client:
            async with asyncio.timeout(GENEROUS):
                with pytest.raises(httpx.ConnectTimeout) as raised:
                    await client.post("https://models.example/v1")
        return str(raised.value)

    async def silent() -> None:
        async with raw_server(until_gone) as server:
            said = await run(server.url.replace("//", "//me:hunter2@"))
            port = server.url.rstrip("/").rpartition(":")[2]
            assert said.startswith(
                f"the proxy http://127.0.0.1:{port} opened no connection to models.example, port 443"
            )
            assert "hunter2" not in said

    asyncio.run(silent())


def test_a_proxy_that_sends_interim_responses_for_ever() -> None:
    async def drips(caller: Caller) -> None:
        await caller.request()
        while True:
            await caller.say(b"HTTP/1.1 100 Continue\r\n\r\n")
            await asyncio.sleep(LIMIT / 10)

    async def run() -> None:
        async with raw_server(drips) as proxy, client_for(wait=LIMIT, https_proxy=proxy.url) as client:
            async with asyncio.timeout(GENEROUS):
                await client.post("https://models.example/v1")

    with pytest.raises(httpx.ConnectTimeout, match="the proxy"):
        asyncio.run(run())


@transports
def test_a_service_behind_a_plain_proxy_may_be_silent_for_as_long_as_a_service_may(transport: Transport) -> None:
    async def slow(caller: Caller) -> None:
        await caller.request()
        await asyncio.sleep(3 * LIMIT)
        await caller.say(answer("late"))

    async def run() -> str:
        async with raw_server(slow) as proxy, client_for(transport, wait=LIMIT, http_proxy=proxy.url) as client:
            return (await client.post("http://models.example/v1")).text

    assert asyncio.run(run()) == "late"


# Several addresses


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second loopback address")
def test_of_two_connections_made_in_one_turn_the_second_is_closed() -> None:
    async def run() -> None:
        gone = asyncio.Event()
        accepted: list[str] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.append(writer.get_extra_info("sockname")[0])
            if not await reader.read(1) and accepted:
                gone.set()
            writer.close()

        async with await asyncio.start_server(serve, "0.0.0.0", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            # No head start: both are under way in the same turn of the loop.
            streams = await race(["127.0.0.1", "127.0.0.2"], port, None, "", 0.0)
            await asyncio.wait_for(gone.wait(), GENEROUS)
            assert sorted(accepted) == ["127.0.0.1", "127.0.0.2"]
            streams[1].close()
            await streams[1].wait_closed()

    asyncio.run(run())
    gc.collect()  # what was dropped unclosed would warn here


@pytest.mark.parametrize("host", ["a" * 70 + ".example", "no-such-host.invalid", "..", "a..b"])
def test_names_that_cannot_be_looked_up(host: str) -> None:
    async def run() -> None:
        await Dialer(0.1).dial(host, 80, None, GENEROUS)

    with pytest.raises(httpx.ConnectError):
        asyncio.run(run())


def test_a_reader_counts_what_has_arrived() -> None:
    async def run() -> None:
        reader = CountingReader()
        reader.feed_data(b"abc")
        assert await reader.read(1) == b"a"
        reader.feed_data(b"de")
        assert reader.arrived == 5

    asyncio.run(run())
