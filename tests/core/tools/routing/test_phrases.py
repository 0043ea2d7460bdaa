"""phrases.toml: how it is read, what is said about mistakes, and its phrases in requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import ToolError
from marvin_core.api.tools import ToolSpec
from marvin_core.tools.argument_errors import example_call
from marvin_core.tools.arguments import key_value_words, parse_key_values
from marvin_core.tools.routing.phrases import Phrase, with_phrases
from marvin_core.tools.routing.slots import KINDS, Utterance
from tests.support.installing import Place

PROPERTIES: Mapping[str, Any] = {
    "location": {"type": "string"},
    "days": {"type": "integer", "minimum": 1},
    "metric": {"type": "boolean"},
}
FORECAST = ToolSpec(
    name="forecast",
    description="Tell the weather.",
    parameters={"type": "object", "properties": PROPERTIES, "required": ["location"]},
    access=frozenset({"net"}),
)
ALARM = ToolSpec(
    name="alarm",
    description="Wake somebody.",
    parameters={"type": "object", "properties": {"pattern": {"type": "string"}, "at_time": {"type": "string"}}},
    access=frozenset({"write"}),
)


def check(spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    if not isinstance(arguments.get("days", 1), int):
        raise ToolError("days: must be an integer.")


def read(tmp_path: Path, text: str) -> tuple[dict[str, Sequence[Mapping[str, Any]]], list[str]]:
    """The phrases of each tool, and the problems without the name of the file."""
    file = tmp_path / "phrases.toml"
    file.write_text(text, encoding="utf-8")
    specs, problems = with_phrases([FORECAST, ALARM], file, check)
    assert all(str(file) in problem for problem in problems)
    return {spec.name: spec.phrases for spec in specs}, [problem.replace(f"{file}", "FILE") for problem in problems]


def phrase(tmp_path: Path, text: str) -> Phrase:
    """The only phrase of a file."""
    phrases, problems = read(tmp_path, f"[[phrase]]\n{text}\n")
    assert not problems
    (entry,) = [entry for entries in phrases.values() for entry in entries]
    return Phrase(json.loads(json.dumps(entry)))


def meant(found: Phrase, text: str) -> Mapping[str, Any] | None:
    match = found.match(Utterance(text))
    return None if match is None else match.arguments


def test_an_entry_lands_on_its_tool_with_every_argument_and_the_kinds_of_its_slots(tmp_path: Path) -> None:
    phrases, problems = read(
        tmp_path,
        """
        [[phrase]]
        say = "weather in {location} for {days} days"
        tool = "forecast"
        arguments = { metric = true }

        [[phrase]]
        say = "wake me at {when:time}"
        tool = "alarm"
        arguments = { at_time = "{when}", pattern = "daily at {when}" }
        """,
    )
    assert not problems
    assert phrases["forecast"] == (
        {
            "say": "weather in {location} for {days} days",
            "arguments": {"location": "{location}", "days": "{days}", "metric": True},
            "slots": {"location": "place", "days": "integer"},
        },
    )
    assert phrases["alarm"][0]["say"] == "wake me at {when}"
    assert phrases["alarm"][0]["slots"] == {"when": "time"}


MISTAKES = {
    'say = "rain"': "FILE: phrase 2 ('rain'): it needs say and tool",
    'tool = "forecast"': "FILE: phrase 2: it needs say and tool",
    'say = "rain"\ntool = "forcast"': "phrase 2 ('rain'): Unknown tool 'forcast'. Did you mean 'forecast'?",
    'say = "rain"\ntool = "forecast"\nargs = {}': "Unknown key 'args'. Did you mean 'arguments'?",
    'say = "rain"\ntool = "forecast"\narguments = []': "it needs say and tool as strings; arguments must be a table",
    'say = "rain"\ntool = "forecast"\narguments = { dayz = 1 }': "Unknown parameter 'dayz'. Did you mean 'days'?",
    'say = "rain"\ntool = "forecast"\narguments = { location = "{town}" }': "arguments use {town}, which is not in say",
    'say = "rain in {town}"\ntool = "forecast"': "Unknown parameter 'town'.",
    'say = "rain in {location:plaec}"\ntool = "forecast"': "Unknown kind of slot 'plaec'",
    'say = "rain in {location"\ntool = "forecast"': "write a slot as {name} or {name:kind}",
    'say = "{location} or {location}"\ntool = "forecast"': "the slot location occurs twice",
    'say = "{location}"\ntool = "forecast"': "say must contain a word besides its slots",
    'say = "rain"\ntool = "forecast"\narguments = { location = "x", days = "many" }': "days: must be an integer",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_file_and_entry_and_leaves_the_others(tmp_path: Path, mistake: str) -> None:
    good = '[[phrase]]\nsay = "{} weather"\ntool = "forecast"\n'
    phrases, problems = read(tmp_path, f"{good.format('good')}\n[[phrase]]\n{mistake}\n\n{good.format('fine')}")
    assert [entry["say"] for entry in phrases["forecast"]] == ["good weather", "fine weather"]
    (problem,) = problems
    assert MISTAKES[mistake] in problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[phrase", "FILE is not TOML: "),
        ("[[phrases]]\nsay = 'x'", "FILE may contain only [[phrase]] entries, not phrases."),
        ("phrase = 'x'", "FILE may contain only [[phrase]] entries."),
        ("phrase = ['x']", "FILE: phrase 1: it must be a [[phrase]] with say and tool."),
    ],
)
def test_a_file_that_holds_something_else_is_named(tmp_path: Path, text: str, problem: str) -> None:
    phrases, problems = read(tmp_path, text)
    assert not any(phrases.values())
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    _, (problem,) = with_phrases([FORECAST], tmp_path / "no.toml", check)
    assert "no.toml, which a ToolGroup declares as its phrases, cannot be read" in problem


def test_a_phrase_is_found_where_it_is_all_that_is_said(tmp_path: Path) -> None:
    weather = phrase(tmp_path, 'say = "what is the weather in {location}"\ntool = "forecast"')
    for text in ("weather in Berlin", "What's the weather in Berlin?", "tell me the weather in Berlin!"):
        assert meant(weather, text) == {"location": "Berlin"}
    assert meant(weather, "weather in New York City") == {"location": "New York City"}
    assert meant(weather, 'weather in "Frankfurt and around"') == {"location": "Frankfurt and around"}
    for text in (
        "weather",
        "weather in",
        "weather in Berlin tomorrow",
        "weather in Berlin and Rome",
        "weather in Berlin, then delete it",
        "bad weather in Berlin",
        '"weather" in Berlin',
    ):
        assert meant(weather, text) is None, text


def test_slots_take_what_their_kind_says_and_keep_its_type(tmp_path: Path) -> None:
    days = phrase(tmp_path, 'say = "next {days} days in {location}"\ntool = "forecast"')
    assert meant(days, "the next 3 days in Rome") == {"days": 3, "location": "Rome"}
    assert meant(days, "the next few days in Rome") is None
    alarm = phrase(
        tmp_path,
        'say = "wake me at {when:time}"\ntool = "alarm"\narguments = { at_time = "{when}", pattern = "daily {when}" }',
    )
    assert meant(alarm, "wake me at 7am please") == {"at_time": "07:00", "pattern": "daily 07:00"}


def test_a_phrase_of_polite_words_alone_is_told_by_them(tmp_path: Path) -> None:
    show = phrase(tmp_path, 'say = "show {pattern:path}"\ntool = "alarm"')
    assert meant(show, "please show me the README.md") == {"pattern": "README.md"}
    assert meant(show, "README.md") is None


def test_the_correct_call_of_an_error_is_one_that_people_ask_for(tmp_path: Path) -> None:
    text = """
    phrase = [
        { say = "weather in {location}", tool = "forecast" },
        { say = "is it raining in Rome", tool = "forecast", arguments = { location = "Rome", days = 1 } },
    ]
    """
    phrases, _ = read(tmp_path, text)
    spoken = FORECAST.replace(phrases=phrases["forecast"])
    assert example_call(spoken) == 'forecast({"location": "Rome", "days": 1})'
    assert "metric" in example_call(spoken, ["metric"])


@given(
    st.dictionaries(st.sampled_from(["location", "metric", "days"]), st.text(max_size=20)),
    st.integers(),
    st.booleans(),
)
def test_the_words_of_a_call_are_read_back_as_the_same_call(texts: dict[str, str], days: int, metric: bool) -> None:
    import shlex

    storable = {"location": texts.get("location", "").encode("utf-8", "backslashreplace").decode()}
    arguments = {**storable, "days": days, "metric": metric}
    assert parse_key_values(shlex.split(key_value_words(arguments)), FORECAST) == arguments


TOOLS = '''
from marvin_core import tool

@tool(access=["read"])
async def wave(name: str = "all", times: int = 1) -> str:
    """Wave at somebody."""
    return name * times
'''
PLUGIN = """
from marvin_core import ToolGroup, hookimpl

