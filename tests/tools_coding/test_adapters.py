"""Calls in the habits of other programs, in `adapters.toml`: each works as meant, or says in one line what to send."""

from __future__ import annotations

import json
import shutil
import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Tool, ToolError
from marvin_core.tools.arguments import parse_arguments
from marvin_core.tools.schema import describe, validator
from marvin_tools_coding.plugin import marvin_register_tools
from tests.tools_coding.support import Project

CASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("adapters.toml").read_text("utf-8"))["case"]
TOOLS: dict[str, Tool] = {
    name: getattr(import_module(group.module, "marvin_tools_coding"), name)
    for group in marvin_register_tools()
    for name in group.tools
}


class Workplace(Project):
    """A project whose shell tools can tell how far they are."""

    def progress(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Take what nobody looks at."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with two commits, a branch, and changes."""
    made = Project(tmp_path_factory.mktemp("adapters") / "template")
    made.git("init", "--quiet")
    made.write(".gitignore", "build/\n")
    made.write("src/app.py", "def main():\n    return 1  # of main\n")
    made.write("long.txt", "".join(f"line {number}\n" for number in range(1, 401)))
    made.git("add", ".")
    made.git("commit", "--quiet", "--message=First")
    made.git("branch", "other")
    made.write("docs/guide.md", "How main works.\n")
    made.git("add", ".")
    made.git("commit", "--quiet", "--message=Second")
    made.git("config", "user.name", "Ada")
    made.git("config", "user.email", "ada@example.org")
    made.write("docs/new.md", "New.\n")
    made.write("src/app.py", "def main():\n    return 1  # of main\n# changed\n")
    return made.root


@pytest.fixture
def workplace(template: Path, tmp_path: Path) -> Workplace:
    """A copy of it."""
    shutil.copytree(template, tmp_path / "project", symlinks=True)
    return Workplace(tmp_path / "project", ("git", "rg", "bash", "cat"))


def filled(value: Any, root: Path) -> Any:
    """A value of a case with the working directory in it."""
    if isinstance(value, str):
        return value.replace("{root}", str(root))
    if isinstance(value, list):
        return [filled(item, root) for item in value]
    return value


def values_of(case: dict[str, Any], root: Path) -> dict[str, Any]:
    """What the function of the tool gets, read as a model's text is."""
    tool = TOOLS[case["tool"]]
    given = {name: filled(value, root) for name, value in case.get("given", {}).items()}
    spec = describe(tool)
    return validator(tool)(parse_arguments(case.get("given_json") or json.dumps(given), spec), spec)


def answer(workplace: Workplace, tool: Tool, values: dict[str, Any]) -> str:
    result = workplace.result(tool, **values)
    return "".join(block.text for block in result.blocks if hasattr(block, "text"))


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{n} {c['tool']} {c['program']}") for n, c in enumerate(CASES, 1)]
)
def test_a_habit_works_or_is_answered(workplace: Workplace, case: dict[str, Any]) -> None:
    """I10."""
    if "answers" in case:
        with pytest.raises(ToolError) as caught:
            answer(workplace, TOOLS[case["tool"]], values_of(case, workplace.root))
        lines = str(caught.value).splitlines()
        assert [line for line in lines if case["answers"] in line], lines
        return
    values = values_of(case, workplace.root)
    expected = {name: filled(value, workplace.root) for name, value in case.get("means", {}).items()}
    assert {name: values[name] for name in expected} == expected
    if "shows" in case or "hides" in case:
        text = answer(workplace, TOOLS[case["tool"]], values)
        assert [part for part in case.get("shows", ()) if part not in text] == [], text
        assert [part for part in case.get("hides", ()) if part in text] == [], text


def test_there_are_many() -> None:
    assert len(CASES) >= 80
    assert {case["tool"] for case in CASES} >= {"read_file", "code_grep", "glob", "tree", "run_command", "jobs"}


def test_no_habit_costs_schema_bytes() -> None:
    for tool in TOOLS.values():
        listed = describe(tool).parameters["properties"].keys()
        assert not listed & {*tool.unlisted, *tool.ignores}
        assert not listed & {other for names in tool.aliases.values() for other in names}
        assert tool.aliases.keys() <= listed | set(tool.unlisted)


@pytest.mark.parametrize("by_link", [False, True])
@pytest.mark.parametrize(
    ("name", "given", "shows"),
    [
        ("read_file", {"path": "{root}/src/app.py"}, "def main"),
        ("create_file", {"path": "{root}/made/a.txt", "content": "a"}, "Created"),
        ("write_file", {"path": "{root}/b.txt", "content": "a"}, "Created"),
        ("apply_patch", {"path": "{root}/src/app.py", "old_str": "return 1", "new_str": "return 2"}, "Changed"),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: {root}/long.txt\n*** End Patch"}, "Deleted"),
        ("glob", {"pattern": "*.py", "path": "{root}/src"}, "src/app.py"),
        ("glob", {"pattern": "{root}/**/*.py"}, "src/app.py"),
        ("code_grep", {"pattern": "main", "path": "{root}/src"}, "src/app.py:1:"),
        ("code_grep", {"pattern": "main", "glob_filter": "{root}/src/*.py"}, "src/app.py:1:"),
        ("code_grep", {"pattern": "main", "glob_filter": "*.md,{root}/src/**"}, "src/app.py:1:"),
        ("code_grep", {"pattern": "main", "glob_filter": "!{root}/src/**"}, "docs/guide.md:1:"),
        ("tree", {"path": "{root}/src"}, "app.py"),
        ("run_command", {"command": "pwd", "cwd": "{root}/src"}, "/src"),
        ("git_status", {"path": "{root}/docs"}, "new.md"),
        ("git_diff", {"path": "{root}/src/app.py"}, "+# changed"),
        ("git_log", {"path": "{root}/docs"}, "Second"),
        ("git_show", {"path": "{root}/src/app.py"}, "def main"),
        ("git_blame", {"path": "{root}/src/app.py"}, "def main"),
        ("git_commit", {"message": "Third", "paths": ["{root}/docs/new.md"]}, "docs/new.md"),
        ("git_checkout", {"target": "HEAD", "path": "{root}/src/app.py"}, "src/app.py"),
    ],
)
def test_an_absolute_path_inside_is_as_good_as_a_relative_one(
    workplace: Workplace, *, by_link: bool, name: str, given: dict[str, Any], shows: str
) -> None:
    root = workplace.root
    if by_link:
        root = workplace.root.parent / "link"
        root.symlink_to(workplace.root)
    assert shows in answer(workplace, TOOLS[name], values_of({"tool": name, "given": given}, root))


NAMES = {
    name: sorted(
        {*tool.aliases, *tool.ignores, *(other for names in tool.aliases.values() for other in names)}
        | {sent for case in CASES if case["tool"] == name for sent in case.get("given", {})}
    )
    for name, tool in TOOLS.items()
}
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
VALUES = st.recursive(
    PLAIN | st.sampled_from(["true", "False", "[1]", '["a", "b"]', "1-2", 5_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data())
def test_whatever_is_sent_is_understood_or_answered(data: st.DataObject) -> None:
    """I14: and what was understood means the same when it is read again."""
    name = data.draw(st.sampled_from(sorted(TOOLS)))
    sent = data.draw(st.dictionaries(st.sampled_from(["x", *NAMES[name]]), VALUES, max_size=6))
    check = validator(TOOLS[name])
    with suppress(ToolError):
        once = check.named(sent)
        values = check.check(once)
        assert check(once) == values
