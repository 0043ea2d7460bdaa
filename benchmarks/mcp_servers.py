"""The cost of MCP servers: a start with some configured, and a call compared with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mcp import Client, StdioServerParameters

from benchmarks import answers
from benchmarks.lab import ROOT, BenchmarkError, Lab, Run, interleaved, median
from benchmarks.pairs import Pairs
from benchmarks.table import Row
from marvin_core.app import App
from marvin_core.config.load import load

_GOAL = 1.3
_START_GOAL = 1.02
_SERVERS = 5
_CALLS = 50
_WITH_SDK = [sys.executable, "-P", str(ROOT / "benchmarks" / "mcp_sdk_server.py")]
_SERVER = [sys.executable, "-S", "-P", str(ROOT / "tests" / "support" / "mcp_server.py"), "good"]


def rows(lab: Lab, count: int) -> Iterator[Row]:
    """Each measured `count` times, by turns with what it is compared to."""
    yield _start(lab, 4 * count)  # the rows with a narrow goal need more runs
    yield asyncio.run(_call("a call of an MCP server / the SDK's client", _SERVER, count))
    yield asyncio.run(_call("  of a server written with the SDK", _WITH_SDK, count))


def _start(lab: Lab, count: int) -> Row:
    """A start to its first request with servers whose tools are cached, compared with one without servers.

    Each has a home of its own, so that no start finds a configuration that was changed since the one before.
    """
    with Lab(lab.program, lab.service) as other:
        noted = other.folder / "started"
        known = [*_SERVER, str(noted)]
        entries = {f"server{number}": {"command": known[0], "args": known[1:]} for number in range(_SERVERS)}
        for each, servers in ((lab, {}), (other, entries)):
            each.configure({"mcp_servers": servers, "sandbox": "off"})
        try:
            for each in (lab, other):
                _one(each)  # servers are asked, once
            _check(noted, other)
            runs = interleaved({"none": partial(_one, lab), "some": partial(_one, other)}, count)
            _check(noted, other)
        finally:
            lab.configure(None)
    none, some = ([run.to_first_request for run in runs[name]] for name in ("none", "some"))
    _, ratio, _ = Pairs("start", "ms", none, some).interval
    spent = [median([run.cpu for run in runs[name]]) * 1e3 for name in ("some", "none")]
    how = f"{median(some):.0f} ms; {median(none):.0f} ms without; processor {spent[0]:.0f} and {spent[1]:.0f} ms"
    return Row(f"exec to first request, {_SERVERS} MCP servers / none", ratio, _START_GOAL, "x", how)


def _one(lab: Lab) -> Run:
    """The usual start: a choice of tools would leave out those of the servers."""
    return lab.run(lab.with_all_tools(), [answers.text(1)])


def _check(noted: Path, lab: Lab) -> None:
    """See that each server was started once, and that what it brings is kept: else other work was measured."""
    started = len(noted.read_text().split())
    (index,) = lab.folder.glob("home/.cache/**/mcp-servers.json")
    kept = json.loads(index.read_text().partition("\n")[0])["servers"]
    if started != _SERVERS or len(kept) != _SERVERS or not all(one["names"] for one in kept.values()):
        raise BenchmarkError(f"{started} servers were started and {len(kept)} kept, of {_SERVERS}")


async def _call(what: str, server: Sequence[str], count: int) -> Row:
    """Calls of one tool through a session, and by the SDK's own client, each with a process of the same server.

    The first server answers at once, which leaves the ratio of the two clients. The bare client parses no arguments,
    checks no permission, redacts nothing, and has neither a time limit nor events. Marvin sends all calls but the first
    past the SDK's layers.
    """
    with tempfile.TemporaryDirectory(prefix="marvin-bench-") as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        config = home / ".config" / "marvin"
        for each in (config, work):
            each.mkdir(parents=True)
        (config / "config.yaml").write_text(
            json.dumps({"mcp_servers": {"one": {"command": server[0], "args": server[1:]}}, "sandbox": "off"})
        )
        loaded, secrets = load(["--working-dir", str(work)], {"HOME": str(home)}, cwd=work)
        session = App(loaded, secrets, lambda text: None).session(asker=None, interactive=False)
        assert session.parts.setup.tool_source is not None
        await session.parts.setup.tool_source.ready()
        arguments = {"a": 2, "b": 3}
        try:
            async with Client(StdioServerParameters(command=server[0], args=[*server[1:]])) as bare:
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
    return Row(what, value / reference, _GOAL, "x", how)
