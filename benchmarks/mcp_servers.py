"""The cost of MCP servers: a start with some configured, and a call compared with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from mcp import Client, StdioServerParameters

from benchmarks import answers
from benchmarks.lab import ROOT, Lab, interleaved, median
from benchmarks.table import Row
from marvin_core.app import App
from marvin_core.config.load import load

_GOAL = 1.3
_START_GOAL = 1.02
_SERVERS = 5
_CALLS = 50
_SERVER = [sys.executable, "-S", "-P", str(ROOT / "tests" / "support" / "mcp_server.py"), "good"]


def rows(lab: Lab, count: int) -> Iterator[Row]:
    """Each measured `count` times, by turns with what it is compared to."""
    yield _start(lab, count)
    yield asyncio.run(_call(count))


def _start(lab: Lab, count: int) -> Row:
    """A start to its first request. The servers' tools are cached, so none of them is started."""
    config = lab.folder / "home" / ".config" / "marvin" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    entries = {f"server{number}": {"command": _SERVER[0], "args": _SERVER[1:]} for number in range(_SERVERS)}

    def taken(servers: object) -> float:
        config.write_text(json.dumps({"mcp_servers": servers, "sandbox": "off"}))
        lab.run(
            lab.marvin(), [answers.text(1)]
        )  # a file that was changed is checked, once, and servers are asked, once
        return lab.run(lab.marvin(), [answers.text(1)]).to_first_request

    try:
        times = interleaved({"some": partial(taken, entries), "none": partial(taken, {})}, count)
    finally:
        config.unlink(missing_ok=True)
    some, none = median(times["some"]), median(times["none"])
    how = f"{some:.0f} ms; {none:.0f} ms without"
    return Row(f"exec to first request, {_SERVERS} MCP servers / none", some / none, _START_GOAL, "x", how)


async def _call(count: int) -> Row:
    """Calls of one tool through a session, and by the SDK's own client."""
    with tempfile.TemporaryDirectory(prefix="marvin-bench-") as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        config = home / ".config" / "marvin"
        for each in (config, work):
            each.mkdir(parents=True)
        (config / "config.yaml").write_text(
            json.dumps({"mcp_servers": {"one": {"command": _SERVER[0], "args": _SERVER[1:]}}, "sandbox": "off"})
        )
        loaded, secrets = load(["--working-dir", str(work)], {"HOME": str(home)}, cwd=work)
        session = App(loaded, secrets, lambda text: None).session(asker=None, interactive=False)
        assert session.parts.setup.tool_source is not None
        await session.parts.setup.tool_source.ready()
        arguments = {"a": 2, "b": 3}
        try:
            async with Client(StdioServerParameters(command=_SERVER[0], args=_SERVER[1:])) as bare:
                ours, alone = [], []
                for _ in range(count):
                    begun = time.perf_counter()
                    for _ in range(_CALLS):
                        assert (await session.call_tool("one__add", arguments)).text == "5"
                    ours.append((time.perf_counter() - begun) * 1e3 / _CALLS)
                    begun = time.perf_counter()
                    for _ in range(_CALLS):
                        await bare.call_tool("add", arguments)
                    alone.append((time.perf_counter() - begun) * 1e3 / _CALLS)
        finally:
            await session.close()
    value, reference = median(ours), median(alone)
    how = f"{value:.2f} ms; the SDK's client {reference:.2f} ms"
    return Row("a call of an MCP server / the SDK's client", value / reference, _GOAL, "x", how)
