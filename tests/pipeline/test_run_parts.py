"""The parts of a run: limits, ends, the summary, checkpoints, tickets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import AgentResult, BudgetExceeded, Timeouts, ToolContext, tool
from marvin_core.testing import ToolRunner
from marvin_pipeline.run.checkpoints import Checkpoints
from marvin_pipeline.run.ends import LoopEnd, Outcome, PhaseEnd, raise_first
from marvin_pipeline.run.files import ProjectFiles
from marvin_pipeline.run.git.locks import lock_in, set_free
from marvin_pipeline.run.journal import Journal
from marvin_pipeline.run.limits import RunLimits, TimeUp, words_of
from marvin_pipeline.run.phases import TABLE, phases_of
from marvin_pipeline.run.roles import ROLES
from marvin_pipeline.run.summary import PhaseRecord, Summary
from marvin_pipeline.run.tickets import Tickets
from marvin_pipeline.state import PHASES
from tests.e2e.support_e2e import wait_until
from tests.support.swapping import running

OUTCOMES: tuple[Outcome, ...] = ("skipped", "passed", "ended", "failed")


class Time:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> float:
        """The time."""
        return self.seconds

    def monotonic(self) -> float:
        """The same."""
        return self.seconds


def test_every_phase_is_there_and_asks_roles_that_are_there() -> None:
    assert tuple(TABLE) == PHASES
    assert {role for phase in TABLE.values() for role in phase.agents} <= set(ROLES)
    assert phases_of("1b", "2a") == ("1b", "1b_review", "2a")
    assert phases_of("4c", "") == ("4c", "5")


def test_money_ends_a_run_before_its_reserve_is_touched() -> None:
    spent = [0.0]
    limits = RunLimits(Time(), lambda: spent[0], max_cost=2.0, reserve=0.25)
    limits.check()
    spent[0] = 1.49
    limits.check()
    spent[0] = 1.5
    with pytest.raises(BudgetExceeded, match=r"1\.5000 of 2 USD are used, and 0\.5 USD of it are a reserve"):
        limits.check()


def test_time_ends_a_run() -> None:
    clock = Time()
    limits = RunLimits(clock, lambda: 0.0, max_time=3_600.0)
    clock.seconds += 3_599
    limits.check()
    assert limits.time_left == 1
    clock.seconds += 1
    with pytest.raises(TimeUp, match="its time limit of 1 h"):
        limits.check()
    assert TimeUp.exit_code == 3
    assert (words_of(59), words_of(60), words_of(3_700)) == ("59 s", "1 min", "1 h 1 min")


@given(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=6))
def test_the_weakest_end_counts(outcomes: list[Outcome]) -> None:
    end = PhaseEnd(outcome="skipped", reason="")
    for number, outcome in enumerate(outcomes):
        end = end.then(LoopEnd(outcome=outcome, reason=f"r{number}", carried=(f"c{number}",)))
    assert end.outcome == max(outcomes, key=OUTCOMES.index)
    assert end.goes_on == ("failed" not in outcomes)
    assert end.carried == tuple(f"c{number}" for number in range(len(outcomes)))


def test_a_limit_that_is_reached_says_more_than_what_came_of_it() -> None:
    raise_first([None, "x"])
    with pytest.raises(BudgetExceeded):
        raise_first([None, ValueError("first"), TimeUp("second")])
    with pytest.raises(ValueError, match="first"):
        raise_first([ValueError("first"), KeyError("second")])


def test_a_summary_whose_report_could_not_be_written_says_so(tmp_path: Path) -> None:
    for ended in ("done", "paused", "failed", "budget", "interrupted"):
        summary = Summary(ended=ended, reason="", exit_code=1, phases=(), agents=(), seconds=1.0, next_phase="")
        assert "The report: .marvin/logs/pipeline-report.json" in summary.text()
        assert "The report" not in summary.replace(unsaved="No space is left.").text()
        assert "No space is left." in summary.replace(unsaved="No space is left.").text()


def test_the_summary_is_for_people_and_for_programs(tmp_path: Path) -> None:
    files = ProjectFiles(tmp_path)
    journal = Journal(files)
    answered = AgentResult(text="", ended="answered", cost=0.25, seconds=2.0, session_id="s1")
    journal.agent(answered, phase="1a", role="spec", model="plan_gen", ticket="t-1")
    journal.agent(answered.replace(cost=None, ended="timeout"), phase="1b", role="design", model="plan_gen", ticket="")
    failed = PhaseEnd(outcome="failed", reason="It broke.", blocking=("high: x",), carried=("low: y",))
    summary = Summary(
        ended="failed",
        reason="Phase 1b stopped the run.",
        exit_code=1,
        phases=(
            PhaseRecord(phase="1a", end=PhaseEnd(outcome="passed", reason="Written."), seconds=3.0, forecast=0.5),
            PhaseRecord(phase="1b", end=failed, seconds=60.0),
        ),
        agents=tuple(journal.agents),
        seconds=63.0,
        next_phase="1b",
        carried=("low: y",),
        blocking=("high: x",),
    )
    text = summary.text()
    for told in ("The pipeline failed. Phase 1b stopped", "0.2500 USD", "cost unknown", "- high: x", "- low: y"):
        assert told in text
    summary.save(files)
    report = json.loads(files.text("logs/pipeline-report.json"))
    assert (report["cost"], report["phases"][0]["cost"], report["exit_code"]) == (None, 0.25, 1)
    assert [line["event"] for line in map(json.loads, files.text("logs/pipeline.jsonl").splitlines())] == ["agent"] * 2
    assert journal.known_cost == 0.25


@tool(access=["exec", "write"])
async def checkpoint(context: ToolContext, message: Annotated[str, "The message"]) -> str:
    """Make a checkpoint; says whether a repository was made, the commit, and what was changed since the last one."""
    git = Checkpoints(context.paths.root, context.processes, 60, Timeouts(lock=0.3))
    made = await git.prepare()
    before = await git.newest()
    new = await git.checkpoint(message)
    diff = await git.diff_since(before) if before else ""
    changed = list(await git.changed_since(before)) if before else []
    told = {"made": made, "new": new, "diff": diff, "changed": changed, "is_new": new != before}
    knows = [await git.knows(new), await git.knows("0" * 40)]
    return json.dumps({**told, "branch": await git.branch(), "knows": knows})


@pytest.fixture
def runner(tmp_path: Path) -> ToolRunner:
    """A session in an empty project."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return ToolRunner(home, project, env={"GIT_DIR": "/nonexistent/.git", "GIT_CONFIG_NOSYSTEM": "1"})


