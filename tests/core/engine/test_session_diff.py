"""What a session changed, as `/diff` shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from marvin_core.tools.schema import describe
from tests.support import undo_tools
from tests.support.chat import Chat, chatting
from tests.support.engine import Made, calls, make, says

SPECS = tuple(describe(tool, source="tests", module=undo_tools.__name__) for tool in undo_tools.ALL)


async def yes(question: str, choices: Sequence[str]) -> str:
    return choices[0]


def putting(tmp_path: Path, *steps: dict[str, str | None]) -> Made:
    script = []
    for number, files in enumerate(steps):
        script += [calls((f"c{number}", "put", json.dumps({"files": files}))), says("Done.")]
    return make(tmp_path, *script, specs=SPECS, asker=yes)


def shown(tmp_path: Path, *steps: dict[str, str | None], between: str = "") -> str:
    """What `/diff` says after prompts that each write files; between them a line is typed."""
    said = ""

    async def work(chat: Chat) -> None:
        nonlocal said
        for step in steps:
            (await chat.session.submit(str(step))).check()
            if between:
                await chat.do(between)
        said = await chat.do("/diff")

    chatting(putting(tmp_path, *steps), work)
    return said


def test_several_changes_of_a_file_are_one_difference(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a").write_text("one\ntwo\n")
    lines = shown(tmp_path, {"a": "ONE\ntwo\n"}, {"a": "ONE\nTWO\n", "b": "new\n"}).splitlines()
    changed = [line for line in lines if line[:1] in ("+", "-") and line[:3] not in ("+++", "---")]
    assert sorted(changed) == ["+ONE", "+TWO", "+new", "-one", "-two"]
    assert sum(line.startswith("+++ ") for line in lines) == 2


def test_what_is_as_it_was_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a").write_text("one\n")
    assert "The tools of this session have changed no file, or their changes were undone" in shown(
        tmp_path, {"a": "two\n"}, {"a": "one\n"}
    )
    assert "The tools of this session have changed no file, or their changes were undone" in shown(
        tmp_path / "project", {"b": "x"}, {"b": None}
    )


def test_what_was_taken_back_is_not_shown(tmp_path: Path) -> None:
    assert "The tools of this session have changed no file, or their changes were undone" in shown(
        tmp_path, {"a": "x\n"}, between="/undo"
    )


def test_another_session_is_none_of_it(tmp_path: Path) -> None:
    assert "The tools of this session have changed no file, or their changes were undone" in shown(
        tmp_path, {"a": "x\n"}, between="/clear"
    )


@pytest.mark.parametrize("content", ["\udcff\x00", "x" * 2_000_000])
def test_what_cannot_be_compared_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a").write_bytes(content.encode("utf-8", "surrogateescape"))
    said = shown(tmp_path, {"a": "x\n"})
    assert said.startswith("a was changed")
    assert len(said) < 300


def test_a_removed_file_shows_what_it_held(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a").write_text("gone\n")
    assert "-gone" in shown(tmp_path, {"a": None})


def test_an_endless_difference_is_cut(tmp_path: Path) -> None:
    said = shown(tmp_path, {str(number): "line\n" * 1_000 for number in range(20)})
    assert len(said) < 50_000
