"""The pack as Marvin loads it: light, complete, and with descriptions that leave room for the work."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from marvin_core import Tool, ToolError
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.arguments import parse_arguments
from marvin_core.tools.schema import describe
from marvin_tools_coding.plugin import marvin_register_tools


def test_each_group_has_the_tools_it_names() -> None:
    groups = list(marvin_register_tools())
    assert {group.name for group in groups} == {"files", "git", "shell"}
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


def test_what_the_model_is_sent_is_small() -> None:
    sizes = {"files": 0, "git": 0, "shell": 0}
    for group in marvin_register_tools():
        module = importlib.import_module(group.module, "marvin_tools_coding")
        for name in group.tools:
            spec = describe(getattr(module, name))
            function = {"name": name, "description": spec.description, "parameters": dict(spec.parameters)}
            sizes[group.name] += len(json.dumps({"type": "function", "function": function}, separators=(",", ":")))
    assert sizes["files"] < 7_000
    assert sum(sizes.values()) < 12_288


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
