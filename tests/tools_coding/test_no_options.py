"""Whatever a model writes into a text parameter, no program takes it for an option of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marvin_core.testing import ToolRunner
from marvin_core.testing.tool_runner import installed_tools

CALLS: dict[str, dict[str, Any]] = {
    "code_grep": {"pattern": "one"},
    "git_blame": {"file": "a.py"},
    "git_branch": {},
    "git_checkout": {"target": "main"},
    "git_commit": {"message": "Second"},
    "git_diff": {},
    "git_log": {},
    "git_show": {"ref": "HEAD"},
    "git_status": {},
    "github_clone": {"repo": "acme/code"},
    "github_grep": {"repo": "acme/code", "pattern": "x"},
    "github_read_file": {"repo": "acme/code", "path": "x"},
    "github_search": {"query": "x"},
    "glob": {"pattern": "*.py"},
    "install_packages": {"packages": ["tiny"], "manager": "pip"},
    "read_file": {"path": "a.py"},
    "tk": {"args": "ls"},
    "tree": {},
}
"""A call of each tool of the pack that starts programs; run_command takes a command, and agents have their own test."""
WORDS = ("--output=made", "-omade", "--pre=./evil", "--upload-pack=./evil", "--help", "--version", "-c")
SAID = ("usage: git", "usage: gh", "USAGE\n", "git version", "ripgrep 1", "gh version", "pip 2", "Usage:   \n")


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[ToolRunner]:
    home, folder = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    (folder / "a.py").write_text("one = 1\n")
    (folder / "evil").write_text("#!/bin/sh\ntouch made\n")
    (folder / "evil").chmod(0o755)
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "First"]):
        subprocess.run(["git", *settings, *words], cwd=folder, check=True)
    made = ToolRunner(home, folder, env={"PATH": os.environ["PATH"]}, answers=["no"])
    yield made
    made.close()


def test_each_tool_that_starts_programs_is_tried() -> None:
    starting = {spec.name for spec in installed_tools() if spec.source == "marvin-tools-coding"}
    others = {"run_command", "jobs", "plan", "launch_agent", "launch_research_agent"}
    files = {"append_file", "apply_patch", "create_file", "write_file", "get_working_dir", "set_working_dir"}
    assert starting - others - files == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_a_text_is_no_option(name: str, runner: ToolRunner, tmp_path: Path) -> None:
    """I27: nothing is made, and nothing answers with its help or its version."""
    (spec,) = [spec for spec in installed_tools() if spec.name == name]
    before = sorted(path.name for path in (tmp_path / "work").iterdir() if path.name != ".marvin")
    for parameter, schema in spec.parameters["properties"].items():
        kinds = schema.get("type"), schema.get("items", {}).get("type")
        if "string" not in kinds:
            continue
        for word in WORDS:
            value = [word] if kinds[0] == "array" else word
            said = runner.call(name, **{**CALLS[name], parameter: value}).text
            assert not [sign for sign in SAID if sign in said], f"{parameter}={word!r}: {said}"
            assert not list(tmp_path.rglob("made")), f"{parameter}={word!r}"
    names = sorted(path.name for path in (tmp_path / "work").iterdir() if path.name != ".marvin")
    assert [name for name in names if name != ".venv"] == before
