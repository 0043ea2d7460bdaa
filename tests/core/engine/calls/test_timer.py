"""How much time a call has left."""

from __future__ import annotations

import asyncio

from marvin_core import ToolContext, tool
from marvin_core.engine.calls.timer import CallTimer
from marvin_core.testing import ToolRunner


def test_the_time_that_is_left_stands_still_while_a_question_is_open() -> None:
    async def run() -> None:
        async with CallTimer(50.0) as timer:
            begun = timer.left
            with timer.stopped():
                still = timer.left
                await asyncio.sleep(0.01)
                assert timer.left == still <= begun <= 50.0
            assert 0 < timer.left <= still
        assert CallTimer(-1.0).left == 0

    asyncio.run(run())


@tool(access=["read"], timeout=77.0)
async def tell_time(*, context: ToolContext) -> str:
    """Say how much time is left, and who calls."""
    return f"{context.time_left < 77.0} {context.time_left > 1.0} {context.origin}"


def test_a_tool_knows_its_time_and_that_it_is_tried(marvin_tools: ToolRunner) -> None:
    assert marvin_tools.call(tell_time).text == "True True person"
    assert marvin_tools.session(origin="trial").call(tell_time).text == "True True trial"
