"""Things that tools keep for a session: language servers, browsers, connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

T = TypeVar("T")


class Resources:
    """Enters each factory's context manager once and closes all of them in reverse order.

    Each lives in a task of its own, since many context managers must be left by the task that
    entered them, and calls come and go.
    """

    def __init__(self) -> None:
        self._open: dict[Any, tuple[asyncio.Task[None], asyncio.Future[Any], asyncio.Event]] = {}

    async def get(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """What the factory's context manager yields; whatever it raises on entering is raised here."""
        if factory not in self._open:
            ready: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            closing = asyncio.Event()
            task = asyncio.ensure_future(self._hold(factory, ready, closing))
            self._open[factory] = (task, ready, closing)
        ready = self._open[factory][1]
        try:
            return await asyncio.shield(ready)
        except Exception:
            self._open.pop(factory, None)
            raise

    async def _hold(
        self,
        factory: Callable[[], AbstractAsyncContextManager[T]],
        ready: asyncio.Future[T],
        closing: asyncio.Event,
    ) -> None:
        try:
            async with factory() as value:
                ready.set_result(value)
                await closing.wait()
        except Exception as error:
            if ready.done():
                raise
            ready.set_exception(error)

    async def close(self) -> list[Exception]:
        """Close everything, newest first; returns what went wrong on the way.

        Where this is cancelled, as it took too long, what is left is closed all at once.
        """
        errors: list[Exception] = []
        try:
            while self._open:
                _, (task, _, closing) = self._open.popitem()
                closing.set()
                try:
                    await task
                except Exception as error:  # one that fails to close must not keep the others open
                    errors.append(error)
        finally:
            for task, _, _ in self._open.values():
                task.cancel()
        return errors
