"""Runs the filtering proxy in a separate thread and event loop, so that a download does not slow down a chat."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from .filter_proxy import FilterProxy

if TYPE_CHECKING:
    from .filter_proxy import NoteRefused
    from .outward import Outward

Decide: TypeAlias = "Callable[[str, int], Coroutine[Any, Any, str]]"
"""Why a host and port may not be reached; empty if they may. The host is in the form of `folded`."""
_OVER = "the session has ended"


class ProxyThread:
    """Runs a `FilterProxy`. Create it in the event loop of the session, in which both functions are called.

    Args:
        decide: says which hosts may be reached.
        note_refused: called for such a host whose address may not be reached.
        timeout: seconds within which a program must send its request.
        most: connections at a time.
    """

    def __init__(
        self, decide: Decide, outward: Outward, note_refused: NoteRefused, *, timeout: float, most: int
    ) -> None:
        self._decide = decide
        self._note_refused = note_refused
        self._session = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._proxy = FilterProxy(self._asked, outward, self._refused, timeout=timeout, most=most)
        self._thread = threading.Thread(target=self._run, name="filter-proxy", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _asked(self, host: str, port: int) -> str:
        if self._session.is_closed():
            return _OVER
        question = asyncio.run_coroutine_threadsafe(self._decide(host, port), self._session)
        asked = asyncio.wrap_future(question)
        # The session reports what became of the question; here it was not answered.
        await asyncio.wait([asked])
        return _OVER if asked.cancelled() or asked.exception() else asked.result()

    def _refused(self, host: str, port: int) -> None:
        with suppress(RuntimeError):  # the session has ended
            self._session.call_soon_threadsafe(self._note_refused, host, port)

    async def serve(self, listener: socket.socket) -> None:
        """Serve connections to a listening socket, which belongs to the proxy from now on."""
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._proxy.serve(listener), self._loop))

    async def close(self) -> None:
        """Close all connections and end the thread."""
        if not self._thread.is_alive():
            return
        closing = asyncio.run_coroutine_threadsafe(self._proxy.close(), self._loop)
        try:
            await asyncio.wrap_future(closing)
        finally:
            with suppress(RuntimeError):  # it has ended meanwhile
                self._loop.call_soon_threadsafe(self._loop.stop)
