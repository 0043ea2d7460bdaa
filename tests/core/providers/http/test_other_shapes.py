"""Answers with something of another type in any place: each is an answer or a broken one, and never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import StreamBroken
from marvin_core.api.providers import CallDelta, Delta, Stop, TextDelta, ThinkingDelta, UsageDelta
from marvin_core.providers.anthropic.stream import AnthropicStream
from marvin_core.providers.chat_completions.stream import ChatStream
from marvin_core.providers.http.answer_stream import AnswerStream
from marvin_core.providers.ollama.stream import OllamaStream
from marvin_core.providers.responses.stream import ResponsesStream
from tests.support.chatting import endpoint
from tests.support.examples import examples

ENDPOINT = endpoint("https://models.example/v1")
CALL = {"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}
ITEM = {"id": "i", "type": "function_call", "call_id": "c", "name": "f", "arguments": '{"x":1}'}
STREAMS: Mapping[type[AnswerStream], Sequence[Any]] = {
    ChatStream: [
        {"choices": [{"delta": {"reasoning_content": "hm", "reasoning_details": [{"type": "t", "text": "a"}]}}]},
        {"choices": [{"delta": {"content": "he<think>llo", "refusal": None}}]},
        {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": [{"text": "t"}]}, {"text": "y"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{**CALL, "index": 0, "extra_content": {"google": {}}}]}}]},
        {"choices": [{"delta": {"function_call": {"name": "f", "arguments": "{}"}}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "total_tokens": 9, "prompt_tokens_details": {}, "cost": 0.5}},
    ],
    AnthropicStream: [
        {"type": "message_start", "message": {"usage": {"input_tokens": 5}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "x"}},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "a"}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "b"}},
        {"type": "content_block_start", "index": 3, "content_block": {"type": "tool_use", "id": "t", "name": "f"}},
        {"type": "content_block_delta", "index": 3, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ],
    ResponsesStream: [
        {"type": "response.output_item.added", "output_index": 0, "item": {"id": "r", "type": "reasoning"}},
        {"type": "response.reasoning_summary_text.delta", "item_id": "r", "delta": "hm"},
        {"type": "response.output_item.done", "item": {"id": "r", "type": "reasoning", "encrypted_content": "x"}},
        {"type": "response.output_item.added", "item": {"id": "m", "type": "message", "phase": "final"}},
        {"type": "response.output_text.delta", "item_id": "m", "delta": "hello"},
        {"type": "response.output_item.added", "output_index": 2, "item": {**ITEM, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "i", "delta": '{"x":1}'},
        {"type": "response.output_item.done", "output_index": 2, "item": ITEM},
        {"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 5}}},
    ],
    OllamaStream: [
        {"message": {"thinking": "hm", "content": "he<think>llo"}, "done": False},
        {"message": {"tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}, "done": False},
        {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 6},
    ],
}
DOCUMENTS: Mapping[type[AnswerStream], Any] = {
    ChatStream: {
        "choices": [{"message": {"content": "x", "tool_calls": [CALL]}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5},
    },
    AnthropicStream: {
        "type": "message",
        "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5},
    },
    ResponsesStream: {
        "status": "completed",
        "output": [{"type": "message", "id": "m", "content": [{"type": "output_text", "text": "x"}]}, ITEM],
        "usage": {"input_tokens": 5},
    },
}
OTHERS: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, 0, 5, -1, 1.5, 10**400, float("inf"), float("nan"), "", "x", "5", "<think>", "\ud800"),
        *([], {}, [1], ["x"], [None], [[]], {"a": 1}, {"text": 5}, {"type": []}, "x" * 2000),
    ]
)


def wire(kind: type[AnswerStream]) -> AnswerStream:
    if kind is OllamaStream:
        return OllamaStream(ENDPOINT, "https://models.example", window=9_000, is_cut=lambda _: False)
    return kind(ENDPOINT, "https://models.example/v1")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value inside."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from places(each, (*path, name))


def changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """The value with another one at a place."""
    if not path:
        return other
    copy = deepcopy(value)
    at = copy
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = other
    return copy


def encoded(kind: type[AnswerStream], events: Sequence[Any]) -> bytes:
    form = "{}\n" if kind is OllamaStream else "data: {}\n\n"
    return "".join(form.format(json.dumps(event)) for event in events).encode()


def read(answer: AnswerStream, pieces: Sequence[bytes]) -> list[Delta]:
    deltas: list[Delta] = []
    for piece in pieces:
        deltas += answer.feed(piece)
        if answer.failure is not None:
            return deltas
    return deltas + answer.finish()


def assert_sound(answer: AnswerStream, deltas: Sequence[Delta]) -> None:
    """Texts are texts, counts are counts, and it ends with a reason to stop or an error."""
    assert answer.failure is not None or isinstance(deltas[-1], Stop)
    for delta in deltas:
        texts: tuple[object, ...] = ()
        if isinstance(delta, (TextDelta, ThinkingDelta)):
            texts = (delta.text,)
        elif isinstance(delta, CallDelta):
            texts = (delta.id, delta.name, delta.arguments)
        elif isinstance(delta, UsageDelta):
            assert all(number is None or 0 <= number < 1e13 for number in delta.usage.as_dict().values())
        assert all(isinstance(text, str) for text in texts), delta


@pytest.mark.parametrize("kind", STREAMS)
@examples(300)
@given(st.data())
def test_a_stream_with_other_types_in_it(kind: type[AnswerStream], data: st.DataObject) -> None:
    events = list(STREAMS[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(events) - 1))
        path = data.draw(st.sampled_from(list(places(events[number]))))
        events[number] = changed(events[number], path, data.draw(OTHERS))
    whole = encoded(kind, data.draw(st.permutations(events)) if data.draw(st.booleans()) else events)
    cut = data.draw(st.integers(0, len(whole)))
    answer = wire(kind)
    assert_sound(answer, read(answer, [whole[:cut], whole[cut:]]))


@pytest.mark.parametrize("kind", DOCUMENTS)
@examples(300)
@given(st.data())
def test_a_document_with_other_types_in_it(kind: type[AnswerStream], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(places(DOCUMENTS[kind]))[1:]))
    document = changed(DOCUMENTS[kind], path, data.draw(OTHERS))
    answer = wire(kind)
    assert_sound(answer, read(answer, [json.dumps(document).encode()]))


BROKEN: Sequence[tuple[type[AnswerStream], Callable[[], bytes]]] = [
    (OllamaStream, lambda: b'{"message": {"thinking": 1.5}}\n'),
    (AnthropicStream, lambda: changed_stream(AnthropicStream, 4, ("content_block", "text"), 5)),
    (AnthropicStream, lambda: changed_stream(AnthropicStream, 6, ("content_block", "name"), ["f"])),
    (AnthropicStream, lambda: json.dumps({"type": "message", "content": 5}).encode()),
    (ResponsesStream, lambda: json.dumps({"output": 5}).encode()),
    (ResponsesStream, lambda: changed_stream(ResponsesStream, 5, ("item", "name"), ["f"])),
    (ChatStream, lambda: changed_stream(ChatStream, 3, ("choices", 0, "delta", "tool_calls", 0, "function"), [1])),
]


def changed_stream(kind: type[AnswerStream], number: int, path: tuple[Any, ...], other: Any) -> bytes:
    events = list(STREAMS[kind])
    events[number] = changed(events[number], path, other)
    return encoded(kind, events)


@pytest.mark.parametrize(("kind", "said"), BROKEN)
def test_what_cannot_be_read_is_a_broken_answer_that_may_be_asked_for_again(
    kind: type[AnswerStream], said: Callable[[], bytes]
) -> None:
    answer = wire(kind)
    read(answer, [said()])
    assert isinstance(answer.failure, StreamBroken)
    assert not answer.failure.final


@pytest.mark.parametrize("reason", [["stop"], {"type": "stop"}, 5])
def test_a_reason_to_stop_that_is_no_text_ends_the_answer_as_any_other(reason: Any) -> None:
    for kind, path in ((ChatStream, ("choices", 0, "finish_reason")), (AnthropicStream, ("delta", "stop_reason"))):
        number = -2
        answer = wire(kind)
        deltas = read(answer, [changed_stream(kind, number, path, reason)])
        assert answer.failure is None
        assert deltas[-1] == Stop(reason="tool_calls")
