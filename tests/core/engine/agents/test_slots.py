"""Room for agents that a whole run shares: never more than allowed, never none at all, and free after a kill."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from marvin_core.config.load import load
from marvin_core.engine.agents.slots import AgentSlots

HOLDER = """
import asyncio, sys
from pathlib import Path
from marvin_core.config.load import load
from marvin_core.engine.agents.slots import AgentSlots

async def hold():
    env = {"MARVIN_HOME": sys.argv[1], "MARVIN_AGENT_SLOTS": "7"}
    config = load([], env, cwd=Path(sys.argv[1]))[0]
    slots = AgentSlots(config.replace(data_folder=Path(sys.argv[1]), limits=config.limits.replace(agents=3)))
    async with slots.one(), slots.one(), slots.one():
        print("held", flush=True)
        sys.stdin.read()

asyncio.run(hold())
"""


def slots(folder: Path, given: str = "7", most: int = 3) -> AgentSlots:
    """The places of a session."""
    config = load([], {"MARVIN_HOME": str(folder), "MARVIN_AGENT_SLOTS": given}, cwd=folder.parent)[0]
    limits, timeouts = config.limits.replace(agents=most), config.timeouts.replace(agent_slot=0.01)
    return AgentSlots(config.replace(data_folder=folder, limits=limits, timeouts=timeouts))


async def tree(folder: Path, most: int, depth: int) -> int:
    """An agent that has two others work, in places of its own session, and so on; how many there were."""
    if not depth:
        return 1
    own = slots(folder, most=most)

    async def started() -> int:
        async with own.one():
            return await tree(folder, most, depth - 1)

    return 1 + sum(await asyncio.gather(started(), started()))


@pytest.mark.parametrize("most", [1, 2, 8])
def test_agents_that_start_agents_all_come_to_their_end(tmp_path: Path, most: int) -> None:
    """Whoever waits for its own agents keeps its place, and still no run waits for itself."""
    assert asyncio.run(asyncio.wait_for(tree(tmp_path, most, 4), 60)) == 31


def test_one_session_has_so_many_at_a_time(tmp_path: Path) -> None:
    working: list[int] = []
    seen: list[int] = []

    async def work(places: AgentSlots, number: int) -> None:
        async with places.one():
            working.append(number)
            await asyncio.sleep(0.001)
            seen.append(len(working))
            working.remove(number)

    async def go() -> None:
        places = slots(tmp_path)
        await asyncio.gather(*(work(places, number) for number in range(12)))

    asyncio.run(asyncio.wait_for(go(), 60))
    assert (max(seen), len(seen)) == (3, 12)


def test_other_processes_of_the_run_count_until_they_are_killed(tmp_path: Path) -> None:
    """The first agent of a session is let in all the same; another run has places of its own."""
    argv = [sys.executable, "-P", "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        async def go() -> None:
            ours, others = slots(tmp_path), slots(tmp_path, "900")
            async with ours.one(), others.one(), others.one(), others.one():
                waiting = asyncio.ensure_future(ours.one().__aenter__())
                for _ in range(5):
                    await asyncio.wait([waiting], timeout=0.01)
                assert not waiting.done()
                holder.kill()
                await asyncio.wait_for(waiting, 60)

        asyncio.run(go())


def test_a_wait_that_is_given_up_takes_no_place(tmp_path: Path) -> None:
    async def go() -> None:
        places = slots(tmp_path, most=1)
        async with places.one():
            waiting = asyncio.ensure_future(places.one().__aenter__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        async with asyncio.timeout(60), places.one():
            pass

    asyncio.run(go())


@pytest.mark.parametrize("given", ["", "-1", "x", "9" * 40, "²"])
def test_what_is_no_place_begins_a_run(tmp_path: Path, given: str) -> None:
    assert 0 <= slots(tmp_path, given).first < 1 << 50


def test_without_the_file_a_session_counts_alone(tmp_path: Path) -> None:
    async def go() -> None:
        places = slots(tmp_path / "missing")
        async with places.one(), places.one(), places.one():
            waiting = asyncio.ensure_future(places.one().__aenter__())
            await asyncio.wait([waiting], timeout=0.05)
            assert not waiting.done()
            waiting.cancel()

    asyncio.run(go())
