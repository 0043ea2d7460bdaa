"""What real runners report, by the reporters that Marvin hands to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.checks.commands import ProjectCommand
from marvin_pipeline.evidence.records import TestResult as Result
from marvin_pipeline.evidence.reports.go import read_go, with_unbuilt
from marvin_pipeline.evidence.reports.plans import RUNNERS, plan_of
from marvin_pipeline.evidence.reports.reading import ReadReport, read_lines

PYTEST, UNITTEST = ("python3", "-m", "pytest"), ("python3", "-m", "unittest")
needs_node = pytest.mark.skipif(not shutil.which("node"), reason="node is missing")
needs_npm = pytest.mark.skipif(not shutil.which("node") or not shutil.which("npm"), reason="node or npm is missing")


def lay(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def reported(folder: Path, *argv: str, place: str = ".") -> ReadReport:
    """Run a test command as a gate does, but for the sandbox."""
    report = folder / "report.jsonl"
    words = (sys.executable if argv[0] == "python3" else argv[0], *argv[1:])
    plan = plan_of(ProjectCommand(kind="test", argv=words, folder=place), folder, report)
    assert plan.runner, "it is known"
    plain = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME")}
    env = {**plain, **dict(plan.command.environment)}
    subprocess.run(plan.command.argv, cwd=folder / place, env=env, capture_output=True, timeout=120)
    return read_lines(report.read_bytes() if report.exists() else b"", place)


def by_name(read: ReadReport) -> dict[str, Result]:
    assert read.fault == ""
    return {result.name: result for result in read.results}


def told(read: ReadReport) -> dict[str, tuple[str, str, str]]:
    return {name: (one.outcome, one.cause, one.missing) for name, one in by_name(read).items()}


PYTHON = """
import pytest
import store

@pytest.fixture
def broken():
    raise OSError("no disk")

@pytest.fixture
def late():
    yield
    raise OSError("still open")

def test_passes(): pass
def test_asserts(): assert 1 == 2
def test_stub(): store.load()
def test_lacks(): store.frobnicate()
def test_lacks_of_other(): pytest.frobnicate()
def test_fixture(broken): pass
def test_teardown(late): pass
def test_skips(): pytest.skip("later")
def test_raises_nothing():
    with pytest.raises(ValueError): pass
def test_imports(): import nowhere.at_all
def test_name(): undefined
@pytest.mark.xfail
def test_expected(): assert 0
@pytest.mark.xfail(strict=True)
def test_unexpected(): pass
@pytest.mark.parametrize("n", [1, 2])
def test_each(n): assert n == 1
"""
STUB = "def load():\n    raise NotImplementedError\n"


@pytest.mark.slow
def test_pytest_tells_how_each_test_ended_and_why(tmp_path: Path) -> None:
    lay(tmp_path, {"tests/test_a.py": PYTHON, "store.py": STUB})
    read = reported(tmp_path, *PYTEST)
    found = {name.removeprefix("tests/test_a.py::"): one for name, one in told(read).items()}
    assert found == {
        "test_passes": ("passed", "", ""),
        "test_asserts": ("failed", "AssertionError", ""),
        "test_stub": ("failed", "NotImplementedError", ""),
        "test_lacks": ("failed", "AttributeError", "store"),
        "test_lacks_of_other": ("failed", "AttributeError", "pytest"),
        "test_fixture": ("error", "OSError", ""),
        "test_teardown": ("error", "OSError", ""),
        "test_skips": ("skipped", "Skipped", ""),
        "test_raises_nothing": ("failed", "Failed", ""),
        "test_imports": ("failed", "ModuleNotFoundError", "nowhere"),
        "test_name": ("failed", "NameError", ""),
        "test_expected": ("expected_failure", "AssertionError", ""),
        "test_unexpected": ("failed", "", ""),
        "test_each[1]": ("passed", "", ""),
        "test_each[2]": ("failed", "AssertionError", ""),
    }
    results = by_name(read)
    assert results["tests/test_a.py::test_stub"].origin == "store.py"
    assert results["tests/test_a.py::test_asserts"].file == "tests/test_a.py"


@pytest.mark.slow
def test_pytest_tells_of_all_files_also_where_one_cannot_be_imported(tmp_path: Path) -> None:
    files = {
        "test_import.py": "from adder import add\n\ndef test_adds(): assert add(2, 3) == 5\n",
        "test_name.py": "from json import nothing\n",
        "test_syntax.py": "def test_a(:\n",
        "test_runs.py": "def test_a(): assert 0\n",
        "pytest.ini": "[pytest]\naddopts = -x\n",
    }
    assert told(reported(lay(tmp_path, files), *PYTEST)) == {
        "test_import.py": ("error", "ModuleNotFoundError", "adder"),
        "test_name.py": ("error", "ImportError", "json"),
        "test_syntax.py": ("error", "SyntaxError", ""),
        "test_runs.py::test_a": ("failed", "AssertionError", ""),
    }


@pytest.mark.slow
def test_pytest_tells_of_a_conftest_that_cannot_be_imported(tmp_path: Path) -> None:
    read = reported(lay(tmp_path, {"conftest.py": "import adder\n", "test_a.py": "def test_a(): pass\n"}), *PYTEST)
    assert told(read) == {"conftest.py": ("error", "ModuleNotFoundError", "adder")}


@pytest.mark.slow
def test_pytest_tells_the_same_where_workers_run_the_tests(tmp_path: Path) -> None:
    files = {"test_a.py": PYTHON, "store.py": STUB, "test_b.py": "import adder\n"}
    alone = told(reported(lay(tmp_path / "a", files), *PYTEST))
    assert told(reported(lay(tmp_path / "b", files), *PYTEST, "-n", "2")) == alone


@pytest.mark.slow
def test_a_hook_that_hides_a_failure_hides_nothing(tmp_path: Path) -> None:
    hook = (
        "import pytest\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
    )
    read = reported(lay(tmp_path, {"conftest.py": hook, "test_a.py": "def test_a(): assert 0\n"}), *PYTEST)
    assert told(read) == {"test_a.py::test_a": ("failed", "AssertionError", "")}


UNIT = """
import unittest
import store

