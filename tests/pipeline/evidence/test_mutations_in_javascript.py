"""Mutations of JavaScript inside a run, by the real Stryker, which `scripts/setup-real` installs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support_e2e import Marvin
from tests.support.pipeline import ADDER_IN_JAVASCRIPT, PipelineModels, writer

MODULES = Path(sys.prefix).parent / ".venv-real/npm/node_modules"
pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
FLAGS = ("--non-interactive", "--design-first", "--working-dir=.", "--until=4a")
WEAK = (
    "const test = require('node:test');\nconst { add } = require('../adder.js');\n\n"
    "test('adds', () => {\n  add(2, 3);\n});\n"
)


@pytest.fixture(autouse=True)
def stryker(marvin: Marvin, models: PipelineModels) -> None:
    """The project has Stryker where a package manager would have put it."""
    models.scripts |= ADDER_IN_JAVASCRIPT
    (marvin.project / ".gitignore").write_text("node_modules\n")
    shutil.copytree(MODULES, marvin.project / "node_modules", symlinks=True)


def run(marvin: Marvin, *flags: str) -> Any:
    env = {"MARVIN_MUTATIONS": "6", "MARVIN_SANDBOX": "auto"}
    prompt = "Build adder, a program that adds two numbers."
    return marvin.run(*FLAGS, "--prompt", prompt, *flags, limit=800, env=env)


def gate(marvin: Marvin) -> dict[str, Any]:
    gates = json.loads((marvin.project / ".marvin/report/report.json").read_text())["gates"]
    (found,) = [one for one in gates if one["name"] == "mutations"]
    return dict(found)


def test_tests_that_catch_what_is_changed_pass(marvin: Marvin) -> None:
    done = run(marvin)
    assert done.code == 0, done.err.decode() + done.text
    found = gate(marvin)
    assert found["standing"] == "passed", found
    assert "by Stryker" in found["reason"]
    assert marvin.git("status", "--porcelain", "--", "adder.js") == ""
    assert not list((marvin.project / ".marvin").glob("mutations-*"))


def test_tests_that_catch_little_fail_with_strict(marvin: Marvin, models: PipelineModels) -> None:
    models.scripts["tests"] = writer({"test/add.test.js": WEAK}, "Test adder")
    models.scripts["integration_tests"] = writer({"test/program.test.js": WEAK}, "Test adder again")
    done = run(marvin, "--strict")
    assert done.code == 5, done.err.decode() + done.text
    found = gate(marvin)
    assert found["standing"] == "failed", found
    assert any(place.startswith("adder.js:") for place in found["places"])
    assert "mutations of the new code are caught" in done.said
