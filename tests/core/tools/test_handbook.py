"""What the documentation says about Marvin: found where that is asked about, and nowhere else."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.catalogue.requests import MORE, NOTHING, PRACTICE, requests
from marvin_core.tools.handbook import Handbook, Passage, handbook, told
from tests.support.examples import examples

PASSAGES = [
    Passage(page="how-to/tea.md", title="Make tea", heading="Make tea", text="`/tea` boils water."),
    Passage(page="how-to/tea.md", title="Make tea", heading="Keep it warm", text="`--warm` keeps the pot warm."),
    Passage(page="how-to/cups.md", title="Cups", heading="Cups", text="A cup holds tea. Break none."),
]


def page_of(text: str) -> str:
    passage = handbook().answer(text)
    return passage.page if passage is not None else ""


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("how do I set an API key", "how-to/keys.md"),
        ("where can I put my api key?", "how-to/keys.md"),
        ("please, what can you do?", "index.md"),
        ("how do I undo the last change", "how-to/undo.md"),
        ("how do I add an MCP server", "how-to/mcp-servers.md"),
        ("What is a skill?", "how-to/skills.md"),
        ("how do I limit what a run costs", "how-to/limit-cost.md"),
        ("what's the meaning of MARVIN_HOME", "reference/environment.md"),
        ("what does --tool-search do", "reference/command-line.md"),
    ],
)
def test_a_question_finds_its_page(text: str, page: str) -> None:
    assert page_of(text) == page


@pytest.mark.parametrize(
    "text", ["how do I make friends", "what is love", "", "???", "x" * 10_000, "how do I", "/", "--"]
)
def test_anything_else_finds_none(text: str) -> None:
    assert page_of(text) == ""


def test_of_what_means_no_tool_nothing_is_taken_for_a_question_about_marvin() -> None:
    asked = [one for file in (None, PRACTICE, MORE) for part in requests(file) for one in part]
    assert [text for text, name in asked if name == NOTHING and page_of(text)] == []


def test_each_page_that_answers_a_question_is_there() -> None:
    asked = tomllib.loads((files("marvin_core.tools") / "questions.toml").read_text("utf-8"))
    for page, questions in asked.items():
        assert {page_of(question) for question in questions} == {page}


def test_a_command_or_a_flag_is_found_by_its_name_only() -> None:
    book = Handbook(PASSAGES, {})
    assert book.answer("what does /tea do") == PASSAGES[0]
    assert book.answer("what is --warm for") == PASSAGES[1]
    assert book.answer("what does /teapot do") is None
    assert book.answer("what is --warmer for") is None


def test_all_that_is_asked_about_must_be_there() -> None:
    book = Handbook(PASSAGES, {"how-to/cups.md": ["may I drink"]})
    assert book.answer("how do I make tea") == PASSAGES[0]
    assert book.answer("how do I make coffee with tea") is None
    assert book.answer("may I drink, please?") == PASSAGES[2]
    assert book.answer("may I drink and drive") is None


def test_the_answer_names_its_page() -> None:
    assert told(PASSAGES[0]).endswith("From the documentation, Make tea (how-to/tea.md)")
    assert told(PASSAGES[1]).endswith("From the documentation, Make tea: Keep it warm (how-to/tea.md)")


@examples(200)
@given(st.text(max_size=300))
def test_any_text_is_answered_or_left_alone(text: str) -> None:
    assert Handbook(PASSAGES, {"how-to/tea.md": ["tea"]}).answer(text) in (None, *PASSAGES)
