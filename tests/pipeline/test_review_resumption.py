"""Reviews of a code base that were ended before their time, that go astray, and that meet odd repositories."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from pathlib import Path
from typing import Any

import pexpect
import pytest

from marvin_core.testing import answers
from tests.e2e.support_e2e import LIMIT, PROGRAM, Marvin, put_away, wait_until
from tests.support.agents import processes_in
from tests.support.pipeline import Asked, PipelineModels, called, found, said, steps
from tests.support.reviews import CODE, FIXED, FIXER, REVIEWER, branch_of, job_of, state_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PASSED = said('{"findings": []}\nCODE_VERIFIED')


def started(marvin: Marvin, *words: str) -> str:
    """Start a review in the background; returns its id."""
    done = marvin.run("pipeline", "review", ".", "--background", *words, limit=200)
    assert done.code == 0, done.err.decode()
    return job_of(marvin)


def kill(marvin: Marvin, job: str) -> None:
    """Kill the process of a job, and wait until all that it started is gone."""
    (record,) = marvin.home.rglob(f"apart/{job}.json")
    os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=100)


@pytest.mark.parametrize("ended", ["stopped", "died"])
def test_one_that_was_ended_goes_on_where_it_was(
    marvin: Marvin, models: PipelineModels, project: Path, ended: str
) -> None:
    """In its worktree, on its branch: who has reviewed is not asked again, and what the tests said before counts."""
    models.holds[FIXER] = threading.Event()
    job = started(marvin)
    wait_until(lambda: FIXER in models.asked, "the fixer to ask", limit=200)
    listed = marvin.run("tools", "call", "review_status", f"job_id={job}").text
    assert "The mean of no values divides by zero." in listed, "what was found so far is told while it runs"
    (tree,) = (project / ".marvin" / "worktrees").glob("review-*")
    if ended == "stopped":
        marvin.run("pipeline", "review", "--stop", job, limit=200)
    else:
        kill(marvin, job)
    models.holds[FIXER].set()
    assert state_of(marvin) == ended
    told = marvin.run("tools", "call", "review_status", f"job_id={job}").text
    assert f"marvin pipeline review --resume {job}" in told
    assert "divides by zero" in told
    (tree / "means.py").write_text("def mean(values:\n")  # as the fixer was in the middle of it
    (project / ".git" / "worktrees" / tree.name / "index.lock").touch()  # and a step of git as well

    del models.holds[FIXER]
    models.asked.clear()
    done = marvin.run("pipeline", "review", "--resume", job, limit=300)
    assert done.code == 0, done.err.decode() + done.text
    assert f"{job}  passed" in done.text
    assert models.asked.count(FIXER) == 1
    assert models.asked.count(REVIEWER) == 2, "those of round two alone"
    assert "failed before the review" not in done.text
    assert marvin.git("show", f"{branch_of(marvin)}:means.py") == FIXED
    assert not tree.exists()
    again = marvin.run("pipeline", "review", "--resume", job, limit=100)
    assert again.code != 0
    assert "cannot continue: it passed" in again.err.decode()


def test_its_time_ends_it(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    """Reviewers that are cut off by the time of the job have not said nothing: the time was up."""
    config = (marvin.config_folder / "config.yaml").read_text()
    marvin.config(f"{config}packs: {{pipeline: {{review_time: 3}}}}\n")
    models.scripts[REVIEWER] = steps(answers.Answer(ending="hang"))
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code == 3, done.err.decode() + done.text
    assert "The run has reached its time limit of " in done.text
    assert state_of(marvin) == "budget"
    assert marvin.git("branch", "--list", "review/*") == "", "there is nothing to go on with"
    again = marvin.run("pipeline", "review", "--resume", job_of(marvin), limit=100)
    assert "there is no worktree" in again.err.decode()


def test_one_whose_money_was_used_up_goes_on_with_more(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    dear = {"prompt_tokens": 10, "completion_tokens": 700_000, "total_tokens": 700_010}
    good, models.scripts[FIXER] = models.scripts[FIXER], steps(answers.calls(("tree", {}), usage=dear))
    done = marvin.run("--max-cost=0.6", "pipeline", "review", ".", limit=300)
    assert done.code == 3, done.err.decode() + done.text
    assert state_of(marvin) == "budget"
    models.scripts[FIXER] = good
    models.asked.clear()
    again = marvin.run("--max-cost=5", "pipeline", "review", "--resume", job_of(marvin), limit=300)
    assert again.code == 0, again.err.decode() + again.text
    assert models.asked == [FIXER, REVIEWER, REVIEWER]
    cost = re.search(r"([\d.]+) USD", again.text)
    assert cost is not None
    assert float(cost[1]) > 0.7, "what it used before counts"


def test_two_that_go_on_with_the_same_job_are_one(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    models.holds[REVIEWER] = threading.Event()
    job = started(marvin)
    wait_until(lambda: REVIEWER in models.asked, "a reviewer to ask", limit=100)
    running = marvin.run("pipeline", "review", "--resume", job, limit=100)
    assert running.code != 0
    assert "cannot continue: it runs" in running.err.decode()
    marvin.run("pipeline", "review", "--stop", job, limit=200)
    both = [marvin.start("pipeline", "review", "--resume", job, "--background") for _ in range(2)]
    assert sorted(one.finish(200).code for one in both) in ([0, 1], [0, 2])
    assert state_of(marvin) == "running"
    stops = [marvin.start("pipeline", "review", "--stop", job) for _ in range(2)]
    for one in stops:
        ended = one.finish(200)
        assert (ended.code, "  stopped  " in ended.text) == (0, True), ended.text
    models.holds[REVIEWER].set()


def test_one_whose_record_is_damaged_can_be_stopped(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    models.holds[REVIEWER] = threading.Event()
    job = started(marvin)
    wait_until(lambda: REVIEWER in models.asked, "a reviewer to ask", limit=100)
    (record,) = marvin.home.rglob(f"reviews/{job}/job.json")
    record.write_text('{"state": "runn')
    stopped = marvin.run("pipeline", "review", "--stop", job, limit=200)
    assert (stopped.code, f"{job} was stopped" in stopped.text) == (0, True), stopped.err.decode()
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=30)
    models.holds[REVIEWER].set()


def test_it_is_listed_and_stopped_in_a_chat_that_was_there_before(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    """Also where no Marvin had ever started one, and where the chat is about the folder above."""
    models.holds[REVIEWER] = threading.Event()
    chat: Any = pexpect.spawn(
        PROGRAM[0],
        [*PROGRAM[1:], "--plain"],
        cwd=str(project.parent),
        env={**marvin.env, "TERM": "dumb"},
        encoding="utf-8",
        timeout=LIMIT,
        dimensions=(40, 200),
    )
    chat.delaybeforesend = None
    try:
        chat.expect_exact("\r\n> ")
        chat.sendline("/jobs")
        chat.expect_exact("There are no background jobs.")
        job = started(marvin)
        wait_until(lambda: REVIEWER in models.asked, "a reviewer to ask", limit=100)
        chat.sendline("/jobs")
        chat.expect(rf"{job}  running  review of project")
        listed = marvin.run("tools", "call", "review_status", f"job_id={job}", cwd=project.parent).text
        assert f"{job}  running" in listed
        chat.sendline(f"/jobs stop {job}")
        chat.expect_exact(f"{job} was stopped.")
    finally:
        put_away(chat)
    assert state_of(marvin) == "stopped"
    models.holds[REVIEWER].set()
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=30)


def test_the_tool_for_jobs_waits_for_its_end(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    goes_on = models.holds[REVIEWER] = threading.Event()
    job = started(marvin)
    wait_until(lambda: REVIEWER in models.asked, "a reviewer to ask", limit=100)
    waiting = marvin.start("tools", "call", "jobs", "action=output", f"job_id={job}", "wait=250")
    goes_on.set()
    done = waiting.finish(300)
    assert done.code == 0, done.err.decode() + done.text
    assert f"[job {job}, ended;" in done.text


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_repository_elsewhere_is_reviewed_under_the_same_flags(
    marvin: Marvin, models: PipelineModels, project: Path, tmp_path: Path, sandbox: str
) -> None:
    marvin.env["MARVIN_SANDBOX"] = sandbox
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    poor = marvin.run("--max-cost=0.000001", "pipeline", "review", str(project), cwd=elsewhere, limit=300)
    assert poor.code == 3, poor.err.decode() + poor.text
    done = marvin.run("pipeline", "review", "../project", "--focus=means.py", cwd=elsewhere, limit=300)
    assert done.code == 0, done.err.decode() + done.text
    assert "(means.py)" in done.text
    assert marvin.git("show", f"{branch_of(marvin)}:means.py") == FIXED
    assert not list(elsewhere.iterdir())


def test_what_a_repository_brings_does_not_pass_for_a_review(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    passed = {"verdict": "passed", "findings": []}
    notes = project / ".marvin" / "logs" / "progress" / "review-code.jsonl"
    notes.parent.mkdir(parents=True)
    notes.write_text(json.dumps({"reviews": {"correctness": passed, "soundness": passed}}) + "\n")
    history = project / ".marvin" / "review-history-codebase.md"
    history.write_text("Round 1: all is well.\n")
    marvin.git("add", "--force", ".marvin")
    marvin.git("commit", "--quiet", "-m", "Notes")
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code == 0, done.err.decode() + done.text
    assert models.asked.count(REVIEWER) >= 3
    assert marvin.git("diff", "--name-only", f"HEAD...{branch_of(marvin)}").split() == ["means.py"]
    report = re.search(r"Report: (\S+)", done.text)
    assert report is not None
    assert "all is well" not in Path(report[1]).read_text()
    assert not list((project / ".marvin" / "worktrees").glob("review-*"))


@pytest.mark.parametrize("name", [".marvin", ".tickets", ".marvin/logs", ".marvin/upstream"])
def test_a_link_of_a_repository_leads_nowhere(
    marvin: Marvin, models: PipelineModels, project: Path, tmp_path: Path, name: str
) -> None:
    """I4"""
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / ".ref").mkdir()
    (project / ".ref" / "intent.md").write_text("What it is for.")
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).symlink_to(outside)
    marvin.git("add", "--force", name)
    marvin.git("commit", "--quiet", "-m", "A link")
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code != 0
    assert re.search(r"link|Not a directory", done.err.decode() + done.text), done.err.decode() + done.text
    assert not list(outside.iterdir())


def test_what_is_nobodys_to_publish_is_in_no_commit(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    """Documents that explain the code, and tickets of the review; those of the person stay as they are."""
    (project / ".ref").mkdir()
    (project / ".ref" / "intent.md").write_text("Our secret plan: a mean of everything.\n")
    (project / ".gitignore").write_text(".ref\n.tickets\n")
    marvin.git("add", ".gitignore")
    marvin.git("commit", "--quiet", "-m", "Rules")
    own = marvin.run("tk", "create", "A ticket of mine").text.strip()
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code == 0, done.err.decode() + done.text
    names = marvin.git("log", "--all", "--name-only", "--format=").split()
    assert not [name for name in names if name.startswith((".marvin", ".tickets", ".ref"))]
    assert "secret plan" not in marvin.git("log", "--all", "--patch")
    assert [path.name for path in (project / ".tickets").glob("*.md")] == [f"{own}.md"]
    assert any("intent.md" in json.dumps(request.body) for request in models.requests if request.method == "POST")


def test_a_fixer_that_makes_a_branch_of_its_own_does_not_lose_its_work(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    def ticket(asked: Asked) -> answers.Answer:
        line = f"create 'Mend it' --parent {asked.ticket} -d 'What was found.' --acceptance 'It is settled.'"
        return called(("tk", {"args": line}))

    models.scripts[FIXER] = steps(
        ticket,
        ticket,
        called(("run_command", {"command": "git checkout --quiet -b fix/no-values"})),
        called(("read_file", {"path": "means.py"})),
        called(("write_file", {"path": "means.py", "content": FIXED})),
        called(("git_commit", {"message": "Think of no values"})),
        said("done"),
    )
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code == 0, done.err.decode() + done.text
    assert marvin.git("show", f"{branch_of(marvin)}:means.py") == FIXED
    assert (project / "means.py").read_text() == CODE


def test_a_trusted_project_has_its_own_prompts_in_reviews_too(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    own = project / ".marvin" / "prompts" / "codebase_reviewer.md"
    own.parent.mkdir(parents=True)
    own.write_text("# Review this code base\n\nLook at the means above all.\n\n{{task}}\n\n{{form}}\n")
    marvin.git("add", "--force", ".marvin")
    marvin.git("commit", "--quiet", "-m", "A prompt")
    models.scripts[REVIEWER] = steps(PASSED)

    def asked() -> list[bool]:
        bodies = [json.dumps(request.body) for request in models.requests if request.method == "POST"]
        return ["Look at the means above all." in body for body in bodies if REVIEWER in body]

    assert marvin.run("pipeline", "review", ".", limit=300).code == 0
    assert asked() == [False, False]
    models.requests.clear()
    assert marvin.run("--trust-project", "pipeline", "review", ".", limit=300).code == 0
    assert asked() == [True, True]


def test_a_reviewer_of_odd_habits_ends_as_designed(marvin: Marvin, models: PipelineModels, project: Path) -> None:
    """It finds a fault in a file that there is not, praises, and repeats what is settled; the other one is cut off."""
    odd = json.dumps(
        {
            "findings": [
                {"severity": "praise", "claim": "The code is short."},
                {"severity": "low", "file": "no/such/file.py", "claim": "A word could be clearer."},
                {"severity": "high", "status": "fixed", "claim": "The mean of no values divides by zero."},
            ]
        }
    )
    cut = found("medium", "The mean of texts is not thought of.", "means.py") + '\n{"findings": [{"severity": "cri'
    turns = iter([odd, cut])
    models.scripts[REVIEWER] = lambda asked: said(next(turns, odd))
    done = marvin.run("pipeline", "review", ".", limit=300)
    assert done.code == 0, done.err.decode() + done.text
    assert "  ended  " in done.text
    assert "below_floor" in done.text
    assert models.asked == [REVIEWER, REVIEWER]


def test_what_could_not_be_committed_in_the_end_stays_in_the_worktree(
    marvin: Marvin, models: PipelineModels, project: Path
) -> None:
    """A program of its tests begins a merge there."""
    begun = marvin.home / "begun"
    merges = f"""
