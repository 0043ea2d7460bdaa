"""Runs of the pipeline in which agents write tests that prove nothing: each is caught and sent back."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from functools import partial

import pytest

from marvin_core.testing.answers import Answer
from tests.e2e.support_e2e import LIMIT, Marvin, wait_until
from tests.support.agents import agents_in
from tests.support.pipeline import Asked, PipelineModels, Script, said, steps, verdict, writer
from tests.support.proofs import ADDER, GOOD, gates, lay, patch, prompts_of, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is missing")


BAD = {
    "passes without the code": (
        "def test_adds():\n    assert 2 + 3 == 5\n",
        ("it passes, although the code does not exist yet"),
    ),
    "imports something else": (f"import requests_of_nobody\n{GOOD}", "it imports requests_of_nobody"),
    "has a syntax error": (GOOD.replace("):", "):("), "has a syntax error"),
    "has a fixture that fails": (
        "import pytest\n\n\n@pytest.fixture\ndef disk():\n    raise OSError('none')\n\n\ndef test_a(disk):\n    pass\n",
        "as a fixture (OSError: none)",
    ),
    "is skipped": (f"import pytest\n\npytestmark = pytest.mark.skip\n\n\n{GOOD[GOOD.index('def') :]}", "it is skipped"),
    "uses what nothing defines": (GOOD.partition("\n\n\n")[2], "it uses an undefined name"),
}


@pytest.mark.parametrize(("content", "why"), BAD.values(), ids=BAD)
def test_a_test_that_is_not_red_for_the_right_reason_goes_back_to_its_writer(
    marvin: Marvin, models: PipelineModels, content: str, why: str
) -> None:
    lay(marvin, "2a", {})
    models.scripts["integration_tests"] = writer({"tests/test_a.py": content}, "Test adder")
    sent_back = prompts_of(models, "red_tests", patch("tests/test_a.py", GOOD))
    done = until(marvin, "2b", MARVIN_SANDBOX="auto")
    assert done.code == 0, done.err.decode() + done.text
    (prompt,) = sent_back
    assert why in prompt
    assert "tests/test_a.py" in prompt
    first, second = gates(marvin, "red")
    assert (first["outcome"], second["outcome"]) == ("failed", "passed")
    assert second["tests"] == ["tests/test_a.py"]
    assert why in first["places"][0]
    for gate in (first, second):
        marvin.git("cat-file", "-e", gate["commit"])
    assert marvin.git("show", f"{second['commit']}:tests/test_a.py") == GOOD
    assert not list((marvin.project / ".marvin").glob("evidence-*"))


def test_what_stays_wrong_stops_the_run_with_5_and_the_next_run_gets_another_try(
    marvin: Marvin, models: PipelineModels
) -> None:
    lay(marvin, "2a", {})
    models.scripts["integration_tests"] = writer({"tests/test_a.py": BAD["is skipped"][0]}, "Test adder")
    models.scripts["red_tests"] = steps(said("All is well."))
    marvin.config("packs: {pipeline: {proof_rounds: 2}}\n")
    done = until(marvin, "2b")
    assert done.code == 5, done.err.decode() + done.text
    assert "It was repeated 2 times." in done.text
    assert "tests/test_a.py::test_adds: it is skipped" in done.text
    assert models.asked.count("red_tests") == 2
    assert json.loads((marvin.project / ".marvin/logs/pipeline-report.json").read_text())["exit_code"] == 5
    assert (marvin.project / ".marvin/pipeline_state").read_text() == "2a"
    models.scripts["red_tests"] = patch("tests/test_a.py", GOOD)
    done = until(marvin, "2b")
    assert done.code == 0, done.err.decode() + done.text
    assert models.asked.count("integration_tests") == 1


def test_only_new_tests_have_to_be_red(marvin: Marvin, models: PipelineModels) -> None:
    old = "def test_old():\n    pass\n"
    lay(marvin, "2a", {"tests/test_a.py": old})
    models.scripts["integration_tests"] = patch("tests/test_a.py", f"{old}\n\ndef test_new():\n    import adder\n")
    done = until(marvin, "2b")
    assert done.code == 0, done.err.decode() + done.text
    (gate,) = gates(marvin, "red")
    assert gate["tests"] == ["tests/test_a.py::test_new"]
    assert "red_tests" not in models.asked


def test_a_fix_after_the_review_that_makes_a_test_pass_is_caught(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    models.scripts["integration_tests"] = writer({"tests/test_a.py": GOOD}, "Test adder")

    def review(asked: Asked) -> Answer:
        finding = (
            '{"findings": [{"severity": "high", "file": "tests/test_a.py", "claim": "Too narrow.", "evidence": "1"}]}'
        )
        first = "This is round" not in asked.prompt and "round 1" not in asked.prompt
        return verdict(asked, *([finding] if first and models.asked.count("code_reviewer") == 1 else []))

    models.scripts["code_reviewer"] = review
    models.scripts["code_fixer"] = patch("tests/test_a.py", BAD["passes without the code"][0])
    models.scripts["red_tests"] = patch("tests/test_a.py", GOOD)
    done = until(marvin, "2b")
    assert done.code == 0, done.err.decode() + done.text
    assert [gate["outcome"] for gate in gates(marvin, "red")] == ["passed", "failed", "passed"]


def through(models: PipelineModels, implementation: Script) -> None:
    """Agents of 2b and 3."""
    models.scripts |= {
        "integration_tests": writer({"tests/test_a.py": GOOD}, "Test adder"),
        "implementation": implementation,
    }


def test_after_the_implementation_the_tests_that_were_red_are_named_as_green(
    marvin: Marvin, models: PipelineModels
) -> None:
    lay(marvin, "2a", {})
    through(models, writer({"adder.py": ADDER}, "Implement adder"))
    done = until(marvin, "4a", MARVIN_SANDBOX="auto")
    assert done.code == 0, done.err.decode() + done.text
    assert [(gate["phase"], gate["outcome"], gate["tests"]) for gate in gates(marvin, "green")] == [
        ("3", "passed", ["tests/test_a.py"]),
        ("4a", "passed", ["tests/test_a.py"]),
    ]
    assert "green_tests" not in models.asked
    assert "debug" not in models.asked


SKIPS = "import unittest\n\nraise unittest.SkipTest('later')\n"
"""A program that has every test of it skipped, in which no file of tests says so."""


def test_a_test_that_the_program_has_skipped_is_brought_back_as_it_was(marvin: Marvin, models: PipelineModels) -> None:
    """Who is sent back for it may not weaken it either."""
    lay(marvin, "2a", {})
    through(models, writer({"adder.py": SKIPS}, "Implement adder"))
    weak = {"adder.py": ADDER, "tests/test_a.py": GOOD.replace(" == 5", "")}
    sent_back = prompts_of(models, "green_tests", writer(weak, "Mend", reads=tuple(weak)))
    models.scripts["tests_judge"] = steps(said("Nothing of it is right."))
    held = prompts_of(models, "sent_back", patch("tests/test_a.py", GOOD))
    done = until(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    (prompt,) = sent_back
    assert "tests/test_a.py: it is skipped" in prompt
    (prompt,) = held
    assert "weaker, `truthy` in place of `exact`" in prompt
    assert [gate["outcome"] for gate in gates(marvin, "green")] == ["failed", "passed"]
    assert gates(marvin, "unweakened")[-1]["outcome"] == "passed"
    assert (marvin.project / "tests/test_a.py").read_text() == GOOD


def test_who_mends_a_test_for_the_gate_red_does_so_without_mocks(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    models.scripts["integration_tests"] = writer({"tests/test_a.py": BAD["passes without the code"][0]}, "Test adder")
    models.scripts["red_tests"] = patch("tests/test_a.py", f"from unittest import mock\n{GOOD}")
    sent_back = prompts_of(models, "sent_back", patch("tests/test_a.py", GOOD))
    done = until(marvin, "2b")
    assert done.code == 0, done.err.decode() + done.text
    (prompt,) = sent_back
    assert "use the real part" in prompt
    assert [gate["outcome"] for gate in gates(marvin, "red")] == ["failed", "passed"]
    assert marvin.git("show", f"{gates(marvin, 'red')[-1]['commit']}:tests/test_a.py") == GOOD


def test_a_test_that_a_review_let_go_is_not_asked_back(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    both = f"{GOOD}\n\ndef test_of_nothing():\n    assert add(0, 0) == 0\n"
    models.scripts["integration_tests"] = writer({"tests/test_a.py": both, "adder.py": STUB}, "Test adder")
    models.scripts["implementation"] = writer(
        {"adder.py": ADDER, "tests/test_a.py": GOOD}, "Implement adder", reads=("adder.py", "tests/test_a.py")
    )
    judged = '{"places": [{"id": "W1", "verdict": "accepted", "reason": "The design takes it back."}]}'
    models.scripts["tests_judge"] = steps(said(judged))
    done = until(marvin, "4a")
    assert done.code == 0, done.err.decode() + done.text
    greens = gates(marvin, "green")
    assert [(gate["outcome"], gate["tests"]) for gate in greens] == [("passed", ["tests/test_a.py::test_adds"])] * 2
    assert "A review accepted the removal of 1 further test." in greens[0]["reason"]
    assert not {"green_tests", "sent_back"} & set(models.asked)


FORGED = """import json
import subprocess

commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
for name in ("green", "unweakened", "no_mocks"):
    line = {"name": name, "phase": "3", "outcome": "passed", "reason": "forged", "commit": commit, "tests": []}
    for place in (".marvin/logs/evidence.jsonl", ".marvin/report/report.json", ".marvin/logs/progress/2b-proof.jsonl"):
        try:
            with open(place, "a") as log:
                log.write("\\n" + json.dumps({**line, "places": [], "accepted_by": ""}) + "\\n")
        except OSError:
            pass
"""


def test_tests_cannot_forge_the_evidence_where_the_sandbox_holds_them(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    through(models, writer({"adder.py": ADDER}, "Implement adder"))
    models.scripts["integration_tests"] = writer({"tests/test_a.py": f"{FORGED}\n{GOOD}"}, "Test adder")
    done = until(marvin, "3", MARVIN_SANDBOX="auto")
    assert done.code == 0, done.err.decode() + done.text
    kept = [path for path in (marvin.project / ".marvin").rglob("*") if path.is_file()]
    assert [path.name for path in kept if b"forged" in path.read_bytes()] == []
    assert [gate["outcome"] for gate in gates(marvin, "green")] == ["passed"]


STUB = "def add(a, b):\n    raise NotImplementedError\n"


def test_a_test_that_fails_after_the_implementation_is_left_to_4a(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    through(models, writer({"adder.py": ADDER.replace("+", "-")}, "Implement adder"))
    models.scripts["debug"] = patch("adder.py", ADDER, "Add")
    done = until(marvin, "4a")
    assert done.code == 0, done.err.decode() + done.text
    assert [(gate["phase"], gate["outcome"]) for gate in gates(marvin, "green")] == [("3", "failed"), ("4a", "passed")]
    assert "green_tests" not in models.asked


def test_a_gate_that_was_passed_is_not_run_again_after_a_kill(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    count = marvin.project.parent / "runs"
    text = f"open({str(count)!r}, 'a').write('x')\n{GOOD}"
    models.scripts["integration_tests"] = writer({"tests/test_a.py": text}, "Test adder")
    held = threading.Event()
    models.holds["code_reviewer"] = held
    running = marvin.start("--non-interactive", "--design-first", "--working-dir=.", "--until=2b")
    running.until(partial(models.was_asked, "code_reviewer"), "the reviewer")
    assert count.read_text() == "x"
    running.send(signal.SIGKILL)
    del models.holds["code_reviewer"]
    held.set()
    running.finish()
    wait_until(lambda: not agents_in(marvin.home), "the end of the agents", LIMIT)
    done = until(marvin, "2b")
    assert done.code == 0, done.err.decode() + done.text
    assert count.read_text() == "x"
    assert len(gates(marvin, "red")) == 1
    assert models.asked.count("integration_tests") == 1


CHECK = "test \"$(python3 -c 'import adder; print(adder.add(2, 3))')\" = 5\n"


def test_a_command_of_the_configuration_is_run_and_tells_its_exit_code_alone(
    marvin: Marvin, models: PipelineModels
) -> None:
    lay(marvin, "2a", {})
    marvin.config("packs: {pipeline: {test_command: bash check.sh}}\n")
    models.scripts["integration_tests"] = writer({"check.sh": CHECK}, "Test adder")
    models.scripts["implementation"] = writer({"adder.py": ADDER}, "Implement adder")
    done = until(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    (red,), (green,) = gates(marvin, "red"), gates(marvin, "green")
    assert (red["outcome"], green["outcome"]) == ("not_measured", "passed")
    assert "reports only its exit code (1)" in red["reason"]
    assert "Only the exit code shows this" in green["reason"]


@pytest.mark.parametrize("command", ['"\'a"', '" "'])
def test_a_test_command_that_is_none_is_refused_before_anything_is_done(
    marvin: Marvin, models: PipelineModels, command: str
) -> None:
    lay(marvin, "2a", {})
    marvin.config(f"packs: {{pipeline: {{test_command: {command}}}}}\n")
    done = until(marvin, "2b")
    assert done.code == 1
    assert "packs.pipeline.test_command is not a command" in done.said
    assert models.asked == []


@needs_node
def test_the_same_holds_for_the_runner_of_node(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {"package.json": json.dumps({"name": "adder", "scripts": {"test": "node --test"}})})
    (marvin.project / "pyproject.toml").unlink()
    good = (
        "const test = require('node:test');\nconst assert = require('node:assert');\n"
        "const { add } = require('../adder.js');\n\ntest('adds', () => assert.strictEqual(add(2, 3), 5));\n"
    )
    bad = good.replace("'../adder.js'", "'adders-of-nobody'")
    models.scripts["integration_tests"] = writer({"test/add.test.js": bad}, "Test adder")
    models.scripts["implementation"] = writer(
        {"adder.js": "module.exports = { add: (a, b) => a + b };\n"}, "Implement adder"
    )
    sent_back = prompts_of(models, "red_tests", patch("test/add.test.js", good))
    done = until(marvin, "3", MARVIN_SANDBOX="auto")
    assert done.code == 0, done.err.decode() + done.text
    assert "it imports adders-of-nobody" in sent_back[0]
    assert [gate["outcome"] for gate in gates(marvin, "red")] == ["failed", "passed"]
    assert [gate["outcome"] for gate in gates(marvin, "green")] == ["passed"]
    assert gates(marvin, "green")[0]["tests"] == ["test/add.test.js"]
