"""What an agent says is read as it comes, in any pieces, and within a bounded memory."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.events import (
    AgentEnd,
    Event,
    MessageEnd,
    MessageUpdate,
    SessionStart,
    ToolExecutionStart,
    TurnStart,
    UsageReport,
)
from marvin_core.api.messages import Message, Text, ToolCall, Usage
from marvin_core.engine.agents.stream import AgentStream, said_on_stderr, used_by
from marvin_core.util.event_lines import event_line
from tests.support.examples import examples


def answer(*blocks: Text | ToolCall) -> MessageEnd:
    return MessageEnd(message=Message(role="assistant", content=blocks), stop_reason="stop")


CALL = ToolCall(id="c1", name="read_file", arguments='{"path": "a.py"}')
EVENTS: tuple[Event, ...] = (
    SessionStart(session_id="s-1", provider="p", model="m", working_dir="/w"),
    TurnStart(round=1),
    MessageUpdate(kind="text", delta='{"type":"agent_end","text":"no"}'),
    answer(Text(text="I look."), CALL),
    UsageReport(provider="p", model="m", usage=Usage(input_tokens=5), cost=0.25),
    ToolExecutionStart(call_id="c1", name="read_file", arguments={"path": "a.py\nb"}),
    TurnStart(round=2),
    UsageReport(provider="p", model="m", usage=Usage(input_tokens=5), cost=0.5),
    answer(Text(text="It is é\u2028.")),
    AgentEnd(stop_reason="done", text="It is é\u2028."),
)
LINES = "".join(f"{event_line(event)}\n" for event in EVENTS).encode()


@examples(100)
@given(st.lists(st.integers(0, len(LINES)), max_size=30))
def test_events_are_read_in_any_pieces(cuts: list[int]) -> None:
    told: list[str] = []
    stream = AgentStream(told.append)
    places = [0, *sorted(cuts), len(LINES)]
    for begin, end in pairwise(places):
        assert not stream.feed(LINES[begin:end])
    assert (stream.session_id, stream.text, stream.error) == ("s-1", "It is é\u2028.", "")
    assert told == ["round 1: read_file path=a.py b"]
    assert stream.used["m"].requests == 2
    assert stream.used["m"].cost == 0.75


@examples(100)
@given(st.lists(st.binary(max_size=200)))
def test_whatever_comes_is_no_error(chunks: list[bytes]) -> None:
    stream = AgentStream(None)
    for chunk in chunks:
        stream.feed(chunk)
    stream.feed(b"\n" + LINES)
    assert stream.text == "It is é\u2028."


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"agent_end"}',
        b'{"type":"agent_end","text":{}}',
        b'{"type":"message_end","message":[]}',
        b'{"type":"message_end","message":{"content":7},"origin":"model"}',
        b'{"type":"turn_start","round":"x"}',
        b'{"type":"tool_execution_start","name":"a","arguments":7}',
        b'{"type":"usage","model":"m","cost":"much"}',
        b'{"type":"agent_end",' + b"[" * 10_000,
    ],
)
def test_an_event_of_another_version_is_passed_over(line: bytes) -> None:
    stream = AgentStream(lambda text: None)
    stream.feed(line + b"\n" + LINES)
    assert stream.text == "It is é\u2028."


def test_a_flood_takes_no_memory() -> None:
    stream = AgentStream(None)
    flood = b'{"type":"message_update","delta":"' + b"x" * 1_000_000
    for _ in range(50):
        stream.feed(flood)
        assert len(stream._line) == 0
    stream.feed(b"\n")
    for _ in range(50):  # one that is read, and never ends
        stream.feed(b'{"type":"agent_end","text":"' + b"x" * 1_000_000)
        assert len(stream._line) < 10_000_000
    stream.feed(b"\n" + LINES)
    assert stream.text == "It is é\u2028."


def test_an_interface_that_fails_stops_nothing() -> None:
    def fails(text: str) -> None:
        raise RuntimeError(text)

    stream = AgentStream(fails)
    stream.feed(LINES)
    assert stream.text == "It is é\u2028."


def test_what_an_agent_cost_is_its_last_line() -> None:
    costs: dict[str, Any] = {"session_cost": 1, "llm_turns": 3, "model_turns": {"a": 2, "b": 1}}
    line = f"MARVIN_COST:{json.dumps({**costs, 'model_cost': {'a': 0.5, 'b': None}})}\n"
    found = used_by(b"marvin: something\n" + line.encode())
    assert found is not None
    assert {name: (used.requests, used.cost) for name, used in found.items()} == {"a": (2, 0.5), "b": (1, None)}
    for other in (b"", b"marvin: interrupted\n", line.encode() + b"more\n", b"MARVIN_COST:[]\n", b"MARVIN_COST:{\n"):
        assert used_by(other) is None
    assert said_on_stderr(b"marvin: It failed.\nSo it is.\n" + line.encode()) == "It failed.\nSo it is."
    assert len(said_on_stderr(b"x" * 100_000)) < 3_000
