"""Resources of tools that live as long as the session: language servers, browsers, connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from ..api.errors import ToolError
from ..util.failures import is_failure

T = TypeVar("T")


class Resources:
    """Enters the context manager of each factory once and closes all of them in reverse order.

    Each has a task of its own, since many context managers must be exited in the task that entered them, and calls
    run in different tasks.
    """

    def __init__(self) -> None:
        self._open: dict[Any, tuple[asyncio.Task[None], asyncio.Future[Any], asyncio.Event]] = {}

    async def get(self, factory: Callable[[], AbstractAsyncContextManager[T]]) -> T:
        """The value of the factory's context manager; exceptions on entering are raised here."""
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
        except BaseException as error:  # all waiting callers must get it
            failure = error if isinstance(error, Exception) else _ended(factory, error)
            if not is_failure(error):
                _fail(ready, failure)
                raise
            if not _fail(ready, failure):
                raise failure from error

    async def close(self) -> list[Exception]:
        """Close all resources, newest first; returns the errors.

        If this is cancelled after a time-out, the others are closed all at once.
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
    """Notify the waiting callers; returns whether there may be any."""
    if ready.done():
        return False
    ready.set_exception(failure)
    return True


def _ended(factory: object, error: BaseException) -> ToolError:
    name = getattr(factory, "__name__", type(factory).__name__)
    return ToolError(f"{name} ended with {type(error).__name__} before it was ready. Call the tool again.")
