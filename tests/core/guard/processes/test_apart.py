"""Processes that go on when the one ends that started them: known by their locks, whatever became of them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from marvin_core import ApartOrder, Timeouts, ToolError
from marvin_core.api.limits import Limits
from marvin_core.guard.processes.apart import ApartJobs
from marvin_core.guard.processes.runner import ProcessRunner
from tests.support.folders import Folders

FAR = 60.0
TIMEOUTS = Timeouts(close=FAR, job_poll=0.02)
STARTS = """
import asyncio, sys
from pathlib import Path
from marvin_core import ApartOrder, Timeouts
from marvin_core.guard.processes.apart import ApartJobs
folder, root = Path(sys.argv[1]), Path(sys.argv[2])
order = ApartOrder(
    name="review-1", title="t", root=root, argv=["/bin/sleep", "600"], environment={"PATH": "/usr/bin:/bin"}, most=3
)
asyncio.run(ApartJobs(folder, Timeouts()).start(order))
"""


def order(name: str, root: Path, script: str = "exec sleep 600", **fields: object) -> ApartOrder:
    """What runs a line of the shell."""
    environment: Mapping[str, str] = {"PATH": os.defpath, "WHO": "me"}
    usual = ApartOrder(
        name=name,
        title=f"the title of {name}",
        root=root,
        argv=["/bin/sh", "-c", script],
        environment=environment,
        most=3,
    )
    return usual.replace(**fields)


@pytest.fixture
def apart(tmp_path: Path) -> ApartJobs:
    return ApartJobs(tmp_path / "apart", TIMEOUTS)


async def until(reached: Callable[[], bool]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(FAR):
        while True:
            if reached():
                return
            await asyncio.sleep(0.02)


async def ended(apart: ApartJobs, name: str) -> None:
    """Wait until one has ended."""
    await until(lambda: (job := apart.find(name)) is None or not job.running)


def test_one_is_listed_for_its_folder_and_stopped(apart: ApartJobs, tmp_path: Path) -> None:
    async def work() -> None:
        job = await apart.start(order("review-1", tmp_path))
        assert (job.running, job.command) == (True, "the title of review-1")
        assert [one.id for one in apart.list(tmp_path)] == ["review-1"]
        assert apart.list(tmp_path.parent) == apart.list(tmp_path), "a folder above it lists it"
        assert apart.running(tmp_path.parent) == apart.running(tmp_path) == apart.list(tmp_path)
        for other in (tmp_path / "other", tmp_path.with_name(f"{tmp_path.name}er")):
            assert (apart.list(other), apart.running(other), apart.find("review-1", other)) == ([], [], None)
        stopped = await apart.stop("review-1")
        assert not stopped.running
        assert apart.running(tmp_path) == []
        assert apart.find("review-1") == stopped

    asyncio.run(work())


def test_its_output_goes_to_its_log(apart: ApartJobs, tmp_path: Path) -> None:
    async def work() -> None:
        await apart.start(order("review-1", tmp_path, "echo one; echo $WHO >&2; cat"))
        await ended(apart, "review-1")

    asyncio.run(work())
    assert apart.output("review-1", 100) == (b"one\nme\n", 7)
    assert apart.output("review-1", 100, 4) == (b"me\n", 7)
    assert apart.output("review-1", 2) == (b"e\n", 7)


def test_it_outlives_the_process_that_started_it(apart: ApartJobs, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", STARTS, str(tmp_path / "apart"), str(tmp_path)]
    subprocess.run(argv, check=True, timeout=FAR)
    job = apart.find("review-1")
    assert job is not None
    assert job.running
    assert os.getsid(job.pid) == job.pid
    assert not asyncio.run(apart.stop("review-1")).running


def test_one_that_was_killed_does_not_run_whatever_its_number_is(apart: ApartJobs, tmp_path: Path) -> None:
    async def work() -> None:
        job = await apart.start(order("review-1", tmp_path))
        os.kill(job.pid, signal.SIGKILL)
        await ended(apart, "review-1")
        # Its number belongs to another one by now, which is left alone.
        path = tmp_path / "apart" / "review-1.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "pid": os.getppid()}))
        assert not (await apart.stop("review-1")).running

    asyncio.run(work())


def test_one_that_hears_nothing_is_killed(tmp_path: Path) -> None:
    apart = ApartJobs(tmp_path / "apart", Timeouts(close=0.2, agent_end=0.1, kill_limit=FAR, job_poll=0.02))

    async def work() -> None:
        await apart.start(order("review-1", tmp_path, "trap '' TERM; echo ready; exec sleep 600"))
        await until(lambda: apart.output("review-1", 10)[1] > 0)
        assert not (await apart.stop("review-1")).running

    asyncio.run(work())


def test_two_that_stop_it_send_one_signal(apart: ApartJobs, tmp_path: Path) -> None:
    """The second one would have it drop what it does at its end."""
    end = tmp_path / "end"
    script = f"trap 'echo asked' TERM; echo ready; while [ ! -e '{end}' ]; do sleep 0.02; done"

    async def work() -> None:
        await apart.start(order("review-1", tmp_path, script))
        await until(lambda: apart.output("review-1", 100)[0] == b"ready\n")
        first = asyncio.ensure_future(apart.stop("review-1"))
        await until(lambda: b"asked" in apart.output("review-1", 100)[0])
        others = [asyncio.ensure_future(ApartJobs(tmp_path / "apart", TIMEOUTS).stop("review-1")) for _ in range(3)]
        await asyncio.sleep(0.3)  # for them to send one, if they did
        end.touch()
        for job in await asyncio.gather(first, *others):
            assert not job.running

    asyncio.run(work())
    assert apart.output("review-1", 100)[0] == b"ready\nasked\n"


def test_no_more_of_a_kind_run_than_may(apart: ApartJobs, tmp_path: Path) -> None:
    async def work() -> None:
        await apart.start(order("review-1", tmp_path, most=2))
        await apart.start(order("other-1", tmp_path, most=1))
        await apart.start(order("review-2", tmp_path / "elsewhere", most=2))
        with pytest.raises(ToolError, match=r"2 of this kind are already running.*review-1, review-2"):
            await apart.start(order("review-3", tmp_path, most=2))
        with pytest.raises(ToolError, match="A job named review-1 already"):
            await apart.start(order("review-1", tmp_path))
        await apart.stop("review-1")
        await apart.start(order("review-3", tmp_path, most=2))
        for name in ("review-2", "review-3", "other-1"):
            await apart.stop(name)

    asyncio.run(work())


def test_ten_that_are_started_at_once_are_three(apart: ApartJobs, tmp_path: Path) -> None:
    async def work() -> None:
        starts = (apart.start(order(f"review-{number}", tmp_path)) for number in range(10))
        results = await asyncio.gather(*starts, return_exceptions=True)
        started = [one for one in results if not isinstance(one, BaseException)]
        assert len(started) == 3
        assert all(isinstance(one, ToolError) for one in results if isinstance(one, BaseException))
        await asyncio.gather(*(apart.stop(job.id) for job in started))

    asyncio.run(work())


@pytest.mark.parametrize("name", ["", "review", "../x-1", "Review-1", "review-", "review-1/..", "r" * 40 + "-1"])
def test_names_that_are_none_are_refused(apart: ApartJobs, tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError, match="is not a job name"):
        asyncio.run(apart.start(order(name, tmp_path)))
    assert apart.find(name) is None


def test_what_cannot_be_started_leaves_no_record(apart: ApartJobs, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="was not started"):
        asyncio.run(apart.start(order("review-1", tmp_path, argv=["/no/such/program"])))
    assert apart.list() == []
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="was not started"):
        asyncio.run(ApartJobs(tmp_path / "file" / "apart", TIMEOUTS).start(order("review-1", tmp_path)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"pid": "x"}',
        '{"pid": 1}',
        '{"pid": true, "root": "/", "title": "t", "begun": 1}',
        '{"pid": 1, "root": 1, "title": "t", "begun": 1}',
        "[" * 90_000,
    ],
)
def test_a_damaged_record_is_passed_over(apart: ApartJobs, tmp_path: Path, text: str) -> None:
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart" / "review-1.json").write_text(text)
    assert apart.list() == []
    assert apart.find("review-1") is None
    with pytest.raises(ToolError, match="There is no job"):
        asyncio.run(apart.stop("review-1"))


def test_those_that_ended_long_ago_are_forgotten(apart: ApartJobs, tmp_path: Path) -> None:
    async def work() -> None:
        await apart.start(order("review-1", tmp_path, "true"))
        await apart.start(order("review-2", tmp_path))
        await ended(apart, "review-1")
        for path in (tmp_path / "apart").iterdir():
            os.utime(path, (0, 0))
        await apart.start(order("review-3", tmp_path, "true"))
        assert [job.id for job in apart.list()] == ["review-2", "review-3"]
        await apart.stop("review-2")
        await ended(apart, "review-3")

    asyncio.run(work())


def test_the_runner_of_a_session_lists_and_stops_it_and_does_not_end_it(apart: ApartJobs, tmp_path: Path) -> None:
    async def work() -> None:
        folders = Folders(root=tmp_path, base=tmp_path)
        runner = ProcessRunner(folders, {"PATH": os.defpath}, TIMEOUTS, None, Limits())
        runner.apart = lambda: apart
        await apart.start(order("review-1", tmp_path, "echo hi; exec sleep 600"))
        await apart.start(order("review-2", tmp_path.with_name("elsewhere")))
        assert [(job.id, job.running) for job in runner.job_list()] == [("review-1", True)]
        # What calls leave is ended, and it is none of that.
        done = await runner.run(["sh", "-c", "setsid sleep 600 & echo done"], timeout=FAR)
        assert done.output == b"done\n"
        assert runner.job_list()[0].running
        with pytest.raises(ToolError, match=r"There is no job 'review-2'.*: review-1\."):
            await runner.stop_job("review-2")
        await runner.close()
        assert [job.running for job in apart.list()] == [True, True]
        later = ProcessRunner(folders, {"PATH": os.defpath}, TIMEOUTS, None, Limits())
        later.apart = lambda: apart
        assert later.job_output("review-1", 100)[0] == b"hi\n"
        assert not (await later.stop_job("review-1")).running
        assert later.job_list() == []
        assert later.job_output("review-1", 100)[0] == b"hi\n", "whoever waited for it can read its end"
        await later.close()
        await apart.stop("review-2")

    asyncio.run(work())
