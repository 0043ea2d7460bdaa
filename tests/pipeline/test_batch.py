"""Batches of real runs: each task in a clone of its own, killed in the middle in every way, and gone on with."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support_e2e import Marvin, wait_until
from tests.support.batches import Batches
from tests.support.pipeline import PipelineModels, said

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def batches(marvin: Marvin) -> Batches:
    """Tasks and a repository for them."""
    return Batches(marvin)


def test_each_task_has_a_clone_a_branch_and_reports(batches: Batches, models: PipelineModels) -> None:
    batches.marvin.git("branch", "old")
    batches.tasks(1, {"id": "other", "prompt": "Build another.", "base": "old"})
    before = batches.marvin.git("for-each-ref")
    done = batches.marvin.run(*batches.words(), limit=600)
    assert done.code == 0, done.err.decode() + done.text
    assert "The batch is done: 2 passed." in done.text
    assert batches.marvin.git("for-each-ref") == before
    assert batches.marvin.git("status", "--porcelain") == ""
    index = batches.index()
    assert (index["exit_code"], index["states"], index["ended"]) == (0, {"passed": 2}, "done")
    assert done.cost()["session_cost"] == pytest.approx(index["cost"])
    assert index["cost"] > 0
    for one in index["tasks"]:
        name = one["id"]
        assert batches.git(name, "branch", "--show-current").strip() == one["branch"] == f"marvin/{name}"
        assert batches.git(name, "rev-parse", "HEAD").strip() == one["commit"] != one["base"]
        assert "# The specification of adder" in batches.git(name, "show", f"{one['branch']}:.marvin/spec.md")
        assert json.loads((batches.results / name / "report/pipeline-report.json").read_text())["ended"] == "paused"
        assert one["next_phase"] == "1a_review"
        assert "1a: passed." in (batches.results / name / "log.txt").read_text()
        assert len(one["tries"]) == 1
    assert batches.junit().get("tests") == "2"
    records, asked = batches.over(), list(models.asked)
    again = batches.marvin.run(*batches.words(), limit=600)
    assert (again.code, batches.over(), models.asked) == (0, records, asked)
    assert again.cost()["session_cost"] == 0


def test_twenty_tasks_outlive_the_kill_of_a_worker_of_the_scheduler_and_of_everything(
    batches: Batches, models: PipelineModels
) -> None:
    """Nothing is lost, and nothing done twice."""
    batches.tasks(20)
    flags = ("--workers=3",)
    running = batches.start(*flags)
    os.kill(batches.at_work(running, 3), signal.SIGKILL)  # a worker
    running.until(lambda: "was stopped: signal 9" in running.err.decode(), "its end")
    running.until(lambda: len(batches.over()) >= 7, "seven tasks")
    running.send(signal.SIGKILL)  # the scheduler
    assert running.finish().code == -signal.SIGKILL
    first = batches.over()
    assert len(first) < 20
    running = batches.start(*flags)
    running.until(lambda: len(batches.over()) >= 12, "twelve tasks")
    batches.kill_everything()
    assert running.finish().code == -signal.SIGKILL
    batches.until_nothing_runs()
    second = batches.over()
    assert len(second) < 20
    done = batches.marvin.run(*batches.words(*flags), limit=800)
    assert done.code == 0, done.err.decode() + done.text
    third = batches.over()
    assert {name: third[name] for name in second} == second
    assert {name: second[name] for name in first} == first
    names = [f"t{number:02}" for number in range(1, 21)]
    assert batches.states() == dict.fromkeys(names, "passed")
    assert {name: batches.phases_done(name) for name in names} == {name: ["1a"] for name in names}
    killed = sum(len(json.loads(content)["tries"]) - 1 for content in third.values())
    assert 1 <= killed <= 1 + 3 + 3
    # An agent that came to its end is not asked again: what was killed had one agent of each kind at the most.
    assert models.asked.count("spec") <= 20 + killed
    assert models.asked.count("ux") <= 20 + killed
    assert batches.junit().get("tests") == "20"
    assert {batches.git(name, "branch", "--show-current").strip() for name in names} == {f"marvin/{n}" for n in names}
    assert batches.everything() == []


def test_a_task_whose_workers_always_die_is_lost_and_the_others_are_not(
    batches: Batches, models: PipelineModels
) -> None:
    batches.tasks(1, {"id": "bad", "prompt": "Build a bomb."})
    prices = (batches.marvin.config_folder / "config.yaml").read_text()
    batches.marvin.config(f"{prices}packs: {{pipeline: {{batch_tries: 2}}}}\n")
    usual = models.scripts["spec"]

    def spec(asked: Any) -> Any:
        if "bomb" in asked.prompt:
            for pid in batches.pipelines():
                if b"/bad/" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        return usual(asked)

    models.scripts["spec"] = spec
    done = batches.marvin.run(*batches.words(), limit=600)
    assert done.code == 1, done.err.decode() + done.text
    assert batches.states() == {"t01": "passed", "bad": "lost"}
    assert len(batches.record("bad")["tries"]) == 2
    assert batches.index()["cost"] is None
    (error,) = batches.junit().findall("testcase/error")
    assert "2 workers ended" in (error.get("message") or "")
    models.scripts["spec"] = usual
    assert batches.marvin.run(*batches.words(), limit=600).code == 1
    again = batches.marvin.run(*batches.words("--retry"), limit=600)
    assert again.code == 0, again.err.decode()
    assert batches.phases_done("bad") == ["1a"]


def test_a_batch_that_is_interrupted_ends_its_runs_and_has_a_report(batches: Batches, models: PipelineModels) -> None:
    """I25"""
    batches.tasks(3)
    held = models.holds["spec"] = threading.Event()
    running = batches.start()
    running.until(lambda: models.was_asked("spec"), "the first agent")
    running.send(signal.SIGTERM)
    done = running.finish()
    held.set()
    assert done.code == 130
    done.cost()
    assert batches.everything() == []
    index = batches.index()
    assert (index["ended"], index["exit_code"], index["states"]) == ("interrupted", 130, {"waiting": 3})
    del models.holds["spec"]
    assert batches.marvin.run(*batches.words(), limit=600).code == 0
    assert batches.states() == dict.fromkeys(("t01", "t02", "t03"), "passed")


def test_the_batch_and_each_task_have_ceilings_over_all_runs(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(4, {"id": "poor", "prompt": "Build it cheaply.", "max_cost": 0.000002})
    one_by_one = ("--workers=1",)
    done = batches.marvin.run("--max-cost=0.06", *batches.words(*one_by_one), limit=600)
    assert done.code == 3, done.err.decode() + done.text
    states = batches.states()
    assert "passed" in states.values()
    assert {"budget", "waiting"} & set(states.values())
    assert batches.index()["cost"] <= 0.06
    over = batches.over()
    again = batches.marvin.run("--max-cost=0.06", *batches.words(*one_by_one), limit=600)
    assert again.code == 3
    assert {name: json.loads(content)["state"] for name, content in batches.over().items()} == {
        name: json.loads(content)["state"] for name, content in over.items()
    }
    rich = batches.marvin.run("--max-cost=1", *batches.words(), limit=600)
    assert rich.code == 3
    assert batches.states() == {**dict.fromkeys(("t01", "t02", "t03", "t04"), "passed"), "poor": "budget"}


def test_flags_behind_the_words_count_and_reach_the_runs(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(1, {"id": "own", "prompt": "Build it.", "models": {"plan_gen": "qwen/qwen3-32b"}})
    seen: dict[bool, str] = {}
    usual = models.scripts["spec"]

    def spec(asked: Any) -> Any:
        seen["number 1" in asked.prompt] = asked.model
        return usual(asked)

    models.scripts["spec"] = spec
    done = batches.marvin.run(*batches.words("--model", "plan_gen=qwen/qwen3-14b", "--max-cost=1"), limit=600)
    assert done.code == 0, done.err.decode()
    assert seen == {True: "qwen/qwen3-14b", False: "qwen/qwen3-32b"}


def test_strict_holds_also_of_tasks_that_passed_without_it(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(2)
    assert batches.marvin.run(*batches.words(), limit=600).code == 0
    gate = {
        "name": "no_mocks",
        "phase": "1a",
        "outcome": "failed",
        "reason": "It stands in.",
        "tests": [],
        "places": [],
    }
    weak = {**gate, "commit": batches.record("t02")["commit"], "accepted_by": ""}
    log = batches.results / "t02/repository/.marvin/logs/evidence.jsonl"
    log.write_text(f"{json.dumps(weak)}\n")
    done = batches.marvin.run(*batches.words("--strict"), limit=600)
    assert done.code == 5, done.err.decode() + done.text
    assert batches.states() == {"t01": "passed", "t02": "tests"}
    assert "It stands in." in batches.record("t02")["reason"]
    before = batches.over()
    assert batches.marvin.run(*batches.words("--strict"), limit=600).code == 5
    assert batches.over() == before, "what was judged is not judged again"
    assert models.asked.count("ux") == 2, "no work is done for it"


def test_a_branch_is_pushed_where_that_is_asked_for(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(1)
    done = batches.marvin.run(*batches.words("--push"), limit=600)
    assert done.code == 0, done.err.decode()
    assert batches.marvin.git("rev-parse", "marvin/t01").strip() == batches.record("t01")["commit"]
    assert batches.record("t01")["pushed"] is True


def test_what_stops_a_task_is_told_and_gone_on_with_where_that_is_asked_for(
    batches: Batches, models: PipelineModels
) -> None:
    batches.tasks(1, {"id": "nobase", "prompt": "Build it.", "base": "none"})
    usual = models.scripts["spec"]
    models.scripts["spec"] = lambda asked: said("I write nothing.")
    done = batches.marvin.run(*batches.words(), limit=600)
    assert done.code == 1
    assert batches.states() == {"t01": "failed", "nobase": "failed"}
    assert "no branch, tag or commit 'none'" in batches.record("nobase")["reason"]
    assert "spec.md" in batches.record("t01")["reason"]
    models.scripts["spec"] = usual
    batches.marvin.git("branch", "none")
    again = batches.marvin.run(*batches.words("--retry"), limit=600)
    assert again.code == 0, again.err.decode()
    assert models.asked.count("ux") == 2, "the one that was done already is not asked again"


def test_nothing_is_begun_where_something_is_wrong(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(2, {"id": "t01", "prompt": "Again."})
    done = batches.marvin.run(*batches.words())
    assert done.code == 2
    assert "line 3: the id 't01' is already used in line 1" in done.said
    assert not batches.results.exists()
    batches.tasks(1)
    for words, why in (
        (["--until=9"], "--until '9' is not a phase"),
        (["--engine=spark"], "Unknown engine 'spark'"),
        (["more.jsonl"], "is an extra argument. A batch has one file of tasks"),
        (["--task-cost=0"], "is not an amount"),
    ):
        refused = batches.marvin.run(*batches.words(), *words)
        assert refused.code == 2, words
        assert why in refused.said
    assert batches.marvin.run(*batches.words(), env={"MARVIN_DEPTH": "1"}).code == 2
    assert models.asked == []


def test_a_task_that_became_another_one_is_refused(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(1)
    assert batches.marvin.run(*batches.words(), limit=600).code == 0
    asked = len(models.asked)
    batches.tasks(0, {"id": "t01", "prompt": "Build something else."})
    done = batches.marvin.run(*batches.words())
    assert done.code == 2
    assert "t01" in done.said
    assert len(models.asked) == asked


def test_one_batch_at_a_time_works_in_a_folder(batches: Batches, models: PipelineModels) -> None:
    batches.tasks(1)
    held = models.holds["spec"] = threading.Event()
    running = batches.start()
    running.until(lambda: models.was_asked("spec"), "the first agent")
    other = batches.marvin.run(*batches.words())
    assert other.code == 1
    assert "Another batch is running in" in other.said
    held.set()
    assert running.finish(600).code == 0
    wait_until(lambda: not batches.everything(), "the end of all")
