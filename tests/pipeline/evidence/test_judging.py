"""What counts as red for the right reason, and what as green."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_pipeline.evidence.judging import Before, judge_green, judge_red
from marvin_pipeline.evidence.own_modules import OwnModules, own_modules
from marvin_pipeline.evidence.records import TestReport as Report
from marvin_pipeline.evidence.records import TestResult as Result

OWN = OwnModules(names=frozenset({"adder", "@ada/adder"}))
NEW = Before(changed=frozenset({"t.py", "u.py"}))
RED = Result(name="t.py::a", file="t.py", outcome="failed", cause="AssertionError")


def report(*results: Result, runner: str = "pytest", exit_code: int = 1, fault: str = "") -> Report:
    return Report(command="pytest", runner=runner, exit_code=exit_code, results=results, fault=fault)


RIGHT = [
    {},
    {"cause": "Failed"},
    {"cause": "NotImplementedError", "origin": "adder.py"},
    {"cause": "AttributeError", "missing": "adder", "origin": "tests/test_a.py"},
    {"cause": "AttributeError", "missing": "adder.core", "origin": "tests/test_a.py"},
    {"cause": "AttributeError", "missing": "json", "origin": "adder/core.py"},
    {"cause": "CalledProcessError"},
    {"cause": "FileNotFoundError"},
    {"cause": "TypeError", "origin": "tests/test_a.py"},
    {"cause": "ModuleNotFoundError", "missing": "adder"},
    {"cause": "ModuleNotFoundError", "missing": "adder.core", "outcome": "error"},
    {"cause": "ImportError", "missing": "adder", "outcome": "error", "name": "t.py"},
    {"cause": "NotImplementedError", "outcome": "error", "origin": "adder.py"},
    {"cause": "ModuleNotFoundError", "missing": "src.adder", "outcome": "error"},
    {"cause": "MODULE_NOT_FOUND", "missing": "./src/adder.js", "outcome": "error"},
    {"cause": "MISSING_EXPORT", "missing": "./adder.js", "outcome": "error"},
]
WRONG = [
    ({"outcome": "passed", "cause": ""}, "it passes, although the code does not exist yet"),
    ({"outcome": "skipped", "cause": "Skipped"}, "is skipped"),
    ({"outcome": "expected_failure"}, "expected to fail"),
    ({"cause": "UnexpectedSuccess"}, "expected to fail"),
    ({"cause": ""}, "without an exception"),
    ({"cause": "ModuleNotFoundError", "missing": "requests"}, "imports requests"),
    ({"cause": "ImportError", "missing": "json"}, "imports json"),
    ({"cause": "ImportError", "missing": ""}, "an import fails, and it is not known which"),
    ({"cause": "ModuleNotFoundError", "missing": "adders"}, "imports adders"),
    ({"cause": "ModuleNotFoundError", "missing": "tests"}, "imports tests"),
    ({"cause": "MODULE_NOT_FOUND", "missing": "./test/helper.js"}, "imports ./test/helper.js"),
    ({"cause": "MODULE_NOT_FOUND", "missing": "./node_modules/a/b.js"}, "imports ./node_modules"),
    ({"cause": "SyntaxError", "origin": "t.py", "outcome": "error"}, "has a syntax error"),
    ({"cause": "NameError", "origin": "tests/test_a.py"}, "it uses an undefined name"),
    (
        {"cause": "AttributeError", "missing": "os", "origin": "tests/test_a.py"},
        "is not a module of the project, and does not contain what the test uses",
    ),
    (
        {"cause": "NotImplementedError", "origin": "tests/test_a.py"},
        "the test itself raises NotImplementedError, so it tests nothing yet",
    ),
    ({"cause": "OSError", "outcome": "error"}, "as a fixture"),
    ({"cause": "AssertionError", "outcome": "error", "origin": "tests/conftest.py"}, "as a fixture"),
]


@pytest.mark.parametrize("fields", RIGHT, ids=str)
def test_what_fails_since_the_code_is_missing_is_red(fields: dict[str, str]) -> None:
    red = RED.replace(**fields)
    judged = judge_red([report(red)], NEW, OWN)
    assert (judged.outcome, judged.tests, judged.places) == ("passed", (red.name,), ())


@pytest.mark.parametrize(("fields", "why"), WRONG, ids=str)
def test_what_fails_for_another_reason_is_not_red(fields: dict[str, str], why: str) -> None:
    judged = judge_red([report(RED.replace(name="t.py::b", **fields), RED)], NEW, OWN)
    (place,) = judged.places
    assert judged.outcome == "failed"
    assert why in place
    assert place.startswith("t.py::b: ")


def test_tests_that_were_there_before_need_not_be_red() -> None:
    old = RED.replace(name="t.py::old", outcome="passed", cause="")
    before = Before(known=frozenset({"t.py::old"}), changed=frozenset({"t.py"}))
    assert judge_red([report(old, RED)], before, OWN).tests == (RED.name,)
    assert judge_red([report(old)], before, OWN).places == ("No new test was run.",)


def test_a_file_that_could_not_be_imported_before_either_counts_where_it_was_changed() -> None:
    file = RED.replace(name="t.py", outcome="error", cause="ModuleNotFoundError", missing="adder")
    known = frozenset({"t.py"})
    assert judge_red([report(file)], Before(known=known), OWN).outcome == "failed"
    assert judge_red([report(file)], Before(known=known, changed=frozenset({"t.py"})), OWN).outcome == "passed"


def test_what_comes_to_light_in_a_file_that_nobody_changed_is_not_new() -> None:
    """As where what the tests need was not installed before."""
    old = RED.replace(outcome="passed", cause="")
    for known in (frozenset[str](), frozenset({"t.py"})):
        assert judge_red([report(old)], Before(known=known), OWN).places == ("No new test was run.",)
    more = Before(known=frozenset({"t.py::b"}))  # as of a file of cases
    assert judge_red([report(RED)], more, OWN).tests == (RED.name,)


def test_tests_that_were_red_when_the_phase_was_done_before_need_not_be_so_again() -> None:
    done = RED.replace(outcome="passed", cause="")
    names = frozenset({RED.name})
    judged = judge_red([report(done)], Before(known=names, earlier=names), OWN)
    assert (judged.outcome, judged.tests) == ("not_measured", (RED.name,))


def test_where_no_test_was_named_as_red_the_exit_code_counts() -> None:
    assert judge_green([report(RED)], []).outcome == "failed"
    assert judge_green([report(RED, exit_code=0)], []).outcome == "passed"


def test_an_exit_code_alone_proves_no_reason() -> None:
    failing, passing = report(runner="", exit_code=2), report(runner="", exit_code=0)
    assert judge_red([failing], NEW, OWN).outcome == "not_measured"
    assert judge_red([passing], NEW, OWN).outcome == "failed"
    assert judge_red([report(RED), passing], NEW, OWN).outcome == "passed"
    build = RED.replace(name="adder", file="", outcome="error", cause="build")
    assert judge_red([report(build, runner="go")], NEW, OWN).outcome == "not_measured"


def test_a_report_with_a_fault_proves_nothing() -> None:
    broken = report(RED, fault="It was cut off.")
    assert judge_red([broken], NEW, OWN).outcome == "failed"
    assert judge_green([broken], [RED.name]).outcome == "failed"


GREEN = RED.replace(outcome="passed", cause="")


@pytest.mark.parametrize(
    ("results", "red", "missing"),
    [
        ([], "t.py::a", True),
        ([], "t.py", True),
        ([GREEN.replace(outcome="skipped")], "t.py::a", True),
        ([GREEN.replace(outcome="skipped")], "t.py", True),
        ([RED], "t.py::a", False),
        ([GREEN, RED.replace(name="t.py::b")], "t.py", False),
        ([RED.replace(name="t.py", outcome="error")], "t.py::a", False),
        (
            [RED.replace(name="tests/test_a.py", file="tests/test_a.py", outcome="error")],
            "tests.test_a.A.test_b",
            False,
        ),
        ([RED.replace(name="tests/test_a.py", file="tests/test_a.py", outcome="error")], "test_a.A.test_b", False),
        ([GREEN.replace(outcome="expected_failure")], "t.py::a", False),
    ],
    ids=str,
)
def test_a_test_that_was_red_and_does_not_pass_is_not_green(results: list[Result], red: str, *, missing: bool) -> None:
    judged = judge_green([report(*results)], [red])
    assert (judged.outcome, judged.is_missing, judged.tests) == ("failed", missing, ())
    assert len(judged.places) == 1


@pytest.mark.parametrize(
    ("red", "let_go"),
    [
        ("tests/test_a.py::One::test_b[1-x]", "tests/test_a.py::One::test_b"),
        ("tests.test_a.One.test_b", "tests/test_a.py::One::test_b"),
        ("test/a.test.js > sums > adds", "test/a.test.js::sums > adds"),
        ("tests/test_a.py", "tests/test_a.py::test_b"),
    ],
)
def test_a_test_that_a_review_let_go_is_not_missing(red: str, let_go: str) -> None:
    """Only that one: its neighbour is."""
    assert judge_green([report(GREEN, exit_code=0)], [red], [let_go]).outcome == "passed"
    other = "tests/test_other.py" if red.endswith(".py") else f"{red.partition('[')[0]}_2"
    assert judge_green([report(GREEN, exit_code=0)], [other], [let_go]).outcome == "failed"
    failing = GREEN.replace(name=red, outcome="failed")
    assert judge_green([report(failing)], [red], [let_go]).outcome == "failed"


def test_cases_whose_names_change_from_run_to_run_are_the_same_as_long_as_none_is_lost() -> None:
    red = ["t.py::a[10:31]", "t.py::a[10:32]"]
    later = [GREEN.replace(name=f"t.py::a[11:0{number}]") for number in range(2)]
    judged = judge_green([report(*later, exit_code=0)], red)
    assert (judged.outcome, judged.tests) == ("passed", tuple(red))
    assert judge_green([report(later[0], exit_code=0)], red).is_missing
    assert judge_green([report(later[0], later[1].replace(outcome="failed"))], red).outcome == "failed"


def test_many_tests_are_judged_in_time_that_grows_with_their_number() -> None:
    many = [GREEN.replace(name=f"tests/test_{number % 100}.py::test_{number}") for number in range(20_000)]
    begun = time.process_time()
    assert judge_green([report(*many, exit_code=0)], [one.name for one in many]).outcome == "passed"
    assert time.process_time() - begun < 2


def test_tests_that_were_red_and_pass_are_named() -> None:
    other = GREEN.replace(name="u/test_b.py::c", file="u/test_b.py")
    judged = judge_green([report(GREEN, other, exit_code=0)], ["t.py::a", "u/test_b.py", "u/conftest.py"])
    assert (judged.outcome, judged.tests) == ("passed", ("t.py::a", "u/test_b.py", "u/conftest.py"))


RESULTS = st.builds(
    Result,
    name=st.sampled_from(["t.py::a", "t.py::b", "t.py", "u.py::c"]),
    file=st.sampled_from(["t.py", "u.py", ""]),
    outcome=st.sampled_from(["passed", "failed", "error", "skipped", "expected_failure"]),
    cause=st.sampled_from(["", "AssertionError", "ModuleNotFoundError", "NameError"]),
    missing=st.sampled_from(["", "adder", "requests"]),
)


@given(st.lists(RESULTS, max_size=6))
def test_what_passes_the_gate_red_has_a_new_test_and_none_that_passes_or_is_skipped(results: list[Result]) -> None:
    judged = judge_red([report(*results)], NEW, OWN)
    if judged.outcome == "passed":
        assert judged.tests
        assert {one.outcome for one in results} <= {"failed", "error"}
        assert "requests" not in {one.missing for one in results if one.cause == "ModuleNotFoundError"}
    else:
        assert judged.places


@given(st.lists(RESULTS, max_size=6), st.sets(st.sampled_from(["t.py::a", "t.py", "u.py::c"]), min_size=1))
def test_what_passes_the_gate_green_names_each_test_that_was_red(results: list[Result], red: set[str]) -> None:
    judged = judge_green([report(*results)], sorted(red))
    assert (judged.outcome == "passed") == (set(judged.tests) == red)
    for name in judged.tests:
        assert any(one.outcome == "passed" and name in (one.name, one.file) for one in results)


DESIGN = """
The program has `src/adder/core.py` and `cli.py`; tests are in `tests/test_core.py`.

