"""Going on: lines that come in during an answer, auto-continue, and play mode."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marvin_core.api.events import Event, ToolExecutionEnd
from marvin_core.api.limits import Price
from marvin_core.api.messages import user
from marvin_core.api.providers import Delta
from marvin_core.api.tools import ToolSpec
from marvin_core.engine.autonomy import GO_ON, PLAY
from marvin_core.plugins.manager import Plugins
from tests.support.chat import Chat, chatting, kept
from tests.support.conversations import rounds
from tests.support.engine import SPECS, Hang, Made, calls, make, run, says, settled, until
from tests.support.prepared_index import give_index


def with_core_tools(tmp_path: Path) -> tuple[ToolSpec, ...]:
    """The tools of these tests and those of the core."""
    plugins = Plugins(give_index(settled(tmp_path, env={"MARVIN_PACKS": "core"})[0]), pytest.fail)
    return (*SPECS, *plugins.tools)


def looking(number: int = 0) -> list[Delta]:
    return calls((f"c{number}", "look", '{"name": "x"}'))


def ending(tool: str) -> list[Delta]:
    return calls(("end", tool, "{}"))


def made_with(tmp_path: Path, *script: list[Delta], **options: object) -> Made:
    return make(tmp_path, *script, specs=with_core_tools(tmp_path), **options)  # type: ignore[arg-type]


def users(made: Made) -> list[str]:
    """What the model was told, beside outputs of tools."""
    return [message.text for message in made.parts.conversation.messages if message.role == "user"]


# --- steering -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_said_during_an_answer_goes_along_with_the_next_request(tmp_path: Path) -> None:
    """I17: one submission is in flight; the line becomes part of it."""
    made = made_with(tmp_path, looking(), says("One."), says("Two."))

    async def steered(chat: Chat) -> None:
        send = chat.session.autonomy.send
        chat.session.subscribe(lambda event: send("Shorter, please.") if event.type == "usage" else None)
        await chat.session.submit("first")

    chatting(made, steered)
    assert made.provider is not None
    second = made.provider.requests[1].messages
    assert [message.role for message in second] == ["user", "assistant", "tool", "user"]
    assert second[-1].text == "Shorter, please."


def test_what_comes_with_the_last_answer_is_answered_too(tmp_path: Path) -> None:
    made = made_with(tmp_path, says("One."), says("Two."))
    said = iter(["And this?"])

    async def work(chat: Chat) -> None:
        def steer(event: object) -> None:
            if getattr(event, "type", "") == "usage":
                for text in said:
                    chat.session.autonomy.send(text)

        chat.session.subscribe(steer)
        assert (await chat.session.submit("first")).text == "One.\nTwo."

    chat = chatting(made, work)
    assert kept(chat.files[0]) == ["first", "One.", "And this?", "Two."]


def test_steering_while_nothing_runs_says_so(tmp_path: Path) -> None:
    async def work(chat: Chat) -> None:
        assert await chat.do("/steer too early") == "No answer is running. Type it as a request."
        assert "Write the text after the command: the model reads the text" in await chat.do("/steer")

    chatting(made_with(tmp_path), work)


# --- auto-continue --------------------------------------------------------------------------------------------------


def auto(made: Made) -> Made:
    async def work(chat: Chat) -> None:
        assert (await chat.do("/auto")).startswith("Auto-continue is on")
        await chat.session.submit("first")
        assert await chat.do("/auto") == "Auto-continue is off."

    chatting(made, work)
    return made


@pytest.mark.slow
def test_it_goes_on_until_the_model_says_that_it_is_done(tmp_path: Path) -> None:
    made = auto(made_with(tmp_path, looking(1), says("Half."), looking(2), ending("end_elaborate"), says("All done.")))
    assert users(made) == ["first", GO_ON]
    assert made.parts.conversation.messages[-1].text == "All done."


def test_an_answer_without_tools_returns_control_at_once(tmp_path: Path) -> None:
    assert users(auto(made_with(tmp_path, says("Just talk.")))) == ["first"]


@pytest.mark.slow
def test_two_answers_without_a_tool_in_a_row_end_it(tmp_path: Path) -> None:
    made = auto(made_with(tmp_path, looking(1), says("A."), looking(2), says("B."), says("C.")))
    assert users(made) == ["first", GO_ON, GO_ON]


def test_the_limit_of_rounds_ends_it(tmp_path: Path) -> None:
    """50 rounds in coding mode, and one last answer without tools."""
    script = [answer for number in range(26) for answer in (looking(number), says("More."))]
    made = auto(made_with(tmp_path, *script))
    assert made.provider is not None
    assert len(made.provider.requests) == 51
    assert made.provider.requests[-1].tool_choice == "none"


def test_the_tool_that_ends_it_is_offered_only_then(tmp_path: Path) -> None:
    made = made_with(tmp_path, says("One."), says("Two."))

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        await chat.do("/auto on")
        await chat.session.submit("second")
        await chat.do("/mode -get_usage")
        assert "end_elaborate" in [spec.name for spec in chat.session.tools], "choosing tools keeps what is offered"

    chatting(made, work)
    assert made.provider is not None
    off, on = ([spec.name for spec in request.tools] for request in made.provider.requests)
    assert "end_elaborate" not in off
    assert "end_play_mode" not in on
    assert "end_elaborate" in on
    stray = made_with(tmp_path).call("end_elaborate")
    assert stray.is_error
    assert "only while /auto is on" in stray.text


# --- play -----------------------------------------------------------------------------------------------------------

PRICES = {"scripted/scripted": Price(input=1000.0, output=1000.0)}
"""A request of these scripts costs 0.11 USD."""


def play(made: Made, words: str) -> str:
    said: list[str] = []

    async def work(chat: Chat) -> None:
        root = chat.session.working_dir
        said.append(await chat.do(f"/play {words}"))
        assert chat.session.working_dir == root
        assert chat.session.autonomy.going == "off"

    chatting(made, work)
    return said[0]


def test_play_mode_goes_on_in_its_playground_until_the_model_has_enough(tmp_path: Path) -> None:
    made = made_with(tmp_path, looking(1), says("Nice."), ending("end_play_mode"), says("Bye."))
    playground = made.config.data_folder / "playground"
    assert play(made, "--turns 10") == f"Play mode has ended. Its files are in {playground}."
    assert playground.is_dir()
    assert made.provider is not None
    opening, *between = [message.text for message in made.provider.requests[-1].messages if message.role == "user"]
    assert opening == PLAY
    (said,) = between
    assert "Turn 3 of 10" in said
    assert "?" not in said, "nothing is asked in between"
    assert str(playground) in made.provider.requests[0].system


def test_play_mode_ends_after_its_turns(tmp_path: Path) -> None:
    made = made_with(tmp_path, *[says("Hm.")] * 4)
    play(made, "--turns 3")
    assert made.provider is not None
    assert [request.tool_choice for request in made.provider.requests] == ["auto"] * 3
    for request in made.provider.requests:
        assert request.messages[-1].role != "assistant", "no service takes that"


def test_the_calls_of_the_last_turn_are_run(tmp_path: Path) -> None:
    made = made_with(tmp_path, looking(1), looking(2))
    play(made, "--turns 2")
    assert made.provider is not None
    assert len(made.provider.requests) == 2
    assert made.log == [], "what packs keep in play mode is not kept in the conversation that goes on"
    assert len(made.seen(ToolExecutionEnd)) == 2


def test_play_mode_has_a_conversation_of_its_own_and_gives_the_open_one_back(tmp_path: Path) -> None:
    made = made_with(
        tmp_path, looking(1), says("One."), says("Nice."), ending("end_play_mode"), says("Bye."), says("2.")
    )

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        session, texts, log = chat.session.id, chat.texts, list(made.log)
        chat.session.autonomy.send("for the playing agent")
        await chat.do("/play --turns 5")
        assert (chat.session.id, chat.texts, made.log) == (session, texts, log)
        await chat.session.submit("second")

    chat = chatting(made, work)
    assert made.provider is not None
    assert "first" not in [message.text for message in made.provider.requests[2].messages]
    assert [message.text for message in made.provider.requests[-1].messages if message.role == "user"] == [
        "first",
        "second",
    ]
    conversation, played = chat.files
    assert [text for text in kept(conversation) if text] == ["first", "One.", "second", "2."]
    assert kept(played)[0] == PLAY


def test_play_mode_is_neither_in_the_chat_log_nor_begun_with_what_is_in_it(tmp_path: Path) -> None:
    """I18: nobody said it."""
    made = made_with(tmp_path, says("One."), says("Hm."), says("2."), argv=())

    async def work(chat: Chat) -> None:
        await chat.session.submit("first")
        await chat.do("/play --turns 1")
        await chat.session.submit("second")

    chatting(made, work)
    log = json.loads((made.session.profile.folder / "chat_log.json").read_text())
    assert [entry["text"] for entry in log] == ["first", "One.", "second", "2."]


def test_play_mode_ends_with_its_budget(tmp_path: Path) -> None:
    made = made_with(tmp_path, *[says("Hm.")] * 60, prices=PRICES)
    assert play(made, "6").endswith("Its budget of 6 USD does not cover another request.")
    spent = made.meter.summary()["session_cost"]
    assert 0 < spent <= 6


def test_play_mode_is_refused_without_a_price(tmp_path: Path) -> None:
    made = made_with(tmp_path, says("Hm."), prices={"other": Price(input=1.0, output=1.0)})
    said = play(made, "0.5")
    assert "The price of scripted/scripted is unknown" in said
    assert "/play --turns N" in said


@pytest.mark.parametrize("words", ["", "much", "-1", "0", "nan", "inf", "--turns", "--turns 0", "1 --turns x"])
def test_play_mode_wants_a_limit(tmp_path: Path, words: str) -> None:
    assert play(made_with(tmp_path), words).startswith("Error: ")


def test_the_summary_of_a_long_conversation_is_paid_out_of_the_budget_of_play_mode(tmp_path: Path) -> None:
    made = made_with(tmp_path, says("In short."), says("Hm."), says("Hm."), prices=PRICES)
    made.parts.conversation.load([user("Build it"), *rounds(30, size=4_000)])
    assert play(made, "0.000001").endswith("Its budget of 1e-06 USD does not cover another request.")
    assert made.provider is not None
    assert not made.provider.requests


@pytest.mark.parametrize("line", ["/play --turns 5", "/pro Think"])
def test_what_an_answer_works_with_is_not_changed_under_it(tmp_path: Path, line: str) -> None:
    """I17: its folder and its model stay the same."""
    made = made_with(tmp_path, [Hang()], says("Two."))

    async def work() -> None:
        import asyncio

        chat = Chat(made)
        root = chat.session.working_dir
        seen: list[Event] = []
        answer = asyncio.ensure_future(chat.session.submit("first"))
        await until(lambda: chat.session.busy)
        chat.session.subscribe(seen.append)
        assert (await chat.do(line)).startswith("Error: An answer is still running.")
        assert (chat.session.working_dir, chat.session.autonomy.going, seen) == (root, "off", [])
        answer.cancel()
        await asyncio.wait({answer})
        await chat.session.close()

    run(work())


def test_a_playground_that_cannot_be_made_leaves_the_limits_of_the_chat(tmp_path: Path) -> None:
    made = made_with(tmp_path, looking(1), looking(2), says("Found."))
    made.config.data_folder.mkdir(parents=True, exist_ok=True)
    (made.config.data_folder / "playground").touch()

    async def work(chat: Chat) -> None:
        assert (await chat.do("/play --turns 1")).startswith("Error: ")
        assert (await chat.session.submit("Look twice")).text == "Found."

    chatting(made, work)
    assert made.provider is not None
    assert [request.tool_choice for request in made.provider.requests] == ["auto"] * 3


def test_cancelling_play_mode_brings_everything_back(tmp_path: Path) -> None:
    made = made_with(tmp_path, [Hang()])

    async def work() -> None:
        import asyncio

        chat = Chat(made)
        root = chat.session.working_dir
        playing = asyncio.ensure_future(chat.do("/play --turns 5"))
        await until(lambda: chat.session.busy)
        playing.cancel()
        await asyncio.wait({playing})
        assert (chat.session.working_dir, chat.session.autonomy.going) == (root, "off")
        await chat.session.close()

    run(work())
