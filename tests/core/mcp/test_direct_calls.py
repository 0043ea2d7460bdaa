"""Calls of tools that go to a server's program without the layers of the SDK between: all but a connection's first."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import JSONRPCRequest

from marvin_core.api.events import ToolExecutionUpdate
from marvin_core.mcp.stdio.direct import DirectCalls
from tests.core.mcp.support_mcp import Desk, desk_at, text_of

SERVER = Path(__file__).parents[2] / "support" / "mcp_calls_server.py"
FIRST = 10**9

pytestmark = pytest.mark.slow  # most tests start a server of their own


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A session whose server has answered a first call."""
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER)]}) as made:
        made.learn()
        assert say(made, "params")
        yield made


async def never(fault: str) -> None:
    """Gives no connection up, as none of these calls may."""
    raise AssertionError(fault)


def say(desk: Desk, how: str) -> str:
    """The answer of the server to a call."""
    return text_of(desk.call("trial__do", how=how))


def test_later_calls_of_a_connection_carry_what_the_sdk_added_to_the_first(tmp_path: Path) -> None:
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER)]}) as made:
        made.learn()
        by_sdk, direct = json.loads(say(made, "params")), json.loads(say(made, "params"))
        numbers = json.loads(say(made, "calls"))
    assert by_sdk["_meta"].pop("progressToken") < FIRST <= direct["_meta"].pop("progressToken")
    assert by_sdk == direct
    assert [number >= FIRST for number in numbers] == [False, True, True]
    assert len({*numbers}) == 3


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("twice", "first"),
        ("text id", "with a text"),
        ("float id", "with a float"),
        ("strange", "right"),
        ("error", "says: no cheese"),
        ("odd error", "says: the answer has neither a result nor an error"),
        ("neither", "says: the answer has neither a result nor an error"),
        ("no content", "validation error for CallToolResult"),
        ("asks", '["x", null, ['),
    ],
)
def test_each_kind_of_answer_is_understood_and_the_next_call_works(desk: Desk, how: str, said: str) -> None:
    assert said in say(desk, how)
    assert json.loads(say(desk, "params"))["arguments"] == {"how": "params"}


@pytest.mark.parametrize("how", ["other kind", "no kind"])
def test_a_call_whose_result_is_of_an_unknown_kind_is_not_made_again(desk: Desk, how: str) -> None:
    assert len(json.loads(say(desk, how))) == 2
    assert len(json.loads(say(desk, "calls"))) == 3


def test_a_call_that_asks_for_input_goes_on_and_does_not_begin_again(tmp_path: Path) -> None:
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER), "modern"]}) as made:
        made.learn()
        meta = [json.loads(say(made, "params"))["_meta"] for _ in range(2)]
        state, given, calls = json.loads(say(made, "asks"))
    assert meta[1].keys() == meta[0].keys() > {"io.modelcontextprotocol/protocolVersion"}
    assert (state, given) == ("x", {"which": {"action": "cancel"}})  # nobody is there to answer
    assert [number >= FIRST for number in calls] == [False, True, True, False]


def test_progress_is_told_while_a_call_runs(desk: Desk) -> None:
    assert say(desk, "progress") == "done"
    assert say(desk, "params")
    told = [event for event in desk.events if isinstance(event, ToolExecutionUpdate)]
    assert [(event.text, event.done) for event in told] == [("step", 1), ("step", 3)]


def test_progress_of_a_first_call_in_numbers_beyond_all_floats_does_not_end_the_connection(tmp_path: Path) -> None:
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER)]}) as made:
        made.learn()
        assert [say(made, "huge progress") for _ in range(2)] == ["done", "done"]
        assert len(json.loads(say(made, "calls"))) == 3


def test_calls_beside_each_other_get_their_own_answers(desk: Desk) -> None:
    async def three() -> list[str]:
        calls = [desk.session.call_tool("trial__do", {"how": "reverse"}) for _ in range(3)]
        return [text_of(output) for output in await asyncio.gather(*calls)]

    assert desk.run(three()) == ["0", "1", "2"]


