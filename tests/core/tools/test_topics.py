"""The words of questions about Marvin, and the sections of the documentation that answer them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from benchmarks.catalogue.requests import NOTHING, TALK, for_tuning, requests
from marvin_core.tools.handbook import handbook
from marvin_core.tools.topics import Topics, meaning

ASKED = Path(__file__).with_name("asked_of_marvin.toml")
TOPICS = Topics(
    {
        "tea.md": {"Make tea": ["make tea", "!teapot"], "Who brews": ["who brew", "marvin tea"]},
        "cups.md": {"Where cups are": ["where cup"], "Break cups": ["delete cup"]},
    }
)
MEANS_A_TOOL_TOO = {"how do I let you use google places, sign me in"}
"""How to do it is what the text asks; the tool is offered below the answer."""
ABOUT_MARVIN = {
    "who made you", "how do I configure you", "do you send my data anywhere", "are you open source",
    "are you based on gpt", "what can I ask you", "which keyboard shortcuts are there",
    "which file do you read your settings from", "where can I find your documentation", "who develops marvin",
    "why are you called marvin", "can you explain your permissions", "how do you work inside",
    "how do I change your language", "do you work offline", "do you speak Italian", "what version of you is this",
    "are you the same marvin as in the hitchhiker's guide?",
    "where do you log things", "is there a mode where you only read", "can I write plugins for you",
}  # fmt: skip
"""The texts of talk.txt that ask about Marvin and get a section that answers them."""


def heading(text: str, *, is_strict: bool = False) -> str:
    section = TOPICS.section(text, is_strict=is_strict)
    return section.heading if section else ""


def place(text: str) -> str:
    passage = handbook().answer(text)
    return f"{passage.page}#{passage.heading}" if passage else ""


def test_questions_of_another_author_get_the_section_that_answers_them() -> None:
    asked = {text: place for place, texts in tomllib.loads(ASKED.read_text("utf-8")).items() for text in texts}
    found = {text: place(text) for text in asked}
    right = [text for text in asked if found[text] == asked[text]]
    wrong = [text for text in asked if found[text] not in ("", asked[text])]
    assert len(asked) == 60
    assert len(right) >= 0.85 * len(asked)
    assert len(wrong) <= 0.05 * len(asked), wrong


@pytest.mark.slow
def test_no_request_and_no_talk_is_newly_taken_for_a_question_about_marvin() -> None:
    talk = {text for part in requests(TALK) for text, _ in part}
    assert {text for text, name in for_tuning() if name != NOTHING and place(text)} <= MEANS_A_TOOL_TOO
    beside = {text for text in talk if place(text)} - ABOUT_MARVIN
    assert len(beside) <= 0.002 * len(talk), beside


def test_each_section_is_there_and_has_words_that_tell_it_apart() -> None:
    topics = tomllib.loads((files("marvin_core.tools") / "topics.toml").read_text("utf-8"))
    common = meaning("where who why marvin")
    for page, sections in topics.items():
        for name, patterns in sections.items():
            assert [pattern for pattern in patterns if not meaning(pattern) - common] == []
            assert (page, name) in handbook().sections


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("how do I make tea", "Make tea"),
        ("how can I create some tea?", "Make tea"),
        ("where are the cups", "Where cups are"),
        ("cup location?", "Where cups are"),
        ("who brews", "Who brews"),
        ("do you like tea", "Who brews"),
        ("how do I erase a cup", "Break cups"),
        ("is there a teapot for my two older brothers", "Make tea"),
    ],
)
def test_a_question_with_all_words_of_a_section_is_answered_by_it(text: str, section: str) -> None:
    assert heading(text) == section


@pytest.mark.parametrize(
    "text",
    [
        "make tea",
        "tea is what I make of it",
        "who was it",
        "how do I make a long list of everybody who drinks tea at night",
        "what about coffee, Marvin",
        "",
    ],
)
def test_remarks_requests_and_questions_about_much_else_are_left_alone(text: str) -> None:
    assert heading(text) == ""


def test_what_means_a_tool_is_a_question_only_if_it_names_marvin_and_no_word_is_left_over() -> None:
    assert heading("do you like tea", is_strict=True) == "Who brews"
    assert heading("do you like green tea", is_strict=True) == ""
    assert heading("how do I make tea", is_strict=True) == ""
