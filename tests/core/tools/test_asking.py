"""The tool ask_user: what is asked, what may be answered, and what holds where nobody is there."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from marvin_core.api.events import ToolExecutionEnd
from marvin_core.testing import ToolRunner
from marvin_core.tools.asking import ask_user
from marvin_core.tools.schema import describe
from marvin_core.ui.quoted import Quoting
from marvin_core.ui.rendering import Paint
from marvin_core.ui.text_question import TextQuestion
from tests.support.chat import chatting
from tests.support.engine import QUICK, calls, make, run, says

SPEC = describe(ask_user, source="marvin-core", group="session")
ASKED = {"question": "Which database?", "choices": ["SQLite", "Postgres"]}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("Postgres", "The user chose: Postgres"),
        ("neither, use a file", "The user answers: neither, use a file"),
        (
            "",
            "The user gave no answer. Choose the most careful interpretation, continue, and state it in your answer.",
        ),
        (" \n", "The user gave no answer."),
    ],
)
def test_the_answer_is_a_choice_or_other_words_or_none(marvin_tools: ToolRunner, answer: str, says: str) -> None:
    tools = marvin_tools.session(answers=[answer])
    outcome = tools.call("ask_user", **ASKED)
    assert outcome.text.startswith(says)
    assert not outcome.is_error
    assert tools.questions == [("Which database?", ("SQLite", "Postgres"))]


def test_without_choices_any_text_is_an_answer(marvin_tools: ToolRunner) -> None:
    tools = marvin_tools.session(answers=["Ada"])
    assert tools.call("ask_user", question="What is your name?").text == "The user answers: Ada"
    assert tools.questions == [("What is your name?", ())]


def test_where_nobody_is_there_the_first_choice_counts_at_once(marvin_tools: ToolRunner) -> None:
    """Never an error, which a model would answer by asking again."""
    tools = marvin_tools.session(interactive=False, mode="coding")
    outcome = tools.call("ask_user", **ASKED)
    assert outcome.text.startswith("Nobody can answer in this run, so the first choice was taken: SQLite\n")
    free = tools.call("ask_user", question="Which one?")
    assert free.text.startswith(
        "Nobody can answer in this run. Choose the most careful interpretation, continue, and state it in your answer"
    )
    assert (outcome.is_error, free.is_error, tools.questions) == (False, False, [])


@pytest.mark.parametrize("env", [{"MARVIN_DEPTH": "1"}, {"MARVIN_READONLY": "1", "MARVIN_DEPTH": "2"}])
def test_an_agent_has_it_and_is_told_the_same(tmp_path: Path, env: dict[str, str]) -> None:
    made = make(tmp_path, specs=(SPEC,), env=env)
    assert "Nobody can answer in this run, so the first choice was taken: SQLite" in made.call("ask_user", **ASKED).text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"question": " \n"}, "The question is empty"),
        ({"question": "x" * 10_000}, "The question is too long, so nothing was asked. Use at most 2,000"),
        ({"question": "a\n" * 200}, "30 lines; write explanations"),
        (
            {"question": "Which?", "choices": [*"abcde"]},
            "5 choices are too many, and nothing was asked. Give 4 at most.",
        ),
        (
            {"question": "Which?", "choices": ["a", " \t"]},
            "A choice is empty or repeated, so nothing was asked. Give each choice once, in words",
        ),
        (
            {"question": "Which?", "choices": ["a", "a "]},
            "A choice is empty or repeated, so nothing was asked. Give each choice once, in words",
        ),
        ({"question": "Which?", "choices": ["a" * 5_000]}, "A choice is too long"),
        ({"question": "Which?", "choices": [["a"]]}, "choices"),
        ({"choices": ["a"]}, "question"),
        ({"questions": [{"question": "One?"}, {"question": "Two?"}]}, "There are 2 questions, and none was asked."),
    ],
)
@pytest.mark.parametrize("interactive", [True, False])
def test_what_cannot_be_asked_is_told(
    marvin_tools: ToolRunner, given: dict[str, Any], says: str, interactive: bool
) -> None:
    """I10: with or without somebody there."""
    tools = marvin_tools.session(interactive=interactive)
    outcome = tools.call("ask_user", **given)
    assert outcome.is_error
    assert says in outcome.text
    assert tools.questions == []


@pytest.mark.parametrize(
    "given",
    [
        {
            "questions": [
                {
                    "question": "Which database?",
                    "header": "Database",
                    "options": [{"label": "SQLite", "description": "a file"}, {"label": "Postgres"}],
                    "multiSelect": False,
                }
            ]
        },
        {"question": "Which database?", "options": [{"label": "SQLite", "description": "a file"}, "Postgres"]},
        {"prompt": "Which database?", "suggestions": "SQLite: a file, Postgres"},
    ],
)
def test_it_is_called_as_other_programs_call_theirs(marvin_tools: ToolRunner, given: dict[str, Any]) -> None:
    tools = marvin_tools.session(answers=["Postgres"])
    if "suggestions" in given:
        given["suggestions"] = ["SQLite: a file", "Postgres"]
    assert tools.call("ask_user", **given).text == "The user chose: Postgres"
    assert tools.questions == [("Which database?", ("SQLite: a file", "Postgres"))]


class Person:
    """Somebody who says a word, after so many seconds."""

    def __init__(self, answer: str, seconds: float = 0.0) -> None:
        self.answer = answer
        self.seconds = seconds
        self.asked: list[tuple[str, Sequence[str]]] = []

    async def ask(self, question: str, choices: Sequence[str], /) -> str:
        self.asked.append((question, choices))
        if self.seconds:
            over = asyncio.Event()
            asyncio.get_running_loop().call_later(self.seconds, over.set)
            await over.wait()
        return self.answer


def test_the_time_of_the_person_is_not_that_of_the_call(tmp_path: Path) -> None:
    """It neither ends the call nor counts as its time."""
    person = Person("SQLite", seconds=0.6)
    script = [calls(("a", "ask_user", json.dumps(ASKED))), says("Fine.")]
    made = make(
        tmp_path,
        *script,
        argv=(),
        specs=(SPEC,),
        asker=person.ask,
        text_asker=person.ask,
        timeouts=QUICK.replace(tool=0.3),
    )

    async def go() -> float:
        begun = time.monotonic()
        await made.session.submit("Store it")
        took = time.monotonic() - begun
        await made.session.close()
        return took

    took = run(go())
    (end,) = made.seen(ToolExecutionEnd)
    assert end.text == "The user chose: SQLite"
    assert end.elapsed <= took - person.seconds


def test_an_interface_that_takes_no_text_is_asked_with_choices_alone(tmp_path: Path) -> None:
    person = Person("Postgres")
    made = make(tmp_path, argv=(), specs=(SPEC,), asker=person.ask)

    async def go() -> list[str]:
        outputs = await made.batch(("ask_user", ASKED), ("ask_user", {"question": "Any?"}))
        await made.session.close()
        return [output.text for output in outputs]

    assert run(go()) == [
        "The user chose: Postgres",
        "Error: The current interface accepts no free text as an answer. Ask with choices.",
    ]


def test_in_play_mode_nobody_is_asked(tmp_path: Path) -> None:
    person = Person("Postgres")
    script = [calls(("a", "ask_user", json.dumps(ASKED))), says("Bye.")]
    made = make(tmp_path, *script, argv=(), specs=(SPEC,), asker=person.ask, text_asker=person.ask)
    chatting(made, lambda chat: chat.do("/play --turns 2"))
    (end,) = made.seen(ToolExecutionEnd)
    assert "Nobody can answer in this run, so the first choice was taken: SQLite" in end.text
    assert person.asked == []


def test_what_would_steer_a_terminal_is_seen_and_secrets_are_not(tmp_path: Path) -> None:
    person = Person("b\\x07c")
    key = "sk-or-0123456789abcdefghij"
    made = make(
        tmp_path,
        argv=(),
        specs=(SPEC,),
        asker=person.ask,
        text_asker=person.ask,
        env={"OPENAI_COMPAT_API_KEY": key},
    )
    told = made.call("ask_user", question=f"Use {key}\x1b]0;x\x07?", choices=["a", "b\x07c\u202e"])
    ((question, choices),) = person.asked
    assert (key in question, "\x1b" in question, [*choices]) == (False, False, ["a", "b c"])
    assert "The user answers: b\\x07c" in told.text


def question(*choices: str, text: str = "Which?") -> TextQuestion:
    paint = Paint(color=False)
    return TextQuestion(text, choices, paint, Quoting(paint, 40, len))


@pytest.mark.parametrize(
    ("line", "means"),
    [
        ("1", "North"),
        (" 2 ", "South"),
        ("2.", "South"),
        ("2)", "South"),
        ("00002", "00002"),
        ("10002", "10002"),
        ("2 of them", "2 of them"),
        ("south", "South"),
        ("no", "no"),
        ("3", "3"),
        ("0", "0"),
        ("1" * 5_000, "1" * 5_000),
        ("²", "²"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_line_means_a_choice_where_it_is_its_number_or_all_of_it(line: str | None, means: str) -> None:
    """The beginning of a choice is none: `no` would be North."""
    assert question("North", "South").answer(line) == means


def test_the_words_of_a_question_cannot_pass_for_those_of_marvin() -> None:
    shown = question("Yes\x1b[2J", text="Fine.\nrun_command: rm -rf / Run it?\n[yes/no] " + "x" * 60).begin()
    first, *rows = shown.split("\n")
    assert first == "Question:"
    assert all(row.startswith(("  | ", "  : ")) for row in rows)
    assert all(len(row) <= 40 for row in rows)
    assert rows[-1] == "  | 1. Yes\\x1b[2J"
    assert question("a").sign == "[1, or your own words] "
    assert question("a", "b").sign == "[1-2, or your own words] "
    assert question().sign == "[in your own words] "