def test_a_call_that_is_cancelled_is_cancelled_at_the_server_and_its_late_answer_is_no_other_calls(desk: Desk) -> None:
    async def cancelled() -> None:
        call = asyncio.ensure_future(desk.session.call_tool("trial__do", {"how": "wait"}))
        await asyncio.sleep(0.3)
        call.cancel()
        await asyncio.wait([call])

    desk.run(cancelled())
    assert json.loads(say(desk, "cancelled")) == [json.loads(say(desk, "calls"))[1]]


def test_an_answer_before_the_end_counts_and_the_next_call_starts_the_server_again(desk: Desk) -> None:
    assert say(desk, "last words") == "bye"
    assert "there is no cheese" in say(desk, "die") or say(desk, "params")
    assert say(desk, "params")


@pytest.mark.parametrize("is_first", [False, True])
def test_a_long_answer_before_the_end_counts(tmp_path: Path, is_first: bool) -> None:
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER)]}) as made:
        made.learn()
        if is_first:
            say(made, "die")  # the next call starts the server again
        else:
            say(made, "params")
        assert say(made, "many last words").startswith("bye bye")
        assert len(json.loads(say(made, "calls"))) == 1


def test_a_start_that_is_cancelled_does_not_end_the_next_connection(tmp_path: Path) -> None:
    with desk_at(tmp_path, {"command": sys.executable, "args": ["-S", "-P", str(SERVER), "slow"]}) as made:
        made.learn()
        say(made, "die")

        async def cancelled() -> None:
            call = asyncio.ensure_future(made.session.call_tool("trial__do", {"how": "params"}))
            await asyncio.sleep(0.5)
            call.cancel()
            await asyncio.wait([call])
            await made.session.call_tool("trial__do", {"how": "params"})
            await asyncio.sleep(3)  # the cancelled program has ended

        made.run(cancelled())
        assert len(json.loads(say(made, "calls"))) == 2


def test_a_server_that_dies_in_a_call_is_named_with_its_reason(desk: Desk) -> None:
    said = say(desk, "die")
    assert "broke off in the call: it ended: there is no cheese" in said
    assert say(desk, "params")
    assert json.loads(say(desk, "calls"))[0] < FIRST  # a new connection begins with a call of the SDK


def test_a_server_that_takes_no_input_is_given_up_and_started_again(desk: Desk) -> None:
    async def deaf() -> str:
        asked = [{"how": "sleep"}, *[{"how": "params", "more": "x" * 8_000_000}] * 5]
        calls = [asyncio.ensure_future(desk.session.call_tool("trial__do", one)) for one in asked]
        return text_of((await asyncio.gather(*calls))[-1])

    assert "The program does not read what is sent to it." in desk.run(deaf())
    assert len(json.loads(say(desk, "calls"))) == 1


def test_a_traced_run_leaves_every_call_to_the_sdk() -> None:
    calls = DirectCalls(lambda line, is_request: None, never)
    meta = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "progressToken": 2}
    calls.learn(JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/call", params={"name": "do", "_meta": meta}))
    assert not calls.are_possible


def test_nothing_is_called_after_the_end() -> None:
    sent: list[bytes] = []

    def send(line: bytes, *, is_request: bool) -> None:
        sent.append(line)

    async def ended() -> None:
        calls = DirectCalls(send, never)
        calls.learn(JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/call", params={"name": "do"}))
        running = asyncio.ensure_future(calls.call("do", {}, lambda *_: None))
        await asyncio.sleep(0)
        calls.end()
        for call in (running, calls.call("do", {}, lambda *_: None)):
            with pytest.raises(MCPError, match="closed"):
                await call

    asyncio.run(ended())
    assert len(sent) == 1


def test_a_failure_of_whoever_hears_the_progress_ends_that_call_alone() -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no ears")

    async def told() -> None:
        calls = DirectCalls(lambda line, is_request: None, never)
        calls.learn(JSONRPCRequest(jsonrpc="2.0", id=2, method="tools/call", params={"name": "do"}))
        deaf = asyncio.ensure_future(calls.call("do", {}, fail))
        other = asyncio.ensure_future(calls.call("do", {}, lambda *_: None))
        await asyncio.sleep(0)
        assert calls.take({"method": "notifications/progress", "params": {"progressToken": FIRST, "progress": 1}})
        assert calls.take({"id": FIRST + 1, "result": {"content": []}})
        assert await other == {"content": []}
        with pytest.raises(RuntimeError, match="no ears"):
            await deaf

    asyncio.run(told())