def git(folder: Path, *words: str) -> str:
    """What git prints there."""
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_checkpoint_commits_what_belongs_into_a_commit(runner: ToolRunner) -> None:
    """I8"""
    folder = runner.working_dir
    (folder / "a b.txt").write_text("one")
    (folder / ".env").write_text("KEY=x")
    (folder / ".tickets").mkdir()
    (folder / ".tickets" / "a-1.md").write_text("A ticket.")
    (folder / ".marvin" / "logs").mkdir(parents=True)
    (folder / ".marvin" / "logs" / "x.jsonl").write_text("{}")
    hook = folder / "hook-ran"
    with runner:
        first = json.loads(runner.call(checkpoint, message="First\n\nThe body.").text)
        assert (first["made"], first["is_new"]) == (True, True)
        (folder / ".git" / "hooks" / "pre-commit").write_text(f"#!/bin/sh\ntouch '{hook}'\nexit 1\n")
        (folder / ".git" / "hooks" / "pre-commit").chmod(0o755)
        assert json.loads(runner.call(checkpoint, message="Nothing").text)["is_new"] is False
        (folder / "a b.txt").write_text("two")
        (folder / ".tickets" / "a-1.md").unlink()
        (folder / "-n").write_text("a name like an option")
        second = json.loads(runner.call(checkpoint, message="Second").text)
    assert second["made"] is False
    assert second["changed"] == ["-n", "a b.txt"]
    assert "-one\n" in second["diff"]
    assert git(folder, "log", "--format=%s %an").splitlines() == ["Second Marvin", "First Marvin"]
    assert git(folder, "ls-files").splitlines() == ["-n", "a b.txt"]
    assert "A ticket." not in second["diff"]
    assert not hook.exists()


