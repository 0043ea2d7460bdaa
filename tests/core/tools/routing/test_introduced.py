"""Text that only goes on after a phrase is no value, and a word of another tool keeps a tool from being taken."""

from __future__ import annotations

import pytest

from marvin_core.testing.tool_runner import installed_tools
from marvin_core.tools.routing.introduced import introduces, plain_text
from marvin_core.tools.routing.phrases import Match, Phrase
from marvin_core.tools.routing.router import Route, Router
from marvin_core.tools.routing.slots import Utterance


def matched(say: str, kind: str, text: str) -> tuple[Utterance, Match]:
    slot = say[say.index("{") + 1 : say.index("}")]
    said = Utterance(text)
    match = Phrase({"say": say, "arguments": {slot: f"{{{slot}}}"}, "slots": {slot: kind}}).match(said)
    assert match is not None
    return said, match


@pytest.mark.parametrize(
    ("say", "text"),
    [
        ("skill {name}", "skills pay the bills"),
        ("skill {name}", "skills of my uncle"),
        ("log {job}", "logs float"),
        ("overflow {query}", "overflow made my career"),
        ("album {query}", "albums should have ten songs"),
        ("rating {title}", "ratings are useless"),
        ("remember {value}", "remember in my notes that Anna likes tulips"),
        ("{query} on github", "the whole evening on github"),
        ("headlines about {query}", "the headlines were about a cat again"),
        ("prefer {value}", "I prefer showers to baths"),
    ],
)
def test_the_rest_of_a_sentence_is_no_value(say: str, text: str) -> None:
    assert not introduces(*matched(say, "text", text))


@pytest.mark.parametrize(
    ("say", "text"),
    [
        ("read skill {name}", "read the skill pay-slips"),
        ("skill {name}", "skill Bakery"),
        ("skill {name}", 'skill "bakery"'),
        ("weather in {place}", "what's the weather in lisbon"),
        ("songs by {query}", "songs by nina simone"),
        ("song {query}", "songs of Nina Simone"),
        ("define {word}", "define quixotic"),
        ("todo : {title}", "todo: renew the passport"),
        ("ticket {ticket}", "ticket ab-12"),
        ("notes mentioning {query}", "notes mentioning the boiler"),
    ],
)
def test_a_value_follows_a_verb_a_preposition_or_a_colon_or_has_the_form_of_a_name(say: str, text: str) -> None:
    assert introduces(*matched(say, "text", text))


def test_words_in_quotes_in_names_and_after_a_colon_ask_for_nothing() -> None:
    for say, text in (("find", 'find "my notes"'), ("find", "find Notes"), ("find:", "find: my notes")):
        assert not plain_text(*matched(f"{say} {{query}}", "text", text))
    assert plain_text(*matched("find {query}", "text", "find the Anna notes")) == "the notes"


def routed_without_phrases_of(name: str, text: str) -> Route:
    """The decision where nobody wrote a phrase for what is meant, as with any new words for it."""
    ours = [spec for spec in installed_tools() if spec.source.startswith("marvin-")]
    return Router([spec.replace(phrases=()) if spec.name == name else spec for spec in ours]).route(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("release date of Stardew Valley", "get_game_details"),
        ("have I got anything uncommitted", "git_status"),
        ("any tickets left?", "ticket_list"),
        ("is there a bookmark about cheese", "bookmark_search"),
    ],
)
def test_a_phrase_of_another_tool_that_happens_to_fit_is_no_reason_to_take_that_tool(text: str, meant: str) -> None:
    assert routed_without_phrases_of(meant, text).action in ("offer", "nothing")
