"""Servers that send what cannot be read, close a pipe, or change while asked: no call waits for its time-out."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from marvin_core import ToolError
from tests.core.mcp.support_mcp import Desk, desk_at, text_of

SERVER = Path(__file__).parents[2] / "support" / "mcp_calls_server.py"
CHEESE = "it ended: there is no cheese"

pytestmark = pytest.mark.slow  # each test starts a server of its own


@pytest.fixture(params=["by the SDK", "direct"])
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A session whose next call goes by the SDK, or not."""
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER)]}, {"tool": 10}) as made:
        made.learn()
        if request.param == "direct":
            assert say(made, "params")
        yield made


def say(desk: Desk, how: str, tool: str = "trial__do") -> str:
    """The answer of the server to a call."""
    return text_of(desk.call(tool, how=how))


def test_an_answer_that_is_no_utf_8_is_read(desk: Desk) -> None:
    assert say(desk, "latin") == "caf\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("large", "it is larger than 16,000,000 bytes"),
        ("wide", "it holds more than 500,000 values"),
        ("deep", "it is nested more than 100 deep"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told_at_once(desk: Desk, how: str, said: str) -> None:
    assert f"broke off in the call: it sent a message that cannot be read: {said}" in say(desk, how)
    assert say(desk, "params")


@pytest.mark.parametrize("how", ["odd error", "neither"])
def test_an_invalid_answer_is_told_at_once(desk: Desk, how: str) -> None:
    assert "says: the answer has neither a result nor an error" in say(desk, how)


def test_the_error_that_a_server_answers_before_it_ends_is_told(desk: Desk) -> None:
    assert "says: no cheese" in say(desk, "last error")


def test_a_server_that_closes_its_output_is_started_again(desk: Desk) -> None:
    assert f"broke off in the call: {CHEESE}" in say(desk, "output closes")
    assert len(json.loads(say(desk, "calls"))) == 1


def test_a_server_that_closes_its_input_is_started_again(desk: Desk) -> None:
    assert say(desk, "input closes") == "done"
    assert f"broke off in the call: {CHEESE}" in say(desk, "params")
    assert len(json.loads(say(desk, "calls"))) == 1


def test_a_server_that_prints_in_each_call_is_not_ended(desk: Desk) -> None:
    assert len([say(desk, "prints") for _ in range(9)]) == 9
    assert len(json.loads(say(desk, "calls"))) >= 10


def test_a_log_in_json_is_no_answer(desk: Desk) -> None:
    assert say(desk, "logs") == "done"


def test_a_tool_that_was_gone_and_comes_back_is_offered_again(desk: Desk) -> None:
    assert say(desk, "changes") == "changed"
    desk.learn()
    assert "no longer has it" in say(desk, "params")
    assert say(desk, "changes", "trial__other") == "changed"
    desk.learn()
    assert json.loads(say(desk, "params"))["arguments"] == {"how": "params"}


def test_a_question_of_a_call_that_was_cancelled_is_withdrawn(tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["-S", "-P", str(SERVER)]}
    with desk_at(tmp_path, entry, {"tool": 10}, answers=["yes"]) as made:
        while made.source.servers.unknown():  # a session with a user waits for three seconds
            made.learn()

        async def cancelled(questions: int) -> None:
            call = asyncio.ensure_future(made.session.call_tool("trial__do", {"how": "asks the user"}))
            while len(made.asked.questions) < questions:
                assert not call.done()
                await asyncio.sleep(0.01)
            other = await made.session.call_tool("trial__do", {"how": "params"})  # which may not be the one that asks
            assert not other.is_error
            assert not made.asked.withdrawn
            call.cancel()
            await asyncio.wait([call])
            await asyncio.sleep(0.1)

        made.run(cancelled(1))
        assert made.asked.withdrawn == 0  # it was answered
        made.run(cancelled(2))
        assert made.asked.withdrawn == 1
        assert say(made, "params")


def test_a_list_that_changes_while_it_is_asked_for_is_asked_for_again(tmp_path: Path) -> None:
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER), "restless"]}) as made:
        made.learn()
        assert made.source.servers.unknown() == ["trial"]
        made.learn()
        assert made.source.servers.unknown() == []


def test_a_known_server_that_cannot_be_asked_stays_known(tmp_path: Path) -> None:
    """Each prompt would wait for it."""
    program = tmp_path / "server.sh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -P {SERVER} "$@"\n')
    program.chmod(0o755)
    with desk_at(tmp_path, {"command": str(program), "args": []}) as made:
        made.learn()
        assert made.source.servers.unknown() == []
        assert "broke off" in say(made, "die")
        program.write_text("#!/bin/sh\nexit 1\n")
        with pytest.raises(ToolError):
            made.run(made.source.servers.ask("trial"))
        assert made.source.servers.unknown() == []
