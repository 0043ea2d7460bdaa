"""The benchmark of stalls measures what it says, and has calls for every tool."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from benchmarks.stalls import HOSTILE, ORDINARY, Case, Watched
from marvin_core import tool
from marvin_core.testing.tool_runner import installed_tools

OURS = "marvin-"


@tool(access=["read"])
async def stand_still() -> str:
    """Keep the event loop from everything else."""
    time.sleep(0.3)  # noqa: ASYNC251  # the mistake that is to be noticed
    return "done"


@tool(access=["read"])
async def wait() -> str:
    """Let the event loop do everything else."""
    await asyncio.sleep(0.3)
    return "done"


def test_a_call_that_blocks_the_loop_is_noticed_and_one_that_waits_is_not(tmp_path: Path) -> None:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    with Watched(tmp_path / "home", tmp_path / "work") as runner:
        for one in (stand_still, wait):
            runner.call(one)  # from now on it is known by its name, and imported
        blocked, waited = (runner.longest(Case(name, {})) for name in ("stand_still", "wait"))
    assert blocked > 250
    assert waited < blocked


def test_every_installed_tool_has_a_call() -> None:
    ours = {spec.name for spec in installed_tools() if spec.source.startswith(OURS)}
    assert ours <= {case.tool for case in (*ORDINARY, *HOSTILE)}
