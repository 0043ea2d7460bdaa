"""A plan and a question of the model, as people see them: on pseudo-terminals, in a pipe, and where nobody is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from marvin_core.testing import ModelServer, calls, text
from tests.e2e.support_e2e import Marvin, put_away, told, wait_until
from tests.e2e.support_terminal import CTRL_D, Terminal

CTRL_C = "\x03"
STEPS = ["Read the code", "Write a \x1b]0;test\x07", "Mend it"]
PLANNED = calls(("plan", {"steps": STEPS, "done": 1}))
ASKED = calls(("ask_user", {"question": "Which\x1b[2J database?", "choices": ["SQLite", "Postgres"]}))
SIGN = "your own words]"
ROWS = ["Plan: 1 of 3 done", "[x]  Read the code", "[ ]  Write a", "[ ]  Mend it"]
Start = Callable[[], Terminal]


@pytest.fixture(params=["xterm-256color", "dumb"])
def start(request: pytest.FixtureRequest, marvin: Marvin) -> Iterator[Start]:
    """Starts a chat, on a terminal with a line editor and on one without."""
    opened: list[Terminal] = []

    def begin() -> Terminal:
        opened.append(Terminal(marvin, columns=100, TERM=request.param))
        opened[-1].ready()
        return opened[-1]

    yield begin
    for one in opened:
        put_away(one.process)


@pytest.mark.slow
def test_a_plan_is_shown_and_a_question_answered_by_number_and_in_other_words(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    marvin_model_server.script(PLANNED, ASKED, ASKED, text("Done."))
    terminal = start()
    shown = terminal.say("store it", SIGN)
    assert all(row in shown for row in ROWS)
    assert "| Which\\x1b[2J database?" in shown
    assert "| 2. Postgres" in shown
    terminal.say("2", "Question:")
    terminal.asked(SIGN)
    terminal.say("a file is enough", "Done.")
    assert "\x1b]0;test" not in terminal.output
    _, first, second = [output["content"] for output in told_outputs(marvin_model_server)]
    assert (first, second) == ("The user chose: Postgres", "The user answers: a file is enough")


def told_outputs(server: ModelServer) -> list[dict[str, str]]:
    """What the model was told of its calls."""
    return [message for message in server.requests[-1].body["messages"] if message["role"] == "tool"]


@pytest.mark.slow
def test_ctrl_d_gives_no_answer_and_ctrl_c_ends_the_work(
    marvin: Marvin, marvin_model_server: ModelServer, start: Start
) -> None:
    marvin_model_server.script(ASKED, text("I take SQLite."), ASKED, text("Hello again."))
    terminal = start()
    terminal.say("store it", SIGN)
    terminal.type(CTRL_D)
    terminal.until("I take SQLite.")
    assert (
        "The user gave no answer. Choose the most careful interpretation, continue, and state it in your answer"
        in told(marvin_model_server)[0]
    )
    terminal.until("\n> ")
    terminal.say("once more", SIGN)
    terminal.type(CTRL_C)
    terminal.until("[Cancelled]")
    terminal.until("\n> ")
    terminal.say("hello", "Hello again.")


WAITS = '''
import asyncio
from pathlib import Path
from marvin_core import tool


@tool(access=["read"])
async def waits(name: str) -> str:
    """Take a while."""
    for _ in range(20):
        await asyncio.sleep(0.01)
    Path(name).write_text("done")
    return "done"
'''


@pytest.mark.slow
def test_what_runs_beside_a_question_goes_on(marvin: Marvin, marvin_model_server: ModelServer, start: Start) -> None:
    """A question that held the loop would have other calls run into their time-outs."""
    (marvin.config_folder / "tools").mkdir()
    (marvin.config_folder / "tools" / "waits.py").write_text(WAITS)
    which = {"question": "Which database?", "choices": ["SQLite", "Postgres"]}
    marker = marvin.project / "marker"
    both = calls(("ask_user", which), ("waits", {"name": str(marker)}), ("ask_user", {"question": "And why?"}))
    marvin_model_server.script(both, text("Done."))
    terminal = start()
    terminal.say("store it", SIGN)
    wait_until(marker.exists, "the call beside the question")
    terminal.say("2", "[in your own words]")
    terminal.say("it is small", "Done.")
    first, _, second = [output["content"] for output in told_outputs(marvin_model_server)]
    assert (first, second) == ("The user chose: Postgres", "The user answers: it is small")


def test_in_a_pipe_the_next_line_answers(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(PLANNED, ASKED, ASKED, text("Done."))
    result = marvin.run("--plain", stdin=b"go\npostgres\n")
    assert all(row in result.text for row in ROWS)
    assert "\x1b" not in result.text
    assert "[1-2, or your own words] postgres\n     done in " in result.text
    assert "[1-2, or your own words] \n     done in " in result.text
    _, first, second = [output["content"] for output in told_outputs(marvin_model_server)]
    assert first == "The user chose: Postgres"
    assert second.startswith("The user gave no answer."), "the end of the pipe"


def test_a_program_reads_the_plan_from_the_events(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(PLANNED, text("Done."))
    ended = [event for event in marvin.ask("--output-format", "stream-json").events() if "details" in event]
    assert [event["details"]["done"] for event in ended if event["type"] == "tool_execution_end"] == [1]
    assert ended[0]["details"]["steps"][::2] == ["Read the code", "Mend it"]


def test_a_run_goes_on_at_once(marvin: Marvin, marvin_model_server: ModelServer) -> None:
    marvin_model_server.script(PLANNED, ASKED, text("Done."))
    result = marvin.ask()
    assert result.text == "  🔧 plan\n  🔧 ask_user\nDone.\n"
    assert "marvin: plan shows:\n  Plan: 1 of 3 done\n  [x]  Read the code\n" in result.said
    assert told_outputs(marvin_model_server)[1]["content"].startswith(
        "Nobody can answer in this run, so the first choice was taken"
    )
