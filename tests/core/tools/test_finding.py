"""Looking for tools: by names however they are written, by words, and whatever a model or a stranger writes."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.tools import ToolSpec
from marvin_core.tools.finding import Finder
from tests.support.engine import spec
from tests.support.examples import examples

TOOLS = (
    spec("read_file").replace(description="Read a file of the project."),
    spec("weather_forecast").replace(
        description="Tell the weather of the next days.",
        parameters={"type": "object", "properties": {"place": {"type": "string", "description": "A town"}}},
        phrases=({"say": "will it rain in {place}"},),
    ),
    spec("set_alarm").replace(description="Ring at a time."),
    spec("ReadFile").replace(description="The tool of a stranger, of the same name in other letters."),
    spec("mcp__garden__water-plants").replace(description="Open the valve of a garden."),
    spec("___").replace(description="A name without a letter; it peels oranges."),
)


def finder(tmp_path: Path, specs: tuple[ToolSpec, ...] = TOOLS) -> Finder:
    return Finder(specs, tmp_path / "cache")


def names(found: list[ToolSpec]) -> list[str]:
    return [one.name for one in found]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("weather_forecast", "weather_forecast"),
        ("WeatherForecast", "weather_forecast"),
        ("weatherForecast", "weather_forecast"),
        ("weather-forecast", "weather_forecast"),
        ("Weather Forecast", "weather_forecast"),
        ("WEATHER_FORECAST", "weather_forecast"),
        ("select:weather_forecast", "weather_forecast"),
        ('["set_alarm", "weather_forecast"]', "set_alarm"),
        ("`set_alarm`", "set_alarm"),
        ("set_alarm(time='7:00')", "set_alarm"),
        ("mcp__garden__water_plants", "mcp__garden__water-plants"),
        ("water the plants in the garden", "mcp__garden__water-plants"),
        ("rain", "weather_forecast"),
        ("town", "weather_forecast"),
        ("forcast of the wether", "weather_forecast"),
        ("peel an orange", "___"),
    ],
)
def test_the_tool_that_is_meant_comes_first(tmp_path: Path, query: str, first: str) -> None:
    assert names(finder(tmp_path).find(query, 5))[0] == first


def test_two_names_that_differ_in_case_only_are_both_found(tmp_path: Path) -> None:
    assert {"read_file", "ReadFile"} <= {*names(finder(tmp_path).find("readfile", 5))}


def test_all_that_are_named_are_found_however_few_were_asked_for(tmp_path: Path) -> None:
    many = tuple(spec(f"tool_{number}") for number in range(40))
    asked = [f"tool_{number}" for number in range(30, 18, -1)]
    assert names(finder(tmp_path, many).find(",".join(asked), 2)) == asked
    assert len(finder(tmp_path, many).find(" ".join(f"tool_{number}" for number in range(40)), 2)) == 20


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "select:",
        "___",
        "?!",
        "\x00\x1b[2J",
        "the of and",
        "明日の天気",
        "طقس",
        "🌧" * 3_000,
    ],
)
def test_a_query_without_a_word_that_a_tool_has_finds_nothing(tmp_path: Path, query: str) -> None:
    assert finder(tmp_path).find(query, 5) == []


@pytest.mark.parametrize(
    "query", ["weather " * 2_000, " ".join(f"w{number}" for number in range(3_000)), "x" * 10_000_000]
)
def test_a_long_query_is_answered_by_its_beginning(tmp_path: Path, query: str) -> None:
    found = names(finder(tmp_path).find(query, 5))
    assert found == (["weather_forecast"] if query.startswith("weather") else [])


def test_nothing_that_a_stranger_writes_keeps_the_others_from_being_found(tmp_path: Path) -> None:
    hostile = [
        spec("long").replace(description="weather " * 20_000),
        spec("control").replace(description="\x00\x1b]0;weather\x07\u202e\ud800 forecast"),
        spec("Tool_Search").replace(description="Find tools."),
        spec("deep").replace(
            parameters={"type": "object", "properties": {f"p{n}": {"description": "weather " * 50} for n in range(200)}}
        ),
        spec("spoken").replace(phrases=tuple({"say": f"weather {n} {'x' * 500}"} for n in range(200))),
        spec("empty").replace(description="", parameters={}),
    ]
    found = finder(tmp_path, (*TOOLS, *hostile))
    assert names(found.find("weather forecast", 5))[0] == "weather_forecast"
    assert names(found.find("set_alarm", 5))[0] == "set_alarm"
    assert "Tool_Search" in names(found.find("tool_search", 5))


@examples(100)
@given(st.text(max_size=60) | st.text(string.ascii_letters + " _-", max_size=60), st.integers(1, 20))
def test_any_query_finds_some_of_the_tools_once_each(query: str, most: int) -> None:
    found = names(_KEPT.find(query, most))
    assert len({*found}) == len(found) <= max(most, len(TOOLS))
    assert {*found} <= {*names([*TOOLS])}


_KEPT = Finder(TOOLS, Path("/dev/null/no-cache"))
