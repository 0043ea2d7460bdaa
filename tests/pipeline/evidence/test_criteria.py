"""Acceptance criteria, and the tests that name them, told from texts that agents wrote."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.evidence.ci.matrix import is_of
from marvin_pipeline.evidence.criteria import Mention, criteria_of, is_test_file, mentions_in, named_in

SPECIFICATION = """# The specification

- AC-1: given two numbers, when they are added,
  then the sum is printed.
* **AC-02**: an empty list has no sum
3. `AC-3` - it says `usage` | and | ends with 2
| AC-4 | a table row |
### AC-5. A heading
- [ ] AC-6: a box
AC-1: the same id again
See AC-7 for more, and MAC-8: no criterion.
"""


def test_each_criterion_is_read_once_in_the_ways_that_models_write_them() -> None:
    found = {one.id: (one.text, one.line) for one in criteria_of(SPECIFICATION)}
    assert found == {
        "AC-1": ("given two numbers, when they are added, then the sum is printed.", 3),
        "AC-2": ("an empty list has no sum", 5),
        "AC-3": ("it says `usage` | and | ends with 2", 6),
        "AC-4": ("a table row", 7),
        "AC-5": ("A heading", 8),
        "AC-6": ("a box", 9),
    }


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("AC-1 and ac-2", {"AC-1", "AC-2"}),
        ("def test_ac_3_adds", {"AC-3"}),
        ("def test_ac03", {"AC-3"}),
        ("func TestAC4Adds", {"AC-4"}),
        ("fn ac_5_adds", {"AC-5"}),
        ("MAC-6, mac_7, 0xAC8, HVAC9, AC-0, AC, back1", set()),
    ],
)
def test_the_ways_to_name_a_criterion(text: str, ids: set[str]) -> None:
    assert named_in(text) == ids


PYTHON = '''"""Tests of AC-9."""

class TestAdd:
    # AC-1
    @mark
    def test_adds(self):
        pass

    def test_ac_2_empty(self):
        """AC-3 as well."""
        assert total([]) == 0

# AC-4 is of nobody

VALUE = 1
'''


def test_a_mention_belongs_to_the_test_below_its_comment_or_around_it() -> None:
    found = {one.criterion: (one.line, one.test) for one in mentions_in("tests/test_add.py", PYTHON)}
    assert found == {
        "AC-9": (1, ""),
        "AC-1": (4, "test_adds"),
        "AC-2": (9, "test_ac_2_empty"),
        "AC-3": (10, "test_ac_2_empty"),
        "AC-4": (13, "test_ac_2_empty"),
    }


@pytest.mark.parametrize(
    ("file", "text", "test"),
    [
        ("test/add.test.js", "test('AC-1: adds', () => {});", "AC-1: adds"),
        ("src/add.spec.ts", '// AC-1\nit.each([1])("adds %i", () => {});', "adds %i"),
        ("add_test.go", "// AC-1\nfunc TestAdds(t *testing.T) {\n}", "TestAdds"),
        ("tests/add.rs", "// AC-1\n#[test]\nfn adds() {\n}", "adds"),
    ],
)
def test_other_languages_name_criteria_as_well(file: str, text: str, test: str) -> None:
    assert [(one.criterion, one.test) for one in mentions_in(file, text)] == [("AC-1", test)]
    assert is_test_file(file)


def test_code_of_the_program_is_no_test() -> None:
    assert not any(map(is_test_file, ("src/adder.py", "latest.py", "tests/data.json", "contest/x.py", "a.js")))
    assert is_test_file("test_adder.py")


@pytest.mark.parametrize(
    ("file", "test", "name"),
    [
        ("tests/test_add.py", "test_adds", "tests/test_add.py::Add::test_adds[1-2]"),
        ("tests/test_add.py", "test_adds", "tests.test_add.Add.test_adds"),
        ("tests/test_add.py", "", "tests/test_add.py::test_anything"),
        ("test/add.test.js", "AC-1: adds", "sums > AC-1: adds"),
        ("test/add.test.js", "AC-1: adds", "AC-1: adds"),
        ("add_test.go", "TestAdds", "example.org/add.TestAdds/of_two"),
        ("tests/add.rs", "adds", "tests::adds"),
    ],
)
def test_a_place_and_a_name_of_the_report_are_brought_together(file: str, test: str, name: str) -> None:
    assert is_of(Mention(criterion="AC-1", file=file, line=1, test=test), name)


@pytest.mark.parametrize(
    "name", ["tests/test_add.py::test_really_adds", "tests/test_sub.py::test_adds", "tests/test_add.py::test_adds_more"]
)
def test_other_tests_are_told_apart(name: str) -> None:
    assert not is_of(Mention(criterion="AC-1", file="tests/test_add.py", line=1, test="test_adds"), name)


@given(st.text())
def test_whatever_an_agent_writes_is_read(text: str) -> None:
    criteria_of(text)
    mentions_in("tests/test_x.py", text)


@pytest.mark.parametrize(
    "piece", ["AC-1: ", "# AC-1\n", "- " * 20, "ac_1", "test('", "\n", "| AC-1 ", "AC-1 " + " " * 50]
)
def test_long_texts_take_linear_time(piece: str) -> None:
    begun = time.process_time()
    for text in (piece * 100_000, "".join(f"{piece}{number}\n" for number in range(50_000))):
        criteria_of(text)
        mentions_in("tests/test_x.py", text)
    assert time.process_time() - begun < 20
