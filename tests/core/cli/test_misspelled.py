"""A lone word that is almost a sub-command is no prompt; what may be one is never refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import UsageError
from marvin_core.cli.misspelled import nearest, refuse
from marvin_core.config.flags import SUBCOMMANDS

NAMES = frozenset({*SUBCOMMANDS, "acp", "chat", "demo", "mcp", "models", "pipeline", "replay", "tk", "undo"})
WORDS = Path(__file__).with_name("common_words.txt").read_text(encoding="utf-8").split()
MEANT = frozenset({"chat", "help", "reply", "session", "tool", "version"})
"""Words of the list that are a sub-command, or one that lacks a letter."""


def test_none_of_the_common_words_is_taken_for_a_sub_command() -> None:
    assert len(WORDS) > 1_000
    assert {word for word in WORDS if nearest(word, NAMES)} == MEANT


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("hlep", "--help"),
        ("helpp", "--help"),
        ("docter", "doctor"),
        ("dotcor", "doctor"),
        ("Doctor", "doctor"),
        ("provider", "providers"),
        ("provders", "providers"),
        ("provder", "providers"),
        ("sesions", "sessions"),
        ("sesion", "sessions"),
        ("proflie", "profiles"),
        ("tolos", "tools"),
        ("tool", "tools"),
        ("pakcs", "packs"),
        ("pack", "packs"),
        ("cofig", "config"),
        ("confg", "config"),
        ("modle", "models"),
        ("verison", "--version"),
    ],
)
def test_slips_of_the_keys(word: str, meant: str) -> None:
    assert nearest(word, NAMES) == meant


@pytest.mark.parametrize(
    "word", ["hello", "hell", "provide", "that", "hat", "factor", "lessons", "sections", "", "tk!"]
)
def test_other_words(word: str) -> None:
    assert not nearest(word, NAMES)


@given(st.sampled_from(sorted(name for name in SUBCOMMANDS if len(name) > 3)), st.data())
def test_every_swap_of_two_letters_is_noticed(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 2))
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    assert nearest(swapped, NAMES) == name


@pytest.mark.parametrize(
    "argv",
    [
        ["hlep", "me"],
        ["hlep", "--", "me"],
        ["tool", "--prompt", "x"],
        ["--plain", "hello"],
    ],
)
def test_what_is_a_prompt_goes_through(argv: list[str]) -> None:
    word = next(index for index, each in enumerate(argv) if not each.startswith("-"))
    if argv[1:2] == ["--prompt"]:
        with pytest.raises(UsageError):  # two prompts: the word is refused all the same
            refuse(argv, word, SUBCOMMANDS)
    else:
        refuse(argv, word, SUBCOMMANDS)


def test_the_flags_stay_in_the_line_that_sends_the_word() -> None:
    with pytest.raises(UsageError, match=r"write: marvin --plain --model x --prompt hlep$"):
        refuse(["--plain", "--model", "x", "hlep"], 3, SUBCOMMANDS)
