"""What is kept of a batch, its money, and what it tells: without any run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from marvin_core import Timeouts, UsageError
from marvin_core.usage.ledger import Ledger
from marvin_pipeline.batch.clone import Clone, CloneFault
from marvin_pipeline.batch.engines import check_engine
from marvin_pipeline.batch.index import Index
from marvin_pipeline.batch.money import Money
from marvin_pipeline.batch.records import BatchFault, TaskFolder, TaskRecord, TaskState, Try, record_of
from marvin_pipeline.batch.tasks import Task

TIMEOUTS = Timeouts(lock=50.0, lock_poll=0.001)


def task(name: str, **fields: Any) -> Task:
    return Task(**{"id": name, "repository": "/code", "prompt": "Build it.", **fields})


def record(name: str, state: TaskState, **fields: Any) -> TaskRecord:
    return TaskRecord(id=name, digest="d", state=state, **fields)


def index(folder: Path, *records: TaskRecord, repository: str = "/code") -> Index:
    tasks = tuple(task(one.id, repository=repository) for one in records)
    return Index(tasks=tasks, records=records, results=folder)


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["passed"], 0),
        (["passed", "waiting"], 3),
        (["budget", "passed"], 3),
        (["budget", "findings"], 4),
        (["tests", "findings", "budget"], 5),
        (["tests", "failed"], 1),
        (["lost", "tests"], 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst_task(tmp_path: Path, states: list[TaskState], code: int) -> None:
    assert index(tmp_path, *(record(f"t{number}", state) for number, state in enumerate(states))).code == code


def test_a_record_comes_back_as_it_was_kept_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    folder = TaskFolder(tmp_path)
    assert folder.read() is None
    tried = Try(begun=1.0, host="here", ended=3.5, exit_code=0, cost=0.25, cost_line="MARVIN_COST:{}")
    kept = record("a", "passed", reason="Yes.", commit="abc", tries=(Try(begun=0.5, host="there"), tried))
    folder.write(kept)
    assert folder.read() == kept
    assert (kept.cost, kept.seconds) == (None, 2.5)
    assert record("a", "passed", tries=(tried,)).cost == 0.25
    for damage in (b"{", b"[]", b"null", json.dumps({**kept.as_json(), "state": "perfect"}).encode()):
        (tmp_path / "task.json").write_bytes(damage)
        with pytest.raises(BatchFault, match="is damaged"):
            folder.read()
    with pytest.raises(ValueError, match="no field"):
        record_of({**kept.as_json(), "more": 1})


def test_the_lock_of_a_task_is_held_by_what_was_started_meanwhile(tmp_path: Path) -> None:
    """So a run that outlives its worker keeps others from the same clone."""
    folder = TaskFolder(tmp_path)
    with folder.held(lambda: True, 0.001) as lock:
        assert lock is not None
        with folder.held(lambda: True, 0.001) as second:
            assert second is None
        program = [sys.executable, "-c", "input()"]
        child = subprocess.Popen(program, stdin=subprocess.PIPE, pass_fds=(lock,))
    with folder.held(lambda: True, 0.001) as later:
        assert later is None
    child.communicate(b"\n")
    with folder.held(lambda: True, 0.001) as free:
        assert free is not None


def test_a_reader_of_others_finds_each_task_in_junit(tmp_path: Path) -> None:
    import asyncio

    reason = "It says \x00 <b> & \ud800 \x1b[31m."
    tried = Try(begun=0.0, host="here", ended=2.0, exit_code=1, cost=0.5)
    found = index(
        tmp_path,
        record("a", "passed", tries=(tried,)),
        record("b", "tests", reason=reason),
        record("c", "lost", reason="Gone."),
        record("d", "waiting"),
        repository="/co\x01de",
    )
    asyncio.run(found.save())
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
        "time": "2.000",
    }
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases == {"a": [], "b": ["failure"], "c": ["error"], "d": ["skipped"]}


def test_the_page_of_a_batch_holds_what_others_wrote_as_text(tmp_path: Path) -> None:
    import asyncio

    asyncio.run(index(tmp_path, record("a", "failed", reason="| <img src=x> [link](evil) `x`\n# Title")).save())
    (line,) = [line for line in (tmp_path / "index.md").read_text().splitlines() if line.startswith("| [a]")]
    assert "\\| \\<img src=x\\> \\[link\\](evil) \\`x\\` \\# Title" in line


def spend(address: str, amount: int, *, settled: bool = True) -> None:
    ledger = Ledger.inherit(address, TIMEOUTS)
    taken = ledger.reserve(amount)
    assert taken is not None
    if settled:
        ledger.settle(taken[0], amount)


def test_each_task_has_its_share_and_all_of_them_the_ceiling_over_all_runs(tmp_path: Path) -> None:
    first, second, third = task("a", max_cost=1.0), task("b"), task("c", max_cost=5.0)
    money = Money(tmp_path, 2.0, TIMEOUTS)
    money.begin([first, second, third])
    shares = [money.share(one) for one in (first, second, third)]
    assert [share and share.dollars for share in shares] == [1.0, 2.0, 2.0]
    assert shares[0] is not None
    assert shares[0].words == ("--max-cost=1.000000",)
    with pytest.raises(AssertionError):
        spend(shares[0].ledger, 1_000_001)
    spend(shares[0].ledger, 600_000)
    spend(shares[0].ledger, 300_000, settled=False)  # its agent was killed before it knew
    # A later run of the batch.
    money = Money(tmp_path, 2.0, TIMEOUTS)
    assert money.has_more_for(first)
    money.begin([first, second, third])
    shares = [money.share(one) for one in (first, second, third)]
    assert [share and pytest.approx(share.dollars) for share in shares] == [0.1, 1.1, 1.1]
    assert shares[2] is not None
    spend(shares[2].ledger, 1_100_000)
    assert money.is_spent
    assert not money.has_more_for(second)
    assert Money(tmp_path, 3.0, TIMEOUTS).has_more_for(second)


def test_without_a_ceiling_nothing_is_counted(tmp_path: Path) -> None:
    money = Money(tmp_path, None, TIMEOUTS)
    money.begin([task("a")])
    assert money.share(task("a")) is None
    assert not money.is_spent
    assert list(tmp_path.iterdir()) == []
    money.begin([task("a"), task("b", max_cost=1.0)])
    assert money.share(task("a")) is None
    assert money.share(task("b", max_cost=1.0)) is not None


@pytest.fixture
def lock(tmp_path: Path) -> Any:
    descriptor = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    yield descriptor
    os.close(descriptor)


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    return subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "One")
    git(folder, "tag", "v1")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Two")
    return folder


@pytest.mark.slow
def test_a_clone_is_on_a_branch_of_its_own_and_shares_nothing(tmp_path: Path, lock: int) -> None:
    source = repository(tmp_path / "source")
    (source / "file").write_text("x")
    git(source, "add", ".")
    git(source, "commit", "-qm", "Three")
    left = tmp_path / "clone.part"  # of a worker that was killed
    left.mkdir()
    (left / "half").touch()
    clone = Clone(tmp_path / "clone", 60, lock)
    begun = clone.make(str(source), "", "marvin/a")
    assert begun == git(source, "rev-parse", "HEAD") == clone.head()
    assert git(tmp_path / "clone", "symbolic-ref", "HEAD") == "refs/heads/marvin/a"
    assert (tmp_path / "clone" / "file").read_text() == "x"
    objects = [path for path in (tmp_path / "clone/.git/objects").rglob("*") if path.is_file()]
    assert objects
    assert {path.stat().st_nlink for path in objects} == {1}
    for base, title in (("v1", "One"), (git(source, "rev-parse", "v1"), "One"), ("main", "Three")):
        other = Clone(tmp_path / f"clone-{len(base)}", 60, lock)
        other.make(str(source), base, "marvin/b")
        assert git(tmp_path / f"clone-{len(base)}", "log", "-1", "--format=%s") == title
    with pytest.raises(CloneFault, match="no branch, tag or commit 'v9'"):
        Clone(tmp_path / "none", 60, lock).make(str(source), "v9", "marvin/c")
    with pytest.raises(CloneFault, match="git clone failed"):
        Clone(tmp_path / "none", 60, lock).make(str(tmp_path / "nowhere"), "", "marvin/c")


def test_a_branch_that_is_named_marvin_is_no_hindrance(tmp_path: Path, lock: int) -> None:
    source = repository(tmp_path / "source")
    git(source, "branch", "-m", "marvin")
    (source / "file").write_text("x")
    git(source, "add", ".")
    git(source, "commit", "-qm", "Three")
    begun = Clone(tmp_path / "clone", 60.0, lock).make(str(source), "", "marvin/t1")
    assert git(tmp_path / "clone", "symbolic-ref", "HEAD").strip() == "refs/heads/marvin/t1"
    assert git(tmp_path / "clone", "rev-parse", "HEAD", "origin/marvin").split() == [begun, begun]
    assert git(tmp_path / "clone", "branch", "--format=%(refname)") == "refs/heads/marvin/t1"
    assert git(tmp_path / "clone", "status", "--porcelain", "--untracked-files=no") == ""


def test_a_repository_without_a_commit_is_cloned_too(tmp_path: Path, lock: int) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    clone = Clone(tmp_path / "clone", 60, lock)
    assert (clone.make(str(tmp_path / "empty"), "", "marvin/a"), clone.head()) == ("", "")
    assert git(tmp_path / "clone", "symbolic-ref", "HEAD") == "refs/heads/marvin/a"


def test_a_branch_is_pushed_and_never_over_another(tmp_path: Path, lock: int) -> None:
    source = repository(tmp_path / "source")
    clone = Clone(tmp_path / "clone", 60, lock)
    clone.make(str(source), "", "marvin/a")
    git(tmp_path / "clone", "commit", "-q", "--allow-empty", "-m", "Mine")
    hook = tmp_path / "clone/.git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    clone.push(str(source), "marvin/a")
    clone.push(str(source), "marvin/a")
    assert git(source, "rev-parse", "marvin/a") == clone.head()
    assert not (tmp_path / "ran").exists()
    git(source, "update-ref", "refs/heads/marvin/a", git(source, "commit-tree", "-m", "Theirs", "HEAD^{tree}"))
    with pytest.raises(CloneFault, match="git push failed"):
        clone.push(str(source), "marvin/a")
    assert git(source, "log", "-1", "--format=%s", "marvin/a") == "Theirs"


@pytest.mark.parametrize(
    ("name", "scheduler", "why"),
    [
        ("spark", "", "Unknown engine 'spark'"),
        ("local", "tcp://x:1", "--scheduler needs the engine dask. Add --engine dask, or leave --scheduler out"),
    ],
)
def test_an_engine_that_there_is_not_is_refused(name: str, scheduler: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        check_engine(name, scheduler)


def test_a_worker_that_waits_for_a_task_lets_go_once_nobody_leads(tmp_path: Path) -> None:
    folder, over, got = TaskFolder(tmp_path), threading.Event(), []

    def wait() -> None:
        with folder.held(over.is_set, 0.001) as lock:
            got.append(lock)

    with folder.held(lambda: True, 0.001):
        waiting = threading.Thread(target=wait)
        waiting.start()
        over.set()
        waiting.join(60)
    assert got == [None]
