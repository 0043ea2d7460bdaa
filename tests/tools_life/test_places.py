"""The address book: one place a label, changed in part, put back as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.errors import MarvinError
from marvin_core.testing import ToolRunner

HOME = {"label": "Home", "address": "1 Elm Street", "lat": 52.5, "lng": 13.4}


def file(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/profiles/main/saved_places.json"


def saved(tools: ToolRunner) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(file(tools).read_text())
    return found


def test_a_place_is_saved_changed_in_part_and_listed(marvin_tools: ToolRunner) -> None:
    assert "There are no saved places yet" in marvin_tools.call("list_places").text
    said = marvin_tools.call("save_place", **HOME)
    assert said.text == "Saved: Home: 1 Elm Street, (52.5, 13.4)"
    changed = marvin_tools.call("save_place", label="home", phone="030 123")
    assert changed.text == "Changed: Home: 1 Elm Street, (52.5, 13.4), 030 123"
    assert saved(marvin_tools) == [{**HOME, "phone": "030 123"}]
    listed = marvin_tools.call("list_places")
    assert listed.text == "Home: 1 Elm Street, (52.5, 13.4), 030 123"
    assert listed.show[0].rows == (("Home", "", "1 Elm Street", "030 123", ""),)  # type: ignore[union-attr]


def test_a_place_is_removed_by_its_label(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("save_place", **HOME)
    assert "Did you mean 'Home'" in marvin_tools.call("remove_place", label="hoem").text
    assert marvin_tools.call("remove_place", label=" HOME ").text.startswith("Removed: Home")
    assert saved(marvin_tools) == []


def test_every_change_is_taken_back_after_a_restart_too(marvin_tools: ToolRunner) -> None:
    for label in ("a", "b", "c"):
        marvin_tools.call("save_place", label=label, address=label)
    before = saved(marvin_tools)
    marvin_tools.call("remove_place", label="b")
    marvin_tools.call("save_place", label="a", notes="changed")
    later = marvin_tools.session()
    later.take_back(2)
    assert saved(marvin_tools) == before
    later.take_back(3)
    assert saved(marvin_tools) == []


def test_a_place_that_is_there_again_is_not_replaced(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("save_place", **HOME)
    marvin_tools.call("remove_place", label="home")
    marvin_tools.call("save_place", label="Home", address="by hand")
    file(marvin_tools).write_text(json.dumps([{"label": "HOME", "address": "by another program"}]))
    with pytest.raises(MarvinError, match="It was changed since then"):
        marvin_tools.take_back()
    assert saved(marvin_tools) == [{"label": "HOME", "address": "by another program"}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"label": " ", "address": "x"}, "needs a label"),
        ({"label": "home"}, "The place 'home' has no data"),
        ({"label": "home", "lat": 1.0}, "given together"),
        ({"label": "home", "lat": 91, "lng": 0}, "lat"),
        ({"label": "home", "address": "x" * 2_001}, "Shorten it"),
        ({"label": "x" * 101, "address": "x"}, "Use 100 at most"),
    ],
)
def test_what_cannot_be_saved_says_why(marvin_tools: ToolRunner, arguments: dict[str, Any], words: str) -> None:
    """I10."""
    said = marvin_tools.call("save_place", **arguments)
    assert said.is_error
    assert words in said.text
    assert not file(marvin_tools).exists()


def test_of_very_many_places_the_first_are_listed(marvin_tools: ToolRunner) -> None:
    file(marvin_tools).parent.mkdir(parents=True)
    file(marvin_tools).write_text(json.dumps([{"label": f"p{number}", "name": "x"} for number in range(300)]))
    lines = marvin_tools.call("list_places").text.splitlines()
    assert len(lines) == 201
    assert lines[-1].startswith("[100 more")


def test_what_an_older_program_wrote_stays(marvin_tools: ToolRunner) -> None:
    file(marvin_tools).parent.mkdir(parents=True)
    old = {"label": "gym", "name": "Iron", "lat": None, "lng": None, "rating": 5}
    file(marvin_tools).write_text(json.dumps([old]))
    assert "gym: Iron" in marvin_tools.call("list_places").text
    marvin_tools.call("save_place", label="Gym", phone="1")
    assert saved(marvin_tools) == [{**old, "phone": "1"}]


def test_a_label_is_the_same_however_it_is_typed(marvin_tools: ToolRunner) -> None:
    """An accent is a letter's own or a sign behind it; names that are only alike are several."""
    marvin_tools.call("save_place", label="Caf\u00e9 M\u00fcller", address="1 Elm Street")
    said = marvin_tools.call("save_place", label="CAFE\u0301  mu\u0308ller", phone="1")
    assert said.text == "Changed: Caf\u00e9 M\u00fcller: 1 Elm Street, 1"
    for near in ("Cafe M\u00fcller", "Caf\u00e9 Muller", "\u0421af\u00e9 M\u00fcller"):
        assert marvin_tools.call("save_place", label=near, address="2").text.startswith("Saved")
    assert "Did you mean" in marvin_tools.call("remove_place", label="Caf\u00e9 M\u00fclle").text
    assert len(saved(marvin_tools)) == 4


def test_what_an_older_program_wrote_is_shown_in_bounds(marvin_tools: ToolRunner) -> None:
    file(marvin_tools).parent.mkdir(parents=True)
    file(marvin_tools).write_text(json.dumps([{"label": "a" * 9_999, "lat": "\x1b[31m" * 9_999, "lng": [1] * 9_999}]))
    text = marvin_tools.call("list_places").text
    assert len(text) < 2_000
    assert text.isprintable()


def test_a_place_of_another_profile_is_not_taken_back(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("save_place", **HOME)
    profiles = file(marvin_tools).parents[1]
    (profiles / "work").mkdir()
    (profiles / "work" / "saved_places.json").write_text(file(marvin_tools).read_text())
    (profiles.parent / "last_profile").write_text("work\n")
    with pytest.raises(MarvinError, match="Switch to main first"):
        marvin_tools.session().take_back()
    assert json.loads((profiles / "work" / "saved_places.json").read_text()) == [HOME]