```
web/
  app.py
tests/
```
It uses requests and `json.loads`, see https://example.org/docs/index.py3.
"""


def test_modules_are_told_from_the_design_the_manifest_and_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "ada-adder"\ndependencies = ["flask>=3"]\nscripts = {sum = "summing.cli:main"}\n'
    )
    (tmp_path / "src" / "there").mkdir(parents=True)
    (tmp_path / "src" / "there" / "__init__.py").touch()
    (tmp_path / "one.py").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").touch()
    own = own_modules(tmp_path, DESIGN)
    for name in ("adder", "adder.core", "cli", "web.app", "ada_adder", "summing.cli", "there", "one"):
        assert own.has(name), name
    for name in ("requests", "json", "tests", "conftest", "flask", "test_core", "", "nothing", "docs"):
        assert not own.has(name), name


def test_folders_of_sources_and_aliases_of_them_are_of_the_project(tmp_path: Path) -> None:
    own = own_modules(tmp_path, "The program is `src/adder/core.py`.")
    assert own.has("src.adder.core")
    assert own.has("src")
    for name in ("@/adder", "~/adder", "#lib/adder"):
        assert own.has(name, of_python=False), name
        assert not own.has(name), name
    assert not own.has("src", of_python=False)
    assert not own.has("@ada/other", of_python=False)


def test_where_nothing_names_modules_an_unknown_one_may_be_meant(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# what it needs\nflask==3.0\n")
    own = own_modules(tmp_path, "It says in all detail what there is to be said.")
    assert own.has("login")
    assert not any(own.has(name) for name in ("flask", "json", "pytest", "tests.helper", ""))
    assert not own.has("left-pad", of_python=False)
