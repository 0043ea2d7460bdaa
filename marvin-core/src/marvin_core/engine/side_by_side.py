"""Runs several coroutine functions at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


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
