"""switch_profile and update_preferences: what the user prefers is kept, with what stands beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from marvin_core.api.errors import MarvinError
from marvin_core.api.messages import Call
from marvin_core.testing import PackRunner, ToolRunner
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.deferral import Wish, hot
from marvin_core.tools.toolbox import HOT
from tests.support.examples import examples


def folder(tools: ToolRunner) -> Path:
    return tools.home / ".config/marvin/profiles"


def test_a_switch_takes_effect_at_once_and_stays(marvin_tools: ToolRunner) -> None:
    assert "work" in marvin_tools.call("switch_profile", profile_name="work").text
    marvin_tools.call("timer_start", name="tea", duration_seconds=60)
    assert (folder(marvin_tools) / "work" / "timers.json").exists()
    assert (folder(marvin_tools).parent / "last_profile").read_text() == "work\n"
    assert "tea" in marvin_tools.session().call("timer_check").text


@pytest.mark.slow
def test_all_that_a_profile_holds_is_of_the_new_one_at_once(marvin_tools: ToolRunner) -> None:
    """What all profiles share stays: bookmarks, tickets, notes."""
    nowhere = {"life": {"scheduler": "launchd" if sys.platform == "linux" else "cron"}}
    tools = marvin_tools.session(settings=nowhere)
    calls: list[tuple[str, dict[str, str]]] = [
        ("save_place", {"label": "home", "address": "1 Elm Street"}),
        ("update_preferences", {"key": "budget", "value": "low"}),
        ("calendar_add_event", {"title": "Dentist", "start": "tomorrow 3pm"}),
        ("timer_start", {"name": "tea"}),
        ("ntfy_subscribe", {"topic": "doorbell"}),
        ("bookmark_save", {"url": "https://example.org/"}),
        ("create_ticket", {"title": "Milk"}),
        ("write_note", {"path": "a", "content": "b"}),
    ]
    for name, arguments in calls:
        assert not tools.call(name, **arguments).is_error
    tools.call("switch_profile", profile_name="work")
    own = ["list_places", "calendar_list_upcoming", "timer_check", "ntfy_list"]
    assert [tools.call(name).text.split()[0] for name in own] == ["There", "No", "No", "You"]
    shared = {"bookmark_list": "example.org", "ticket_list": "Milk", "notes_ls": "a.md"}
    assert [word in tools.call(name).text for name, word in shared.items()] == [True] * 3
    for name, arguments in calls[:5]:
        assert not tools.call(name, **arguments).is_error
    names = ["calendar.ics", "ntfy_subscriptions.json", "preferences.yaml", "saved_places.json", "timers.json"]
    for profile in ("main", "work"):
        files = {path.name for path in (folder(tools) / profile).iterdir() if path.suffix != ".lock"}
        assert sorted(files & set(names)) == names
    tools.call("switch_profile", profile_name="main")
    assert "1 Elm Street" in tools.call("list_places").text


def test_the_prompt_is_that_of_the_new_profile_and_the_chat_goes_on(marvin_pack: PackRunner) -> None:
    (folder(marvin_pack) / "work").mkdir(parents=True)
    (folder(marvin_pack) / "work" / "preferences.yaml").write_text("notes: Be brief\n")
    marvin_pack.offer("switch_profile")
    switch = Call(name="switch_profile", arguments={"profile_name": "work"})
    before, after = marvin_pack.prompt("I am at work now", switch, "Done.").requests
    assert ("Active profile: main" in before.system, "Active profile: work" in after.system) == (True, True)
    assert "- notes: Be brief" in after.system
    assert [message.text for message in after.messages][:1] == ["I am at work now"]
    (later,) = marvin_pack.prompt("And now?", "Still there.").requests
    assert later.messages[0].text == "I am at work now"


def test_what_lasts_is_offered_to_be_kept_without_a_search(marvin_tools: ToolRunner) -> None:
    """A model offers what it knows of: where most tools wait, the one for preferences is there, and says so."""
    specs = installed_tools()
    offered = hot(specs, Wish(is_code=False, calls={}, first="tool_search", most=HOT), lambda spec: 100)
    (spec,) = (spec for spec in offered if spec.name == "update_preferences")
    for part in ("a diet, units", "a tone (notes)", "a home (save_place)", "offer once to keep it", "in one line"):
        assert part in " ".join(spec.description.split())
    said = marvin_tools.call("update_preferences", key="distance_unit", value="miles")
    assert len(said.text.splitlines()) == 1
    assert marvin_tools.take_back() == ("update_preferences: key=distance_unit, value=miles",)


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
        ({"key": "max_distance_km", "value": "far"}, "such as 5"),
        ({"key": "max_distance_km", "value": "nan"}, "such as 5"),
        ({"key": "distance_unit", "value": "furlongs"}, "Give miles or kilometers"),
        ({"key": "budget", "value": "low", "taken_back": {"before": 1, "after": 2}}, "for /undo only"),
        ({"key": "budget", "action": "add", "value": "low"}, "action='set'"),
        ({"key": "dietary", "action": "remove", "value": "vegan"}, "not set"),
        ({"key": "notes", "value": "x" * 1_001}, "Shorten it"),
        ({"key": "dietary", "value": ",".join(map(str, range(51)))}, "Leave some out"),
        ({"key": "notes", "action": "remove", "value": "brief"}, "no such note"),
    ],
)
def test_what_cannot_be_kept_says_why(marvin_tools: ToolRunner, arguments: dict[str, str], words: str) -> None:
    """I10: and nothing is changed."""
    said = marvin_tools.call("update_preferences", **arguments)
    assert said.is_error
    assert words in said.text


HOSTILE = {
    "a list": "- dietary\n- vegan\n",
    "a text": "vegan\n",
    "a tab": "dietary:\n\t- vegan\n",
    "a key twice": "budget: low\nbudget: high\n",
    "aliases without end": "a: &a [x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "itself": "dietary: &a [*a]\n",
    "depth": "dietary: " + "[" * 5_000,
    "no text": "\ufffe\x00",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_file_that_cannot_be_used_is_moved_aside_and_told(marvin_tools: ToolRunner, text: str) -> None:
    """What the user wrote there is not lost, and the model knows that it does not count any more."""
    path = folder(marvin_tools) / "main" / "preferences.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    said = marvin_tools.call("update_preferences", key="budget", value="low")
    assert said.is_error
    (moved,) = path.parent.glob("preferences.yaml.damaged-*")
    assert moved.read_text() == text
    assert f"was damaged. It is kept as {moved.name}, and nothing was changed" in said.text
    assert marvin_tools.call("update_preferences", key="budget", value="low").text == "budget is low now."


@pytest.mark.parametrize(
    ("text", "arguments", "after"),
    [
        # What two keys share is changed for the one that was meant.
        (
            "dietary: &mine [vegan]\nfavorite_cuisines: *mine\n",
            {"key": "dietary", "action": "add", "value": "halal"},
            {"dietary": ["vegan", "halal"], "favorite_cuisines": ["vegan"]},
        ),
        (
            "dietary: &mine [vegan]\nfavorite_cuisines: *mine\n",
            {"key": "favorite_cuisines", "action": "add", "value": "thai"},
            {"dietary": ["vegan"], "favorite_cuisines": ["vegan", "thai"]},
        ),
        # Several without brackets are several.
        ("dietary: vegan, halal\n", {"key": "dietary", "action": "remove", "value": "vegan"}, {"dietary": ["halal"]}),
        (
            "dietary: caf\u00e9\n",
            {"key": "dietary", "action": "add", "value": "CAFE\u0301"},
            {"dietary": ["caf\u00e9"]},
        ),
        ("dietary: {a: 1}\n", {"key": "dietary", "action": "add", "value": "b"}, {"dietary": {"a": 1}}),
        ("notes: Be brief\n", {"key": "notes", "action": "add", "value": "No jokes"}, {"notes": "Be brief; No jokes"}),
        ("notes: Be brief\n", {"key": "notes", "action": "add", "value": "be brief"}, {"notes": "Be brief"}),
        ("notes: a; b; c\n", {"key": "notes", "action": "remove", "value": "B"}, {"notes": "a; c"}),
        ("notes: a; b\nbudget: 1\n", {"key": "notes", "action": "remove", "value": ""}, {"budget": 1}),
        ("mine: &all {budget: low}\n<<: *all\n", {"key": "budget", "value": "high"}, {"budget": "high"}),
        ("mine: &all {budget: low}\n<<: *all\n", {"key": "budget", "action": "remove", "value": ""}, {"budget": "low"}),
    ],
)
def test_what_people_write_into_the_file_is_understood(
    marvin_tools: ToolRunner, text: str, arguments: dict[str, str], after: dict[str, object]
) -> None:
    path = folder(marvin_tools) / "main" / "preferences.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    said = marvin_tools.call("update_preferences", **arguments)
    assert "failed unexpectedly" not in said.text
    values = YAML(typ="safe").load(path.read_text())
    assert {key: values.get(key) for key in after} == after, said.text
    assert arguments["key"] in after or arguments["key"] not in values
    if said.undo is not None:
        marvin_tools.take_back()
        assert YAML(typ="safe").load(path.read_text()) == YAML(typ="safe").load(text)


def test_preferences_of_another_profile_are_not_taken_back(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("update_preferences", key="budget", value="low")
    path = folder(marvin_tools)
    (path / "work").mkdir()
    (path / "work" / "preferences.yaml").write_text("budget: low\n")
    (path.parent / "last_profile").write_text("work\n")
    with pytest.raises(MarvinError, match="Switch to main first"):
        marvin_tools.session().take_back()
    assert (path / "work" / "preferences.yaml").read_text() == "budget: low\n"


@pytest.mark.parametrize(("value", "kept"), [("mi", "miles"), ("Miles", "miles"), ("km", "kilometers")])
def test_distances_are_in_miles_or_kilometers(marvin_tools: ToolRunner, value: str, kept: str) -> None:
    said = marvin_tools.call("update_preferences", key="distance_unit", value=value)
    assert said.text == f"distance_unit is {kept} now."


def test_preferences_and_profiles_are_taken_back_after_a_restart_too(marvin_tools: ToolRunner) -> None:
    path = folder(marvin_tools) / "main" / "preferences.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\ndietary: [vegan, 'no, really']  # since 2020\nmax_distance_km: 5\n")
    before = path.read_text()
    marvin_tools.call("update_preferences", key="dietary", action="add", value="halal")
    marvin_tools.call("update_preferences", key="max_distance_km", value="7.5")
    marvin_tools.call("update_preferences", key="has_car", value="yes")
    marvin_tools.call("switch_profile", profile_name="work")
    later = marvin_tools.session()
    later.take_back(4)
    assert (folder(marvin_tools).parent / "last_profile").read_text() == "main\n"
    assert later.call("list_places").text.startswith("There are no")
    text = path.read_text()
    assert "# mine" in text
    assert "# since 2020" in text
    assert "has_car" not in text
    assert text.replace(" ", "") == before.replace(" ", "")


def test_what_somebody_else_prefers_by_now_stays(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("update_preferences", key="budget", value="low")
    path = folder(marvin_tools) / "main" / "preferences.yaml"
    path.write_text(path.read_text().replace("budget: low", "budget: high"))
    with pytest.raises(MarvinError, match='it was "low" and is now "high"'):
        marvin_tools.take_back()
    marvin_tools.call("switch_profile", profile_name="work")
    (folder(marvin_tools).parent / "last_profile").write_text("third\n")
    with pytest.raises(MarvinError, match="third is active now, not"):
        marvin_tools.session().take_back()


def test_setting_what_is_set_already_is_nothing_to_take_back(marvin_tools: ToolRunner) -> None:
    marvin_tools.call("update_preferences", key="budget", value="low")
    assert marvin_tools.call("update_preferences", key="budget", value="low").undo is None
    assert marvin_tools.call("switch_profile", profile_name="main").undo is None


WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=12)
KEYS = st.sampled_from(["dietary", "favorite_cuisines", "budget", "notes"])
EDITS = st.lists(st.tuples(KEYS, st.sampled_from(["set", "add", "remove"]), WORDS), min_size=1, max_size=5)
COMMENTS = ("# mine", "# since 2020", "# of the doctor", "# the last word")


@pytest.mark.slow
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS, style=st.sampled_from(["[vegan, halal]  # of the doctor", "# of the doctor\n  - vegan\n  - halal"]))
def test_no_edit_loses_a_comment_and_taking_back_restores_the_values(
    marvin_tools: ToolRunner, edits: list[tuple[str, str, str]], style: str
) -> None:
    path = folder(marvin_tools) / "main" / "preferences.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"# mine\ndietary: {style}\n# since 2020\nbudget: low\n\nother: 1\n# the last word\n"
    path.write_text(text)
    values = YAML(typ="safe").load(text)
    done = 0
    for key, action, value in edits:
        outcome = marvin_tools.call("update_preferences", key=key, action=action, value=value)
        done += outcome.undo is not None
        after = path.read_text()
        assert [after.count(comment) for comment in COMMENTS] == [1, 1, 1, 1], after
        assert YAML(typ="safe").load(after)["other"] == 1
    assert len(marvin_tools.take_back(done) if done else ()) == done
    assert YAML(typ="safe").load(path.read_text()) == values
