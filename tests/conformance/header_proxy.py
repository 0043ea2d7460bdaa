"""Adds a header to every request on its way to a port of this machine: the suite cannot be told to send a token."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def with_header(port: int, header: str) -> Iterator[int]:
    """The port of a proxy for another port, in a thread."""
    ready, ports = threading.Event(), list[int]()
    loop = asyncio.new_event_loop()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            back, there = await asyncio.open_connection("127.0.0.1", port)
            first, _, rest = head.partition(b"\r\n")
            lines = [line for line in rest.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            there.write(b"\r\n".join([first, header.encode(), b"connection: close", *lines]))
            await asyncio.gather(_copy(reader, there), _copy(back, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            if there is not None:
                there.close()

    over = asyncio.Event()

    async def serve() -> None:
        async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as server:
            ports.append(server.sockets[0].getsockname()[1])
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
