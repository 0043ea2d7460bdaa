"""Mutations by the real tools, in projects whose tests catch much or little."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from marvin_pipeline.evidence.mutations.copying import add_file, break_code, restore_code
from marvin_pipeline.evidence.mutations.tried import NotMeasured
from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import PipelineModels, writer

pytestmark = pytest.mark.timeout(900)

PROMPT = "Build adder, a program that adds two numbers."
FLAGS = ("--non-interactive", "--design-first", "--working-dir=.")
WEAK = (
    "import unittest\n\nfrom adder import add\n\n\n"
    "class Add(unittest.TestCase):\n    def test_adds(self):\n        add(2, 3)\n"
)
PROGRAM = (
    "import sys\n\n\ndef add(a, b):\n    return a + b\n\n\ndef larger(a, b):\n    return a if a > b else b\n\n\n"
    'if __name__ == "__main__":\n    print(add(int(sys.argv[1]), int(sys.argv[2])))\n'
)


def gate(marvin: Marvin) -> dict[str, Any]:
    """The gate as the report has it."""
    gates = json.loads((marvin.project / ".marvin/report/report.json").read_text())["gates"]
    (found,) = [one for one in gates if one["name"] == "mutations"]
    return dict(found)


def run_to_4a(marvin: Marvin, *flags: str, mutations: int = 12) -> Any:
    env = {"MARVIN_MUTATIONS": f"{mutations}", "MARVIN_SANDBOX": "auto"}
    return marvin.run(*FLAGS, "--prompt", PROMPT, "--until=4a", *flags, limit=800, env=env)


@pytest.mark.slow
def test_tests_that_catch_what_is_changed_pass(marvin: Marvin, models: PipelineModels) -> None:
    models.scripts["structure"] = writer(
        {
            "pyproject.toml": '[project]\nname = "adder"\nversion = "1.0"\n',
            "a_script.py": "",
        },
        "Set up adder",
    )
    files = {"adder.py": PROGRAM.replace("a if a > b else b", "max(a, b)"), "a_script.py": "print(__name__)\n"}
    models.scripts["implementation"] = writer(files, "Implement adder, and a script that no test uses")
    done = run_to_4a(marvin)
    assert done.code == 0, done.err.decode() + done.text
    found = gate(marvin)
    assert found["standing"] == "passed", found
    assert "by Cosmic Ray" in found["reason"]
    assert not list((marvin.project / ".marvin").glob("mutations-*"))
    assert marvin.git("status", "--porcelain", "--", "adder.py") == ""


@pytest.mark.slow
def test_tests_that_catch_little_are_reported_and_with_strict_they_fail(marvin: Marvin, models: PipelineModels) -> None:
    models.scripts["tests"] = writer({"tests/test_adder.py": WEAK, "tests/__init__.py": ""}, "Test adder")
    models.scripts["integration_tests"] = writer({"tests/test_program.py": WEAK}, "Test adder again")
    models.scripts["implementation"] = writer({"adder.py": PROGRAM}, "Implement adder")
    done = run_to_4a(marvin)
    assert done.code == 0, done.err.decode() + done.text
    found = gate(marvin)
    assert found["standing"] == "failed", found
    assert any(place.startswith("adder.py:") for place in found["places"])
    assert "mutations of the new code are caught" in done.text
    strict = marvin.run(*FLAGS, "--until=4a", "--strict")
    assert strict.code == 5, strict.said
    assert "mutations of the new code are caught" in strict.said


@pytest.mark.slow
def test_a_language_without_a_tool_is_not_measured(marvin: Marvin, models: PipelineModels) -> None:
    models.scripts["implementation"] = writer({"adder.go": "package adder\n", "adder.py": ""}, "Implement adder")
    test = (
        "import unittest\nfrom pathlib import Path\n\nimport adder\n\n\nclass A(unittest.TestCase):\n"
        "    def test_a(self):\n        beside = Path(adder.__file__).with_suffix('.go')\n"
        "        self.assertIn('package adder', beside.read_text())\n"
    )
    models.scripts["tests"] = writer({"tests/test_a.py": test, "tests/__init__.py": ""}, "Test that adder is there")
    models.scripts["integration_tests"] = writer({"tests/test_b.py": test}, "Test it again")
    done = run_to_4a(marvin)
    assert done.code == 0, done.err.decode() + done.text
    assert gate(marvin)["standing"] == "not_measured"
    assert "There is no tool here that makes mutations of Go." in gate(marvin)["reason"]
    strict = marvin.run(*FLAGS, "--until=4a", "--strict")
    assert strict.code == 5
    assert "4a: not all of this was measured: mutations of the new code" in strict.said


def test_what_is_broken_for_a_moment_is_of_the_copy_alone(tmp_path: Path) -> None:
    outside, copy = tmp_path / "outside", tmp_path / "copy"
    outside.mkdir()
    copy.mkdir()
    for place in (outside / "a.py", copy / "a.py"):
        place.write_text("a = 1\n")
    (copy / "link.py").symlink_to(outside / "a.py")
    (copy / "folder").symlink_to(outside)
    broken = break_code(copy, ("a.py", "link.py", "folder/a.py"))
    assert broken == {"a.py": b"a = 1\n"}
    with pytest.raises((SyntaxError, ValueError)):
        compile((copy / "a.py").read_bytes(), "a.py", "exec")
    assert (outside / "a.py").read_text() == "a = 1\n"


def test_the_original_code_is_not_written_through_links_that_tests_have_made(tmp_path: Path) -> None:
    """I4: the tests run in the sandbox, and Marvin, which writes the code back, does not."""
    outside, copy = tmp_path / "outside", tmp_path / "copy"
    for place in (outside, copy, copy / "folder"):
        place.mkdir()
    names = ("a.py", "folder/b.py", "c.py", "d.py", "e.py")
    for name in names:
        (copy / name).write_text("code\n")
    for name in ("a.py", "b.py"):
        (outside / name).write_text("valuable\n")
    contents = break_code(copy, names)
    (copy / "a.py").unlink()
    (copy / "a.py").symlink_to(outside / "a.py")
    (copy / "folder").rename(copy / "away")
    (copy / "folder").symlink_to(outside)
    (copy / "c.py").unlink()
    (copy / "d.py").unlink()
    os.mkfifo(copy / "d.py")
    restore_code(copy, contents)
    assert [(outside / name).read_text() for name in ("a.py", "b.py")] == ["valuable\n"] * 2
    assert (copy / "e.py").read_text() == "code\n"
    assert not (copy / "c.py").exists()


def test_the_settings_of_a_tool_are_not_written_through_links_that_tests_have_made(tmp_path: Path) -> None:
    """I4."""
    outside, copy = tmp_path / "outside", tmp_path / "copy"
    for place in (outside, copy, copy / "tool"):
        place.mkdir()
    (outside / "config.toml").write_text("valuable")
    (copy / "tool" / "config.toml").symlink_to(outside / "config.toml")
    (copy / "folder").symlink_to(outside)
    for name in ("tool/config.toml", "folder/config.toml", "folder/tool/config.toml"):
        with pytest.raises(NotMeasured, match=f"{name} cannot be written in a copy of the project"):
            add_file(copy, name, "x")
    assert (outside / "config.toml").read_text() == "valuable"
    assert os.listdir(outside) == ["config.toml"]
    add_file(copy, "./new/config.toml", "x")
    assert (copy / "new" / "config.toml").read_text() == "x"
