"""Connects to a host that may have several addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import httpx

from ..util.threads import in_thread

if TYPE_CHECKING:
    import ssl

    from .addresses import AddressGuard

T = TypeVar("T")
_SHOWN = 100


class CountingReader(asyncio.StreamReader):
    """A stream reader that counts the bytes that have arrived, read or not."""

    arrived = 0

    def feed_data(self, data: Iterable[int]) -> None:  # type: ignore[override]  # the loop feeds bytes
        """Store received bytes."""
        self.arrived += len(data)  # type: ignore[arg-type]
        super().feed_data(data)


SocketStreams: TypeAlias = tuple[CountingReader, asyncio.StreamWriter]


async def within(limit: float | None, error: Exception, work: Awaitable[T]) -> T:
    """Wait for `work` for at most `limit` seconds, None for no limit; then raise `error`."""
    try:
        async with asyncio.timeout(limit):
            return await work
    except TimeoutError:
        raise error from None


class Dialer:
    """Connects to the first address of a host that answers.

    Each address gets a head start of `stagger` seconds over the next one, so that broken IPv6 delays a connection by
    that time only. If there is a `guard`, only addresses that it allows are used.
    """

    def __init__(self, stagger: float, guard: AddressGuard | None = None) -> None:
        self._stagger = stagger
        self._guard = guard

    async def dial(self, host: str, port: int, context: ssl.SSLContext | None, limit: float | None) -> SocketStreams:
        """A connection, with TLS if there is a context.

        Raises:
            httpx.ConnectTimeout, httpx.ConnectError: with the error of the first address.
            AddressRefused: the guard refuses one of the addresses.
        """
        late = httpx.ConnectTimeout(f"no connection to {host}, port {port}, within {limit or 0:g} s")
        try:
            return await within(limit, late, self._connected(host, port, context))
        except OSError as error:
            raise httpx.ConnectError(error.strerror or str(error)) from error
        except ValueError as error:  # of a name that cannot be one of a host
            raise httpx.ConnectError(f"{host[:_SHOWN]!r} is not a valid host name") from error

    async def _connected(self, host: str, port: int, context: ssl.SSLContext | None) -> SocketStreams:
        addresses = await _addresses(host, port)
        if self._guard is not None:
            # Connect to the checked address: a second look-up might return another one.
            self._guard.check(host, port, addresses)
        return await race(addresses, port, context, host, self._stagger)


async def race(
    addresses: Sequence[str], port: int, context: ssl.SSLContext | None, host: str, stagger: float
) -> SocketStreams:
    """A connection to the first of these addresses that answers; `host` is the name that TLS verifies.

    Raises:
        OSError: none of them could be reached; the error is that of the first one.
    """
    waiting = list(addresses)
    attempts: list[asyncio.Task[SocketStreams]] = []
    winner: asyncio.Task[SocketStreams] | None = None
    try:
        while waiting or not all(task.done() for task in attempts):
            if waiting:
                attempts.append(asyncio.create_task(_open(waiting.pop(0), port, context, host)))
            running = [task for task in attempts if not task.done()]
            await asyncio.wait(running, timeout=stagger if waiting else None, return_when=asyncio.FIRST_COMPLETED)
            winner = next((task for task in attempts if task.done() and task.exception() is None), None)
            if winner is not None:
                return winner.result()
    finally:
        for task in attempts:
            if task is not winner:
                task.cancel()
                task.add_done_callback(_drop)
    raise next((error for task in attempts if (error := task.exception())), OSError("the host has no address"))


async def _open(address: str, port: int, context: ssl.SSLContext | None, host: str) -> SocketStreams:
    loop = asyncio.get_running_loop()
    reader = CountingReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    name = host if context is not None else None
    transport, _ = await loop.create_connection(lambda: protocol, address, port, ssl=context, server_hostname=name)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _drop(attempt: asyncio.Task[SocketStreams]) -> None:
    """Close the connection of an attempt that succeeded too late."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result()[1].transport.abort()


async def _addresses(host: str, port: int) -> Sequence[str]:
    """The numeric addresses of a host, in the system's order of preference."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        # Not the loop's own look-up: that one runs in the default executor, which can delay the exit.
        infos = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return list(dict.fromkeys(str(info[4][0]) for info in infos))
