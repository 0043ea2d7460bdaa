"""Undo of what hooks change after a call, and of calls that only wrote Marvin's own files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Hook
from marvin_core.api.messages import ToolCall
from marvin_core.api.tools import ToolResult, ToolSpec
from marvin_core.tools.schema import describe
from tests.support import command_tools, undo_tools
from tests.support.chat import Chat, chatting
from tests.support.engine import calls, make, run, says
from tests.support.undo_tools import put
from tests.support.undoing import Commands

SPECS = [
    describe(tool, source="tests", module=module.__name__)
    for module in (undo_tools, command_tools)
    for tool in module.ALL
]


class Formats(Hook):
    """A formatter of the file `a`, some time after each call; then it may fail, or take long."""

    def __init__(self, project: Path, ending: str = "") -> None:
        self._file, self._ending = project / "a", ending

    async def after_tool(
        self, context: Any, spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult
    ) -> ToolResult | None:
        await asyncio.sleep(0.3)
        self._file.write_text("x = 1\n")
        if self._ending == "fails":
            raise RuntimeError("no formatter")
        if self._ending == "waits":
            await asyncio.Event().wait()
        return None


@pytest.mark.parametrize("ending", ["", "fails"])
@pytest.mark.parametrize("origin", ["person", "model"])
def test_what_a_hook_formats_after_a_write_is_undone_with_it(tmp_path: Path, ending: str, origin: Any) -> None:
    desk = Commands(tmp_path, hooks=[Formats(tmp_path / "project", ending)], origin=origin, answers=["y"])
    desk.write(a="0")
    desk.runner.call(put, files={"a": "x=1"})
    assert desk.tree["a"][1] == b"x = 1\n"
    assert desk.runner.take_back() == ("put: changed a",)
    assert desk.tree["a"][1] == b"0"
    desk.runner.close()


@pytest.mark.parametrize("origin", ["person", "model"])
def test_what_a_hook_formats_after_a_command_is_undone_with_it(tmp_path: Path, origin: Any) -> None:
    desk = Commands(tmp_path, hooks=[Formats(tmp_path / "project")], origin=origin, answers=["y"])
    desk.write(a="0")
    desk.sh("echo x=1 >a")
    assert desk.runner.take_back() == ("shell: echo x=1 >a: changed a",)
    assert desk.tree["a"][1] == b"0"
    desk.runner.close()


def test_a_write_whose_hook_is_cancelled_can_be_undone(tmp_path: Path) -> None:
    project = tmp_path / "project"
    made = make(tmp_path, specs=SPECS, hooks=[Formats(project, "waits")])

    async def work() -> None:
        call = ToolCall(id="a", name="put", arguments=json.dumps({"files": {"a": "x=1"}}))
        task = asyncio.ensure_future(made.session.dispatcher.batch([call], []))
        while not (project / "a").exists() or (project / "a").read_text() != "x = 1\n":  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        task.cancel()
        await asyncio.wait([task])
        assert await made.session.undo.take_back(1) == ["put: created a"]
        await made.session.close()

    run(work())
    assert not (project / "a").exists()


def test_a_command_that_only_has_a_long_output_is_nothing_to_undo(tmp_path: Path) -> None:
    """Its output is stored in a folder of Marvin's in the project, with rules that hide it from git."""
    project = tmp_path / "project"
    script = [
        calls(("a", "put", json.dumps({"files": {"a": "1"}}))),
        calls(("b", "logged", json.dumps({"command": "seq 100000"}))),
        says("Done."),
    ]

    async def work(chat: Chat) -> None:
        (await chat.session.submit("Go.")).check()
        assert (project / ".marvin/.gitignore").exists()
        assert await chat.do("/undo") == "Undone: put: created a"

    chatting(make(tmp_path, *script, specs=SPECS), work)
