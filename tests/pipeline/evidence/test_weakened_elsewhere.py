"""Tests in Go and Rust, settings of runners, and which files count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marvin_pipeline.evidence.syntax.files import is_data, is_settings, is_still_found, shapes_of
from marvin_pipeline.evidence.syntax.program import compare

GO = (
    'package adder\n\nimport "testing"\n\nvar wanted = 5\n\nfunc TestAdd(t *testing.T) {\n\tgot := Add(2, 3)\n'
    '\tif got != wanted {\n\t\tt.Fatalf("got %d", got)\n\t}\n}\n'
)
RUST = (
    "pub fn add(a: i32, b: i32) -> i32 { a + b }\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n"
    "    fn adds() {\n        let total = add(2, 3);\n        assert_eq!(total, 5);\n    }\n}\n"
)


def weakened(path: str, before: str, now: str, tests: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """The places that were found."""
    old, new = ({path: text} if text else {} for text in (before, now))
    found = compare(old, new, tests)
    assert found["unread"] == []
    return list(found["weakened"])


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("\tgot :=", '\tt.Skip("later")\n\tgot :=', "it is skipped"),
        ("\tgot :=", "\treturn\n\tgot :=", "it returns early"),
        ("got != wanted", "got == -1", "what it does was changed"),
        ("\t\tt.Fatalf", "\t\tt.Logf", "what it does was changed"),
        ("wanted = 5", "wanted = 6", "the value wanted"),
        ("func TestAdd", "func testAdd", "the test was removed"),
        ("TestAdd(", "TestAdd[T any](", "the test was removed"),
        ("\tgot :=", "\tsyscall.Exit(0)\n\tgot :=", "it is skipped"),
        ("\tgot :=", "\tgoto end\n\tgot :=", "it returns early"),
        ("func TestAdd", "func TestMain(m *testing.M) {}\n\nfunc TestAdd", "a new helper leaves tests out"),
        ("package adder", "//go:build never\n\npackage adder", "tests are left out"),
    ],
)
def test_go(old: str, new: str, what: str) -> None:
    assert old in GO
    assert what in "\n".join(each["what"] for each in weakened("add_test.go", GO, GO.replace(old, new)))
    assert weakened("add_test.go", GO, GO.replace("\tgot", "\n\t// It adds.\n\tgot", 1)) == []


def test_a_method_in_go_does_not_stand_for_the_test_of_its_name() -> None:
    method = "\ntype Suite struct{}\n\n" + GO[GO.index("func ") :].replace("func ", "func (Suite) ")
    assert weakened("add_test.go", GO, GO + method) == []
    assert weakened("add_test.go", GO, GO.replace("t.Fatalf", "t.Logf") + method)


def test_a_main_function_of_tests_in_go_that_runs_them_leaves_none_out() -> None:
    main = "\nfunc TestMain(m *testing.M) {\n\tos.Exit(m.Run())\n}\n"
    assert weakened("add_test.go", GO, GO + main) == []
    assert weakened("add_test.go", GO + main, GO + main.replace("os.Exit(m.Run())", "os.Exit(0)"))


@pytest.mark.parametrize(
    ("path", "is_found"),
    [
        ("sub/add_test.go", True),
        ("add_window_test.go", True),
        ("add_windows_test.go", False),
        ("add_linux_arm64_test.go", False),
        ("_add_test.go", False),
        ("testdata/add_test.go", False),
        ("_old/add_test.go", False),
        ("add.go", False),
    ],
)
def test_a_test_in_go_that_is_moved_to_where_go_does_not_look(path: str, is_found: bool) -> None:
    found = compare({"add_test.go": GO}, {path: GO}, ())["weakened"]
    assert bool(found) is not is_found
    assert is_still_found(path, path)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("#[test]", "#[test]\n    #[ignore]", "it is skipped"),
        ("#[test]", '#[test]\n    #[cfg(feature = "never")]', "it is skipped"),
        ("#[test]", "#[test]\n    #[should_panic]", "a mark was added"),
        ("    #[test]\n", "", "the test was removed, or no runner finds it any more"),
        ("assert_eq!(total, 5)", "assert!(total > 0)", "what it does was changed"),
        ("        assert_eq!(total, 5);\n", "", "what it does was changed"),
        ("assert_eq!", "return;\n        assert_eq!", "it returns early"),
    ],
)
def test_rust(old: str, new: str, what: str) -> None:
    assert old in RUST
    assert what in "\n".join(each["what"] for each in weakened("src/lib.rs", RUST, RUST.replace(old, new)))
    assert weakened("src/lib.rs", RUST, RUST.replace("a + b", "b + a")) == []


TESTS = ("tests/test_a.py", "tests/unit/test_b.py")


@pytest.mark.parametrize(
    ("path", "before", "now", "found"),
    [
        ("pytest.ini", "", "[pytest]\naddopts = -k 'not adds'\n", "addopts"),
        ("pytest.ini", "", "[pytest]\naddopts = --ignore=tests/test_a.py\n", "addopts"),
        ("pytest.ini", "", "[pytest]\naddopts = -m 'not slow'\n", "addopts"),
        ("pytest.ini", "", "[pytest]\naddopts = -ra --strict-markers\n", ""),
        ("pytest.ini", "", "[pytest]\ntestpaths = tests/unit\n", "testpaths"),
        ("pytest.ini", "", "[pytest]\ntestpaths = tests\n", ""),
        ("pytest.ini", "", "[pytest]\npython_files = check_*.py\n", "python_files"),
        ("pytest.ini", "", "[pytest]\npython_functions = check_*\n", "python_functions"),
        ("pytest.ini", "", "[pytest]\nnorecursedirs = unit\n", "norecursedirs"),
        ("pytest.ini", "", "[pytest\n", "python_classes"),
        ("tox.ini", "[pytest]\nxfail_strict = true\n", "[pytest]\n", "xfail_strict"),
        ("setup.cfg", "", "[tool:pytest]\naddopts = --deselect tests/test_a.py::test_adds\n", "addopts"),
        ("pyproject.toml", "", '[tool.pytest.ini_options]\naddopts = ["-k", "not adds"]\n', "addopts"),
        ("pyproject.toml", "", '[project]\nname = "adder"\n[tool.pytest.ini_options]\npythonpath = ["src"]\n', ""),
        ("package.json", '{"scripts": {"test": "node --test"}}', '{"scripts": {"test": "true"}}', "the script test"),
        ("package.json", '{"scripts": {"test": "jest"}}', "{}", "the script test"),
        ("package.json", "{}", '{"scripts": {"test": "jest"}}', ""),
        ("package.json", "{}", '{"jest": {"testPathIgnorePatterns": ["add"]}}', "jest"),
        ("package.json", "{}", '{"jest": {"verbose": true}}', ""),
        ("vitest.config.ts", "", "export default { test: { exclude: ['**/add.test.ts'] } };\n", "it was changed"),
        ("Makefile", "test:\n\tpytest\n", "test:\n\ttrue\n", "the target test"),
        ("Makefile", "test:\n\tpytest\n", "build:\n\ttrue\ntest:\n\tpytest\n", ""),
        ("Cargo.toml", "", "[lib]\ntest = false\n", "lib"),
        ("Cargo.toml", "", '[package]\nname = "adder"\nautotests = false\n', "autotests"),
    ],
)
def test_settings_that_leave_tests_out(path: str, before: str, now: str, found: str) -> None:
    whats = [each["what"].rpartition(": ")[2] for each in weakened(path, before, now, TESTS)]
    assert [what[: len(found)] for what in whats] == ([found] if found else [])


@pytest.mark.parametrize("text", ["{" * 100_000, '{"scripts": 5, "jest": []}', json.dumps({"scripts": {"test": None}})])
def test_hostile_settings_harm_nothing(text: str) -> None:
    assert isinstance(weakened("package.json", text, "{}"), list)


def test_where_runners_find_tests() -> None:
    assert is_still_found("tests/test_a.py", "test_b.py")
    assert not is_still_found("tests/test_a.py", "tests/a.py")
    assert not is_still_found("tests/test_a.py", "tests/testa.py")
    assert is_still_found("test/a.js", "test/unit/b.js")
    assert not is_still_found("src/a.test.js", "test/a.js")
    assert shapes_of("src/adder.py") == frozenset()
    assert is_data("tests/data/sums.json")
    assert is_data("spec/adder_spec.rb")
    assert not is_data("data/sums.json")
    assert not is_data("tests/test_a.py")
    assert [name for name in ("pytest.ini", "web/package.json", "notes.ini") if is_settings(name)] == [
        "pytest.ini",
        "web/package.json",
    ]
