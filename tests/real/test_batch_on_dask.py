"""Batches on the workers of dask: started here, or by a scheduler and workers that run by themselves, and killed."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.support_e2e import Marvin, wait_until
from tests.real.components import free_port
from tests.support.agents import processes_in
from tests.support.batches import Batches
from tests.support.pipeline import ADDER, PipelineModels

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("dask"), pytest.mark.timeout(900)]


@pytest.fixture
def models() -> Iterator[PipelineModels]:
    """Agents that build a small program."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("dask's distributed is not installed; run scripts/setup-real")
    with PipelineModels(ADDER) as server:
        yield server


@pytest.fixture
def batches(tmp_path: Path, models: PipelineModels, index: Path) -> Batches:
    """Tasks and a repository for them."""
    marvin = Marvin(tmp_path / "run", models, index)
    marvin.env |= {"OPENAI_COMPAT_API_KEY": "sk-the-key-itself-0123456789", "MARVIN_SANDBOX": "off"}
    marvin.config("prices: {qwen/qwen3-32b: {input: 1.0, output: 1.0}}\n")
    return Batches(marvin)


def parent_of(pid: int) -> int:
    """Whoever started a process (Linux)."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_workers_that_are_started_here_and_killed_lose_nothing(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(8)
    words = ("--engine=dask", "--workers=2", "--max-cost=1")
    running = batches.start(*words)
    os.kill(parent_of(batches.at_work(running, 1)), signal.SIGKILL)  # the worker of dask
    running.until(lambda: len(batches.over()) >= 3, "three tasks")
    running.send(signal.SIGKILL)  # the scheduler, which is in the same process
    assert running.finish().code == -signal.SIGKILL
    wait_until(lambda: not processes_in(batches.marvin.home), "the end of the workers and of their runs")
    first = batches.over()
    assert len(first) < 8
    done = batches.marvin.run(*batches.words(*words), limit=600)
    assert done.code == 0, done.err.decode() + done.text
    names = [f"t{number:02}" for number in range(1, 9)]
    assert batches.states() == dict.fromkeys(names, "passed")
    assert {name: batches.over()[name] for name in first} == first
    assert {name: batches.phases_done(name) for name in names} == {name: ["1a"] for name in names}
    assert any(len(json.loads(content)["tries"]) > 1 for content in batches.over().values())
    assert not processes_in(batches.marvin.home)


def test_a_scheduler_that_runs_by_itself_has_the_tasks_done_by_its_workers(
    batches: Batches, models: PipelineModels, tmp_path: Path
) -> None:
    batches.tasks(4)
    port = free_port()
    dask = Path(sys.executable).with_name("dask")
    address = f"tcp://127.0.0.1:{port}"
    worker = (dask, "worker", address, "--nworkers", "2", "--nthreads", "1", "--no-dashboard")
    commands = ((dask, "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"), worker)
    log = open(tmp_path / "dask.log", "wb")  # noqa: SIM115  # both write to it until they end
    started = [
        subprocess.Popen(command, env=batches.marvin.env, cwd=tmp_path, stdout=log, stderr=log) for command in commands
    ]
    scheduler = started[0]
    try:
        words = ("--engine=dask", f"--scheduler={address}", "--workers=2")
        running = batches.start(*words)
        running.until(lambda: len(batches.over()) >= 1 and batches.pipelines(), "a task")
        scheduler.kill()
        broken = running.finish(600)
        assert broken.code == 1, broken.err.decode()
        assert "The connection to the dask scheduler was lost" in broken.said
        assert batches.index()["ended"] == "failed"
        wait_until(lambda: not batches.pipelines(), "the end of the runs")
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)
        log.close()
    done = batches.marvin.run(*batches.words("--workers=2"), limit=600)  # another engine goes on with it
    assert done.code == 0, done.err.decode()
    assert batches.states() == dict.fromkeys(("t01", "t02", "t03", "t04"), "passed")
    assert {batches.phases_done(name)[0] for name in batches.states()} == {"1a"}
    assert b"sk-the-key" not in (tmp_path / "dask.log").read_bytes()
