"""Messages and their plain form, as session files hold it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.messages import (
    Image,
    Message,
    ProviderData,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    Usage,
    from_dict,
    system,
    to_dict,
    tool,
    user,
)

TEXTS = st.text(max_size=20)
PROVIDER_DATA = st.none() | st.builds(
    ProviderData, provider=TEXTS, data=st.dictionaries(TEXTS, st.integers() | TEXTS | st.none(), max_size=3)
)
TEXT = st.builds(Text, text=TEXTS, provider_data=PROVIDER_DATA)
IMAGE = st.builds(Image, media_type=TEXTS, data=TEXTS)
BLOCKS = st.one_of(
    TEXT,
    IMAGE,
    st.builds(Thinking, text=TEXTS, provider_data=PROVIDER_DATA),
    st.builds(ToolCall, id=TEXTS, name=TEXTS, arguments=TEXTS, complete=st.booleans(), provider_data=PROVIDER_DATA),
    st.builds(
        ToolOutput,
        call_id=TEXTS,
        name=TEXTS,
        content=st.lists(TEXT | IMAGE, max_size=3).map(tuple),
        is_error=st.booleans(),
    ),
)
COUNTS = st.integers(0, 10**9)
USAGES = st.none() | st.builds(
    Usage,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cache_read_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    reasoning_tokens=COUNTS,
    cost=st.none() | st.floats(0, 100),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=st.lists(BLOCKS, max_size=4).map(tuple),
    provider=TEXTS,
    model=TEXTS,
    usage=USAGES,
    stop_reason=st.sampled_from([None, "stop", "tool_calls", "length", "refused", "cancelled", "broken"]),
)


@pytest.mark.slow
@given(MESSAGES)
def test_every_message_comes_back_from_json_as_it_was(message: Message) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(message)))) == message


def test_the_plain_form_leaves_defaults_out() -> None:
    assert to_dict(user("hi")) == {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    call = ToolCall(id="1", name="look", arguments="{}")
    assert to_dict(Message(role="assistant", content=(call,)))["content"] == [
        {"type": "tool_call", "id": "1", "name": "look", "arguments": "{}"}
    ]


def test_provider_data_is_kept_word_for_word() -> None:
    signed = {"signature": "EqQBCgIYAhIM", "parts": [1, {"deep": None}]}
    block = Thinking(text="hm", provider_data=ProviderData(provider="anthropic", data=signed))
    kept = from_dict(json.loads(json.dumps(to_dict(Message(role="assistant", content=(block,)))))).content[0]
    assert isinstance(kept, Thinking)
    assert kept.provider_data == ProviderData(provider="anthropic", data=signed)


def test_text_calls_and_outputs_are_picked_from_the_blocks_in_order() -> None:
    first, second = (ToolCall(id=i, name="look", arguments="{}") for i in "ab")
    message = Message(role="assistant", content=(Thinking(text="no"), Text(text="a"), first, Text(text="b"), second))
    assert (message.text, message.calls, message.outputs) == ("ab", (first, second), ())
    output = ToolOutput(
        call_id="a", name="look", content=(Text(text="1"), Image(media_type="", data=""), Text(text="2"))
    )
    assert (tool([output]).outputs, output.text) == ((output,), "12")
    assert (system("be brief").role, user("see", Image(media_type="image/png", data="x")).content[1:]) == (
        "system",
        (Image(media_type="image/png", data="x"),),
    )


BAD: dict[str, Any] = {
    "nothing": None,
    "a number": 5,
    "a text": "user",
    "a list": [1],
    "Unknown role": {"content": []},
    "unknown role": {"role": "boss", "content": []},
    "no content": {"role": "user"},
    "content none": {"role": "user", "content": None},
    "content text": {"role": "user", "content": "hi"},
    "block none": {"role": "user", "content": [None]},
    "block without a type": {"role": "user", "content": [{"text": "hi"}]},
    "unknown block": {"role": "user", "content": [{"type": "video", "text": "hi"}]},
    "block type a list": {"role": "user", "content": [{"type": []}]},
    "text missing": {"role": "user", "content": [{"type": "text"}]},
    "text a number": {"role": "user", "content": [{"type": "text", "text": 5}]},
    "text none": {"role": "user", "content": [{"type": "text", "text": None}]},
    "wrong name beside provider data": {
        "role": "user",
        "content": [{"type": "text", "txt": "hi", "provider_data": {"provider": "p", "data": {}}}],
    },
    "unknown field of a block": {"role": "user", "content": [{"type": "text", "text": "hi", "size": 3}]},
    "unknown field": {"role": "user", "content": [], "mood": "gloomy"},
    "call arguments an object": {
        "role": "assistant",
        "content": [{"type": "tool_call", "id": "1", "name": "x", "arguments": {}}],
    },
    "output content none": {
        "role": "tool",
        "content": [{"type": "tool_output", "call_id": "1", "name": "x", "content": None}],
    },
    "usage a list": {"role": "user", "content": [], "usage": [1]},
    "usage unknown field": {"role": "user", "content": [], "usage": {"tokens": 1}},
    "provider data a text": {"role": "user", "content": [{"type": "text", "text": "a", "provider_data": "x"}]},
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_data_that_is_no_message_is_refused_with_a_reason(data: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        from_dict(data)
