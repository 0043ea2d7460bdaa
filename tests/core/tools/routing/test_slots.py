"""Values in what people write."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.tools.routing.slots import KINDS, Utterance, kind_of


def found(kind: str, text: str) -> list[Any]:
    return [value for *_, value in Utterance(text).find(kind)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 km and 1,000.5 miles", [5, 1000.5]),
        ("-5 or −3 °C", [-5, -3]),
        ("pages 3-5", [3, 5]),
        ("100km/h", [100]),
        ("the last three commits", [3]),
        ("the 2nd of v1.2 is 1a2b3c4d", []),
        ("9" * 400, []),
    ],
)
def test_numbers(text: str, expected: list[float]) -> None:
    assert found("number", text) == expected


def test_a_whole_number_is_asked_for_where_only_that_fits() -> None:
    assert found("integer", "2.5 or 3") == [3]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5 minutes", 300),
        ("5 mins", 300),
        ("1h30m", 5400),
        ("1h30", 5400),
        ("1 h 30 min", 5400),
        ("1.5 hours", 5400),
        ("an hour and ten minutes", 4200),
        ("half an hour", 1800),
        ("2 days, 3 hours", 183_600),
        ("a week", 604_800),
    ],
)
def test_durations_are_in_seconds(text: str, seconds: int) -> None:
    assert found("duration", text) == [seconds]
    assert found("duration", f"wake me in {text} please") == [seconds]


@pytest.mark.parametrize("text", ["5 km", "0 minutes", "minutes", "soon", "10:30", '"5 minutes"', "5 minutes and"])
def test_what_is_no_duration(text: str) -> None:
    utterance = Utterance(text)
    assert utterance.value("duration", 0, len(utterance.tokens)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9am", "09:00"),
        ("9:30 pm", "21:30"),
        ("12 a.m.", "00:00"),
        ("12pm", "12:00"),
        ("17:30", "17:30"),
        ("0:05", "00:05"),
        ("noon", "12:00"),
        ("midnight", "00:00"),
    ],
)
def test_clock_times(text: str, expected: str) -> None:
    assert found("time", f"at {text}, maybe") == [expected]


@pytest.mark.parametrize("text", ["25:00", "9:75", "13pm", "0am", "9", "9 apples"])
def test_what_is_no_clock_time(text: str) -> None:
    assert found("time", text) == []


def test_paths_have_a_slash_or_an_ending_or_stand_in_quotes() -> None:
    text = "copy src/app.py, ../x and ~/notes into `my folder`; see README.md. Makefile, .gitignore, word"
    expected = ["src/app.py", "../x", "~/notes", "my folder", "README.md", "Makefile", ".gitignore"]
    assert found("path", text) == expected
    assert found("path", "src/ and /etc/hosts and .") == ["src/", "/etc/hosts"]
    assert found("glob", "find *.py and src/**/*.{ts,tsx}") == ["*.py", "src/**/*.{ts,tsx}"]


def test_addresses_end_before_the_sentence_does() -> None:
    assert found("url", "see https://example.com/a?b=c#d, or (http://localhost:8080/x).") == [
        "https://example.com/a?b=c#d",
        "http://localhost:8080/x",
    ]
    assert found("url", "notes.org ftp://x main.rs") == []


@pytest.mark.parametrize("site", ["example.com", "www.example.co.uk/a", "example.org/about", "docs.owls.dev"])
def test_the_name_of_a_site_is_an_address(site: str) -> None:
    assert found("url", f"open {site}, please") == [f"https://{site}"]


def test_names_of_code_are_told_from_words_and_products() -> None:
    assert found("identifier", "who calls parse_date, HttpClient or API_BASE on YouTube today") == [
        "parse_date",
        "HttpClient",
        "API_BASE",
    ]


def test_a_repository_has_an_owner_and_is_no_path() -> None:
    assert found("repository", "the readme of pallets/flask and/or src/main docs/index.md") == ["pallets/flask"]


def test_quoted_text_is_one_value_whatever_is_in_it() -> None:
    assert found("quoted", "say \"a, b and c\" or 'd e' or “f” or `g h`") == ["a, b and c", "d e", "f", "g h"]
    assert found("quoted", "it's Anna's") == []


@pytest.mark.parametrize("text", ["km", "km/h", "miles per hour", "US dollars", "°F", "degrees Celsius", "square feet"])
def test_units(text: str) -> None:
    utterance = Utterance(text)
    assert utterance.value("unit", 0, len(utterance.tokens)) == text


@pytest.mark.parametrize("text", ["files", "per hour", "km and miles", "km miles", "the box", "src"])
def test_what_is_no_unit(text: str) -> None:
    utterance = Utterance(text)
    assert utterance.value("unit", 0, len(utterance.tokens)) is None


@pytest.mark.parametrize("text", ["Paris and Rome", "Paris, then Rome", "not Paris", "Paris; Rome", 'Paris "now"'])
def test_free_text_ends_where_another_request_may_begin(text: str) -> None:
    utterance = Utterance(text)
    for kind in ("text", "name"):
        assert utterance.value(kind, 0, len(utterance.tokens)) is None
    assert Utterance(f"«{text}»").value("text", 0, 1) == text


def test_a_name_has_no_article_and_no_time_in_it() -> None:
    assert Utterance("New York").value("name", 0, 2) == "New York"
    assert Utterance("the Hague").value("name", 0, 2) is None
    assert Utterance("Berlin tomorrow").value("name", 0, 2) is None
    assert Utterance('"The Hague tomorrow"').value("name", 0, 1) == "The Hague tomorrow"


@pytest.mark.parametrize("text", ["anna@example.org", "a.b+c@mail.example.co.uk", "Zoë@müller.example"])
def test_an_address_of_mail_is_one_value(text: str) -> None:
    assert found("email", f"write to {text}, please") == [text]


@pytest.mark.parametrize("text", ["logo@2x.png", "git@github.com:a/b.git", "@bob", "a@b", "https://a@example.org/x"])
def test_what_is_no_address_of_mail(text: str) -> None:
    assert found("email", f"open {text}") == []


@pytest.mark.parametrize("text", ["12*7+3", "(2+3)*4", "2^10", "5 - 3", "1,000*2.5", "2 * -3", "7 ÷ 2"])
def test_what_is_to_be_calculated_is_one_value(text: str) -> None:
    assert found("expression", f"what is {text}?") == [text]


@pytest.mark.parametrize("text", ["2026-11-23", "24/12/2026", "(2+3", "2+3)", "-2", "42", "a+b", '"2+3"', "src/app.py"])
def test_what_is_nothing_to_calculate(text: str) -> None:
    assert found("expression", f"what is {text}") == []


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("48.85, 2.35", "48.85,2.35"),
        ("51.5,-0.12", "51.5,-0.12"),
        ("−33.9, 18.4", "-33.9,18.4"),
        ("New York", "New York"),
    ],
)
def test_a_place_is_a_name_or_coordinates(text: str, value: str) -> None:
    utterance = Utterance(text)
    assert utterance.value("place", 0, len(utterance.tokens)) == value


@pytest.mark.parametrize("text", ["95.1, 2.0", "48.1, 190.5", "1, 2", "the Hague", "Berlin tomorrow", '"1.5, 2.5" x'])
def test_what_is_no_place(text: str) -> None:
    utterance = Utterance(text)
    assert utterance.value("place", 0, len(utterance.tokens)) is None


def test_what_says_no_is_noticed_unless_it_is_quoted() -> None:
    assert all(Utterance(text).negates for text in ("don't do it", "Do NOT", "never mind", "without x", "don’t"))
    assert not Utterance('find "do not"').negates


@pytest.mark.parametrize(
    ("name", "schema", "kind"),
    [
        ("count", {"type": "integer"}, "integer"),
        ("value", {"type": "number"}, "number"),
        ("duration_seconds", {"type": "integer"}, "duration"),
        ("url", {"type": "string"}, "url"),
        ("link", {"type": "string", "format": "uri"}, "url"),
        ("file_path", {"type": "string"}, "path"),
        ("glob_filter", {"type": "string"}, "glob"),
        ("start_time", {"type": "string"}, "time"),
        ("from_unit", {"type": "string"}, "unit"),
        ("location", {"type": "string"}, "place"),
        ("playlist_name", {"type": "string"}, "name"),
        ("reply_email", {"type": "string"}, "email"),
        ("to", {"type": "string", "format": "email"}, "email"),
        ("expression", {"type": "string"}, "expression"),
        ("message", {"type": "string"}, "text"),
    ],
)
def test_a_parameter_says_what_it_takes(name: str, schema: dict[str, Any], kind: str) -> None:
    assert kind_of(name, schema) == kind


@given(st.text(max_size=80))
def test_any_text_has_tokens_that_stand_where_they_say(text: str) -> None:
    tokens = Utterance(text).tokens
    for token in tokens:
        assert token.text in text[token.start : token.end]
    assert all(earlier.end <= later.start for earlier, later in pairwise(tokens))


@given(st.text(alphabet="a1 .,:/'\"-*~°hms&{}和", max_size=40), st.sampled_from(KINDS))
def test_values_of_a_kind_never_overlap_and_are_what_their_tokens_say(text: str, kind: str) -> None:
    utterance = Utterance(text)
    spans = list(utterance.find(kind))
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(spans))
    for first, end, value in spans:
        assert value is not None
        assert utterance.value(kind, first, end) == value


@given(st.integers(0, 500), st.integers(0, 59), st.integers(0, 59))
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int) -> None:
    total = hours * 3600 + minutes * 60 + seconds
    for text in (
        f"{hours}h{minutes}m{seconds}s",
        f"{hours} hours {minutes} minutes {seconds} seconds",
        f"{hours} hours, {minutes} mins and {seconds} secs",
    ):
        assert found("duration", text) == ([total] if total else [])


@given(st.integers(0, 23), st.integers(0, 59))
def test_a_clock_time_is_read_in_both_ways_of_writing_it(hour: int, minute: int) -> None:
    written = f"{hour:02}:{minute:02}"
    half = f"{hour % 12 or 12}:{minute:02}{'pm' if hour >= 12 else 'am'}"
    assert found("time", written) == found("time", half) == [written]


@given(st.integers(-(10**12), 10**12))
def test_a_number_is_read_with_and_without_separators(number: int) -> None:
    assert found("integer", f"about {number} km") == [number]
    assert found("integer", f"about {number:,} km") == [number]
