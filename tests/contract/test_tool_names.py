"""The core knows no tool of another distribution, and tools are in the sets that the design gives them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.sets import SETS

CORE = Path(__file__).resolve().parents[2] / "marvin-core" / "src" / "marvin_core"
CONTRACT = json.loads(Path(__file__).with_name("tools.json").read_text(encoding="utf-8"))["tools"]
FOREIGN = sorted({tool["name"] for tool in CONTRACT if tool["distribution"] != "marvin-core"})
NO_TOOLS = {("config/tiers.py", "plan"), ("tools/routing/slots.py", "glob")}
"""Words that are something else there: a tier of models, a kind of slot."""


def named_tools(source: str, names: Collection[str]) -> Iterator[tuple[int, str]]:
    """The line and the name of each tool that a text or a docstring of the source names.

    A name with an underscore counts wherever it stands as a word. One without is a word of everyday language, too, so
    it counts where it is quoted or is the whole text.
    """
    words = "|".join(re.escape(name) for name in names if "_" in name)
    quoted = "|".join(re.escape(name) for name in names if "_" not in name)
    pattern = re.compile(rf"\b({words or '(?!)'})\b|(?<=[`'\"])({quoted or '(?!)'})(?=[`'\"])|\A({quoted or '(?!)'})\Z")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for found in pattern.finditer(node.value):
                yield node.lineno + node.value.count("\n", 0, found.start()), found[0]


def test_the_core_names_no_tool_that_it_does_not_bring() -> None:
    assert {"create_file", "run_command", "tk", "weather_forecast"} <= set(FOREIGN)
    found = [
        f"{path.relative_to(CORE)}:{line} names {name}"
        for path in sorted(CORE.rglob("*.py"))
        for line, name in named_tools(path.read_text(encoding="utf-8"), FOREIGN)
        if (str(path.relative_to(CORE)), name) not in NO_TOOLS
    ]
    assert found == [], "declare it on @tool or ToolGroup in the pack instead"


@pytest.mark.parametrize(
    "source",
    [
        '"Use create_file for that."',
        '"call create_file({})"',
        'def f():\n    """What `create_file` does."""',
        'x = f"{y}: create_file"',
        'if spec.name == "tk": pass',
        '"Look with `tk` first."',
        "\"Look with 'tk' first.\"",
    ],
)
def test_a_name_is_found_wherever_it_can_stand(source: str) -> None:
    assert [name for _, name in named_tools(source, ["create_file", "tk"])] in (["create_file"], ["tk"])


@pytest.mark.parametrize("source", ["def create_file(): pass", '"recreate_files"', '"tk is a word here"', "tk = 1"])
def test_what_is_no_name_of_a_tool_is_not_found(source: str) -> None:
    assert list(named_tools(source, ["create_file", "tk"])) == []


READING = set("code_grep get_working_dir git_diff git_log git_status glob read_file set_working_dir tree".split())
CODING = READING | set("append_file apply_patch create_file git_commit jobs run_command write_file".split())
SESSION = {"compact_history", "get_usage", "search_history_backups"}
TIMERS = {"timer_check", "timer_start", "timer_stop"}
MEMBERS = {
    "coding": CODING | SESSION,
    "readonly": READING | SESSION,
    "surf": SESSION
    | TIMERS
    | set("git_commit git_diff git_log git_status end_elaborate end_play_mode exit_app read_rss".split())
    | set("convert_units switch_profile system_info update_preferences".split()),
    "lockin": CODING | SESSION | TIMERS | {"download_file"},
}
"""What the table of the design says of the tools that there are."""


@pytest.mark.parametrize("name", MEMBERS)
def test_a_set_holds_the_tools_that_the_design_gives_it(name: str) -> None:
    """A new tool goes into the table above; the groups of the design say where."""
    ours = [spec for spec in installed_tools() if spec.source.startswith("marvin-")]
    assert {spec.name for spec in ours if SETS[name](spec)} == MEMBERS[name]
    assert set(SETS) - {"all"} == set(MEMBERS)


def test_the_gates_let_through_what_the_design_names() -> None:
    passing = {spec.name: spec.passes for spec in installed_tools() if spec.passes}
    writers = ("create_file", "append_file", "write_file", "apply_patch")
    assert passing == dict.fromkeys(writers, ("writable-files",))
    assert {spec.name for spec in installed_tools() if spec.interactive} == {"set_working_dir", "exit_app"}
    assert [spec.name for spec in installed_tools() if spec.typed] == ["run_command"]
