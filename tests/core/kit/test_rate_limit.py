"""Turns at a service: kept for all processes, waited for without blocking, and never for too long."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marvin_core import RateLimit, RequestFailed, fetch
from marvin_core.testing import HttpReplay
from marvin_core.util.state_files import locked

HOST = "service.example"

# Eight processes that begin at the same moment and ask for a turn; those that get one say so.
CALLERS = """
import asyncio, os, sys
from pathlib import Path
from marvin_core import RateLimit, RequestFailed
folder, interval, longest, times = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
asyncio.run(RateLimit(folder, 0).wait("warm.example"))
reading, writing = os.pipe()
async def ask():
    for _ in range(times):
        try:
            await RateLimit(folder, interval, longest=longest).wait("service.example")
            os.write(writing, b"turn\\n")
        except RequestFailed:
            os.write(writing, b"none\\n")
children = []
for _ in range(8):
    child = os.fork()
    if not child:
        try:
            asyncio.run(ask())
        finally:
            os._exit(0)
    children.append(child)
os.close(writing)
with os.fdopen(reading) as stream:
    sys.stdout.write(stream.read())
for child in children:
    os.waitpid(child, 0)
"""


def callers(folder: Path, interval: float, longest: float, times: int) -> list[str]:
    argv = [sys.executable, "-P", "-c", CALLERS, *map(str, (folder, interval, longest, times))]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=150, check=True)
    return done.stdout.split()


def turn(limit: RateLimit, host: str = HOST) -> None:
    asyncio.run(limit.wait(host))


def test_of_eight_processes_one_gets_the_turn(tmp_path: Path) -> None:
    told = callers(tmp_path, interval=3_600, longest=0, times=2)
    assert sorted(told) == ["none"] * 15 + ["turn"]


def test_processes_wait_for_each_other(tmp_path: Path) -> None:
    began = time.time()
    assert callers(tmp_path, interval=0.02, longest=100, times=4) == ["turn"] * 32
    assert time.time() - began >= 31 * 0.02


def test_a_turn_that_is_too_far_off_is_told_and_not_taken(tmp_path: Path) -> None:
    limit = RateLimit(tmp_path, 100, longest=50)
    turn(limit)
    for _ in range(3):
        with pytest.raises(
            RequestFailed, match=rf"{HOST} accepts no further requests now: it would be \d+ s"
        ) as raised:
            turn(limit)
        assert 50 < (raised.value.retry_after or 0) <= 100
    turn(limit, "other.example")


def test_a_host_that_asks_for_it_is_left_alone_by_all(tmp_path: Path) -> None:
    asyncio.run(RateLimit(tmp_path, 1).postpone(HOST, 1e9))
    with pytest.raises(RequestFailed, match=f"{HOST} accepts no further requests now: it would be") as raised:
        turn(RateLimit(tmp_path, 0.01))
    assert (raised.value.retry_after or 0) <= 7 * 24 * 3_600


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"written": "x", "next": {}}', '{"written": 1, "next": 3}', '{"written": 1}',
     '{"written": 1, "next": {"service.example": "soon"}}', '{"written": 1, "next": {"service.example": 1e300}}',
     '{"written": 99999999999, "next": {"service.example": 99999999999}}',
     f'{{"written": 1, "next": {{"service.example": 1{"0" * 400}}}}}', f'{{"written": 1{"0" * 400}, "next": {{}}}}'],
)  # fmt: skip
def test_a_file_that_means_nothing_delays_nobody(tmp_path: Path, content: str) -> None:
    """The last one was written before the clock was set back."""
    (tmp_path / "turns.json").write_text(content)
    turn(RateLimit(tmp_path, 100, longest=0))
    kept = json.loads((tmp_path / "turns.json").read_text())
    assert kept["next"][HOST] > time.time()


def test_hosts_that_may_be_asked_again_are_forgotten(tmp_path: Path) -> None:
    for number in range(20):
        turn(RateLimit(tmp_path, 0), f"host-{number}.example")
    assert json.loads((tmp_path / "turns.json").read_text())["next"] == {}


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RequestFailed, match="which records when services may be called again, cannot be used"):
        turn(RateLimit(tmp_path / "file", 1))


def test_the_event_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    async def run() -> None:
        with locked(tmp_path / "turns.json", 1, 0.01):
            waiting = asyncio.ensure_future(RateLimit(tmp_path, 0).wait(HOST))
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert not waiting.done()
        await waiting

    asyncio.run(run())


def test_a_request_waits_for_its_turn_and_passes_on_what_the_service_asks(
    tmp_path: Path, marvin_http: HttpReplay
) -> None:
    url = f"https://{HOST}/x"
    marvin_http.on("GET", url, status=429, headers={"retry-after": "500"})

    async def ask() -> None:
        async with marvin_http.client() as client:
            await fetch(client, url, turns=RateLimit(tmp_path, 0.01))

    with pytest.raises(RequestFailed, match="it asks to wait 500 s"):
        asyncio.run(ask())
    with pytest.raises(RequestFailed, match="accepts no further requests now: it would be"):
        asyncio.run(ask())
    assert len(marvin_http.requests) == 1
