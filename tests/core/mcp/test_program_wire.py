"""The process of a server, and the reason for which its stream ended."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest

from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_core.mcp.stdio.streams import over_stdio
from marvin_core.mcp.stdio.wire import Wire
from tests.support.folders import Folders

LIMIT = 20.0
PING = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))


def test_a_program_that_ends_while_it_is_written_to_says_why(tmp_path: Path) -> None:
    # The program is gone before its standard error has been read: its child writes the reason a moment later.
    script = "(sleep 0.1; echo there is no cheese >&2) & exit 1"

    async def talk() -> str:
        runner = ProcessRunner(Folders(root=tmp_path, base=tmp_path), {"PATH": os.defpath}, Timeouts())
        reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        wire = Wire(reason.set_result)
        await wire.start(runner, ["sh", "-c", script], tmp_path, {}, outside=False)
        async with asyncio.timeout(LIMIT), over_stdio(wire) as (_, write):
            try:
                while not reason.done():
                    await write.send(PING)
                    await asyncio.sleep(0.01)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass  # nothing is written any more
            said = await reason
        await runner.close()
        return said

    assert asyncio.run(talk()) == "it ended: there is no cheese"


def test_a_program_that_sends_much_lets_others_work(tmp_path: Path) -> None:
    note = '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}'

    async def talk() -> int:
        runner = ProcessRunner(Folders(root=tmp_path, base=tmp_path), {"PATH": os.defpath}, Timeouts())
        wire = Wire(lambda _: None)
        await wire.start(runner, ["sh", "-c", f"yes '{note}' | head -2000"], tmp_path, {}, outside=False)
        turns = 0

        async def work() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        beside = asyncio.ensure_future(work())
        async with asyncio.timeout(LIMIT), over_stdio(wire) as (read, _):
            await asyncio.sleep(0.5)  # all of it waits to be read
            begun, count = turns, 0
            async for _message in read:
                count += 1
            between = turns - begun
        beside.cancel()
        await runner.close()
        assert count == 2000
        return between

    assert asyncio.run(talk()) >= 1000


def test_a_request_that_is_cancelled_while_the_program_takes_no_input_still_ends_it(tmp_path: Path) -> None:
    async def talk() -> str:
        runner = ProcessRunner(Folders(root=tmp_path, base=tmp_path), {"PATH": os.defpath}, Timeouts())
        reasons: list[str] = []
        wire = Wire(reasons.append)
        await wire.start(runner, ["sleep", "60"], tmp_path, {}, outside=False)
        large = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping", params={"a": "x" * 20_000_000}))
        async with asyncio.timeout(LIMIT), over_stdio(wire) as (_, write):
            await write.send(large)
            with anyio.move_on_after(0.05) as scope:
                await write.send(large)
            assert scope.cancelled_caught
            said = list(reasons)
        await runner.close()
        return said[0]

    assert asyncio.run(talk()) == "The program does not read what is sent to it."
