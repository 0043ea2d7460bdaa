"""What tests in Python ask for less than they did, told from their syntax."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from marvin_pipeline.evidence.syntax.program import compare

PATH = "tests/test_adder.py"
HEAD = "import unittest\nimport pytest\nfrom adder import add, parse\n\n\n"
PLAIN = HEAD + "def test_adds():\n    total = add(2, 3)\n    assert total == 5\n    assert add(0, 0) == 0\n"
CASES = (
    HEAD + "@pytest.mark.parametrize('a, b, total', [(1, 2, 3), (2, 2, 4)])\n"
    "def test_adds(a, b, total):\n    assert add(a, b) == total\n"
)
CLASS = HEAD + (
    "class TestAdd(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(add(2, 3), 5)\n"
    "        self.assertAlmostEqual(add(0.1, 0.2), 0.3, places=7)\n"
)
RAISES = HEAD + "def test_refuses():\n    with pytest.raises(ValueError, match='no number'):\n        parse('x')\n"


def body(*lines: str) -> str:
    """A module with one test of these lines."""
    return HEAD + "def test_adds():\n" + "".join(f"    {line}\n" for line in lines)


def weakened(before: str, now: str, path: str = PATH) -> list[dict[str, Any]]:
    """The places that were found."""
    found = compare({PATH: before}, {path: now} if now else {}, [PATH])
    assert found["unread"] == []
    return list(found["weakened"])


def whats(before: str, now: str) -> str:
    return "\n".join(each["what"] for each in weakened(before, now))


@pytest.mark.parametrize(
    ("now", "what"),
    [
        ("    assert total in (5, 6)", "weaker, `one of` in place of `exact`"),
        ("    assert total", "weaker, `truthy` in place of `exact`"),
        ("    assert total is not None", "weaker, `differs` in place of `exact`"),
        ("    assert total > 0", "weaker, `bound` in place of `exact`"),
        ("    assert total == 5 or True", "weaker, `either` in place of `exact`"),
        ("    assert isinstance(total, int)", "weaker, `type` in place of `exact`"),
        ("    assert total == pytest.approx(5, abs=10)", "weaker, `close` in place of `exact`"),
        ("    assert total == -1", "the expected value was changed"),
        ("    assert total == total", "it is always true, whatever the program does"),
        ("    assert True", "it is always true, whatever the program does"),
        ("    assert 5 == 5", "it is always true, whatever the program does"),
        ("    assert abs(total) == 5", "it checks something else"),
        ("    pass", "an assertion was removed"),
        ("    print(total)", "an assertion was removed"),
        ("    if False:\n        assert total == 5", "put behind a condition: if False"),
        ("    if total == 5:\n        assert total == 5", "put behind a condition: if total == 5"),
        ("    while False:\n        assert total == 5", "put behind a condition: while False"),
        (
            "    try:\n        assert total == 5\n    except AssertionError:\n        pass",
            "try ... except AssertionError",
        ),
        ("    try:\n        assert total == 5\n    except:\n        pass", "try ... except everything"),
        ("    with contextlib.suppress(AssertionError):\n        assert total == 5", "with contextlib.suppress"),
        ("    def later():\n        assert total == 5", "in the function later"),
        ("    return\n    assert total == 5", "it returns early"),
        ("    if total != 5:\n        return\n    assert total == 5", "it returns early"),
        ("    pytest.skip('later')\n    assert total == 5", "it is skipped, or allowed to fail"),
        ("    if total != 5:\n        pytest.xfail()\n    assert total == 5", "it is skipped, or allowed to fail"),
        ("    raise unittest.SkipTest\n    assert total == 5", "it is skipped, or allowed to fail"),
    ],
)
def test_an_assertion_that_asks_for_less_is_found(now: str, what: str) -> None:
    assert what in whats(PLAIN, PLAIN.replace("    assert total == 5", now))


@pytest.mark.parametrize(
    ("before", "old", "new", "what"),
    [
        (PLAIN, "def test_adds", "@pytest.mark.skip\ndef test_adds", "it is skipped"),
        (PLAIN, "def test_adds", "@pytest.mark.skipif(True, reason='x')\ndef test_adds", "it is skipped"),
        (PLAIN, "def test_adds", "@pytest.mark.xfail\ndef test_adds", "it is skipped"),
        (PLAIN, "def test_adds", "@unittest.expectedFailure\ndef test_adds", "it is skipped"),
        (PLAIN, "def test_adds", "@pytest.mark.slow\ndef test_adds", "a mark was added"),
        (PLAIN, "def test_adds", "@switched_off\ndef test_adds", "a mark was added"),
        (PLAIN, "def test_adds", "if False:\n  def test_adds", "it is skipped"),
        (PLAIN, "def test_adds", "def _test_adds", "the test was removed, or no runner finds it any more"),
        (PLAIN, "def test_adds", "def check_adds", "the test was removed, or no runner finds it any more"),
        (PLAIN, HEAD, HEAD + "pytestmark = pytest.mark.skip\n", "tests are left out"),
        (PLAIN, HEAD, HEAD + "pytest.importorskip('adder2')\n", "tests are left out"),
        (PLAIN, HEAD, HEAD + "__test__ = False\n", "tests are left out"),
        (PLAIN, "total = add(2, 3)", "total = 5", "what it does was changed"),
        (
            PLAIN + "\n\ndef test_adds_more():\n    assert add(1, 1) == 2\n",
            "test_adds_more",
            "test_adds",
            "the test was removed",
        ),
        (PLAIN, HEAD, HEAD.replace("from adder", "from tests.own"), "the value add, which tests use, was changed"),
        (PLAIN, "from adder import add, parse", "def add(a, b):\n    return a + b", "the value add, which tests use"),
        (PLAIN, "from adder import add, parse", "from tests.own import *", "the value add, which tests use"),
        (CLASS, HEAD, HEAD + "TestAdd.__test__ = False\n", "tests are left out"),
        (
            CLASS,
            "    def test_adds",
            "    def assertEqual(self, *values): pass\n    def test_adds",
            "gets another meaning",
        ),
        (CASES, ", (2, 2, 4)", "", "a case was removed or changed"),
        (CASES, "(2, 2, 4)", "(2, 2, 5)", "a case was removed or changed"),
        (CASES, "(2, 2, 4)", "pytest.param(2, 2, 4, marks=pytest.mark.skip)", "a case was removed or changed"),
        (CLASS, "assertEqual(add(2, 3), 5)", "assertIn(add(2, 3), [5, 6])", "an assertion was changed"),
        (CLASS, "assertEqual(add(2, 3), 5)", "assertTrue(add(2, 3))", "weaker, `truthy` in place of `exact`"),
        (CLASS, "assertEqual(add(2, 3), 5)", "assertEqual(5, 5)", "it is always true, whatever the program does"),
        (CLASS, "places=7", "places=1", "the tolerance is wider"),
        (CLASS, "places=7", "delta=0.5", "the tolerance is specified differently"),
        (CLASS, "class TestAdd(unittest.TestCase)", "class TestAdd(Nothing)", ""),
        (CLASS, "    def test_adds", "    @unittest.skip('x')\n    def test_adds", "it is skipped"),
        (CLASS, "class TestAdd", "@unittest.skip('x')\nclass TestAdd", "it is skipped"),
        (CLASS, "    def test_adds", "    pytestmark = [pytest.mark.skip]\n    def test_adds", "it is skipped"),
        (CLASS, "self.assertEqual(add", "self.skipTest('x')\n        self.assertEqual(add", "it is skipped"),
        (RAISES, "ValueError", "Exception", "it accepts nearly any exception"),
        (RAISES, "ValueError", "(ValueError, TypeError)", "the expected exception was changed"),
        (RAISES, ", match='no number'", "", "the message of the exception is checked less strictly"),
    ],
)
def test_a_test_that_is_kept_from_counting_is_found(before: str, old: str, new: str, what: str) -> None:
    assert old in before
    assert what in whats(before, before.replace(old, new, 1))


@pytest.mark.parametrize(
    "now",
    [
        PLAIN.replace("assert total == 5", "assert (\n        total\n        == 5\n    ), 'it adds'  # as it should"),
        PLAIN.replace("assert total == 5", "assert 5 == total"),
        PLAIN.replace("def test_adds():", "def test_adds() -> None:\n    '''It adds.'''"),
        PLAIN.replace("    assert add(0", "    assert total < 6\n    assert add(0"),
        PLAIN.replace(
            "    assert total == 5\n    assert add(0, 0) == 0", "    assert add(0, 0) == 0\n    assert total == 5"
        ),
        PLAIN.replace("    assert total == 5\n    assert add(0, 0) == 0", "    assert total == 5 and add(0, 0) == 0"),
        PLAIN + "\n\ndef test_more():\n    assert add(1, 1) == 2\n",
        PLAIN.replace("def test_adds", "@pytest.mark.timeout(5)\ndef test_adds"),
        PLAIN.replace("def test_adds", "class TestAdd:\n  def test_adds")
        .replace("():", "(self):")
        .replace("\n    ", "\n      "),
        PLAIN.replace("test_adds", "test_adds_two_numbers"),
        "import os\n" + PLAIN,
    ],
)
def test_what_is_laid_out_or_named_otherwise_asks_for_no_less(now: str) -> None:
    assert weakened(PLAIN, now) == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("assert '5' in text", "assert text == '5'"),
        ("assert add(1, 2)", "assert add(1, 2) == 3"),
        ("assert add(1, 2) == pytest.approx(3, abs=0.1)", "assert add(1, 2) == pytest.approx(3, abs=0.01)"),
        ("assert add(1, 2) == pytest.approx(3)", "assert add(1, 2) == 3"),
    ],
)
def test_an_assertion_that_asks_for_more_is_no_weakening(before: str, now: str) -> None:
    assert weakened(body(before), body(now)) == []
    assert weakened(body(now), body(before)) != []


def test_cases_that_are_added_are_no_weakening() -> None:
    assert weakened(CASES, CASES.replace("(2, 2, 4)", "(2, 2, 4), (0, 0, 0)")) == []
    assert weakened(RAISES, RAISES.replace("'x')", "'x')  # no number")) == []
    loop = body("for a in [1, 2]:", "    assert add(a, 0) == a")
    assert weakened(loop, loop.replace("[1, 2]", "[1, 2, 3]")) == []
    assert "what it does was changed" in whats(loop, loop.replace("[1, 2]", "[1]"))


def test_a_test_that_moved_is_found_again_and_one_that_moved_out_of_sight_is_not() -> None:
    assert weakened(PLAIN, PLAIN, "tests/unit/test_sums.py") == []
    (gone,) = weakened(PLAIN, PLAIN, "tests/sums.py")
    assert (gone["file"], gone["test"], gone["line"]) == (PATH, "test_adds", 6)
    assert weakened(PLAIN, "")[0]["what"].startswith("the test was removed, or no runner finds it any more")
    moved = weakened(PLAIN, PLAIN.replace("total == 5", "total"), "tests/unit/test_sums.py")
    assert [(each["file"], each["line"]) for each in moved] == [("tests/unit/test_sums.py", 8)]


def test_one_new_test_stands_for_one_old_test_only() -> None:
    two = PLAIN + "\n\ndef test_again():\n    total = add(2, 3)\n    assert total == 5\n    assert add(0, 0) == 0\n"
    assert len(weakened(two, PLAIN.replace("test_adds", "test_new"))) == 1


def test_what_tests_use_counts_as_well() -> None:
    """A value, a helper and a fixture are as good a place to ask for less as the test itself."""
    before = (
        HEAD
        + "WANTED = 5\nMANY = [1, 2]\n\n\ndef check(a):\n    assert a == WANTED\n\n\n"
        + "def test_it():\n    check(add(2, 3))\n"
    )
    assert "the value WANTED" in whats(before, before.replace("WANTED = 5", "WANTED = 6"))
    assert "the value MANY" in whats(before, before.replace("[1, 2]", "[1]"))
    assert whats(before, before.replace("[1, 2]", "[1, 2, 3]")) == ""
    assert "an assertion was changed" in whats(before, before.replace("assert a == WANTED", "assert a"))
    assert "an assertion was removed" in whats(before, before.replace("    check(add(2, 3))", "    add(2, 3)"))
    fixture = "@pytest.fixture(autouse=True)\ndef leave():\n    pytest.skip('x')\n\n\n"
    assert "a new helper leaves tests out" in whats(before, before.replace("WANTED = 5", f"{fixture}WANTED = 5"))


def test_hooks_of_the_runner_in_conftest_are_found() -> None:
    hook = "def pytest_collection_modifyitems(items):\n    items.clear()\n"
    found = compare({}, {"tests/conftest.py": hook + "collect_ignore = ['test_adder.py']\n"}, [PATH])["weakened"]
    assert sorted(each["what"][:21] for each in found) == [
        "a hook of the test ru",
        "tests are left out: a",
    ]


def test_a_file_that_cannot_be_read_any_more_asks_for_less() -> None:
    found = compare({PATH: PLAIN}, {PATH: PLAIN + "def ("}, [PATH])
    assert [each["what"].partition(":")[0] for each in found["weakened"]] == [
        "the tests of this file can no longer be parsed"
    ]
    old = compare({PATH: "def ("}, {PATH: PLAIN}, [PATH])
    assert (old["weakened"], [each["file"] for each in old["unread"]]) == ([], [PATH])


@pytest.mark.parametrize(
    "hostile",
    ["(" * 100_000, "-" * 200_000 + "1", "[" * 5_000 + "]" * 5_000, "\0", "a" * 2_000_000, "1\nassert x == 1" * 3_000],
)
def test_hostile_source_is_unread_and_harms_nothing(hostile: str) -> None:
    inside = hostile.replace("\n", "\n ")
    found = compare({PATH: PLAIN}, {PATH: f"def test_adds():\n x = {inside}"}, [PATH])
    assert len(found["weakened"]) == 1


@pytest.mark.slow
def test_the_same_file_is_never_weaker_than_itself() -> None:
    for path in sorted(Path(__file__).parent.parent.rglob("test_*.py")):
        text = path.read_text()
        assert compare({path.name: text}, {path.name: text}, [])["weakened"] == [], path
