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


@pytest.fixture
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


@pytest.mark.usefixtures("stryker")
def test_tests_that_catch_what_is_changed_pass(marvin: Marvin) -> None:
    done = run(marvin)
    assert done.code == 0, done.err.decode() + done.text
    found = gate(marvin)
    assert found["standing"] == "passed", found
    assert "by Stryker" in found["reason"]
    assert marvin.git("status", "--porcelain", "--", "adder.js") == ""
    assert not list((marvin.project / ".marvin").glob("mutations-*"))


@pytest.mark.usefixtures("stryker")
def test_tests_that_catch_little_fail_with_strict(marvin: Marvin, models: PipelineModels) -> None:
    models.scripts["tests"] = writer({"test/add.test.js": WEAK}, "Test adder")
    models.scripts["integration_tests"] = writer({"test/program.test.js": WEAK}, "Test adder again")
    done = run(marvin, "--strict")
    assert done.code == 5, done.err.decode() + done.text
    found = gate(marvin)
    assert found["standing"] == "failed", found
    assert any(place.startswith("adder.js:") for place in found["places"])
    assert "mutations of the new code are caught" in done.said


SUM = "exports.add = (a, b) => a + b;\n"
APP = "const { add } = require('@ada/core');\nexports.sum = (...all) => all.reduce((a, b) => add(a, b), 0);\n"
TEST = (
    "const test = require('node:test');\nconst assert = require('node:assert');\n"
    "const made = require('../index.js');\n\ntest('adds', () => assert.strictEqual(made.CALL(2, 3), 5));\n"
)


def package(name: str, **more: Any) -> str:
    return json.dumps({"name": name, "version": "1.0.0", "main": "index.js", **more})


@pytest.mark.parametrize("manager", ["npm", "pnpm"])
def test_packages_of_a_workspace_are_tried_each_with_its_own_tests(
    marvin: Marvin, models: PipelineModels, manager: str
) -> None:
    """The app has no code of its own that its tests could be right without: what it imports is of the copy."""
    tested = {"scripts": {"test": "node --test"}}
    manifests = {
        "package.json": package("ada", private=True, workspaces=["packages/*"]),
        **({"pnpm-workspace.yaml": "packages:\n  - packages/*\n"} if manager == "pnpm" else {}),
        "packages/core/package.json": package("@ada/core", **tested),
        "packages/app/package.json": package("@ada/app", **tested),
    }
    functional = {f"packages/{name}/test/a.test.js": TEST.replace("CALL", call) for name, call in CALLS.items()}
    models.scripts |= {
        **ADDER_IN_JAVASCRIPT,
        "structure": writer(manifests, "Set up the workspace"),
        "tests": writer({"packages/core/test/a.test.js": functional["packages/core/test/a.test.js"]}, "Test the core"),
        "integration_tests": writer({"packages/app/test/a.test.js": functional["packages/app/test/a.test.js"]}, "Test"),
        "implementation": writer({"packages/core/index.js": SUM, "packages/app/index.js": APP}, "Implement both"),
    }
    (marvin.project / ".gitignore").write_text("node_modules\n")
    lay_modules(marvin.project, manager)
    done = run(marvin)
    assert done.code == 0, done.err.decode() + done.text
    found = gate(marvin)
    assert found["standing"] == "passed", found
    assert "by Stryker, Stryker" in found["reason"], "each package is a part of its own"
    assert found["faults"] == []
    assert not list((marvin.project / ".marvin").glob("mutations-*"))


CALLS = {"core": "add", "app": "sum"}


def lay_modules(root: Path, manager: str) -> None:
    """What the package manager would have laid: npm has all at the top, pnpm links from each package."""
    if manager == "npm":
        shutil.copytree(MODULES, root / "node_modules", symlinks=True)
        (root / "node_modules/@ada").mkdir()
        for name in CALLS:
            (root / f"node_modules/@ada/{name}").symlink_to(f"../../packages/{name}")
        return
    shutil.copytree(MODULES, root / "node_modules/.pnpm/all/node_modules", symlinks=True)
    for name in CALLS:
        own = root / f"packages/{name}/node_modules"
        (own / "@stryker-mutator").mkdir(parents=True)
        (own / "@stryker-mutator/core").symlink_to(root / "node_modules/.pnpm/all/node_modules/@stryker-mutator/core")
    (root / "packages/app/node_modules/@ada").mkdir()
    (root / "packages/app/node_modules/@ada/core").symlink_to("../../../core")
