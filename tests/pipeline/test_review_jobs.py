"""Reviews of a code base, each in a process of its own that goes on when the one ends that started it."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from pathlib import Path

import pytest

from tests.e2e.support_e2e import Marvin, wait_until
from tests.support.agents import processes_in
from tests.support.pipeline import PipelineModels, called, said, steps
from tests.support.reviews import CODE, FIXED, FIXER, PERSON, REVIEWER, branch_of, job_of, state_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_review_that_is_waited_for_mends_on_a_branch(
    marvin: Marvin, models: PipelineModels, project: Path, sandbox: str
) -> None:
    marvin.env["MARVIN_SANDBOX"] = sandbox
    (project / "means.py").write_text(f"{CODE}# not committed\n")
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code == 0, done.err.decode() + done.text
    branch = re.search(r"review/[\d-]+", done.text)
    assert branch is not None
    assert "passed" in done.text
    assert "Not in it: 1 file " in done.text
    # The person's folder is as it was, and the branch has the change and nothing of Marvin's own.
    assert (project / "means.py").read_text() == f"{CODE}# not committed\n"
    assert marvin.git("branch", "--show-current") != branch[0]
    assert marvin.git("diff", "--name-only", f"HEAD...{branch[0]}").split() == ["means.py"]
    assert marvin.git("show", f"{branch[0]}:means.py") == FIXED
    assert not list((project / ".marvin/worktrees").glob("review-*"))
    status = marvin.run("tools", "call", "review_status", f"job_id={job_of(marvin)}").text
    assert "git merge" in status
    assert models.asked.count(REVIEWER) >= 3
    report = re.search(r"Report: (\S+)", status)
    assert report is not None
    assert "divides by zero" in Path(report[1]).read_text()


def test_a_review_in_whose_worktree_is_another_repository_keeps_it(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    """A commit has none of its files, and those of a submodule may be in no commit."""
    fixer = models.scripts[FIXER]
    commit = "git -c user.name=x -c user.email=x commit --quiet -m App"
    command = f"mkdir app && cd app && git init -q && echo 1 > x && git add x && {commit} && cd .. && git add app"
    models.scripts[FIXER] = lambda asked: (
        called(("run_command", {"command": f"{command} && {commit}"})) if asked.step == 5 else fixer(asked)
    )
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert "passed" in done.text
    assert "No commit contains the files of other repositories in it: app." in done.text
    (tree,) = (project / ".marvin/worktrees").glob("review-*")
    assert f"What is not committed is in {tree}." in done.text
    assert (tree / "app/x").read_text() == "1\n"
    assert marvin.git("show", f"{branch_of(marvin)}:means.py") == FIXED


def test_a_review_that_left_new_files_out_of_its_commits_keeps_them(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    """A made-up database of a test and a key in a new test are nowhere else."""
    fixer = models.scripts[FIXER]
    command = "mkdir node_modules; echo 1 | tee sample.sqlite > node_modules/x; echo '-----BEGIN PRIVATE KEY' > key.py"
    models.scripts[FIXER] = lambda asked: (
        called(("run_command", {"command": command})) if asked.step == 5 else fixer(asked)
    )
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert "passed" in done.text
    assert "No commit contains these new files: sample.sqlite, key.py." in done.text
    (tree,) = (project / ".marvin/worktrees").glob("review-*")
    assert (tree / "sample.sqlite").read_text() == "1\n"
    assert marvin.git("show", f"{branch_of(marvin)}:means.py") == FIXED


def test_a_review_that_finds_nothing_leaves_nothing_behind(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    models.scripts[REVIEWER] = steps(said('{"findings": []}\nCODE_VERIFIED'))
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code == 0, done.err.decode() + done.text
    assert models.asked == [REVIEWER, REVIEWER]
    assert marvin.git("branch", "--list", "review/*") == ""
    assert not list((project / ".marvin/worktrees").glob("review-*"))


def test_a_review_goes_on_when_the_session_ends_that_started_it(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    goes_on = models.holds[REVIEWER] = threading.Event()
    done = marvin.run("--non-interactive", "--prompt", PERSON, limit=200)
    assert done.code == 0, done.err.decode()
    assert state_of(marvin) == "running"
    listed = marvin.run("tools", "call", "review_status").text
    assert "running" in listed
    # A later session of this folder tells its model of it.
    models.scripts["Again look."] = steps(said("I see."))
    marvin.run("--non-interactive", "--prompt", "Again look.", limit=200)
    (system,) = {
        str(request.body["messages"][0]["content"])
        for request in models.requests
        if request.method == "POST" and "Again look." in json.dumps(request.body["messages"])
    }
    assert f"Background jobs: {job_of(marvin)}" in system
    goes_on.set()
    wait_until(lambda: state_of(marvin) == "passed", "the review to pass", limit=200)
    # Its state is kept before its worktree is removed.
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=30)


def test_a_review_is_stopped_with_all_that_it_started(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    models.holds[REVIEWER] = threading.Event()
    started = marvin.run("pipeline", "review", ".", "--background", limit=200)
    assert started.code == 0, started.err.decode()
    job = job_of(marvin)
    wait_until(lambda: REVIEWER in models.asked, "a reviewer to ask", limit=100)
    stopped = marvin.run("pipeline", "review", "--stop", job, limit=200)
    assert stopped.code == 0, stopped.err.decode()
    assert f"{job}  stopped" in stopped.text
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=30)
    models.holds[REVIEWER].set()


def test_an_interruption_of_who_waits_ends_the_review(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    models.holds[REVIEWER] = threading.Event()
    running = marvin.start("pipeline", "review", ".")
    running.until(lambda: REVIEWER in models.asked, "a reviewer to ask")
    running.send(signal.SIGINT)
    assert running.finish().code == 130
    assert state_of(marvin) == "stopped"
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=30)
    models.holds[REVIEWER].set()


def test_one_that_was_killed_is_said_to_have_died(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    models.holds[REVIEWER] = threading.Event()
    marvin.run("pipeline", "review", ".", "--background", limit=200)
    job = job_of(marvin)
    wait_until(lambda: REVIEWER in models.asked, "a reviewer to ask", limit=100)
    (record,) = marvin.home.rglob(f"apart/{job}.json")
    os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
    wait_until(lambda: state_of(marvin) == "died", "the job to be dead", limit=60)
    models.holds[REVIEWER].set()
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=60)


def test_three_run_at_a_time_and_no_more(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    models.holds[REVIEWER] = threading.Event()
    for _ in range(3):
        assert marvin.run("pipeline", "review", ".", "--background", limit=200).code == 0
    refused = marvin.run("pipeline", "review", ".", "--background", limit=200)
    assert refused.code != 0
    assert "3 of this kind are already running" in refused.err.decode()
    assert len(marvin.git("branch", "--list", "review/*").splitlines()) == 3
    jobs = re.findall(r"^(review-[\d-]+)  running", marvin.run("pipeline", "review").text, re.MULTILINE)
    for job in jobs:
        assert marvin.run("pipeline", "review", "--stop", job, limit=200).code == 0
    models.holds[REVIEWER].set()


def test_its_money_ends_it(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    done = marvin.run("--max-cost=0.000001", "pipeline", "review", ".", limit=300)
    assert done.code == 3, done.err.decode() + done.text
    assert state_of(marvin) == "budget"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("pipeline", "review", "missing"), "is not a folder"),
        (("pipeline", "review", ".", "--ref-dir", "missing"), "is not a folder"),
        (("pipeline", "review", ".", "--focus", "security"), "which matches no file of git in"),
        (("pipeline", "review", ".", "--focus", "test"), "tests"),
        (("pipeline", "review", "--resume", "review-1"), "There is no review 'review-1'"),
        (("pipeline", "review", "--stop", "review-1"), "There is no review 'review-1'"),
        (("pipeline", "review", "--stop", "../x"), "There is no review"),
        (("pipeline", "review", "--job", "review-1"), "is not a review job of this folder"),
        (("tools", "call", "review_codebase", "working_dir=missing"), "missing"),
        (("tools", "call", "review_codebase", "working_dir=.."), "leads out of"),
        (("tools", "call", "review_codebase", "working_dir=.", "ref_dir=docs"), "does not exist in"),
        (("tools", "call", "review_codebase", "working_dir=below"), "part of the repository"),
        (("tools", "call", "review_status", "job_id=review-1"), "This folder has no review job 'review-1'"),
    ],
)
def test_what_is_wrong_is_said(marvin: Marvin, project: Path, words: tuple[str, ...], told: str) -> None:
    (project / "below").mkdir()
    done = marvin.run(*words, limit=100)
    assert done.code != 0
    assert told in done.err.decode() + done.text
    assert not list(marvin.home.rglob("apart/*.json"))


def test_without_a_repository_it_says_how_to_begin_one(marvin: Marvin) -> None:
    done = marvin.run("pipeline", "review", ".", limit=100)
    assert done.code != 0
    assert "git init" in done.err.decode()
