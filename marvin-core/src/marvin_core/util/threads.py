"""Blocking work in daemon threads, so that it cannot delay the exit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], *, to_the_end: bool = False) -> T:
    """Run blocking work in a daemon thread and wait for it. A cancellation ends the wait, not the thread.

    Args:
        to_the_end: a cancellation waits for the thread to end, for example because it writes what others read next.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if isinstance(error, StopIteration):  # a future does not accept it, and would never be done
            future.set_exception(RuntimeError(f"StopIteration was raised in a thread: {error}"))
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # no error, so there is a result

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:  # passed to the waiting side, whatever it is
            error = raised
        try:
            loop.call_soon_threadsafe(finish, result, error)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=run, daemon=True).start()
    if not to_the_end:
        return await future
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise
