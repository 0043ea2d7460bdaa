"""The pack as Marvin loads it: light, complete, and with descriptions that leave room for the work."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from marvin_core import Tool, ToolError, ToolSpec
from marvin_core.testing import ToolRunner
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.arguments import parse_arguments
from marvin_core.tools.sets import select
from marvin_tools_coding.plugin import marvin_register_tools


def test_each_group_has_the_tools_it_names() -> None:
    groups = list(marvin_register_tools())
    assert {group.name for group in groups} == {"agents", "files", "git", "github", "shell", "tickets"}
    for group in groups:
        module = importlib.import_module(group.module, "marvin_tools_coding")
        found = {value.name for value in vars(module).values() if isinstance(value, Tool)}
        assert found == set(group.tools)
        assert all(getattr(module, name).group == group.name for name in group.tools)


def test_the_plugin_module_is_light() -> None:
    """It is imported when the index is built and must not bring the tools along."""
    code = (
        "import sys, marvin_tools_coding.plugin as plugin; list(plugin.marvin_register_tools()); "
        "print(*[name for name in sys.modules if name.split('.')[0] in "
        "('pydantic', 'pathspec', 'asyncio', 'httpx') or name.startswith('marvin_tools_coding.')])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=150)
    assert done.stdout.split() == ["marvin_tools_coding.plugin"]


@pytest.mark.parametrize("distribution", ["marvin-core", "marvin-tools-coding"])
def test_what_the_model_is_sent_is_small(distribution: str) -> None:
    """Every request carries this; the sizes are printed, so that who changes one sees where there is room."""
    sizes = {spec.name: bytes_of(spec) for spec in installed_tools() if spec.source == distribution}
    print(*(f"{size:5} {name}" for name, size in sorted(sizes.items(), key=lambda pair: -pair[1])), sep="\n")
    assert max(sizes.values()) <= 1_000, "no tool takes more than 1,000 bytes"
    assert sum(sizes.values()) <= 450 * len(sizes), "450 bytes a tool on average"


def test_the_coding_set_leaves_room() -> None:
    """Of this pack and the core alone; a token is four bytes, as everywhere. Printed for whoever adds a tool."""
    ours = [spec for spec in installed_tools() if spec.source in ("marvin-core", "marvin-tools-coding")]
    chosen = select(ours, "coding")
    tokens = sum(bytes_of(spec) for spec in ours if spec.name in chosen) // 4
    print(f"{len(chosen)} tools of the coding set take {tokens:,} tokens")
    assert tokens <= 3_500


def bytes_of(spec: ToolSpec) -> int:
    """The size of what a model is sent of a tool."""
    sent = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return len(json.dumps(sent, separators=(",", ":"), ensure_ascii=False).encode())


def test_read_only_agents_are_told_of_no_tool_that_they_do_not_have() -> None:
    specs = [spec for spec in installed_tools() if spec.source == "marvin-tools-coding"]
    offered = [spec for spec in specs if not spec.changes]
    others = {spec.name for spec in specs} - {spec.name for spec in offered}
    assert {"run_command", "apply_patch", "git_commit"} <= others
    words = {word for spec in offered for word in re.findall(r"\w+", f"{spec.guidance} {to_text(spec)}")}
    assert words & others == set()


def to_text(spec: ToolSpec) -> str:
    """All that a model is told of a tool."""
    return f"{spec.description} {json.dumps(dict(spec.parameters))}"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("create_file", "Write large content in sections: create_file with the first part, then append_file with one"),
        ("append_file", "Write large content in sections: create_file with the first part, then append_file with one"),
        ("apply_patch", "Make smaller changes, one in each call; add large content in sections with append_file."),
        (
            "run_command",
            "Write a long script into a file in sections (create_file with the first part, then append_file",
        ),
    ],
)
def test_a_call_that_was_cut_off_is_answered_with_the_tools_that_take_it_in_parts(name: str, advice: str) -> None:
    """I10, I26."""
    spec = next(spec for spec in installed_tools() if spec.name == name)
    with pytest.raises(ToolError) as caught:
        parse_arguments('{"path": "a.py", "content": "first', spec)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    ("called", "meant"),
    [
        *(("Read", "read_file"), ("view_image", "read_file"), ("Edit", "apply_patch"), ("MultiEdit", "apply_patch")),
        *(("str_replace_based_edit_tool", "apply_patch"), ("patch", "apply_patch"), ("Write", "write_file")),
        *(("save", "write_file"), ("Grep", "code_grep"), ("find", "glob"), ("LS", "tree"), ("list_dir", "tree")),
        *(("Bash", "run_command"), ("shell", "run_command"), ("exec_command", "run_command"), ("BashOutput", "jobs")),
        *(("ipython", "run_command"), ("TodoWrite", "plan"), ("update_plan", "plan"), ("Task", "launch_agent")),
    ],
)  # fmt: skip
def test_names_of_other_programs_lead_to_the_tool(
    marvin_home: Path, marvin_workdir: Path, called: str, meant: str
) -> None:
    with ToolRunner(marvin_home, marvin_workdir) as runner:
        said = runner.call(called, path="x").text
    assert said == f"Error: There is no tool {called!r}. Did you mean {meant!r}?"
