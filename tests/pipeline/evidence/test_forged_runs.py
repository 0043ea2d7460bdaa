"""Runs in which something in the process of the tests reports what is not so: a second look finds it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import PipelineModels, said, writer
from tests.support.proofs import ADDER, GOOD, gates, lay, patch, prompts_of, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WRONG = ADDER.replace("+", "*")
HOOK = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    outcome = yield
    outcome.force_result(True)
"""
REPORT = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    call.excinfo = None
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
REWRITES = """import atexit
import glob
import json
import os


def rewrite():
    for path in glob.glob(".marvin/evidence-*/report.jsonl"):
        lines = [json.loads(line) for line in open(path)]
        if any(line.get("name") == line.get("file") for line in lines[:-1]):
            return
        for line in lines:
            line.update(outcome="passed", cause="") if line["event"] == "test" else line.update(exit_code=0)
        open(path, "w").write("".join(json.dumps(line) + "\\n" for line in lines))
        os._exit(0)


atexit.register(rewrite)
"""
EXITS = "import os\n\nif os.path.exists('adder.py'):\n    os._exit(0)\n"
FORGED: Mapping[str, Mapping[str, str]] = {
    "a hook that lets each test pass": {"conftest.py": HOOK},
    "a hook that makes other reports": {"conftest.py": REPORT},
    "a report that is rewritten": {"conftest.py": REWRITES},
    "an end before the end": {"conftest.py": EXITS},
    "a plugin in the settings": {"pytest.ini": "[pytest]\naddopts = -p forging\n", "forging.py": HOOK},
}


@pytest.mark.parametrize("files", FORGED.values(), ids=FORGED)
def test_tests_that_only_seem_to_pass_go_back(marvin: Marvin, models: PipelineModels, files: Mapping[str, str]) -> None:
    """What was there with the tests of 2a is compared with nothing."""
    lay(marvin, "2a", files)
    models.scripts["integration_tests"] = writer({"tests/test_a.py": GOOD}, "Test adder")
    models.scripts["implementation"] = writer({"adder.py": WRONG}, "Implement adder")
    honest = {"adder.py": ADDER, **{name: "" if name.endswith(".py") else "[pytest]\n" for name in files}}
    sent_back = prompts_of(models, "green_tests", writer(honest, "Mend adder", reads=tuple(honest)))
    done = until(marvin, "4a", MARVIN_SANDBOX="auto")
    assert done.code == 0, done.err.decode() + done.text
    assert [gate["outcome"] for gate in gates(marvin, "red")] == ["passed"]
    greens = gates(marvin, "green")
    assert greens[0]["outcome"] == "failed", "what is wrong is not taken for green"
    assert [gate["outcome"] for gate in greens if gate["phase"] == "4a"][-1] == "passed"
    (prompt,) = sent_back
    assert "adder.py do nothing but raise errors" in prompt or "The runner reported nothing." in prompt
    assert not list((marvin.project / ".marvin").glob("mutations-*"))


def test_a_module_that_python_loads_by_itself_does_not_make_tests_green(marvin: Marvin, models: PipelineModels) -> None:
    """In an environment of the project, which is in no commit."""
    lay(marvin, "2a", {".gitignore": ".venv\n"})
    (marvin.project / "pyproject.toml").write_text('[project]\nname = "adder"\nversion = "1.0"\n')
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", marvin.project / ".venv"], check=True)
    (place,) = (marvin.project / ".venv/lib").glob("python*/site-packages")
    (place / "sitecustomize.py").write_text(
        "import unittest\n\n\ndef call(self, method):\n    if type(self).__name__ == '_FailedTest':\n        method()\n"
        "\n\nunittest.TestCase._callTestMethod = call\n"
    )
    tests = (
        "import unittest\n\nfrom adder import add\n\n\nclass Add(unittest.TestCase):\n"
        "    def test_adds(self):\n        self.assertEqual(add(2, 3), 5)\n"
    )
    models.scripts["integration_tests"] = writer({"tests/test_a.py": tests}, "Test adder")
    models.scripts["implementation"] = writer({"adder.py": WRONG}, "Implement adder")
    models.scripts["green_tests"] = patch("adder.py", ADDER, "Add")
    done = until(marvin, "3", MARVIN_SANDBOX="auto")
    assert done.code == 5, done.err.decode() + done.text
    assert models.asked.count("green_tests") == 3
    assert "The tests also pass without the code" in done.text
    (place / "sitecustomize.py").unlink()
    done = until(marvin, "3", MARVIN_SANDBOX="auto")
    assert done.code == 0, done.err.decode() + done.text