import os, subprocess
def test_merging():
    if os.path.exists({str(begun)!r}):
        open("new.py", "w").close()
        place = subprocess.check_output(["git", "rev-parse", "--git-path", "MERGE_HEAD"], text=True).strip()
        open(place, "w").write(subprocess.check_output(["git", "rev-parse", "HEAD"], text=True))
"""
    (project / "test_merging.py").write_text(merges)
    marvin.git("add", "-A")
    marvin.git("commit", "--quiet", "-m", "Merging")
    models.scripts[REVIEWER] = steps(PASSED)
    models.holds[REVIEWER] = threading.Event()
    job = started(marvin)
    wait_until(lambda: models.asked.count(REVIEWER) == 2, "the reviewers to ask", limit=200)
    (tree,) = (project / ".marvin" / "worktrees").glob("review-*")
    begun.touch()
    models.holds[REVIEWER].set()
    wait_until(lambda: state_of(marvin) != "running", "the review to end", limit=200)
    wait_until(lambda: not processes_in(marvin.home), "all to be gone", limit=100)
    told = marvin.run("tools", "call", "review_status", f"job_id={job}").text
    assert "A merge is not finished" in told
    assert f"What is not committed is in {tree}" in told.replace("\n", " ")
    assert (tree / "new.py").exists()