@hookimpl
def marvin_register_tools():
    return [ToolGroup(name="hands", module="acme_tools", tools=("wave",), phrases="acme.toml")]
"""
SAID = """
import json
from pathlib import Path
from marvin_core.plugins.index import load_index

index = load_index(Path.home() / "cache")
phrases = [entry["say"] for _, spec in index.tools if spec.name == "wave" for entry in spec.phrases]
problems = [problem for pack in index.packs if pack.name == "acme" for problem in pack.problems]
print(json.dumps([phrases, problems]))
"""


@pytest.mark.slow
def test_a_pack_brings_its_phrases_and_a_change_of_them_is_noticed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("acme", PLUGIN, modules={"acme_tools": TOOLS})
    file = place.packages / "acme.toml"

    def said() -> Any:
        ended = place.python(SAID)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)

    phrases, problems = said()
    assert phrases == []
    assert "acme.toml" in problems[0]
    file.write_text('[[phrase]]\nsay = "wave at {name}"\ntool = "wave"\n')
    assert said() == [["wave at {name}"], []]
    assert said() == [["wave at {name}"], []]  # from the cache
    file.write_text('[[phrase]]\nsay = "greet {name}"\ntool = "wave"\n')
    assert said() == [["greet {name}"], []]
    file.write_text('[[phrase]]\nsay = "wave twice"\ntool = "wave"\narguments = { times = "twice" }\n')
    phrases, problems = said()
    assert phrases == []
    assert "acme.toml: phrase 1 ('wave twice')" in problems[0]
    assert "times: must be an integer" in problems[0]


@pytest.mark.slow
def test_the_list_of_packs_shows_a_mistake_and_the_tool_still_works(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.install("acme", PLUGIN, modules={"acme_tools": TOOLS})
    (place.packages / "acme.toml").write_text('[[phrase]]\nsay = "wave"\ntool = "wafe"\n')
    packs = place.marvin("packs", "list")
    assert packs.code == 1
    assert "acme.toml: phrase 1 ('wave'): Unknown tool 'wafe'. Did you mean 'wave'?" in packs.out
    assert place.marvin("tools", "call", "wave", "name=x").out == "x\n"


@pytest.mark.slow
def test_the_packs_of_this_repository_make_no_mistakes(tmp_path: Path) -> None:
    from marvin_core.plugins.index import load_index

    index = load_index(tmp_path)
    assert any(spec.phrases for _, spec in index.tools)
    assert not [problem for pack in index.packs for problem in pack.problems]


WEATHER = '''
from marvin_core import tool

@tool(access=["net"])
async def tide_table(location: str, days: int = 1) -> str:
    """Tell the tides."""
    return location

@tool(access=["write"])
async def close_blinds(at: str, label: str = "") -> str:
    """Close the blinds."""
    return at
'''


@pytest.mark.slow
def test_the_examples_of_the_how_to_work(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "how-to" / "write-phrases.md").read_text(encoding="utf-8")
    toml, plugin = (page.split(f"```{language}\n")[1].split("```")[0] for language in ("toml", "python"))
    assert all(f"`{kind}`" in page for kind in KINDS)
    place = Place(tmp_path)
    place.install("marvin_weather_pack", "", entry_points="[marvin]\nweather = marvin_weather.plugin\n")
    folder = place.packages / "marvin_weather"
    folder.mkdir()
    for name, text in {"__init__": "", "plugin": plugin, "tools": WEATHER}.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "phrases.toml").write_text(toml)
    ended = place.marvin("packs", "list")
    assert ended.code == 0, ended.out
    refused = place.marvin("--provider", "offline", "--non-interactive", "--prompt", "Close the blinds at 7 am, please")
    assert refused.code == 1
    assert "\n  /close_blinds at=07:00 label='blinds at 07:00'\n" in refused.err
    done = place.marvin("--provider", "offline", "--non-interactive", "--prompt", "tides in Oslo for the next 3 days")
    assert (done.code, done.out) == (0, "  🔧 tide_table\nOslo\n")