def test_where_the_copy_is_not_what_the_tests_use_that_is_told_and_fails_strict(
    marvin: Marvin, models: PipelineModels
) -> None:
    """As where a project is installed in a way that leads back to its folder."""
    lay(marvin, "2a", {})
    place = f"import sys\n\nsys.path.insert(0, {str(marvin.project)!r})\n\n"
    models.scripts["integration_tests"] = writer({"tests/test_a.py": place + GOOD}, "Test adder")
    models.scripts["implementation"] = writer({"adder.py": ADDER}, "Implement adder")
    done = until(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    (green,) = gates(marvin, "green")
    assert (green["outcome"], len(green["faults"])) == ("passed", 1)
    assert "nobody can say whether they use it" in green["reason"]
    assert "3: not all of this was measured: the tests pass." in until(marvin, "3", "--strict").text


def test_a_run_that_was_to_end_behind_3_with_red_tests_ends_with_5(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    models.scripts["integration_tests"] = writer({"tests/test_a.py": GOOD}, "Test adder")
    models.scripts["implementation"] = writer({"adder.py": WRONG}, "Implement adder")
    models.scripts["debug"] = patch("adder.py", ADDER, "Add")
    done = until(marvin, "3")
    assert done.code == 5, done.err.decode() + done.text
    assert "Phase 3 is finished, and its tests are red." in done.text
    assert (marvin.project / ".marvin/pipeline_state").read_text() == "3"
    asked = len(models.asked)
    assert until(marvin, "3").code == 5, "they are as red as they were"
    assert len(models.asked) == asked
    done = until(marvin, "4a")
    assert done.code == 0, done.err.decode() + done.text


def test_a_hook_that_comes_with_2b_goes_to_a_reviewer(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    models.scripts["integration_tests"] = writer({"tests/test_a.py": GOOD, "conftest.py": HOOK}, "Test adder")
    models.scripts["tests_judge"] = lambda asked: said("Nothing of it is right.")
    sent_back = prompts_of(models, "sent_back", patch("conftest.py", ""))
    done = until(marvin, "2b")
    assert done.code == 0, done.err.decode() + done.text
    (prompt,) = sent_back
    assert "a hook of the test runner was added" in prompt


FUNCTIONAL = f"{GOOD}\n\ndef test_zero():\n    assert add(0, 0) == 0\n"


@pytest.mark.parametrize(
    ("weak", "what"),
    [
        (FUNCTIONAL.replace("add(2, 3) == 5", "add(2, 3)"), "weaker, `truthy` in place of `exact`"),
        (GOOD, "test_zero: the test was removed"),
    ],
)
def test_2b_may_not_weaken_the_tests_of_2a(marvin: Marvin, models: PipelineModels, weak: str, what: str) -> None:
    lay(marvin, "1b_review", {})
    models.scripts["tests"] = writer({"tests/test_a.py": FUNCTIONAL}, "Test adder")
    more = GOOD.replace("test_adds", "test_of_both")
    models.scripts["integration_tests"] = writer(
        {"tests/test_a.py": weak, "tests/test_b.py": more}, "Test it as a whole", reads=("tests/test_a.py",)
    )
    judged = '{"places": [{"id": "W1", "verdict": "rejected", "reason": "The design asks for it."}]}'
    models.scripts["tests_judge"] = lambda asked: said(judged)
    sent_back = prompts_of(models, "sent_back", patch("tests/test_a.py", FUNCTIONAL))
    done = until(marvin, "2b")
    assert done.code == 0, done.err.decode() + done.text
    (prompt,) = sent_back
    assert what in prompt
    assert (marvin.project / "tests/test_a.py").read_text() == FUNCTIONAL
    found = [(gate["phase"], gate["outcome"]) for gate in gates(marvin, "unweakened")]
    assert set(found) == {("2b", "passed")}, "new tests ask for more, and 2a is compared with nothing"


def test_a_test_that_a_review_let_2b_take_back_is_not_asked_for_later(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "1b_review", {})
    stub = "def add(a, b):\n    raise NotImplementedError\n"
    models.scripts["tests"] = writer({"tests/test_a.py": FUNCTIONAL, "adder.py": stub}, "Test adder")
    more = {"tests/test_a.py": GOOD, "tests/test_b.py": GOOD.replace("test_adds", "test_of_both")}
    models.scripts["integration_tests"] = writer(more, "Test it as a whole", reads=("tests/test_a.py",))
    judged = '{"places": [{"id": "W1", "verdict": "accepted", "reason": "The design takes it back."}]}'
    models.scripts["tests_judge"] = lambda asked: said(judged)
    models.scripts["implementation"] = writer({"adder.py": ADDER}, "Implement adder", reads=("adder.py",))
    done = until(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    accepted = [gate for gate in gates(marvin, "unweakened") if gate["outcome"] == "accepted"]
    assert {(gate["phase"], *gate["tests"]) for gate in accepted} == {("2b", "tests/test_a.py::test_zero")}
    assert "A review accepted the removal of 1 further test." in gates(marvin, "green")[-1]["reason"]
    assert not {"green_tests", "sent_back"} & set(models.asked)


def test_tests_that_were_moved_are_green_under_their_new_names(marvin: Marvin, models: PipelineModels) -> None:
    lay(marvin, "2a", {})
    stub = "def add(a, b):\n    raise NotImplementedError\n"
    models.scripts["integration_tests"] = writer({"tests/test_a.py": GOOD, "adder.py": stub}, "Test adder")
    moved = writer({"adder.py": ADDER, "tests/unit/test_sums.py": GOOD, "tests/test_a.py": ""}, "Implement adder",
                   reads=("adder.py", "tests/test_a.py"))  # fmt: skip
    models.scripts["implementation"] = moved
    done = until(marvin, "3")
    assert done.code == 0, done.err.decode() + done.text
    (green,) = gates(marvin, "green")
    assert (green["outcome"], green["tests"]) == ("passed", ["tests/unit/test_sums.py::test_adds"])
    assert not {"green_tests", "sent_back", "tests_judge"} & set(models.asked)


def test_with_strict_a_gate_that_could_not_be_measured_fails_unless_the_user_does_without_it(
    marvin: Marvin, models: PipelineModels
) -> None:
    lay(marvin, "2a", {"Makefile": "test:\n\ttest -e adder.py\n"})
    (marvin.project / "pyproject.toml").unlink()
    (marvin.project / ".marvin/spec.md").write_text("# The specification\n\nNothing.\n" + "It says it all. " * 90)
    models.scripts["integration_tests"] = writer({"notes.md": "Tests are in the Makefile.\n"}, "Test adder")
    done = until(marvin, "2b", "--strict")
    assert done.code == 5, done.err.decode() + done.text
    assert "2b: not all of this was measured: new tests fail before the code exists" in done.text
    assert "reports only its exit code" in done.text
    prices = (marvin.config_folder / "config.yaml").read_text()
    marvin.config(f"{prices}packs: {{pipeline: {{unmeasured: [red]}}}}\n")
    again = until(marvin, "2b", "--strict")
    assert again.code == 5, "criteria are missing as well"
    assert "not all of this was measured" not in again.text
    assert until(marvin, "2b").code == 0
