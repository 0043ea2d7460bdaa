"""What tools keep for a session: entered once, by a task of its own, and left in reverse order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from marvin_core import ToolError
from marvin_core.engine.resources import Resources
from tests.support.engine import run, until

Factory = Callable[[], AbstractAsyncContextManager[str]]


def factory(name: str, log: list[str], *, enter: asyncio.Event | None = None, fail: str = "") -> Factory:
    """A resource that writes down when it is entered and left, and may fail at either; `enter` holds it up."""

    @asynccontextmanager
    async def made() -> AsyncIterator[str]:
        log.append(f"+{name}")
        if enter is not None:
            await enter.wait()
        if fail == "enter":
            raise OSError(f"{name} does not start")
        try:
            async with asyncio.timeout(60):  # a time-out must be left by the task that entered it
                yield name
        finally:
            log.append(f"-{name}")
            if fail == "leave":
                raise OSError(f"{name} does not stop")

    return made


def test_a_resource_is_entered_once_whoever_asks_and_closed_at_the_end() -> None:
    log: list[str] = []
    started = asyncio.Event()
    wanted = factory("a", log, enter=started)

    async def go() -> None:
        resources = Resources()
        # Each in a task of its own, as calls are; the tasks end before the resource does.
        calls = [asyncio.ensure_future(resources.get(wanted)) for _ in range(3)]
        await until(lambda: log == ["+a"])
        started.set()
        got = await asyncio.gather(*calls)
        got.append(await resources.get(wanted))
        assert got == ["a"] * 4
        assert log == ["+a"]
        assert await resources.close() == []

    run(go())
    assert log == ["+a", "-a"]


def test_resources_are_left_in_reverse_order() -> None:
    log: list[str] = []

    async def go() -> None:
        resources = Resources()
        for name in "abc":
            await resources.get(factory(name, log))
        await resources.close()

    run(go())
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]


def test_one_that_does_not_stop_is_told_and_keeps_no_other_open() -> None:
    log: list[str] = []

    async def go() -> list[Exception]:
        resources = Resources()
        await resources.get(factory("a", log))
        await resources.get(factory("b", log, fail="leave"))
        return await resources.close()

    assert [str(error) for error in run(go())] == ["b does not stop"]
    assert log[-1] == "-a"


def test_one_that_does_not_start_is_told_to_each_call_and_tried_again() -> None:
    log: list[str] = []
    wanted = factory("a", log, fail="enter")

    async def go() -> None:
        resources = Resources()
        for _ in range(2):
            with pytest.raises(OSError, match="a does not start"):
                await resources.get(wanted)
        assert await resources.close() == []

    run(go())
    assert log == ["+a", "+a"]


@pytest.mark.parametrize("raised", [asyncio.CancelledError(), SystemExit(3)])
def test_one_that_cancels_itself_or_leaves_the_program_keeps_nobody_waiting(raised: BaseException | None) -> None:
    @asynccontextmanager
    async def made() -> AsyncIterator[str]:
        if raised is not None:
            raise raised
        yield "never"

    async def go() -> list[BaseException | str]:
        resources = Resources()
        found = await asyncio.gather(*(resources.get(made) for _ in range(3)), return_exceptions=True)
        assert await resources.close() == []
        return found

    for error in run(go()):
        assert isinstance(error, ToolError)
        assert f"made ended with {type(raised).__name__} before it was ready" in str(error)


@pytest.mark.parametrize("raised", [asyncio.CancelledError(), SystemExit(3)])
def test_one_that_ends_so_while_it_is_closed_keeps_no_other_open(raised: BaseException) -> None:
    log: list[str] = []

    @asynccontextmanager
    async def made() -> AsyncIterator[str]:
        yield "up"
        raise raised

    async def go() -> list[Exception]:
        resources = Resources()
        await resources.get(factory("a", log))
        await resources.get(made)
        return await resources.close()

    (error,) = run(go())
    assert type(raised).__name__ in str(error)
    assert log == ["+a", "-a"]


def test_a_call_that_is_cancelled_while_a_resource_starts_leaves_it_to_the_next_one() -> None:
    log: list[str] = []
    started = asyncio.Event()
    wanted = factory("a", log, enter=started)

    async def go() -> None:
        resources = Resources()
        impatient = asyncio.ensure_future(resources.get(wanted))
        await until(lambda: log == ["+a"])
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        started.set()
        assert await resources.get(wanted) == "a"
        await resources.close()

    run(go())
    assert log == ["+a", "-a"]


def test_closing_twice_or_with_nothing_open_is_fine() -> None:
    async def go() -> None:
        resources = Resources()
        assert await resources.close() == []
        assert await resources.close() == []

    run(go())


def test_what_is_still_starting_when_the_session_closes_is_closed_too() -> None:
    log: list[str] = []

    async def go() -> None:
        resources = Resources()
        started = asyncio.Event()
        starting = asyncio.ensure_future(resources.get(factory("a", log, enter=started)))
        await until(lambda: log == ["+a"])
        closing = asyncio.ensure_future(resources.close())
        await asyncio.sleep(0.005)
        started.set()
        await closing
        assert await starting == "a"

    run(go())
    assert log == ["+a", "-a"]


def test_one_that_never_stops_does_not_keep_the_others_open_when_time_is_up() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def stubborn() -> AsyncIterator[str]:
        yield "stubborn"
        await asyncio.Event().wait()

    async def go() -> None:
        resources = Resources()
        await resources.get(factory("a", log))
        await resources.get(stubborn)
        await resources.get(factory("c", log))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await resources.close()
        await until(lambda: len(log) == 4)

    run(go())
    assert log == ["+a", "+c", "-c", "-a"]
