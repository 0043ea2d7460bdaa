"""switch_profile and update_preferences: what the user prefers is kept, with what stands beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from marvin_core.testing import ToolRunner


def folder(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/profiles"


def test_a_switch_takes_effect_at_once_and_stays(marvin_tools: ToolRunner) -> None:
    assert "work" in marvin_tools.call("switch_profile", profile_name="work").text
    marvin_tools.call("timer_start", name="tea", duration_seconds=60)
    assert (folder(marvin_tools) / "work" / "timers.json").exists()
    assert (folder(marvin_tools).parent / "last_profile").read_text() == "work\n"
    assert "tea" in marvin_tools.session().call("timer_check").text


def test_a_name_that_leads_elsewhere_is_refused(marvin_tools: ToolRunner) -> None:
    """I4, I10: the profile's name is a model's string."""
    said = marvin_tools.call("switch_profile", profile_name="../../x")
    assert said.is_error
    assert "letters, digits" in said.text
    assert not (folder(marvin_tools).parent / "last_profile").exists()


def test_preferences_are_set_added_to_and_removed_with_comments_kept(marvin_tools: ToolRunner) -> None:
    path = folder(marvin_tools) / "main" / "preferences.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\ndietary: [vegan]  # since 2020\nbudget: low\n")
    told = marvin_tools.call("update_preferences", key="dietary", action="add", value="Halal, VEGAN").text
    assert told == "dietary is vegan, Halal now."
    marvin_tools.call("update_preferences", key="budget", value="high")
    marvin_tools.call("update_preferences", key="has_car", value="Yes")
    marvin_tools.call("update_preferences", key="max_distance_km", value="7.5")
    text = path.read_text()
    for line in ("# mine", "# since 2020", "budget: high", "has_car: true", "max_distance_km: 7.5"):
        assert line in text
    assert marvin_tools.call("update_preferences", key="dietary", action="remove", value="vegan, halal").text == (
        "dietary is not set now."
    )
    assert marvin_tools.call("update_preferences", key="budget", action="remove", value="high").text == (
        "budget is not set now."
    )
    assert "budget: high" not in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"key": "shoe_size", "value": "43"}, "budget"),
        ({"key": "has_car", "value": "maybe"}, "yes or no"),
        ({"key": "max_distance_km", "value": "far"}, "as in 5"),
        ({"key": "max_distance_km", "value": "nan"}, "as in 5"),
        ({"key": "budget", "action": "add", "value": "low"}, "action='set'"),
        ({"key": "dietary", "action": "remove", "value": "vegan"}, "not set"),
    ],
)
def test_what_cannot_be_kept_says_why(marvin_tools: ToolRunner, arguments: dict[str, str], words: str) -> None:
    """I10: and nothing is changed."""
    said = marvin_tools.call("update_preferences", **arguments)
    assert said.is_error
    assert words in said.text