def test_a_repository_above_is_used_and_its_other_files_stay_as_they_are(tmp_path: Path) -> None:
    top, inner = tmp_path / "top", tmp_path / "top" / "inner"
    inner.mkdir(parents=True)
    git(top, "init", "-q")
    git(top, "config", "user.name", "Ada")
    git(top, "config", "user.email", "ada@example.com")
    (top / "theirs.txt").write_text("1")
    git(top, "add", ".")
    git(top, "commit", "-qm", "Begin")
    (top / "theirs.txt").write_text("2")
    (inner / "ours.txt").write_text("1")
    with ToolRunner(tmp_path, inner) as runner:
        made = json.loads(runner.call(checkpoint, message="Ours").text)
    assert made["made"] is False
    assert git(top, "log", "-1", "--format=%s %an", "--name-only").split() == ["Ours", "Ada", "inner/ours.txt"]
    assert git(top, "status", "--porcelain").split("\n")[0] == " M theirs.txt"


def repository(folder: Path) -> Path:
    """A repository of somebody's, with a commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.com")
    (folder / "theirs.txt").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Begin")
    return folder


@pytest.mark.slow
def test_what_is_staged_beside_the_project_stays_staged(tmp_path: Path) -> None:
    top, inner = repository(tmp_path / "top"), tmp_path / "top" / "inner"
    inner.mkdir()
    (top / "theirs.txt").write_text("2")
    git(top, "add", "theirs.txt")
    with ToolRunner(tmp_path, inner) as runner:
        assert json.loads(runner.call(checkpoint, message="Nothing").text)["is_new"] is False
        for text in ("1", "2"):
            (inner / "ours.txt").write_text(text)
            made = json.loads(runner.call(checkpoint, message="Ours").text)
            assert made["is_new"] is True
        (inner / "ours.txt").unlink()
        assert json.loads(runner.call(checkpoint, message="Gone").text)["is_new"] is True
    assert git(top, "log", "--format=%s", "--", "theirs.txt").split() == ["Begin"]
    assert git(top, "status", "--porcelain").splitlines()[0] == "M  theirs.txt"


@pytest.mark.slow
def test_a_folder_that_the_repository_around_it_ignores_gets_one_of_its_own(tmp_path: Path) -> None:
    """Else no commit would have anything of it, and each fix would look as if it changed nothing."""
    top, inner = repository(tmp_path / "top"), tmp_path / "top" / "inner"
    (top / ".gitignore").write_text("inner/\n")
    inner.mkdir()
    (inner / "ours.txt").write_text("1")
    with ToolRunner(tmp_path, inner) as runner:
        made = json.loads(runner.call(checkpoint, message="Ours").text)
        assert made["made"] is True
        assert json.loads(runner.call(checkpoint, message="Ours").text)["made"] is False
    assert git(inner, "ls-files").split() == ["ours.txt"]
    assert git(top, "log", "--format=%s").split() == ["Begin"]


@pytest.mark.parametrize("where", [".git", "bare"])
def test_a_folder_of_git_itself_is_no_project(tmp_path: Path, where: str) -> None:
    folder = repository(tmp_path / "top") / ".git" if where == ".git" else tmp_path / "bare"
    if where == "bare":
        git(tmp_path, "init", "-q", "--bare", "bare")
    with ToolRunner(tmp_path, folder) as runner:
        told = runner.call(checkpoint, message="x")
    assert told.is_error
    assert "is in a bare repository or a git directory. Give another folder with --working-dir" in told.text


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_in_a_repository_that_git_does_not_trust_none_is_made(tmp_path: Path) -> None:
    """git says what can be done; a second repository inside of it would hide that."""
    top, inner = repository(tmp_path / "top"), tmp_path / "top" / "inner"
    inner.mkdir()
    for path in (top, top / ".git"):
        os.chown(path, 12_345, 12_345)
    with ToolRunner(tmp_path, inner) as runner:
        told = runner.call(checkpoint, message="x")
    assert told.is_error
    assert "dubious ownership" in told.text
    assert not (inner / ".git").exists()


@pytest.mark.slow
def test_a_repository_without_a_branch_or_a_commit_is_one_all_the_same(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    git(folder, "checkout", "-q", "--detach")
    git(tmp_path, "init", "-q", "empty")
    with ToolRunner(tmp_path, folder) as runner:
        (folder / "x").write_text("1")
        made = json.loads(runner.call(checkpoint, message="x").text)
    assert (made["made"], made["is_new"], made["branch"], made["knows"]) == (False, True, "", [True, False])
    with ToolRunner(tmp_path, tmp_path / "empty") as runner:
        made = json.loads(runner.call(checkpoint, message="x").text)
    assert (made["made"], made["is_new"], bool(made["branch"])) == (False, True, True)


def test_repositories_in_the_project_are_left_out(tmp_path: Path) -> None:
    """git refuses one without a commit, and keeps nothing of one with commits."""
    folder = repository(tmp_path / "project")
    git(folder, "init", "-q", "made-by-a-generator")
    (folder / "x").write_text("1")
    with ToolRunner(tmp_path, folder) as runner:
        made = json.loads(runner.call(checkpoint, message="x").text)
    assert made["changed"] == ["x"]
    assert git(folder, "ls-files").split() == ["theirs.txt", "x"]


@pytest.mark.parametrize("sandbox", ["off", "auto"])
@pytest.mark.parametrize("inner", ["", "inner"])
def test_tickets_that_are_committed_stay_as_they_are(tmp_path: Path, sandbox: str, inner: str) -> None:
    """Programs in the sandbox do not see them, and must not take them for removed."""
    top = repository(tmp_path / "top")
    folder = top / inner
    (folder / ".tickets").mkdir(parents=True)
    (folder / ".tickets" / "a-1.md").write_text("A ticket.")
    git(top, "add", ".")
    git(top, "commit", "-qm", "Tickets")
    (folder / ".tickets" / "a-1.md").write_text("A ticket, changed.")
    (folder / ".tickets" / "a-2.md").write_text("Another one.")
    (folder / "x").write_text("1")
    with ToolRunner(tmp_path, folder, env={"MARVIN_SANDBOX": sandbox}) as runner:
        made = runner.call(checkpoint, message="x")
    assert not made.is_error, made.text
    assert json.loads(made.text)["changed"] == ["x"]
    assert git(folder, "log", "-1", "--format=", "--name-only").split() == [str(Path(inner) / "x")]
    assert git(folder, "show", "HEAD:./.tickets/a-1.md") == "A ticket."


@pytest.mark.slow
def test_files_that_come_and_go_do_not_stop_a_checkpoint(tmp_path: Path) -> None:
    folder = repository(tmp_path / "project")
    with ToolRunner(tmp_path, folder) as runner, running(_FLICKER, folder):
        for number in range(3):
            (folder / "x").write_text(str(number))
            made = runner.call(checkpoint, message="x")
            assert not made.is_error, made.text
    assert git(folder, "log", "-1", "--format=%s").split() == ["x"]


_FLICKER = """
import os, sys, time
print("ready", flush=True)
number = 0
while True:
    number += 1
    open(f"{sys.argv[1]}/x{number}", "w").close()
    if number > 20:
        os.unlink(f"{sys.argv[1]}/x{number - 20}")
    time.sleep(0.002)
