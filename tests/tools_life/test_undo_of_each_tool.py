"""Each tool of the pack that changes something can be taken back, after a restart too, or says why it cannot."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from marvin_core.testing import ToolRunner
from marvin_core.testing.tool_runner import installed_tools
from tests.tools_life import test_alarms
from tests.tools_life.test_blender import Addon, success

Call: TypeAlias = tuple[str, dict[str, Any]]

CHANGING = sorted(spec.name for spec in installed_tools() if spec.source == "marvin-tools-life" and spec.changes)
NEVER = "cannot be undone"
"""What the description of a tool says that records no inverse; the model reads it before it calls."""
SHOWN_ELSEWHERE = dict.fromkeys(
    ("set_alarm", "cancel_alarm"), test_alarms.test_cancelling_removes_the_entry_and_undo_puts_it_back
)
"""What takes a scheduler of the system."""
TICKET: Call = ("create_ticket", {"title": "Milk"})
CASES: dict[str, tuple[list[Call], dict[str, Any]]] = {
    "write_note": ([("write_note", {"path": "a", "content": "one"})], {"path": "a", "content": "two", "append": True}),
    "notes_mkdir": ([("notes_mkdir", {"path": "a"})], {"path": "a/b"}),
    "file_apply_patch": (
        [("write_note", {"path": "a", "content": "one\ntwo"}), ("file_read_lines", {"path": "a"})],
        {"path": "a", "patch": "REPLACE 1\nthree"},
    ),
    "calendar_add_event": (
        [("calendar_add_event", {"title": "One", "start": "tomorrow 3pm"})],
        {"title": "Two", "start": "2030-01-02", "description": "x\ny"},
    ),
    "calendar_delete_event": (
        [("calendar_add_event", {"title": title, "start": "tomorrow 3pm"}) for title in ("One", "Two", "Three")],
        {"title": "Two"},
    ),
    "bookmark_save": (
        [("bookmark_save", {"url": f"https://example.org/{name}", "title": name}) for name in "abc"],
        {"url": "https://example.org/b", "title": "new", "tags": "x", "notes": "y"},
    ),
    "save_place": (
        [("save_place", {"label": name, "address": name}) for name in "abc"],
        {"label": "B", "name": "x", "lat": 1, "lng": 2},
    ),
    "remove_place": ([("save_place", {"label": name, "address": name}) for name in "abc"], {"label": "b"}),
    "switch_profile": (
        [("switch_profile", {"profile_name": name}) for name in ("work", "main")],
        {"profile_name": "work"},
    ),
    "update_preferences": (
        [("update_preferences", {"key": "dietary", "value": "vegan, halal"})],
        {"key": "dietary", "action": "remove", "value": "vegan"},
    ),
    "timer_start": ([("timer_start", {"name": "run"})], {"name": "tea", "duration_seconds": 5}),
    "timer_stop": ([("timer_start", {"name": name, "duration_seconds": 900}) for name in "ab"], {"name": "b"}),
    "generate_ntfy_topic": ([("ntfy_subscribe", {"topic": "a"})], {"label": "Phone"}),
    "ntfy_subscribe": ([("ntfy_subscribe", {"topic": "a"})], {"topic": "b", "label": "Phone"}),
    "ntfy_unsubscribe": ([("ntfy_subscribe", {"topic": name}) for name in "abc"], {"topic": "b"}),
    "create_ticket": ([TICKET], {"title": "Bread", "description": "x", "tags": "a,b"}),
    "ticket_add_dep": ([TICKET, TICKET], {"ticket_id": 0, "depends_on": 1}),
    "ticket_start": ([TICKET], {"ticket_id": 0}),
    "ticket_close": ([TICKET, ("ticket_start", {"ticket_id": 0})], {"ticket_id": 0}),
    "ticket_add_note": ([TICKET, ("ticket_add_note", {"ticket_id": 0, "note": "x"})], {"ticket_id": 0, "note": "y"}),
}
CUBE = {"name": "Cube", "type": "MESH", "location": [0, 0, 0], "rotation": [0, 0, 0], "scale": [1, 1, 1]}
IN_BLENDER: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "blender_create_object": ({"object_type": "cube"}, CUBE),
    "blender_modify_object": (
        {"object_name": "Cube", "scale": [2, 2, 2]},
        {"before": {**CUBE, "exact": {"name": "Cube", "mode": "XYZ", "scale": [1, 1, 1]}}, "after": CUBE},
    ),
    "blender_delete_object": ({"object_name": "Cube"}, {"kept": "Cube (deleted)"}),
    "blender_set_material": (
        {"object_name": "Cube"},
        {"object": "Cube", "material": "Red", "old": "", "before": None, "added": True},
    ),
}
"""The tools that change what Blender has: their arguments, and what their script tells."""


def test_each_tool_that_changes_something_is_tried_below() -> None:
    described = {spec.name: spec.description for spec in installed_tools()}
    tried = {*CASES, *IN_BLENDER, *SHOWN_ELSEWHERE}
    untried = [name for name in CHANGING if name not in tried and NEVER not in described[name]]
    assert untried == [], f"they record no inverse, and do not say that they {NEVER}"
    assert sorted(name for name in tried if NEVER in described[name]) == []
    assert sorted(tried - set(CHANGING)) == []


@pytest.fixture
def tools(marvin_tools: ToolRunner) -> ToolRunner:
    return started(marvin_tools)


def started(marvin_tools: ToolRunner) -> ToolRunner:
    """A Marvin that leaves the scheduler of this machine alone."""
    return marvin_tools.session(settings={"life": {"scheduler": "launchd" if sys.platform == "linux" else "cron"}})


def kept(tools: ToolRunner) -> dict[str, bytes]:
    """What people have of it all: files with their contents, and folders; not what Marvin knows for itself."""
    found = {}
    for folder in (tools.home, tools.working_dir):
        for path in folder.rglob("*"):
            name = str(path)
            if "/.local/" not in name and "/.cache/" not in name and not name.endswith(".lock"):
                found[name] = path.read_bytes() if path.is_file() else b"/"
    return found


def with_ids(arguments: dict[str, Any], ids: list[str]) -> dict[str, Any]:
    """The arguments, with the ids of the tickets in the place of their numbers."""
    return {
        key: ids[value] if key in ("ticket_id", "depends_on") and isinstance(value, int) else value
        for key, value in arguments.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_all_is_as_it_was_before_after_a_restart_too(marvin_tools: ToolRunner, tools: ToolRunner, name: str) -> None:
    before, arguments = CASES[name]
    ids: list[str] = []
    for tool, given in before:
        outcome = tools.call(tool, **with_ids(given, ids))
        assert not outcome.is_error, outcome.text
        if tool == "create_ticket":
            ids.append(outcome.text.split()[1])
    was = kept(tools)
    outcome = tools.call(name, **with_ids(arguments, ids))
    assert not outcome.is_error, outcome.text
    assert kept(tools) != was
    (line,) = started(marvin_tools).take_back()
    assert line.startswith(f"{name}: ")
    now = kept(tools)
    assert {path: now.get(path) for path in {*was, *now} if now.get(path) != was.get(path)} == {}


@pytest.fixture
def addon() -> Iterator[Addon]:
    found = Addon()
    yield found
    found.close()


@pytest.mark.parametrize("name", IN_BLENDER)
def test_what_changes_blender_is_taken_back_there(marvin_tools: ToolRunner, addon: Addon, name: str) -> None:
    """What the scripts do is shown with a real Blender."""
    arguments, told = IN_BLENDER[name]
    options: dict[str, Any] = {"env": {"BLENDER_MCP_PORT": str(addon.port)}, "timeouts": {"http": 20.0}}
    addon.answers = [success({"result": f"marvin:{json.dumps(told)}\n"}), success({"result": 'marvin:{"kept": "x"}\n'})]
    outcome = marvin_tools.session(**options).call(name, **arguments)
    assert not outcome.is_error, outcome.text
    (line,) = marvin_tools.session(**options).take_back()
    assert line.startswith(f"{name}: ")
    assert "Cube" in addon.orders[1]["params"]["code"]


def test_no_model_reaches_what_is_for_undo_alone(tools: ToolRunner) -> None:
    """A parameter that no schema tells of may be guessed; what it does leaves nothing to take back."""
    ids = [tools.call("create_ticket", title=name).text.split()[1] for name in "ab"]
    tools.call("notes_mkdir", path="a")
    was = kept(tools)
    change = {"before": None, "after": None}
    guessed: list[Call] = [
        ("ticket_add_dep", {"ticket_id": ids[0], "depends_on": ids[1], "remove": True}),
        ("ticket_close", {"ticket_id": ids[0], "made": "x"}),
        ("ticket_add_note", {"ticket_id": ids[0], "note": "x", "without": "1:x"}),
        ("notes_mkdir", {"path": "a", "remove": True}),
        ("calendar_add_event", {"title": "x", "start": "tomorrow", "taken_back": {"pieces": []}}),
        ("calendar_delete_event", {"title": "x", "taken_back": {"event": "x"}}),
        ("bookmark_save", {"url": "https://example.org", "taken_back": change}),
        ("save_place", {"label": "x", "taken_back": change}),
        ("update_preferences", {"key": "budget", "value": "x", "taken_back": change}),
        ("timer_start", {"name": "x", "taken_back": change}),
        ("ntfy_subscribe", {"topic": "x", "taken_back": change}),
    ]
    for name, arguments in guessed:
        refused = tools.call(name, **arguments)
        assert refused.is_error, name
        assert "for /undo only" in refused.text, refused.text
    changed = {Path(path).name for path, content in kept(tools).items() if was.get(path) != content and content != b"/"}
    assert changed <= {"preferences.yaml"}  # its examples


def test_taking_back_is_no_way_around_what_was_kept(tools: ToolRunner, marvin_tools: ToolRunner) -> None:
    """The notes and folders that were there before stay, whatever is taken back."""
    path = Path(tools.home) / "Notes" / "a"
    tools.call("notes_mkdir", path="a")
    (path / "mine.md").write_text("mine")
    with pytest.raises(Exception, match="a"):
        started(marvin_tools).take_back()
    assert (path / "mine.md").read_text() == "mine"
