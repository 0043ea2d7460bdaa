"""What runs of tests say, read from the output of the real runners where they are here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.checks.outcome import TestCounts as Counts
from marvin_pipeline.checks.outcome import counts_of, fingerprint

PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:marvin")
UNITTEST = (sys.executable, "-m", "unittest")
PYTHON_TESTS = """
import unittest, time

class Sums(unittest.TestCase):
    def test_good(self): self.assertEqual(1 + 1, 2)
    def test_bad(self): self.assertEqual(1 + 1, {expected})
    def test_broken(self): raise ValueError({message!r})
"""
NODE_TESTS = """
const test = require('node:test'); const assert = require('node:assert');
test('adds', () => assert.equal(1 + 1, 2));
test('subtracts', () => assert.equal(2 - 1, 5));
"""


def output_of(folder: Path, *argv: str) -> str:
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        argv,
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout + done.stderr


def python_tests(folder: Path, expected: int = 3, message: str = "broken") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "test_sums.py").write_text(PYTHON_TESTS.format(expected=expected, message=message))


@pytest.mark.slow
def test_unittest_and_pytest_tell_of_the_same_tests(tmp_path: Path) -> None:
    python_tests(tmp_path)
    by_unittest = counts_of(output_of(tmp_path, *UNITTEST))
    assert (by_unittest.passed, by_unittest.failed) == (1, 2)
    assert [name.split()[0] for name in by_unittest.names] == ["test_bad", "test_broken"]
    by_pytest = counts_of(output_of(tmp_path, *PYTEST))
    assert (by_pytest.passed, by_pytest.failed) == (1, 2)
    assert by_pytest.names == ("test_sums.py::Sums::test_bad", "test_sums.py::Sums::test_broken")


@pytest.mark.slow
def test_a_run_of_no_tests_is_seen(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("")
    assert counts_of(output_of(tmp_path, *PYTEST)).is_empty
    assert counts_of(output_of(tmp_path, *UNITTEST)).is_empty
    assert not counts_of("").is_empty


@pytest.mark.slow
def test_a_file_that_cannot_be_collected_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_import.py").write_text("import there_is_no_such_module\n")
    found = counts_of(output_of(tmp_path, *PYTEST))
    assert (found.failed, found.names) == (1, ("test_import.py",))


@pytest.mark.parametrize("reporter", ["tap", "spec"])
def test_node_tells_of_its_tests(tmp_path: Path, reporter: str) -> None:
    if not shutil.which("node"):
        pytest.skip("node is missing")
    (tmp_path / "sums.test.js").write_text(NODE_TESTS)
    found = counts_of(output_of(tmp_path, "node", "--test", f"--test-reporter={reporter}"))
    assert (found.passed, found.failed) == (1, 1)
    assert "subtracts" in found.names


@pytest.mark.parametrize(
    ("output", "passed", "failed", "names"),
    [
        ("FAIL src/sum.test.js\n  ● adds\nTests:       1 failed, 3 passed, 4 total", 3, 1, ("src/sum.test.js",)),
        (" ❯ src/sum.test.ts (2 tests | 1 failed)\n   × adds 3ms\n Tests  1 failed | 3 passed (4)", 3, 1, None),
        ("  3 passing (12ms)\n  1 failing\n", 3, 1, ()),
        ("test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured\ntest a::b ... FAILED", 4, 2, ("a::b",)),
        ("--- FAIL: TestSum (0.00s)\nFAIL\texample.org/sum\t0.004s", None, None, ("TestSum",)),
        ("=== 2 failed, 10 passed, 1 warning in 0.31s ===", 10, 2, ()),
        ("10 passed in 65.20s (0:01:05)", 10, 0, ()),
        ("It passed in 3 s, and failed in none.", None, None, ()),
    ],
)
def test_other_runners(output: str, passed: int | None, failed: int | None, names: tuple[str, ...] | None) -> None:
    found = counts_of(output)
    assert (found.passed, found.failed) == (passed, failed)
    assert names is None or found.names == names


@pytest.mark.slow
def test_the_same_failure_is_the_same_at_another_time_and_place(tmp_path: Path) -> None:
    prints = set()
    for name, runner in (("a", PYTEST), ("b", PYTEST)):
        python_tests(tmp_path / name)
        prints.add(fingerprint("pytest", 1, output_of(tmp_path / name, *runner)))
    assert len(prints) == 1
    python_tests(tmp_path / "a", message="another message")
    assert fingerprint("pytest", 1, output_of(tmp_path / "a", *PYTEST)) not in prints


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Error: port 127.0.0.1:43121 is taken", "Error: port 127.0.0.1:51999 is taken"),
        ("done in 12ms", "done in 130 ms"),
        ("<object at 0x7f0011223344>", "<object at 0x7fffaabbccdd>"),
        ("\x1b[31mError\x1b[0m /tmp/abc/x", "Error /tmp/xyz/1"),
        ("2026-01-01T00:00:01Z failed", "2027-02-03 10:11:12.5 failed"),
    ],
)
def test_what_differs_from_run_to_run_makes_no_other_failure(one: str, other: str) -> None:
    assert fingerprint("x", 1, one) == fingerprint("x", 1, other)
    assert fingerprint("x", 1, one) != fingerprint("x", 2, one)
    assert fingerprint("x", 1, one) != fingerprint("y", 1, one)


@given(st.text(max_size=2_000))
def test_any_output_is_read(output: str) -> None:
    found = counts_of(output)
    assert isinstance(found, Counts)
    assert re.fullmatch(r"[0-9a-f]{16}", fingerprint("x", 1, output))


@pytest.mark.parametrize(
    "piece", ["1 passed, ", "✖ " + "a " * 300, "0x", "FAILED a::b\n", " in 1s", "\x1b[", "- " * 900]
)
def test_the_time_for_long_output_grows_with_its_length_at_most(piece: str) -> None:
    """What is longer than the bound is cut, so ten times as much costs no more."""
    output = piece * (2_000_000 // len(piece))
    assert counts_of(output) == counts_of(output)
    assert fingerprint("x", 1, output) == fingerprint("x", 1, output)
