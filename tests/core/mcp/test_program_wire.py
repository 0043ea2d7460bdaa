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
from marvin_core.mcp.stdio import Wire, over_stdio
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