"""


LOCKS = ["index.lock", "HEAD.lock", "refs/heads/main.lock"]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_of_a_git_that_was_killed_is_removed(tmp_path: Path, name: str) -> None:
    """It would stop every later run."""
    folder = repository(tmp_path / "project")
    (folder / ".git" / name).touch()
    (folder / "x").write_text("1")
    with ToolRunner(tmp_path, folder) as runner:
        made = runner.call(checkpoint, message="After it")
    assert not made.is_error, made.text
    assert git(folder, "log", "-1", "--format=%s") == "After it\n"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is missing")
def test_a_lock_of_a_git_that_works_is_left_alone(tmp_path: Path) -> None:
    """As that of a commit whose message is being written."""
    folder = repository(tmp_path / "project")
    (folder / "theirs.txt").write_text("2")
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\ntouch '{tmp_path}/open'\nsleep 600\n")
    editor.chmod(0o755)
    words = ["git", "-c", f"core.editor={editor}", "commit", "-a"]
    with subprocess.Popen(words, cwd=folder, start_new_session=True) as person:
        try:
            wait_until((tmp_path / "open").exists, "the editor")
            lock = folder / ".git" / "index.lock"
            assert set_free(lock, folder / ".git", folder, Timeouts(lock=0.1)) is False
            assert lock.exists()
        finally:
            os.killpg(person.pid, signal.SIGKILL)
    assert lock.exists(), "it was killed, and left it"
    assert set_free(lock, folder / ".git", folder, Timeouts(lock=0.1)) is True
    assert not lock.exists()


def test_a_lock_beyond_the_repository_is_nobodys_to_remove(tmp_path: Path) -> None:
    folder, outside = repository(tmp_path / "project"), tmp_path / "outside" / "index.lock"
    outside.parent.mkdir()
    outside.touch()
    (folder / ".git" / "linked").symlink_to(outside.parent)
    (folder / ".git" / "index.lock").symlink_to(outside)
    quick = Timeouts(lock=0.0)
    for lock in (outside, folder / ".git" / "linked" / "index.lock", folder / ".git" / "index.lock"):
        assert set_free(lock, folder / ".git", folder, quick) is False
    assert outside.exists()
    assert lock_in(f"fatal: Unable to create '{outside}': File exists.\n".encode()) == outside
    assert lock_in(b"fatal: something else") is None


@pytest.mark.parametrize("left", ["rebase-merge", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG"])
def test_what_git_is_in_the_middle_of_stops_a_checkpoint(tmp_path: Path, left: str) -> None:
    folder = repository(tmp_path / "project")
    (folder / ".git" / left).write_text("x")
    with ToolRunner(tmp_path, folder) as runner:
        told = runner.call(checkpoint, message="x")
    assert told.is_error
    assert "is not finished" in told.text


@pytest.mark.slow
def test_a_checkpoint_in_a_busy_folder_is_made_all_the_same(runner: ToolRunner) -> None:
    """Files come and go while it looks, others are repositories of their own, and nobody is there to sign."""
    folder = runner.working_dir
    stop = threading.Event()

    def work() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            for path in [folder / f"{number % 7}-{index}.tmp" for index in range(20)]:
                path.write_text("x")
                path.unlink()

    git(folder, "init", "-q")
    config = {"user.name": "Ada", "user.email": "a@b.c", "commit.gpgSign": "true", "gpg.program": "no"}
    for name, value in config.items():
        git(folder, "config", name, value)
    (folder / "inner").mkdir()
    git(folder / "inner", "init", "-q")
    (folder / "kept.txt").write_text("kept")
    worker = threading.Thread(target=work)
    worker.start()
    try:
        with runner:
            for number in range(5):
                (folder / "kept.txt").write_text(f"{number}")
                assert json.loads(runner.call(checkpoint, message=f"Number {number}").text)["is_new"]
    finally:
        stop.set()
        worker.join()
    assert git(folder, "show", "HEAD:kept.txt") == "4"
    assert "inner" not in git(folder, "ls-files")


@pytest.mark.parametrize("what", ["merge", "cherry-pick", "rebase"])
@pytest.mark.parametrize("is_mended", [False, True])
def test_a_merge_that_is_not_finished_stops_a_checkpoint(tmp_path: Path, what: str, is_mended: bool) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.com")
    for words, text in ((), "0"), (("checkout", "-q", "-b", "other"), "1"), (("checkout", "-q", "main"), "2"):
        if words:
            git(folder, *words)
        (folder / "x").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", text)
    assert subprocess.run(["git", what, "other"], cwd=folder, capture_output=True).returncode != 0
    if is_mended:
        (folder / "x").write_text("3")
        git(folder, "add", ".")
    with ToolRunner(tmp_path, folder) as runner:
        told = runner.call(checkpoint, message="x")
    assert told.is_error
    assert f"A {what} is not finished" in told.text


def test_the_tickets_of_a_run_are_an_epic_and_its_children(tmp_path: Path) -> None:
    files = ProjectFiles(tmp_path)

    async def work() -> tuple[str, str, str]:
        tickets = Tickets(files, Timeouts())
        epic = await tickets.open_epic("- Build a thing\nwith --options, 'quotes' and \"more\"")
        child = await tickets.child("2a: write tests", "All of them.")
        await tickets.close(child, "Done.")
        again = Tickets(files, Timeouts())
        return epic, child, await again.open_epic("Build a thing")

    epic, child, again = asyncio.run(work())
    assert again == epic
    text = (tmp_path / ".tickets" / f"{child}.md").read_text()
    assert f"parent: {epic}" in text
    assert "status: closed" in text
    assert "type: epic" in (tmp_path / ".tickets" / f"{epic}.md").read_text()
    assert asyncio.run(Tickets(files, Timeouts()).open_epic("Build another thing", is_new=True)) != epic
    for damaged in (b"", b"--help", b"../../x", b"a b", b"\xff", b"x" * 1_000_000):
        files.write("logs/pipeline-epic", damaged)
        assert asyncio.run(Tickets(files, Timeouts()).open_epic("Build a thing")) != epic
    files.write("logs/pipeline-epic", epic.encode())
    (tmp_path / ".tickets" / f"{epic}.md").unlink()
    assert asyncio.run(Tickets(files, Timeouts()).open_epic("Build a thing")) != epic
