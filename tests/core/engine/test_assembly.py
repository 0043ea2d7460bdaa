"""An answer is put together from its pieces, whole or cut off."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import CallDelta, Delta, ProviderData, Stop, Text, TextDelta, Thinking, ThinkingDelta, ToolCall, Usage
from marvin_core.api.messages import Message, StopReason
from marvin_core.api.providers import UsageDelta
from marvin_core.engine.assembly import CANCELLED, Assembly


def assemble(*deltas: Delta) -> Assembly:
    assembly = Assembly("p", "m")
    for delta in deltas:
        assembly.feed(delta)
    return assembly


def answer(*deltas: Delta, ended: StopReason | None = None) -> Message:
    return assemble(*deltas).message(ended)


def test_pieces_are_joined_into_blocks_in_the_order_they_came() -> None:
    message = answer(
        ThinkingDelta(text="let "),
        ThinkingDelta(text="me see"),
        TextDelta(text="I'll "),
        TextDelta(text="look."),
        CallDelta(key=0, id="a", name="look", arguments='{"na'),
        CallDelta(key=0, arguments='me": 1}'),
        UsageDelta(usage=Usage(input_tokens=1)),
        UsageDelta(usage=Usage(input_tokens=5)),
        Stop(reason="tool_calls"),
    )
    assert message.content == (
        Thinking(text="let me see"),
        Text(text="I'll look."),
        ToolCall(id="a", name="look", arguments='{"name": 1}'),
    )
    assert (message.provider, message.model, message.stop_reason) == ("p", "m", "tool_calls")
    assert message.usage == Usage(input_tokens=5)


def test_calls_whose_pieces_come_in_turns_are_told_apart_by_their_key() -> None:
    message = answer(
        CallDelta(key=0, id="a", name="look", arguments="1"),
        CallDelta(key=1, id="b", name="mark", arguments="2"),
        CallDelta(key=0, arguments="3"),
        CallDelta(key=1, arguments="4"),
        Stop(reason="tool_calls"),
    )
    assert [(call.id, call.name, call.arguments) for call in message.calls] == [
        ("a", "look", "13"),
        ("b", "mark", "24"),
    ]


def test_opaque_data_stays_with_its_thinking_and_its_call() -> None:
    signed = ProviderData(provider="p", data={"signature": "x"})
    message = answer(
        ThinkingDelta(text="hm"),
        ThinkingDelta(text="", provider_data=signed),
        CallDelta(key=0, id="a", name="look", provider_data=signed),
        Stop(reason="tool_calls"),
    )
    assert message.content[0] == Thinking(text="hm", provider_data=signed)
    assert message.calls[0].provider_data == signed


@given(st.lists(st.sampled_from(["", "a", "a_2", "a_3", "call_1", "call_2"]), max_size=6))
def test_every_call_has_an_id_of_its_own_and_keeps_one_that_is(ids: list[str]) -> None:
    """I15: outputs find their calls by id, and some services leave ids out or use one twice."""
    message = answer(*(CallDelta(key=n, id=i, name="look") for n, i in enumerate(ids)), Stop(reason="tool_calls"))
    given_ids = [call.id for call in message.calls]
    assert all(given_ids)
    assert len(set(given_ids)) == len(ids)
    assert set(ids) - {""} <= set(given_ids)


def test_the_id_of_a_call_is_settled_with_its_first_piece() -> None:
    assembly = assemble()
    first = assembly.feed(CallDelta(key=0, name="look"))
    assert first is not None
    early = first.id
    assembly.feed(CallDelta(key=0, arguments="{}"))
    assert assembly.message("stop").calls[0].id == early


@pytest.mark.parametrize("reason", ["length", "broken", "cancelled"])
def test_only_the_last_call_of_an_answer_that_was_cut_off_is_incomplete(reason: StopReason) -> None:
    """I26: what was cut off is marked, so that it is never run."""
    two = (CallDelta(key=0, id="a", name="look"), CallDelta(key=1, id="b", name="look", arguments='{"na'))
    assert [call.complete for call in answer(*two, ended=reason).calls] == [True, False]


def test_a_call_before_text_that_was_cut_off_is_complete() -> None:
    message = answer(
        CallDelta(key=0, id="a", name="look", arguments="{}"), TextDelta(text="and"), Stop(reason="length")
    )
    assert message.calls[0].complete


@pytest.mark.parametrize("reason", ["stop", "tool_calls"])
def test_calls_of_a_whole_answer_are_complete(reason: StopReason) -> None:
    assert answer(CallDelta(key=0, id="a", name="look"), Stop(reason=reason)).calls[0].complete


def test_a_cancelled_answer_keeps_its_text_and_says_so() -> None:
    message = answer(TextDelta(text="Once upon"), ended="cancelled")
    assert message.stop_reason == "cancelled"
    assert message.text == f"Once upon\n{CANCELLED}" == "Once upon\n[Cancelled]", "on a line of its own"
    assert answer(TextDelta(text="Once.\n"), ended="cancelled").text == "Once.\n[Cancelled]"
    assert answer(ended="cancelled").text == "[Cancelled]"


def test_an_answer_that_never_said_that_it_ended_is_broken() -> None:
    assert answer(TextDelta(text="Once")).stop_reason == "broken"


@pytest.mark.parametrize(
    ("deltas", "empty"),
    [
        ([], True),
        ([Stop(reason="stop")], True),
        ([TextDelta(text="")], True),
        ([TextDelta(text=" \n"), TextDelta(text="\t")], True),
        ([ThinkingDelta(text="much thought")], True),
        ([TextDelta(text=" "), TextDelta(text="x")], False),
        ([CallDelta(key=0, id="a", name="look")], False),
    ],
)
def test_an_answer_without_text_and_calls_is_empty(deltas: list[Delta], empty: bool) -> None:
    assert assemble(*deltas).is_empty is empty


@pytest.mark.slow
def test_short_pieces_take_little_more_memory_than_their_text() -> None:
    """A character of its own takes eighty bytes."""
    assembly = Assembly("acme", "m")
    pieces = [chr(0x4E00 + number % 20_000) for number in range(100_000)]
    tracemalloc.start()
    try:
        for piece in pieces:
            assembly.feed(TextDelta(text=str(piece.encode(), "utf-8")))  # an object of its own each
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 10 * len(pieces)
    assert assembly.message("stop").text == "".join(pieces)
    assert not assembly.is_empty
