"""Work beside other work: blocking work in daemon threads, so that it cannot delay the exit, and tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
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


def side_by_side(works: Sequence[Callable[[], Awaitable[T]]]) -> tuple[list[asyncio.Task[T]], asyncio.Future[None]]:
    """Start coroutine functions as tasks; returns these, and a future that is done as soon as all of them are over.

    The last one to end completes the future itself. `asyncio.wait` would need one more turn of the event loop.
    """
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    left = len(works)

    def end() -> None:
        if not over.done():
            over.set_result(None)

    async def run(work: Callable[[], Awaitable[T]]) -> T:
        nonlocal left
        try:
            return await work()
        finally:
            left -= 1
            if not left:
                end()

    def look(_: asyncio.Task[T]) -> None:
        if all(task.done() for task in tasks):  # one may have been cancelled before it began
            end()

    tasks = [asyncio.ensure_future(run(work)) for work in works]
    for task in tasks:
        task.add_done_callback(look)
    return tasks, over
