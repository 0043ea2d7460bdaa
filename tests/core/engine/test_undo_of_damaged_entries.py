"""Undo with entries that are damaged, or that an earlier Marvin stored: they stop neither an undo nor a command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.undo_tools import put
from tests.support.undoing import Commands


def newest(desk: Commands) -> Path:
    return max((desk.home / ".local/share/marvin/undo").rglob("*.json"))


def rewrite(entry: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Change the head and the data of an entry."""
    head, data = map(json.loads, entry.read_bytes().splitlines())
    change(head, data)
    entry.write_bytes(b"".join(json.dumps(part).encode() + b"\n" for part in (head, data)))


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_an_entry_that_ends_after_its_head_is_told_once(desk: Commands, ending: bytes) -> None:
    desk.runner.call(put, files={"a": "1"})
    desk.runner.call(put, files={"b": "1"})
    entry = newest(desk)
    entry.write_bytes(entry.read_bytes().splitlines()[0] + ending)
    assert "Not undone: put: created b. The stored copy cannot be used" in desk.refused()
    assert desk.runner.take_back() == ("put: created a",)


@pytest.mark.parametrize("damage", [{"modes": []}, {"chmods": [1]}, {"since": 1e999}, {"others": 5}])
def test_damaged_data_of_commands_are_told_once(desk: Commands, damage: dict[str, Any]) -> None:
    desk.sh("echo 1 >a")
    desk.sh("echo 1 >b")
    rewrite(newest(desk), lambda head, data: data["span"].update(damage))
    assert "Not undone: shell: echo 1 >b: created b. The stored copy cannot be used" in desk.refused()
    assert desk.runner.take_back() == ("shell: echo 1 >a: created a",)


@pytest.mark.parametrize("damage", [{"time": 10**400}, {"process": [1e999, 1]}, {"process": None}])
def test_an_entry_with_a_damaged_head_is_passed_over(desk: Commands, damage: dict[str, Any]) -> None:
    desk.sh("echo 1 >a")
    desk.sh("echo 1 >b")
    rewrite(newest(desk), lambda head, data: head.update(damage))
    desk.sh("echo 1 >c")
    assert desk.runner.take_back() == ("shell: echo 1 >c: created c",)
    assert desk.runner.take_back() == ("shell: echo 1 >a: created a",)


def test_commands_of_an_earlier_marvin_are_listed_and_undone(desk: Commands) -> None:
    """It stored less about them."""

    def less(head: dict[str, Any], data: dict[str, Any]) -> None:
        head.pop("folder")
        for name in ("others", "moved", "chmods", "modes_after", "since", "top"):
            data["span"].pop(name, None)

    desk.write(a="1")
    desk.sh("echo 2 >a; echo 2 >b")
    rewrite(newest(desk), less)
    assert desk.runner.take_back() == ("shell: echo 2 >a; echo 2 >b: changed a, created b",)
    assert {name: text for name, (_, text) in desk.tree.items()} == {"a": b"1"}
