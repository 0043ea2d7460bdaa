"""Finding tools by words."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.tools import ToolSpec
from marvin_core.tools.routing.ranking import Ranking
from marvin_core.tools.routing.words import normalized, words


def spec(name: str, description: str, *says: str, **parameters: str) -> ToolSpec:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    phrases: tuple[dict[str, Any], ...] = tuple({"say": say, "arguments": {}, "slots": {}} for say in says)
    return ToolSpec(
        name=name,
        description=description,
        parameters={"type": "object", "properties": properties},
        access=frozenset({"read"}),
        phrases=phrases,
    )


FORECAST = spec("weather_forecast", "Tell the weather of the next days.", "will it rain in {place}", place="A town")
NOTE = spec("write_note", "Keep a text as a note.", "remember this", text="What to keep")
NOTES = spec("search_notes", "Find notes that hold a text.", query="Words to search for")
TRAIN = spec("train_departures", "List the next trains of a station.", station="Where they leave")
ALL = (FORECAST, NOTE, NOTES, TRAIN)


def names(text: str, limit: int = 3) -> list[str]:
    return [found.name for found, _ in Ranking(ALL).best(text, limit)]


def test_tools_are_found_by_name_description_parameter_and_phrase() -> None:
    assert names("forecast") == ["weather_forecast"]
    assert names("the next days") == ["weather_forecast", "train_departures"]
    assert names("station") == ["train_departures"]
    assert names("rain?") == ["weather_forecast"]


def test_the_more_of_the_words_the_better_and_rare_words_count_more() -> None:
    assert names("search my notes")[0] == "search_notes"
    assert names("write a note")[0] == "write_note"
    (_, rare), (_, common) = Ranking(ALL).best("trains texts", 2)
    assert names("trains texts")[0] == "train_departures"  # one tool knows trains, two know texts
    assert rare > common


def test_a_longer_text_about_more_things_counts_less() -> None:
    short, long = spec("a", "Play chess."), spec("b", "Play chess, cards, golf, music, films and the piano.")
    assert [found.name for found, _ in Ranking((long, short)).best("chess", 2)] == ["a", "b"]


def test_the_limit_is_kept_and_what_shares_no_word_is_left_out() -> None:
    assert len(names("next notes text", 1)) == 1
    assert names("quantum") == []
    assert names("could you please show me the") == []
    assert Ranking(()).best("anything", 3) == []


def test_case_plural_and_form_of_letters_do_not_count() -> None:
    assert [normalized(word) for word in ("Notes", "FILES", "entries", "Anna's", "STRASSE")] == [
        "note",
        "file",
        "entry",
        "anna",
        "strasse",
    ]
    assert [normalized(word) for word in ("glass", "status", "this", "us", "ties")] == [
        "glass",
        "status",
        "this",
        "us",
        "tie",
    ]
    assert normalized("straße") == normalized("STRASSE")
    assert list(words("cafe\u0301 ＷＩＤＥ")) == ["café", "wide"]


def test_any_script_has_words() -> None:
    assert list(words("Погода в Москве")) == ["погода", "в", "москве"]
    assert list(words("天気は?")) == ["天", "気", "は"]
    weather = spec("weather", "天気予報")
    assert Ranking((NOTE, weather)).best("明日の天気", 3)[0][0] is weather


@given(st.text(max_size=200))
def test_any_text_can_be_asked_for(text: str) -> None:
    scores = [score for _, score in Ranking(ALL).best(text, 4)]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


@given(st.permutations(["next", "notes", "weather", "station", "text"]))
def test_the_order_of_the_words_does_not_count(shuffled: list[str]) -> None:
    def scores(text: str) -> dict[str, float]:
        return {found.name: round(score, 9) for found, score in Ranking(ALL).best(text, 4)}

    assert scores(" ".join(shuffled)) == scores("next notes weather station text")
