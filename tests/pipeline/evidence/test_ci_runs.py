"""Runs of the program, and what a CI job gets of them: exit codes, the report, annotations."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from junitparser import Failure, JUnitXml

from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import PipelineModels, called, document, found, said, steps, verdict, writer

pytestmark = pytest.mark.slow

PROMPT = "Build adder, a program that adds two numbers."
FLAGS = ("--non-interactive", "--design-first", "--working-dir=.")
FILES = {"summary.md", "report.json", "junit.xml", "findings.sarif", "matrix.md", "matrix.json"}
SPECIFICATION = "- AC-1: given 2 and 3, the sum 5 is printed.\n- AC-2: given 0 and 0, the sum 0 is printed.\n"
TESTS = """import unittest

from adder import add


class Add(unittest.TestCase):
    def test_ac_1_adds(self):
        self.assertEqual(add(2, 3), 5)
"""


def report(marvin: Marvin) -> dict[str, Any]:
    """The report for programs."""
    assert {path.name for path in (marvin.project / ".marvin/report").iterdir()} == FILES
    value: dict[str, Any] = json.loads((marvin.project / ".marvin/report/report.json").read_text())
    return value


def failures(marvin: Marvin) -> list[str]:
    """The names of the cases that failed."""
    suites = JUnitXml.fromfile(str(marvin.project / ".marvin/report/junit.xml"))
    return [case.name for suite in suites for case in suite if any(isinstance(one, Failure) for one in case.result)]


def phases(marvin: Marvin) -> dict[str, str]:
    return {one["phase"]: one["outcome"] for one in report(marvin)["phases"]}


def test_the_report_goes_from_a_requirement_to_its_test_and_commit(marvin: Marvin, models: PipelineModels) -> None:
    body = f"{SPECIFICATION}\n{'It says in all detail what there is to be said. ' * 30}"
    models.scripts["spec"] = document(".marvin/spec.md", "The specification of adder", body)
    models.scripts["tests"] = writer({"tests/test_adder.py": TESTS, "tests/__init__.py": ""}, "Test that adder adds")
    done = marvin.run(*FLAGS, "--prompt", PROMPT, limit=600)
    assert done.code == 0, done.err.decode() + done.text
    told = report(marvin)
    assert (told["ended"], told["exit_code"], told["runs"], failures(marvin)) == ("done", 0, 1, [])
    first, second = told["criteria"]
    assert (first["id"], first["proof"], second["proof"]) == ("AC-1", "shown", "untested")
    (test,) = first["tests"]
    assert (test["file"], test["line"], test["name"]) == ("tests/test_adder.py", 7, "test_ac_1_adds")
    assert marvin.git("log", "-1", "--format=%s", test["commit"]).strip() == "Test that adder adds"
    assert "No test refers to AC-2." in models.newest["integration_tests"]
    assert "No test refers to AC-2." in models.newest["implementation"]
    assert told["cost"] == pytest.approx(done.cost()["session_cost"])
    again = marvin.run(*FLAGS, "--strict")
    assert again.code == 5, again.said
    assert "No passing test covers AC-2." in again.said
    assert failures(marvin)[0] == "the run ends"
    assert marvin.run(*FLAGS).code == 0


def test_findings_above_the_floor_end_with_4(marvin: Marvin, models: PipelineModels) -> None:
    bad = found("critical", "::error::AC-1 is not met.", "pyproject.toml:2")
    models.scripts["code_reviewer"] = lambda asked: verdict(asked, bad)
    models.scripts["code_fixer"] = lambda asked: said("I change nothing.")
    summary = marvin.project.parent / "step_summary"
    env = {"GITHUB_STEP_SUMMARY": str(summary)}
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--github", limit=600, env=env)
    assert done.code == 4, done.err.decode() + done.text
    assert phases(marvin)["2a"] == "failed"
    (finding,) = [one for one in report(marvin)["findings"] if one["phase"] == "2a"]
    assert (finding["severity"], finding["file"], finding["line"]) == ("critical", "pyproject.toml", 2)
    commands = [line for line in done.text.splitlines() if line.lstrip().startswith("::")]
    assert commands == [line for line in commands if line.startswith(("::error ", "::notice "))]
    place = "::error file=pyproject.toml,line=2,title=Marvin%3A critical%2C review of 2a::::error::AC-1 is not met."
    assert place in commands
    assert not [line for line in done.said.splitlines() if line.lstrip().startswith("::")]
    assert summary.read_text().startswith("# The pipeline failed\n")
    sarif = json.loads((marvin.project / ".marvin/report/findings.sarif").read_text())["runs"][0]["results"]
    assert sarif[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "pyproject.toml"


def test_red_tests_end_with_5(marvin: Marvin, models: PipelineModels) -> None:
    models.scripts["debug"] = steps(called(("read_file", {"path": "adder.py"})), said("I change nothing."))
    models.scripts["diagnosis"] = lambda asked: said("It subtracts.")
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--until=4a", limit=600, env={"MARVIN_DEBUG_ROUNDS": "1"})
    assert done.code == 5, done.err.decode() + done.text
    assert phases(marvin)["4a"] == "failed"
    assert report(marvin)["next_phase"] == "4a"
    assert "the run ends" in failures(marvin)


def test_a_killed_run_leaves_a_report_and_the_next_one_tells_of_both(marvin: Marvin, models: PipelineModels) -> None:
    held = threading.Event()
    models.holds["design"] = held
    running = marvin.start(*FLAGS, "--prompt", PROMPT)
    running.until(lambda: models.was_asked("design"), "the agent that designs")
    running.send(signal.SIGKILL)
    held.set()
    running.finish()
    first = report(marvin)
    assert (first["ended"], first["exit_code"]) == ("running", None)
    assert (phases(marvin)["1a_review"], phases(marvin)["1b"]) == ("passed", "not_run")
    del models.holds["design"]
    done = marvin.run(*FLAGS, "--until=1b", limit=600)
    assert done.code == 0, done.said
    second = report(marvin)
    assert (second["ended"], second["runs"], phases(marvin)["1b"]) == ("paused", 2, "passed")
    assert second["phases"][0] == first["phases"][0], "what the first run did is told by the second"
    assert second["phases"][2]["tries"] == 2
    assert failures(marvin) == []


@pytest.mark.parametrize(("flags", "ended", "code"), [(("--max-cost=0.0005",), "budget", 3), ((), "interrupted", 130)])
def test_a_run_that_is_ended_leaves_a_report(
    marvin: Marvin, models: PipelineModels, flags: tuple[str, ...], ended: str, code: int
) -> None:
    held = threading.Event()
    if not flags:
        models.holds["spec"] = held
    running = marvin.start(*FLAGS, "--prompt", PROMPT, *flags)
    if not flags:
        running.until(lambda: models.was_asked("spec"), "the first agent")
        running.send(signal.SIGTERM)
    done = running.finish(600)
    held.set()
    assert done.code == code, done.said
    told = report(marvin)
    assert (told["ended"], told["exit_code"], told["next_phase"]) == (ended, code, "1a")
    assert failures(marvin)


def test_a_report_that_cannot_be_written_is_no_success(marvin: Marvin, models: PipelineModels) -> None:
    (marvin.project / ".marvin").mkdir()
    (marvin.project / ".marvin" / "report").symlink_to(marvin.home)
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--until=1a", limit=600)
    assert done.code == 1
    assert ".marvin/report/summary.md cannot be written" in done.said
    assert not (marvin.home / "summary.md").exists()


def test_annotations_need_text(marvin: Marvin, models: PipelineModels) -> None:
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--github", "--output-format=json")
    assert (done.code, models.asked) == (2, [])
    assert "--github prints annotations together with the text of the run. Leave --output-format out" in done.said


def test_agents_cannot_write_the_evidence(marvin: Marvin, models: PipelineModels, tmp_path: Path) -> None:
    forge = "rm -rf .marvin/report .marvin/logs; mkdir -p .marvin/report; echo forged > .marvin/report/junit.xml"
    outputs: list[str] = []

    def end(asked: Any) -> Any:
        outputs.extend(asked.outputs)
        return said("It is done.")

    line = "create 'Forge' -d 'All of it.' --acceptance 'It is there.'"
    forged = steps(
        lambda asked: called(("tk", {"args": f"{line} --parent {asked.ticket}"})),
        lambda asked: called(("tk", {"args": f"{line} --parent {asked.ticket}"})),
        called(
            ("write_file", {"path": ".marvin/report/new.xml", "content": "<testsuites/>"}),
            ("write_file", {"path": ".marvin/logs/evidence.jsonl", "content": "{}"}),
            ("run_command", {"command": forge}),
        ),
        end,
    )
    models.scripts["structure"] = forged
    done = marvin.run(*FLAGS, "--prompt", PROMPT, "--until=2a", limit=600, env={"MARVIN_SANDBOX": "required"})
    assert done.code == 0, done.err.decode() + done.text
    text = "\n".join(outputs)
    assert "to '.marvin/report/new.xml'" in text, text
    assert "to '.marvin/logs/evidence.jsonl'" in text
    assert "Read-only file system" in text or "busy" in text or "keeps" in text, text
    assert phases(marvin)["1a"] == "passed"
    assert JUnitXml.fromfile(str(marvin.project / ".marvin/report/junit.xml")).tests > 10