class Tests(unittest.TestCase):
    def test_passes(self): pass
    def test_asserts(self): self.assertEqual(1, 2)
    def test_stub(self): store.load()
    def test_skips(self): self.skipTest("later")
    def test_parts(self):
        for n in (1, 2):
            with self.subTest(n=n): self.assertEqual(n, 1)
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass

class Prepared(unittest.TestCase):
    def setUp(self): raise OSError("no disk")
    def test_any(self): pass
"""


@pytest.mark.parametrize("where", [(), ("discover", "-s", "tests")])
def test_unittest_tells_how_each_test_ended_and_why(tmp_path: Path, where: tuple[str, ...]) -> None:
    files = {
        "tests/test_a.py": UNIT,
        "tests/test_b.py": "import unittest\nfrom adder import add\n",
        "tests/test_c.py": "def test_a(:\n",
        "store.py": STUB,
        **({} if where else {"tests/__init__.py": ""}),
    }
    read = reported(lay(tmp_path, files), *UNITTEST, *where)
    module = "test_a" if where else "tests.test_a"
    assert told(read) == {
        f"{module}.Tests.test_passes": ("passed", "", ""),
        f"{module}.Tests.test_asserts": ("failed", "AssertionError", ""),
        f"{module}.Tests.test_stub": ("failed", "NotImplementedError", ""),
        f"{module}.Tests.test_skips": ("skipped", "", ""),
        f"{module}.Tests.test_parts": ("failed", "AssertionError", ""),
        f"{module}.Tests.test_expected": ("expected_failure", "", ""),
        f"{module}.Tests.test_unexpected": ("failed", "UnexpectedSuccess", ""),
        f"{module}.Prepared.test_any": ("error", "OSError", ""),
        "tests/test_b.py": ("error", "ModuleNotFoundError", "adder"),
        "tests/test_c.py": ("error", "SyntaxError", ""),
    }
    assert by_name(read)[f"{module}.Tests.test_passes"].file == "tests/test_a.py"


NODE = """
const { test, describe } = require('node:test');
const assert = require('node:assert');
test('passes', () => {});
describe('a suite', () => {
  test('asserts', () => assert.strictEqual(1, 2));
  test('uses a name', () => undefinedName());
  test('skips', { skip: true }, () => {});
  test('is to be done', { todo: true }, () => assert.fail());
});
"""
NODE_FILES = {
    "test/a.test.js": NODE,
    "test/b.test.js": "const { add } = require('../adder.js');\n",
    "test/c.test.mjs": "import test from 'node:test';\nimport { add } from '../adder.mjs';\n",
    "test/d.test.mjs": "import test from 'node:test';\nimport { add } from '../stub.mjs';\n",
    "test/e.test.js": "const x = require('left-pad-of-others');\n",
    "test/f.test.js": "function (\n",
    "test/g.test.mjs": "import x from 'left-pad-of-others';\n",
    "test/h.test.js": "const { add } = require('../src/adder');\n",
    "stub.mjs": "export const other = 1;\n",
}
NODE_TOLD = {
    "test/a.test.js > passes": ("passed", "", ""),
    "test/a.test.js > a suite > asserts": ("failed", "AssertionError", ""),
    "test/a.test.js > a suite > uses a name": ("failed", "ReferenceError", ""),
    "test/a.test.js > a suite > skips": ("skipped", "", ""),
    "test/a.test.js > a suite > is to be done": ("expected_failure", "AssertionError", ""),
    "test/b.test.js": ("error", "MODULE_NOT_FOUND", "./adder.js"),
    "test/c.test.mjs": ("error", "MODULE_NOT_FOUND", "./adder.mjs"),
    "test/d.test.mjs": ("error", "MISSING_EXPORT", "./stub.mjs"),
    "test/e.test.js": ("error", "MODULE_NOT_FOUND", "left-pad-of-others"),
    "test/f.test.js": ("error", "SyntaxError", ""),
    "test/g.test.mjs": ("error", "MODULE_NOT_FOUND", "left-pad-of-others"),
    "test/h.test.js": ("error", "MODULE_NOT_FOUND", "./src/adder"),
}


@pytest.mark.slow
@needs_node
def test_node_tells_how_each_test_ended_and_why(tmp_path: Path) -> None:
    assert told(reported(lay(tmp_path, NODE_FILES), "node", "--test")) == NODE_TOLD


@needs_node
def test_a_module_that_settings_lead_to_is_missing_by_its_name(tmp_path: Path) -> None:
    """As Node, Jest and Vite say so."""
    lay(tmp_path, {"package.json": json.dumps({"imports": {"#b/*": "./src/*.js"}}), "a.cjs": "require('#a/adder');\n"})
    errors = (
        "Configuration error:\\n\\nCould not locate module @/adder mapped as:\\n/src/$1.",
        'Failed to resolve import "../adder" from "test/a.test.ts". Does the file exist?',
    )
    code = f"const {{ told }} = require({str(RUNNERS / 'node_told.cjs')!r});\nconst show = (error) => "
    code += "{ const { cause, missing } = told(error); console.log(`${cause} ${missing}`); };\n"
    code += "try { require('./a.cjs'); } catch (error) { show(error); }\n"
    code += "".join(f"show(new Error('{text}'));\n" for text in errors)
    (tmp_path / "show.cjs").write_text(code)
    done = subprocess.run(["node", "show.cjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "MODULE_NOT_FOUND #a/adder",
        "MODULE_NOT_FOUND @/adder",
        "MODULE_NOT_FOUND ./adder",
    ]


@pytest.mark.slow
@needs_npm
def test_node_tells_the_same_behind_a_script_and_in_a_folder_with_a_space(tmp_path: Path) -> None:
    folder = tmp_path / "a project"
    package = json.dumps({"name": "adder", "scripts": {"test": "NODE_ENV=test node --test"}})
    files = {f"front/{name}": text for name, text in {**NODE_FILES, "package.json": package}.items()}
    read = reported(lay(folder, files), "npm", "run", "test", place="front")
    assert set(told(read)) == {f"front/{name}" for name in NODE_TOLD}
    assert {one.file.partition("/")[0] for one in read.results} == {"front"}


@pytest.mark.parametrize(
    "argv",
    [
        ("make", "test"),
        ("./run-tests",),
        ("npm", "run", "test"),
        ("python3", "tests.py"),
        ("npx", "--no-install", "mocha"),
    ],
)
def test_of_other_commands_the_exit_code_alone_is_known(tmp_path: Path, argv: tuple[str, ...]) -> None:
    lay(tmp_path, {"package.json": json.dumps({"scripts": {"test": "tsc && node --test"}})})
    command = ProjectCommand(kind="test", argv=argv)
    plan = plan_of(command, tmp_path, tmp_path / "report")
    assert (plan.runner, plan.form, plan.command) == ("", "exit code", command)


@pytest.mark.parametrize(
    ("argv", "script", "runner", "last"),
    [
        (("npx", "--no-install", "jest"), "", "jest", "jest_reporter.cjs"),
        (("npx", "--no-install", "vitest", "run"), "", "vitest", "vitest_reporter.mjs"),
        (("npm", "run", "test"), "jest --coverage", "jest", "jest_reporter.cjs"),
        (("pnpm", "run", "test"), "cross-env CI=1 vitest run", "vitest", "vitest_reporter.mjs"),
        (("go", "test", "./..."), "", "go", "./..."),
        (("pytest", "-q"), "", "pytest", "--maxfail=0"),
        (("node", "--test"), "", "node", "--test"),
    ],
)
def test_a_runner_is_known_behind_what_starts_it(
    tmp_path: Path, argv: tuple[str, ...], script: str, runner: str, last: str
) -> None:
    lay(tmp_path, {"package.json": json.dumps({"scripts": {"test": script}})})
    plan = plan_of(ProjectCommand(kind="test", argv=argv), tmp_path, tmp_path / "report")
    assert plan.runner == runner
    assert plan.command.argv[-1].endswith(last)


LINE = {"event": "test", "name": "a", "file": "a.py", "outcome": "passed"}
END = {"event": "end", "exit_code": 0, "count": 1}


def lines(*objects: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in objects)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        lines(LINE),
        lines(END),
        lines(LINE, END, END),
        lines(END, LINE),
        lines(LINE, END)[:-5],
        lines(LINE, LINE, END),
        lines({**LINE, "outcome": "green"}, END),
        lines({**LINE, "name": ""}, END),
        lines({**LINE, "name": ["a"]}, END),
        lines([LINE], END),
        b"[" * 100_000,
        b"\xff\xfe" + lines(LINE, END),
        lines(*[{**LINE, "name": str(number)} for number in range(50_002)], {**END, "count": 50_002}),
    ],
    ids=range(14),
)
def test_a_report_that_is_not_whole_has_a_fault(data: bytes) -> None:
    assert read_lines(data).fault


def test_what_a_report_says_is_bounded_and_no_command_for_a_terminal() -> None:
    long = {**LINE, "name": "a\x1b[2J\n" * 500, "cause": "x" * 9_000, "message": "\x1b]0;title\x07" * 900}
    (result,) = read_lines(lines(long, END)).results
    for text in (result.name, result.cause, result.message):
        assert text.isprintable()
        assert len(text) <= 500


def test_of_several_outcomes_of_one_test_the_worst_counts() -> None:
    (result,) = read_lines(lines({**LINE, "outcome": "failed"}, LINE, {**END, "count": 2})).results
    assert result.outcome == "failed"


@given(
    st.binary(max_size=300)
    | st.lists(st.dictionaries(st.text(max_size=8), st.text(max_size=8))).map(lambda x: lines(*x))
)
def test_any_bytes_are_read_as_a_report_or_a_fault(data: bytes) -> None:
    read = read_lines(data)
    assert read.fault or read.results == ()
    read_go(data)
    with_unbuilt(read_go(data), data, "sub")


GO = [
    {"Action": "start", "Package": "adder"},
    {"Action": "run", "Package": "adder", "Test": "TestAdd"},
    {"Action": "output", "Package": "adder", "Test": "TestAdd", "Output": "--- FAIL"},
    {"Action": "fail", "Package": "adder", "Test": "TestAdd", "Elapsed": 0},
    {"Action": "run", "Package": "adder", "Test": "TestSub"},
    {"Action": "skip", "Package": "adder", "Test": "TestSub", "Elapsed": 0},
    {"Action": "fail", "Package": "adder", "Elapsed": 0.1},
    {"Action": "start", "Package": "adder/cmd"},
    {"Action": "fail", "Package": "adder/cmd", "Elapsed": 0, "FailedBuild": "adder/cmd.test"},
    {"Action": "start", "Package": "adder/none"},
    {"Action": "skip", "Package": "adder/none", "Elapsed": 0},
]


def test_events_of_go_tell_how_each_test_ended() -> None:
    assert told(read_go(b"plain words\n" + lines(*GO)).read) == {
        "adder.TestAdd": ("failed", "", ""),
        "adder.TestSub": ("skipped", "", ""),
        "adder/cmd": ("error", "build", ""),
    }
    assert "The runner did not finish adder" in read_go(lines(*GO[:6])).read.fault
