"""Opening a connection to a host that may have several addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import httpx

from ..util.threads import in_thread

if TYPE_CHECKING:
    import ssl

T = TypeVar("T")
SocketStreams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def within(limit: float | None, error: type[httpx.TimeoutException], work: Awaitable[T]) -> T:
    """Wait for `work` at most `limit` seconds, None for ever; past that it raises `error`."""
    try:
        async with asyncio.timeout(limit):
            return await work
    except TimeoutError:
        raise error("timed out") from None


async def dial(
    host: str, port: int, context: ssl.SSLContext | None, limit: float | None, stagger: float
) -> SocketStreams:
    """Connect to the first address of a host that answers, with TLS where there is a context.

    Each address gets a head start of `stagger` seconds over the next one, so that a broken IPv6
    costs that much and not the whole time-out of `limit` seconds.

    Raises:
        httpx.ConnectTimeout, httpx.ConnectError: the latter with the first address's own error.
    """

    async def connect() -> SocketStreams:
        return await race(await _addresses(host, port), port, context, host, stagger)

    try:
        return await within(limit, httpx.ConnectTimeout, connect())
    except OSError as error:
        raise httpx.ConnectError(error.strerror or str(error)) from error


async def race(
    addresses: Sequence[str], port: int, context: ssl.SSLContext | None, host: str, stagger: float
) -> SocketStreams:
    """The connection to the first of these addresses that answers; `host` is whom TLS expects there.

    Raises:
        OSError: none of them could be reached; the first one's error.
    """
    waiting = list(addresses)
    running: set[asyncio.Task[SocketStreams]] = set()
    failure: BaseException | None = None
    try:
        while waiting or running:
            if waiting:
                name = host if context is not None else None
                attempt = asyncio.open_connection(waiting.pop(0), port, ssl=context, server_hostname=name)
                running.add(asyncio.create_task(attempt))
            done, running = await asyncio.wait(
                running, timeout=stagger if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                if task.exception() is None:
                    return task.result()
                failure = failure or task.exception()
    finally:
        for task in running:
            task.cancel()
    raise failure or OSError("the host has no address")


async def _addresses(host: str, port: int) -> Sequence[str]:
    """The numeric addresses of a host, in the system's order of preference."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        # Not the loop's own look-up: that one runs in the default executor, which can hold up the exit.
        infos = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return list(dict.fromkeys(str(info[4][0]) for info in infos))
