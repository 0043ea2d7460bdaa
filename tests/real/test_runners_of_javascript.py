"""What Jest and Vitest report, by the reporters that Marvin hands to them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from marvin_pipeline.checks.commands import ProjectCommand
from marvin_pipeline.evidence.reports.plans import plan_of
from marvin_pipeline.evidence.reports.reading import read_lines
from tests.real.components import REAL, required

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("runners")]
MODULES = REAL / "npm" / "node_modules"
TESTS = """
const assert = require('node:assert');
test('passes', () => {});
describe('a suite', () => {
  test('asserts', () => expect(1).toBe(2));
  test('uses a name', () => undefinedName());
  test.skip('skips', () => {});
  test.todo('is to be done');
});
"""
TOLD = {
    "a.test.js > passes": ("passed", "", ""),
    "a.test.js > a suite > asserts": ("failed", "AssertionError", ""),
    "a.test.js > a suite > uses a name": ("failed", "ReferenceError", ""),
    "a.test.js > a suite > skips": ("skipped", "", ""),
    "a.test.js > a suite > is to be done": ("skipped", "", ""),
    "sub/b.test.js": ("error", "MODULE_NOT_FOUND", "./adder.js"),
    "c.test.js": ("error", "MODULE_NOT_FOUND", "of-nobody"),
}


def told(folder: Path, files: Mapping[str, str], *argv: str) -> dict[str, tuple[str, str, str]]:
    """How each test ended and why; what is imported from `of-nobody` is no package."""
    required(MODULES / ".bin" / "jest", MODULES / ".bin" / "vitest")
    (folder / "sub").mkdir()
    (folder / "node_modules").symlink_to(MODULES)
    for name, text in files.items():
        (folder / name).write_text(text)
    report = folder / "report.jsonl"
    plan = plan_of(ProjectCommand(kind="test", argv=argv, environment=(("CI", "1"),)), folder, report)
    env = {key: os.environ[key] for key in ("PATH", "HOME")} | dict(plan.command.environment)
    subprocess.run(plan.command.argv, cwd=folder, env=env, capture_output=True, timeout=120)
    read = read_lines(report.read_bytes())
    assert read.fault == ""
    return {one.name: (one.outcome, one.cause, one.missing) for one in read.results}


@pytest.mark.parametrize("argv", [("npx", "--no-install", "jest"), ("npm", "run", "test")])
def test_jest(tmp_path: Path, argv: tuple[str, ...]) -> None:
    files = {
        "package.json": json.dumps({"name": "adder", "scripts": {"test": "jest"}}),
        "a.test.js": TESTS,
        "sub/b.test.js": "const { add } = require('../adder.js');\ntest('a', () => {});\n",
        "c.test.js": "require('of-nobody');\ntest('a', () => {});\n",
    }
    assert told(tmp_path, files, *argv) == TOLD


def test_vitest(tmp_path: Path) -> None:
    head = "import { test, describe, expect } from 'vitest';\n"
    files = {
        "package.json": json.dumps({"name": "adder", "type": "module"}),
        "a.test.js": head + TESTS.replace("const assert = require('node:assert');\n", ""),
        "sub/b.test.js": f"{head}import {{ add }} from '../adder.js';\ntest('a', () => {{}});\n",
        "c.test.js": f"{head}import 'of-nobody';\ntest('a', () => {{}});\n",
    }
    assert told(tmp_path, files, "npx", "--no-install", "vitest", "run") == TOLD
