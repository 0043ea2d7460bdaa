"""The right tool out of all of ours: requests that nothing was tuned on, and phrases that keep apart."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from benchmarks.catalogue.measure import measured
from benchmarks.catalogue.requests import (
    EIGHTH_AUTHOR,
    NOTHING,
    OTHER_AUTHOR,
    PRACTICE,
    SEVENTH_AUTHOR,
    THIRD_AUTHOR,
    by_another_author,
    by_the_fifth_author,
    by_the_fourth_author,
    by_the_sixth_author,
    requests,
    set_aside,
    third_party_tools,
)
from marvin_core.api.tools import ToolSpec
from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.routing.phrases import Phrase
from marvin_core.tools.routing.ranking import Ranking
from marvin_core.tools.routing.router import Router
from marvin_core.tools.routing.slots import Utterance
from marvin_core.tools.routing.words import stem, words

_JUDGES = [OTHER_AUTHOR, THIRD_AUTHOR, SEVENTH_AUTHOR, EIGHTH_AUTHOR]


def ours() -> list[ToolSpec]:
    return [spec for spec in installed_tools() if spec.source.startswith("marvin-")]


def test_every_tool_has_requests_and_two_of_five_are_set_aside() -> None:
    tuned, held = requests()
    names = {spec.name for spec in ours()} | {NOTHING}
    assert {name for _, name in tuned} == {name for _, name in held} == names
    assert min(Counter(name for _, name in [*tuned, *held]).values()) >= 5
    assert 3 * len(held) >= len(tuned) + len(held)
    assert not {text for text, _ in tuned} & {text for text, _ in held}


def test_every_tool_has_phrases() -> None:
    assert not [spec.name for spec in ours() if not spec.phrases]


def test_no_two_tools_are_asked_for_by_the_same_phrase() -> None:
    said: dict[str, str] = {}
    for spec in ours():
        for entry in spec.phrases:
            slots = dict.fromkeys(entry["slots"], "{}")
            pattern = entry["say"].casefold().format(**slots) + repr(sorted(entry["slots"].values()))
            assert said.setdefault(pattern, spec.name) == spec.name, entry["say"]


def test_a_phrase_without_slots_means_its_own_tool_alone() -> None:
    specs = ours()
    phrases = [(spec.name, Phrase(entry)) for spec in specs for entry in spec.phrases]
    for spec in specs:
        for entry in spec.phrases:
            if not entry["slots"]:
                said = Utterance(entry["say"])
                matches = [(match.words, name) for name, phrase in phrases if (match := phrase.match(said))]
                most = max(words for words, _ in matches)
                assert {name for words, name in matches if words == most} == {spec.name}, entry["say"]


@pytest.mark.slow
def test_requests_find_their_tools_among_ours_and_among_500(tmp_path: Path) -> None:
    among_ours = measured(ours(), tmp_path)
    many = measured([*ours(), *third_party_tools()][:500], tmp_path)
    assert among_ours.of_five >= 0.95
    assert many.of_five >= 0.90
    assert min(among_ours.offered, many.offered) >= 0.85
    assert max(among_ours.offered_for_nothing, many.offered_for_nothing) <= 0.05
    assert max(among_ours.wrong, many.wrong, among_ours.shown, many.shown) == 0
    assert min(among_ours.first, many.first) >= 0.80


@pytest.mark.slow
@pytest.mark.parametrize("file", _JUDGES, ids=lambda file: file.stem)
def test_of_the_requests_by_other_authors_none_is_taken_for_another_tool(tmp_path: Path, file: Path) -> None:
    said = by_another_author(file)
    among_ours = measured(ours(), tmp_path, said)
    many = measured([*ours(), *third_party_tools()][:500], tmp_path, said)
    assert among_ours.of_five >= 0.95
    assert many.of_five >= 0.90
    assert max(among_ours.wrong, many.wrong) == 0  # of the calls that are made at once
    assert max(among_ours.shown, many.shown) <= 2
    assert min(among_ours.offered, many.offered) >= 0.83
    assert max(among_ours.offered_for_nothing, many.offered_for_nothing) <= 0.06
    assert len(said) >= among_ours.requests + 30 >= 1.9 * len(ours())


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [by_the_fourth_author()[1], by_the_fifth_author()[1], by_the_sixth_author()[1]],
    ids=["fourth", "fifth", "sixth"],
)
def test_hardly_any_request_that_an_author_set_aside_is_taken_for_another_tool(
    tmp_path: Path, said: list[tuple[str, str]]
) -> None:
    among_ours = measured(ours(), tmp_path, said)
    many = measured([*ours(), *third_party_tools()][:500], tmp_path, said)
    assert max(among_ours.wrong, many.wrong) == 0
    assert max(among_ours.shown, many.shown) <= 1
    assert min(among_ours.offered, many.offered) >= 0.84
    assert max(among_ours.offered_for_nothing, many.offered_for_nothing) <= 0.05


@pytest.mark.parametrize("file", _JUDGES, ids=lambda file: file.stem)
def test_nothing_was_tuned_on_the_requests_by_other_authors(file: Path) -> None:
    tuned = [*requests()[0], *(one for part in requests(PRACTICE) for one in part)]
    assert not {tuple(words(text)) for text, _ in tuned} & {tuple(words(text)) for text, _ in by_another_author(file)}


def test_no_phrase_is_a_request_that_was_set_aside() -> None:
    asked = {frozenset(words(text)) for text, name in set_aside() if name != NOTHING}
    said = [frozenset(words(entry["say"])) for spec in ours() for entry in spec.phrases if not entry["slots"]]
    assert [sorted(one) for one in said if one in asked] == []


@cache
def router() -> Router:
    return Router(ours())


LEFT_ALONE = [text for part in requests(PRACTICE) for text, name in part if name == NOTHING]


@pytest.mark.slow
def test_what_means_no_tool_is_never_taken_for_one_and_nearly_always_left_alone() -> None:
    actions = Counter(router().route(text).action for text in LEFT_ALONE)
    assert len(LEFT_ALONE) >= 150
    assert actions.keys() <= {"nothing", "offer"}
    assert actions["offer"] <= len(LEFT_ALONE) // 10


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("https://stackoverflow.com/questions/11227809", "stack_"),
        ("https://www.imdb.com/title/tt0133093/", "get_movie_"),
        ("https://arxiv.org/abs/1706.03762", "search_arxiv"),
        ("https://en.wikipedia.org/wiki/Owl", "wiki_"),
        ("https://github.com/psf/requests/issues/12", "github_"),
    ],
)
@pytest.mark.parametrize("word", ["open", "browse", "summarize"])
def test_the_address_of_a_service_is_no_evidence_that_any_page_is_meant(word: str, address: str, names: str) -> None:
    route = router().route(f"{word} {address}")
    assert route.action == "offer"
    offered = [offer.spec.name for offer in route.proposals]
    assert offered[0] == "browse_web"
    assert any(name.startswith(names) for name in offered)


@pytest.mark.parametrize(
    "address",
    ["https://example.com", "http://localhost:8000/", "https://docs.python.org/3/", "https://owls.example/wikipedia"],
)
def test_any_other_address_is_opened_at_once(address: str) -> None:
    route = router().route(f"open {address}")
    assert (route.action, route.proposals[0].spec.name) == ("act", "browse_web")


@pytest.mark.parametrize(("said", "action"), [("number 3498", "offer"), ("#28", "offer"), ("Anno 1800", "act")])
def test_a_number_that_another_tool_nearby_takes_is_no_text_to_search_for(said: str, action: str) -> None:
    route = router().route(f"find the game {said}")
    assert route.action == action
    assert route.proposals[0].spec.name in ("get_game_details", "search_games")


def test_what_is_in_the_path_of_a_file_keeps_nobody_from_reading_it() -> None:
    for path in ("docs/wikipedia.md", "git/log.py", "weather.txt", "arxiv/README.md"):
        route = router().route(f"read {path}")
        assert (route.action, route.proposals[0].spec.name) == ("act", "read_file")


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("turn 3.5 pounds into kg", "convert_units"),
        ("which files mention OPENAI_KEY", "code_grep"),
        ("what's inside config/settings.yaml", "read_file"),
        ("am I on a clean working tree?", "git_status"),
        ("time remaining?", "timer_check"),
        ("time left?", "timer_check"),
        ("let me see the ticket ui-9", "ticket_show"),
        ("CONTRIBUTING.md from psf/black", "github_read_file"),
        ("tt0133093 on imdb", "get_movie_details"),
    ],
)
def test_a_request_of_few_words_finds_its_tool(asked: str, name: str) -> None:
    assert name in [offer.spec.name for offer in router().route(asked).proposals]


def test_a_question_about_the_branch_is_answered_by_the_tool_for_branches() -> None:
    for asked in ("what branch am I on", "which branch am I on?", "on which branch are we"):
        route = router().route(asked)
        assert (route.action, route.proposals[0].spec.name) == ("act", "git_branch")


def test_where_somebody_is_may_mean_the_folder_or_the_place_and_neither_is_taken() -> None:
    assert router().route("where am I").action == "offer"


@pytest.mark.parametrize(
    "talk",
    [
        "it's cold in here",
        "stack overflow raised me",
        "arxiv is full of nonsense these days",
        "what time is it",
        "which place am I at",
        "which alarm did they set",
    ],
)
def test_talk_and_questions_that_fit_the_words_of_a_tool_call_none(talk: str) -> None:
    assert router().route(talk).action in ("offer", "nothing")


def test_the_head_of_somebody_is_no_place() -> None:
    assert router().route("how is the weather in your head").action != "act"
    assert router().route("how is the weather in Paris").action == "act"


@pytest.mark.parametrize(
    ("talk", "asked", "name"),
    [
        ("the weather is nice, isn't it?", "is the weather nice in Oslo", "weather_forecast"),
        ("do you like music", "would you like to find the song Yesterday", "music_search"),
        ("why do alarms sound so awful", "list my alarms", "list_alarms"),
        ("what makes a recipe good", "what's a recipe with beans", "recipe_search"),
        ("my alarm clock is older than me", "which alarms are set", "list_alarms"),
        ("10:30 is too early for a Sunday", "set an alarm for 10:30 on Sunday", "set_alarm"),
        ("steam sales are a tax on hope", "what is on sale on steam", "steam_featured"),
        ("reminders only remind me that I'm lazy", "remind me to be lazy at 5 pm", "set_alarm"),
        ("nobody in my family has ever followed a recipe", "I need a recipe for pancakes", "recipe_search"),
        ("do you ever read the papers?", "find papers about owls", "search_papers"),
    ],
)
def test_a_remark_finds_no_tool_and_a_request_with_its_words_does(talk: str, asked: str, name: str) -> None:
    assert router().route(talk).action == "nothing"
    assert name in [offer.spec.name for offer in router().route(asked).proposals]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("turn 3.5 pounds into kg", "convert_units"),
        ("which files mention OPENAI_KEY", "code_grep"),
        ("what's inside config/settings.yaml", "read_file"),
        ("am I on a clean working tree?", "git_status"),
        ("create a branch called fix-login", "git_checkout"),
    ],
)
def test_what_was_said_in_other_words_finds_its_tool(text: str, name: str) -> None:
    assert router().route(text).proposals[0].spec.name == name


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("how far is it from Berlin to Munich by car", "driving"),
        ("how long does it take from Berlin to Munich by bike", "cycling"),
        ("directions from Berlin to Munich on foot", "foot"),
    ],
)
def test_the_way_of_travelling_is_no_part_of_a_place(text: str, mode: str) -> None:
    (proposal, *_) = router().route(text).proposals
    assert dict(proposal.arguments) == {"origin": "Berlin", "destination": "Munich", "mode": mode}


@pytest.mark.parametrize(
    ("one", "other"), [("searching", "search"), ("committed", "commits"), ("translation", "translate")]
)
def test_endings_do_not_count(one: str, other: str) -> None:
    assert stem(one) == stem(other.removesuffix("s"))


def test_words_that_differ_by_what_they_mean_stay_apart() -> None:
    assert stem("timer") != stem("time")
    ranking = Ranking(ours())
    assert ranking.respelled("order") == ranking.respelled("shoes") == ""
    assert ranking.respelled("stauts") == "status"
