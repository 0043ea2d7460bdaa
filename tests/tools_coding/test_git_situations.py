"""The git tools in the situations of a table: each call is answered as it says, and the repository is left so."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Tool
from marvin_tools_coding.git import committing, history, inspecting, switching

from .support_shell import Folder

pytestmark = pytest.mark.slow

SITUATIONS: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("git_situations.toml").read_text("utf-8"))[
    "situation"
]
TOOLS = {
    value.name: value
    for module in (inspecting, history, committing, switching)
    for value in vars(module).values()
    if isinstance(value, Tool)
}
AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))
}


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation["name"])
def test_each_call_is_answered_as_the_table_says(situation: dict[str, Any], tmp_path: Path) -> None:
    """Real repositories, in an order that a session may have."""
    (tmp_path / "top").mkdir()
    top = Folder(tmp_path / "top", GIT_CEILING_DIRECTORIES=str(tmp_path), **AUTHOR)
    top.sh(f"({situation['script']}) > /dev/null 2>&1")
    author = {} if situation.get("nobody") else AUTHOR
    here = Folder(top.root / situation.get("below", "."), GIT_CEILING_DIRECTORIES=str(tmp_path), **author)
    for call in situation["calls"]:
        ask = here.error if call.get("error") else here.call
        got = ask(TOOLS[call["tool"]], **call.get("args", {}))
        for text in call.get("has", ()):
            assert text.replace("@", str(here.root)) in got, (call, got)
        for text in call.get("lacks", ()):
            assert text not in got, (call, got)
    assert here.run(lambda: here.processes.run(["sh", "-c", situation.get("after", "true")])).exit_code == 0


def test_the_table_is_whole() -> None:
    """Thirty situations and 150 calls at least, each tool among them."""
    calls = [call for situation in SITUATIONS for call in situation["calls"]]
    assert len(SITUATIONS) >= 30
    assert len(calls) >= 150
    assert {call["tool"] for call in calls} == set(TOOLS)
