"""Tests that were moved, or whose files got another name, are the same tests to the gates."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from pathlib import Path

import pytest

from marvin_core.api.timeouts import Timeouts
from marvin_core.guard.processes.runner import ProcessRunner
from marvin_pipeline.evidence.judging import Before, judge_green, judge_red
from marvin_pipeline.evidence.own_modules import OwnModules
from marvin_pipeline.evidence.records import TestReport as Report
from marvin_pipeline.evidence.records import TestResult as Result
from marvin_pipeline.run.checkpoints import Checkpoints
from tests.support.folders import Folders

GREEN = Result(name="tests/new/test_a.py::test_b", file="tests/new/test_a.py", outcome="passed")


def green(*results: Result) -> Report:
    return Report(command="test", runner="pytest", exit_code=0, results=results)


MOVED = [
    ("tests/test_a.py", "tests/new/test_a.py", "tests/test_a.py::A::test_b", "tests/new/test_a.py::A::test_b"),
    ("tests/test_a.py", "tests/new/test_c.py", "tests/test_a.py::test_b[1]", "tests/new/test_c.py::test_b[1]"),
    ("tests/test_a.py", "tests/new/test_a.py", "tests.test_a.A.test_b", "tests.new.test_a.A.test_b"),
    ("tests/test_a.py", "tests/new/test_a.py", "test_a.A.test_b", "new.test_a.A.test_b"),
    ("test/a.test.js", "test/new/a.test.js", "test/a.test.js > sums > adds", "test/new/a.test.js > sums > adds"),
    ("core/a_test.go", "sums/a_test.go", "ada/adder/core.TestAdd/of_two", "ada/adder/sums.TestAdd/of_two"),
    ("core/a_test.go", "a_test.go", "ada/adder/core.TestAdd", "ada/adder.TestAdd"),
]


@pytest.mark.parametrize(("old", "new", "red", "now"), MOVED, ids=lambda each: each)
def test_tests_of_a_file_that_was_moved_have_their_new_names(old: str, new: str, red: str, now: str) -> None:
    passes = GREEN.replace(name=now, file="" if old.endswith(".go") else new)
    judged = judge_green([green(passes)], [red], renamed={old: new})
    assert (judged.outcome, judged.tests) == ("passed", (now,))
    failing = judge_green([green(passes.replace(outcome="failed"))], [red], renamed={old: new})
    assert (failing.outcome, failing.is_missing) == ("failed", False)
    skipped = judge_green([green(passes.replace(outcome="skipped"))], [red], renamed={old: new})
    assert (skipped.outcome, skipped.is_missing) == ("failed", True)


def test_a_file_that_could_not_be_imported_is_found_where_it_is_now() -> None:
    renamed = {"tests/test_a.py": "tests/new/test_a.py"}
    assert judge_green([green(GREEN)], ["tests/test_a.py"], renamed=renamed).tests == ("tests/new/test_a.py",)
    assert judge_green([green(GREEN)], ["tests/test_a.py"]).is_missing
    assert judge_green([green()], ["tests/test_a.py"], renamed=renamed).is_missing


@pytest.mark.parametrize(
    ("red", "now"),
    [
        ("tests/test_a.py::A::test_b", "tests/test_c.py::A::test_b"),
        ("tests.test_a.A.test_b", "tests.test_c.A.test_b"),
        ("test/a.test.js > adds", "test/c.test.js > adds"),
        ("ada/adder/core.TestAdd", "ada/adder/sums.TestAdd"),
    ],
)
def test_a_test_that_was_moved_alone_is_found_by_its_own_name(red: str, now: str) -> None:
    moved = GREEN.replace(name=now, file="tests/test_c.py")
    assert judge_green([green(moved)], [red]).tests == (now,)
    assert judge_green([green(moved.replace(name=f"{now}_2"))], [red]).is_missing


def test_one_test_stands_for_one_that_is_lost() -> None:
    red = ["tests/test_a.py::test_b", "tests/test_c.py::test_b"]
    first, second = (GREEN.replace(name=f"tests/new/test_{name}.py::test_b") for name in "ac")
    assert judge_green([green(first)], red).is_missing, "which of them it is nobody can say"
    assert judge_green([green(first, second)], red).outcome == "passed"
    assert judge_green([green(first, second.replace(outcome="failed"))], red).outcome == "failed"
    kept = GREEN.replace(name=red[1], file="tests/test_c.py")
    assert judge_green([green(kept)], red).is_missing, "one that was there all the time stands for itself alone"


def test_tests_that_were_there_and_were_moved_are_not_new() -> None:
    known = frozenset({"tests/test_old.py::test_b"})
    before = Before(known=known, changed=frozenset({"tests/new/test_a.py", "tests/test_new.py"}))
    red = GREEN.replace(name="tests/test_new.py::test_c", file="tests/test_new.py", outcome="failed", cause="KeyError")
    own = OwnModules(names=frozenset())
    assert judge_red([green(GREEN, red)], before, own).tests == (red.name,)
    other = GREEN.replace(name="tests/new/test_a.py::test_other")
    assert judge_red([green(other, red)], before, own).outcome == "failed"


def test_many_tests_that_were_moved_are_found_in_time_that_grows_with_their_number() -> None:
    count = 20_000
    red = [f"tests/test_{number % 500}.py::test_{number}" for number in range(count)]
    renamed = {f"tests/test_{number}.py": f"tests/new/test_{number}.py" for number in range(500)}
    passing = [GREEN.replace(name=name.replace("tests/", "tests/new/")) for name in red]
    begun = time.process_time()
    assert judge_green([green(*passing)], red, renamed=renamed).outcome == "passed"
    assert judge_green([green(*passing)], red).outcome == "passed", "each of them by its own name"
    assert time.process_time() - begun < 5


def test_git_tells_which_files_were_renamed(tmp_path: Path) -> None:
    """Also within a folder of a repository, and with odd names."""
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)

    def git(*words: str) -> str:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        return subprocess.run(["git", *who, *words], cwd=project, capture_output=True, text=True, check=True).stdout

    git("init", "-q", str(tmp_path))
    text = "".join(f"def test_{number}():\n    assert {number}\n\n" for number in range(20))
    (project / "tests/test_ä\nb.py").write_text(text)
    (project / "tests/test_same.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    before = git("rev-parse", "HEAD").strip()
    (project / "new").mkdir()
    (project / "tests/test_ä\nb.py").rename(project / "new/test_c.py")
    (project / "new/test_c.py").write_text(text.replace("assert 7", "assert 70"))
    git("add", "-A", ".")
    git("commit", "-q", "-m", "two")

    async def renames() -> dict[str, str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        runner = ProcessRunner(Folders(root=project, base=project), environment, Timeouts())
        try:
            checkpoints = Checkpoints(project, runner, 60)
            return dict(await checkpoints.commits.renames(before, git("rev-parse", "HEAD").strip()))
        finally:
            await runner.close()

    assert asyncio.run(renames()) == {"tests/test_ä\nb.py": "new/test_c.py"}
