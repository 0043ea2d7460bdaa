"""What holds up an event loop, and what does not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from marvin_core import in_thread
from marvin_core.testing.grading.pulse import Pulse

LIMIT = 0.2
LONG = 0.6


async def waiting() -> None:
    await asyncio.sleep(LONG)


async def aside() -> None:
    await in_thread(lambda: time.sleep(LONG))


async def blocking() -> None:
    time.sleep(LONG)  # noqa: ASYNC251  # that is what is to be noticed


async def computing() -> None:
    begun = time.thread_time()
    while time.thread_time() - begun < LONG:
        pass


async def computing_in_steps() -> None:
    for _ in range(60):
        begun = time.thread_time()
        while time.thread_time() - begun < LONG / 60:
            pass
        await asyncio.sleep(0)


def held(work: Callable[[], Awaitable[None]]) -> float:
    async def measured() -> float:
        pulse = Pulse(asyncio.get_running_loop(), LIMIT)
        await asyncio.sleep(0)
        await work()
        return pulse.stop()

    return asyncio.run(measured())


@pytest.mark.parametrize("work", [blocking, computing])
def test_what_does_not_await_is_noticed(work: Callable[[], Awaitable[None]]) -> None:
    # A busy machine may hide it once, never make it up.
    assert any(held(work) > LIMIT for _ in range(5))


@pytest.mark.slow
@pytest.mark.parametrize("work", [waiting, aside, computing_in_steps])
def test_what_awaits_is_not(work: Callable[[], Awaitable[None]]) -> None:
    # The thread that waits, and the loop, may be held up by a busy machine at different moments.
    assert any(held(work) == 0.0 for _ in range(5))
