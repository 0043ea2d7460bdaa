"""Things that tools keep for a session: language servers, browsers, connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from ..api.errors import ToolError
from ..util.imports import is_failure

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
        except BaseException as error:  # whatever it is, those who wait must hear of it
            failure = error if isinstance(error, Exception) else _ended(factory, error)
            if not is_failure(error):
                _fail(ready, failure)
                raise
            if not _fail(ready, failure):
                raise failure from error

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
                    await asyncio.wait([task])
                finally:
                    task.cancel()
                # One that fails to close must not keep the others open.
                if not task.cancelled() and isinstance(error := task.exception(), Exception):
                    errors.append(error)
        finally:
            for task, _, _ in self._open.values():
                task.cancel()
        return errors


def _fail(ready: asyncio.Future[Any], failure: Exception) -> bool:
    """Tell those who wait; whether there may be any."""
    if ready.done():
        return False
    ready.set_exception(failure)
    return True


def _ended(factory: object, error: BaseException) -> ToolError:
    name = getattr(factory, "__name__", type(factory).__name__)
    return ToolError(f"{name} ended with {type(error).__name__} before it was ready. Call the tool again.")
