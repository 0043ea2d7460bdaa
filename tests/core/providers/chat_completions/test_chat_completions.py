"""The chat completions adapter against a real server: what is sent, what is understood, how it fails."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, cast

import httpx
import pytest

from marvin_core.api.errors import (
    AuthFailed,
    BadRequest,
    ContextOverflow,
    ModelNotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Refused,
    StreamBroken,
    Unreachable,
)
from marvin_core.api.messages import (
    Image,
    Message,
    ProviderData,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    ToolOutput,
    Usage,
    tool,
    user,
)
from marvin_core.api.providers import CallDelta, Delta, Request, Secret, Stop, TextDelta, ThinkingDelta, UsageDelta
from marvin_core.api.tools import ToolSpec
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.chat_completions.provider import ChatCompletions, create
from marvin_core.providers.chat_completions.request import ChatWire
from marvin_core.providers.chat_completions.stream import ChatStream
from marvin_core.testing import (
    Answer,
    ModelServer,
    RecordedRequest,
    burst,
    calls,
    closing,
    cut_after,
    document,
    drop,
    error,
    events,
    hang,
    hang_after,
    html,
    paced,
    raw,
    text,
)
from tests.support.chatting import (
    KEY,
    TRANSPORTS,
    Transport,
    answer_of,
    ask,
    call_piece,
    calls_of,
    chat,
    chunk,
    endpoint,
    merged,
    request,
    text_of,
)
from tests.support.counting import times_called

READ_FILE = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    access=frozenset({"read"}),
)
transports = pytest.mark.parametrize("transport", TRANSPORTS)


def sent(*messages: Message, **options: Any) -> dict[str, Any]:
    """The body of a request with these messages."""
    fields = {name: options.pop(name) for name in list(options) if name in Request._defaults}
    _, requests = ask(text("ok"), asked=request(*messages, **fields), **options)
    body: dict[str, Any] = requests[-1].body
    return body


def reasoning(text: str, field: str = "reasoning_content") -> ThinkingDelta:
    """Thinking, with where its service wants it back."""
    data = ProviderData(provider="acme", data={"returned_in": field})
    return ThinkingDelta(text=text, provider_data=data)


def failure(*script: Answer, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(*script, **options)
    return raised.value


# What is sent


def test_a_request_is_a_streamed_chat_completion() -> None:
    deltas, requests = ask(text("Hi"), headers={"x-team": "blue"})
    assert text_of(deltas) == "Hi"
    (asked,) = requests
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["x-team"] == "blue"
    assert asked.body == {
        "model": "scripted",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/chat/completions/", "?version=1"])
def test_the_base_url_may_name_the_whole_path(ending: str) -> None:
    async def run(server: ModelServer) -> str:
        async with aclosing(chat(server.url + ending)) as provider:
            return text_of(await answer_of(provider))

    with ModelServer(text("Hi")) as server:
        assert asyncio.run(run(server)) == "Hi"
        assert server.requests[0].path == "/v1/chat/completions" + (ending if "?" in ending else "")


def test_no_key_sends_no_authorization() -> None:
    _, requests = ask(text("Hi"), key=Secret(""))
    assert "authorization" not in requests[0].headers


def test_tools_and_limits_are_sent_as_asked() -> None:
    body = sent(tools=(READ_FILE,), tool_choice="none", max_output_tokens=99, thinking="low")
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "read_file",
                "description": "Read a file.",
                "parameters": dict(READ_FILE.parameters),
            },
        }
    ]
    assert body["tool_choice"] == "none"
    assert body["max_tokens"] == 99
    assert body["reasoning_effort"] == "low"


def test_without_tools_neither_tools_nor_a_choice_is_sent() -> None:
    assert sent(tools=(), tool_choice="none").keys().isdisjoint({"tools", "tool_choice"})


def test_a_provider_is_never_sent_more_tools_than_it_takes() -> None:
    tools = tuple(READ_FILE.replace(name=f"tool_{number}") for number in range(5))
    body = sent(tools=tools, max_tools=3)
    assert [entry["function"]["name"] for entry in body["tools"]] == ["tool_0", "tool_1", "tool_2"]


def test_a_round_of_calls_and_outputs() -> None:
    asked = Message(
        role="assistant",
        content=(
            Thinking(text="hidden"),
            Text(text="Looking."),
            ToolCall(id="c1", name="read_file", arguments='{"path": "a"}'),
            ToolCall(id="c2", name="read_file", arguments='{"path": "b"}'),
        ),
    )
    outputs = tool(
        [
            ToolOutput(call_id="c1", name="read_file", content=(Text(text="A"), Text(text="A"))),
            ToolOutput(call_id="c2", name="read_file", content=()),
        ]
    )
    assert sent(user("Go"), asked, outputs)["messages"][1:] == [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a"}'}},
                {"id": "c2", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "b"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "AA"},
        {"role": "tool", "tool_call_id": "c2", "content": "(no output)"},
    ]


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ('{"path": "a"}', {"path": "a"}),
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
        ('{"path": "a",}', {"path": "a"}),
        ("", {}),
        ("not JSON at all", {}),
        ('{"path": "a', {}),
    ],
)
def test_arguments_go_back_as_a_json_object_whatever_was_received(
    received: str, expected: Mapping[str, object]
) -> None:
    """A server that parses them refuses the whole conversation otherwise. What was repaired is sent as it ran."""
    called = Message(role="assistant", content=(ToolCall(id="c1", name="read_file", arguments=received),))
    output = tool([ToolOutput(call_id="c1", name="read_file", content=(Text(text="x"),))])
    body = sent(user("Go"), called, output, tools=(READ_FILE,))
    function = body["messages"][2]["tool_calls"][0]["function"]
    assert body["messages"][2]["content"] is None
    assert json.loads(function["arguments"]) == expected


def test_images_of_a_user_and_of_an_output() -> None:
    """Outputs are text in this format: their images follow in a user message behind all outputs."""
    picture = Image(media_type="image/png", data="QUJD")
    seen = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    called = Message(
        role="assistant",
        content=(ToolCall(id="c1", name="shot", arguments="{}"), ToolCall(id="c2", name="shot", arguments="{}")),
    )
    outputs = tool(
        [
            ToolOutput(call_id="c1", name="shot", content=(picture,)),
            ToolOutput(call_id="c2", name="shot", content=(Text(text="two"), picture)),
        ]
    )
    messages = sent(user("Look", picture), called, outputs)["messages"]
    assert messages[1]["content"] == [{"type": "text", "text": "Look"}, seen]
    assert [message["role"] for message in messages[3:]] == ["tool", "tool", "user"]
    assert messages[4]["content"] == "two"
    assert [part for part in messages[5]["content"] if part["type"] == "image_url"] == [seen, seen]


def test_opaque_data_goes_back_to_its_own_provider_only() -> None:
    def call_of(provider: str) -> Mapping[str, Any]:
        data = ProviderData(provider=provider, data={"extra_content": {"google": {"thought_signature": "s"}}})
        asked = Message(role="assistant", content=(ToolCall(id="c1", name="f", arguments="{}", provider_data=data),))
        output = tool([ToolOutput(call_id="c1", name="f", content=(Text(text="x"),))])
        entry: Mapping[str, Any] = sent(user("Go"), asked, output)["messages"][2]["tool_calls"][0]
        return entry

    assert call_of("acme")["extra_content"] == {"google": {"thought_signature": "s"}}
    assert "extra_content" not in call_of("other")


def test_an_answer_that_was_only_thinking_is_left_out() -> None:
    messages = sent(user("a"), Message(role="assistant", content=(Thinking(text="hm"),)), user("b"))["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "user"]


def test_text_that_cannot_be_encoded_is_sent_all_the_same() -> None:
    """A file name that is not UTF-8 reaches the conversation with a lone surrogate."""
    assert sent(user("a\udcffb"))["messages"][1]["content"] == "a?b"


def test_a_message_that_stands_twice_in_a_conversation_is_sent_twice() -> None:
    again = user("go on")
    assert [message["content"] for message in sent(again, again)["messages"][1:]] == ["go on", "go on"]


def test_a_conversation_grows_and_shrinks_between_requests() -> None:
    """What is kept of earlier requests never shows in later ones."""
    first, second, third = user("1"), user("2"), user("3")

    async def run(server: ModelServer) -> None:
        async with aclosing(chat(server.url)) as provider:
            for messages, tools in (((first,), ()), ((first, second, third), (READ_FILE,)), ((third,), ())):
                await answer_of(provider, request(*messages, tools=tools))

    with ModelServer(text("a"), text("b"), text("c")) as server:
        asyncio.run(run(server))
        bodies = [asked.body for asked in server.requests]
    assert [[message["content"] for message in body["messages"][1:]] for body in bodies] == [
        ["1"],
        ["1", "2", "3"],
        ["3"],
    ]
    assert ["tools" in body for body in bodies] == [False, True, False]


def test_a_server_that_does_not_know_stream_options_is_asked_without_them() -> None:
    refusal = error(400, "Unrecognized request argument supplied: stream_options")

    async def run(server: ModelServer) -> list[str]:
        async with aclosing(chat(server.url)) as provider:
            return [text_of(await answer_of(provider)) for _ in range(2)]

    with ModelServer(refusal, text("one"), text("two")) as server:
        assert asyncio.run(run(server)) == ["one", "two"]
        assert ["stream_options" in asked.body for asked in server.requests] == [True, False, False]


def test_that_second_try_is_made_once_only() -> None:
    refusal = error(400, "stream_options is not supported")
    assert isinstance(failure(refusal, refusal, text("never")), BadRequest)


# What is understood


@transports
def test_an_answer_with_thinking_text_and_usage(transport: Transport) -> None:
    answer = text("Hello, wörld 👋", chunks=4, thinking="hm")
    deltas, _ = ask(answer, transport=transport)
    assert merged(deltas) == [
        reasoning("hm"),
        TextDelta(text="Hello, wörld 👋"),
        UsageDelta(usage=Usage(input_tokens=11, output_tokens=7)),
        Stop(reason="stop"),
    ]


@transports
def test_several_calls_in_fragments(transport: Transport) -> None:
    first, second = {"path": "a.py"}, {"path": "ü", "n": 3}
    deltas, _ = ask(calls(("read_file", first), ("write_file", second), text="Well:", chunks=5), transport=transport)
    assert text_of(deltas) == "Well:"
    assert [(name, json.loads(arguments)) for _, name, arguments in calls_of(deltas)] == [
        ("read_file", first),
        ("write_file", second),
    ]
    assert deltas[-1] == Stop(reason="tool_calls")
    pieces = [delta for delta in deltas if isinstance(delta, CallDelta)]
    assert all(not (piece.id or piece.name) for piece in pieces if piece.key == 0 and piece is not pieces[0])


def test_a_burst_becomes_one_delta_of_each_kind() -> None:
    """Interfaces and logs do work for each delta, so what came in one read is not taken apart."""
    deltas, _ = ask(burst(text("word " * 200, chunks=200, thinking="hm")))
    assert len([delta for delta in deltas if isinstance(delta, TextDelta)]) == 1
    deltas, _ = ask(burst(calls(("f", {"a": "b" * 500}), chunks=100)))
    assert len([delta for delta in deltas if isinstance(delta, CallDelta)]) == 1


def test_a_delta_does_not_wait_for_the_next_one() -> None:
    """The first text is there although the server sends nothing more."""
    whole = text("first", chunks=1)
    stalled = hang_after(len(b"".join(cast("tuple[bytes, ...]", whole.steps[:2]))), whole)

    async def run(server: ModelServer) -> Delta:
        async with aclosing(chat(server.url)) as provider:
            stream = provider.stream(request())
            delta = await anext(stream)
            await cast("Any", stream).aclose()
            return delta

    with ModelServer(stalled) as server:
        assert asyncio.run(run(server)) == TextDelta(text="first")
        assert server.requests[0].gone.wait(50), "closing the answer early must close the connection"


SAMPLE = (
    b": welcome\r\n\r\n"
    + "".join(
        f"data: {json.dumps(payload, ensure_ascii=False)}\r\n\r\n"
        for payload in (
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning_content": "hm"}),
            chunk({"content": "Grüß\u2028Gott\u0085👋"}),
            call_piece('{"path": "ä', index=0, id="c1", name="read_file"),
            call_piece('b"}', index=0),
            chunk({}, "tool_calls"),
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
        )
    ).encode()
    + b"data: [DONE]\r\n\r\n"
)
SAMPLE_DELTAS = [
    reasoning("hm"),
    TextDelta(text="Grüß\u2028Gott\u0085👋"),
    CallDelta(key=0, id="c1", name="read_file", arguments='{"path": "äb"}'),
    UsageDelta(usage=Usage(input_tokens=3, output_tokens=4)),
    Stop(reason="tool_calls"),
]


def decoded(*reads: bytes) -> list[Delta]:
    stream = ChatStream(endpoint("http://acme.example/v1"), "http://acme.example/v1/chat/completions")
    deltas = [delta for read in reads for delta in stream.feed(read)]
    deltas += stream.finish()
    assert stream.failure is None
    return merged(deltas)


def test_a_stream_cut_at_any_byte_means_the_same() -> None:
    """Cuts inside a character, a CRLF, a field name and a JSON escape included."""
    assert decoded(SAMPLE) == SAMPLE_DELTAS
    for cut in range(1, len(SAMPLE)):
        assert decoded(SAMPLE[:cut], SAMPLE[cut:]) == SAMPLE_DELTAS


@transports
def test_a_stream_in_single_bytes_means_the_same(transport: Transport) -> None:
    steps = tuple(SAMPLE[i : i + 1] for i in range(len(SAMPLE)))
    deltas, _ = ask(raw(SAMPLE).replace(steps=steps), transport=transport)
    assert merged(deltas) == SAMPLE_DELTAS


CALL_STREAMS: Mapping[str, tuple[list[dict[str, Any]], list[tuple[str, str, str]]]] = {
    "name repeated in each piece": (
        [
            call_piece('{"a":', index=0, id="x", name="f"),
            call_piece(" 1", index=0, id="x", name="f"),
            call_piece("}", index=0, name="f"),
        ],
        [("x", "f", '{"a": 1}')],
    ),
    "an empty piece with the name after the last": (
        [call_piece('{"a": 1}', index=0, id="x", name="f"), call_piece("", index=0, name="f")],
        [("x", "f", '{"a": 1}')],
    ),
    "no index": (
        [
            call_piece('{"a":', id="x", name="f"),
            call_piece(" 1}"),
            call_piece("{}", id="y", name="g"),
        ],
        [("x", "f", '{"a": 1}'), ("y", "g", "{}")],
    ),
    "index always 0": (
        [
            call_piece('{"a":', index=0, id="x", name="f"),
            call_piece(" 1}", index=0),
            call_piece("{}", index=0, id="y", name="f"),
        ],
        [("x", "f", '{"a": 1}'), ("y", "f", "{}")],
    ),
    "index always 0, the first without arguments": (
        [call_piece("", index=0, id="x", name="f"), call_piece("{}", index=0, id="y", name="f")],
        [("x", "f", ""), ("y", "f", "{}")],
    ),
    "index always 0, ids repeated and mixed": (
        [
            call_piece("[1", index=0, id="x", name="f"),
            call_piece("[2", index=0, id="y", name="g"),
            call_piece("]", index=0, id="x"),
            call_piece("]", index=0, id="y"),
        ],
        [("x", "f", "[1]"), ("y", "g", "[2]")],
    ),
    "interleaved by index": (
        [
            call_piece("", index=0, id="x", name="f"),
            call_piece("", index=1, id="y", name="g"),
            call_piece("1", index=0),
            call_piece("2", index=1),
            call_piece("1", index=0),
        ],
        [("x", "f", "11"), ("y", "g", "2")],
    ),
    "no ids, no index, whole calls": (
        [call_piece('{"a": 1}', name="f"), call_piece('{"a": 2}', name="f"), call_piece("{}", name="g")],
        [("call_0", "f", '{"a": 1}'), ("call_1", "f", '{"a": 2}'), ("call_2", "g", "{}")],
    ),
    "one id for two calls": (
        [call_piece("{}", index=0, id="x", name="f"), call_piece("{}", index=1, id="x", name="g")],
        [("x", "f", "{}"), ("call_0", "g", "{}")],
    ),
    "the name comes late": (
        [call_piece('{"a"', index=0, id="x"), call_piece(": 1}", index=0, name="f")],
        [("x", "f", '{"a": 1}')],
    ),
    "the name in pieces": (
        [
            call_piece("", index=0, id="x", name="read"),
            call_piece("", index=0, name="_fi"),
            call_piece("", index=0, id="x", name="le"),
            call_piece('{"a": 1}', index=0, name="read_file"),
        ],
        [("x", "read_file", '{"a": 1}')],
    ),
    "the name so far in each piece": (
        [call_piece("", index=0, id="x", name="gl"), call_piece("", index=0, id="x", name="glob")],
        [("x", "glob", "")],
    ),
    "two calls without arguments at one place": (
        [call_piece("", index=0, name="f", type="function"), call_piece("", index=0, name="g", type="function")],
        [("call_0", "f", ""), ("call_1", "g", "")],
    ),
    "no name at all": ([call_piece("{}", index=0, id="x")], [("x", "", "{}")]),
    "arguments as an object": (
        [call_piece({"a": [1, "ü"]}, index=0, id="x", name="f")],
        [("x", "f", '{"a": [1, "ü"]}')],
    ),
    "arguments null": ([call_piece(None, index=0, id="x", name="f")], [("x", "f", "")]),
    "the older function_call": (
        [
            chunk({"function_call": {"name": "f", "arguments": '{"a"'}}),
            chunk({"function_call": {"arguments": ": 1}"}}, "function_call"),
        ],
        [("call_0", "f", '{"a": 1}')],
    ),
}


@pytest.mark.parametrize("kind", CALL_STREAMS)
def test_calls_are_told_apart_however_a_server_numbers_them(kind: str) -> None:
    payloads, expected = CALL_STREAMS[kind]
    deltas, _ = ask(events(*payloads, chunk({}, "stop")))
    assert calls_of(deltas) == expected
    assert deltas[-1] == Stop(reason="tool_calls")
    assert len({delta.key for delta in deltas if isinstance(delta, CallDelta)}) == len(expected)


def test_a_name_in_pieces_that_are_read_one_by_one_comes_whole() -> None:
    pieces = [call_piece("", index=0, id="x", name="read"), call_piece("", index=0, name="_file")]
    deltas, _ = ask(paced(0.01, events(*pieces, call_piece("{}", index=0), chunk({}, "stop"))))
    assert next(delta.name for delta in deltas if isinstance(delta, CallDelta)) == "read_file"
    assert calls_of(deltas) == [("x", "read_file", "{}")]


def test_a_call_without_arguments_keeps_its_place() -> None:
    pieces = [call_piece("", index=0, id="x", name="f"), call_piece("{}", index=1, id="y", name="g")]
    deltas, _ = ask(paced(0.01, events(*pieces, chunk({}, "stop"))))
    assert calls_of(deltas) == [("x", "f", ""), ("y", "g", "{}")]


def test_a_name_that_no_tool_can_have_makes_the_answer_a_broken_one() -> None:
    with pytest.raises(StreamBroken, match="unknown shape"):
        ask(events(call_piece("{}", index=0, id="x", name="g" * 10_000), chunk({}, "stop")))


def test_made_up_ids_are_new_to_the_conversation() -> None:
    earlier = Message(role="assistant", content=(ToolCall(id="call_0", name="f", arguments="{}"),))
    output = tool([ToolOutput(call_id="call_0", name="f", content=(Text(text="x"),))])
    deltas, _ = ask(events(call_piece("{}", name="f"), chunk({}, "stop")), asked=request(user("a"), earlier, output))
    assert calls_of(deltas) == [("call_1", "f", "{}")]


def test_opaque_data_of_a_call_is_kept() -> None:
    extra = {"google": {"thought_signature": "abc"}}
    deltas, _ = ask(events(call_piece("{}", index=0, id="x", name="f", extra_content=extra), chunk({}, "stop")))
    (piece,) = [delta for delta in deltas if isinstance(delta, CallDelta)]
    assert piece.provider_data == ProviderData(provider="acme", data={"extra_content": extra})


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "refused"), ("eos", "stop"), ("max_tokens", "length")],
)
def test_reasons_to_stop(finish: str, reason: StopReason) -> None:
    deltas, _ = ask(text("x", finish=finish))
    assert deltas[-1] == Stop(reason=reason)


@pytest.mark.parametrize(
    ("finish", "reason"), [("stop", "tool_calls"), ("tool_calls", "tool_calls"), ("length", "length")]
)
def test_reasons_to_stop_after_a_call(finish: str, reason: StopReason) -> None:
    """Many servers say "stop"; a call that was cut off by the limit is still said to be so."""
    deltas, _ = ask(calls(("f", {}), finish=finish))
    assert deltas[-1] == Stop(reason=reason)


def test_a_refusal_is_text_with_its_reason() -> None:
    deltas, _ = ask(events(chunk({"refusal": "I cannot."}), chunk({}, "stop")))
    assert deltas == [TextDelta(text="I cannot."), Stop(reason="refused")]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_both_names_of_reasoning(field: str) -> None:
    deltas, _ = ask(events(chunk({field: "hm"}), chunk({"content": "x"}, "stop")))
    assert merged(deltas)[:2] == [reasoning("hm", field), TextDelta(text="x")]


def test_content_in_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "reference"}]
    deltas, _ = ask(events(chunk({"content": parts}, "stop")))
    assert text_of(deltas) == "ab"


def test_a_character_cut_in_its_utf_16_halves_is_joined() -> None:
    """Servers that count in UTF-16 cut there; a half that stays alone must not break the session file."""
    halves = [chunk({"content": "a\ud83d"}), chunk({"content": "\udc4bb"}), chunk({"content": "\ud83d"}, "stop")]
    deltas, _ = ask(paced(0.01, events(*halves)))
    assert text_of(deltas) == "a👋b\ufffd"


def test_usage_with_its_details() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 5},
        "completion_tokens_details": {"reasoning_tokens": 30},
        "cost": 0.5,
    }
    deltas, _ = ask(text("x", usage=usage))
    assert deltas[-2] == UsageDelta(
        usage=Usage(
            input_tokens=100,
            output_tokens=50,  # this service counts reasoning in the total only
            cache_read_tokens=60,
            cache_write_tokens=5,
            reasoning_tokens=30,
            cost=0.5,
        )
    )


COUNTS = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
OWN_KEY = {"is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}}


@pytest.mark.parametrize(
    ("stated", "cost"),
    [
        ({"cost": 0.5}, 0.5),
        ({"cost": 0}, None),  # what a gateway states for what it does not bill itself
        ({"cost": 0.0, **OWN_KEY}, 0.25),
        ({"cost": 0.05, **OWN_KEY}, 0.3),
        ({"cost": 0.5, **OWN_KEY, "is_byok": False}, 0.5),
        ({"cost": {"input_tokens_cost": 0.1, "request_cost": 0.2, "total_cost": 0.3}}, 0.3),  # Perplexity
        ({"cost": {"total_cost": "0.3"}}, None),
        ({"cost": -1}, None),
    ],
)
def test_the_cost_that_a_service_states(stated: dict[str, Any], cost: float | None) -> None:
    deltas, _ = ask(text("x", usage={**COUNTS, **stated}))
    assert isinstance(deltas[-2], UsageDelta)
    assert deltas[-2].usage.cost == (None if cost is None else pytest.approx(cost))


def test_a_model_that_is_free_by_its_name_may_cost_nothing() -> None:
    deltas, _ = ask(text("x", usage={**COUNTS, "cost": 0}), model="maker/model:free")
    assert isinstance(deltas[-2], UsageDelta)
    assert deltas[-2].usage.cost == 0


@pytest.mark.parametrize(
    "chunks",
    [
        [
            {**chunk({"content": "x"}), "usage": COUNTS},
            chunk({}, "stop"),
            {"choices": [], "usage": {"prompt_tokens": 0}},
        ],
        [chunk({"content": "x"}), {"choices": [{"delta": {}, "finish_reason": "stop", "usage": COUNTS}]}],  # Kimi
    ],
    ids=["zeros at the end", "in the choice"],
)
def test_counts_in_odd_places(chunks: list[dict[str, Any]]) -> None:
    deltas, _ = ask(events(*chunks))
    counts = [delta.usage for delta in deltas if isinstance(delta, UsageDelta)]
    assert counts[-1] == Usage(input_tokens=100, output_tokens=20)


@transports
@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_an_end_without_done_is_fine_after_a_reason(transport: Transport, framing: str) -> None:
    answer = events(chunk({"content": "x"}), chunk({}, "stop"), done=False).replace(framing=framing)
    deltas, _ = ask(answer, transport=transport)
    assert deltas == [TextDelta(text="x"), Stop(reason="stop")]


@transports
def test_a_connection_lost_after_the_reason_loses_nothing(transport: Transport) -> None:
    answer = events(chunk({"content": "x"}, "stop"), done=False).replace(ending="cut")
    deltas, _ = ask(answer, transport=transport)
    assert deltas == [TextDelta(text="x"), Stop(reason="stop")]


def test_done_without_a_reason_is_an_end() -> None:
    deltas, _ = ask(events(chunk({"content": "x"})))
    assert deltas == [TextDelta(text="x"), Stop(reason="stop")]


@transports
def test_done_ends_the_answer_though_the_connection_stays_open(transport: Transport) -> None:
    deltas, _ = ask(text("x").replace(ending="hang"), transport=transport, silence=300.0)
    assert deltas[-1] == Stop(reason="stop")


def test_an_empty_answer_is_an_empty_answer() -> None:
    deltas, _ = ask(events(chunk({"role": "assistant", "content": ""}), chunk({}, "stop")))
    assert deltas == [Stop(reason="stop")]


def test_one_json_document_is_an_answer_too() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    message = {"role": "assistant", "content": "Hi", "tool_calls": [{"id": "x", "function": function}]}
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    deltas, _ = ask(document({"choices": [choice], "usage": usage}))
    assert deltas == [
        TextDelta(text="Hi"),
        CallDelta(key=0, id="x", name="f", arguments='{"a": 1}'),
        UsageDelta(usage=Usage(input_tokens=3, output_tokens=4)),
        Stop(reason="tool_calls"),
    ]


@pytest.mark.slow
def test_64_kb_of_arguments_in_tiny_pieces_are_linear() -> None:
    """Four times the size takes about four times as long, not sixteen; also where every piece has the name."""

    def seconds(size: int) -> float:
        piece = call_piece("a}b}", index=0, name="f")
        body = f"data: {json.dumps(piece)}\n\n".encode() * (size // 4)
        stream = ChatStream(endpoint("http://acme.example"), "http://acme.example")
        started = time.process_time()
        for start in range(0, len(body), 64):
            stream.feed(body[start : start + 64])
        return time.process_time() - started

    small = min(seconds(16 * 1024) for _ in range(2))
    large = min(seconds(64 * 1024) for _ in range(2))
    assert large < 10 * small


# How it fails


@transports
def test_an_answer_cut_in_the_middle(transport: Transport) -> None:
    whole = text("Grüße aus Wien", chunks=["Grüße ", "aus Wien"])
    head = b"".join(cast("tuple[bytes, ...]", whole.steps[:2]))

    async def run(server: ModelServer) -> tuple[str, str]:
        seen: list[Delta] = []
        async with aclosing(chat(server.url, transport=transport)) as provider:
            with pytest.raises(StreamBroken) as raised:
                await answer_of(provider, into=seen)
        return text_of(seen), str(raised.value)

    for cut in (len(head), len(head) + 40, len(whole.body) - 400):
        with ModelServer(cut_after(cut, whole)) as server:
            seen, said = asyncio.run(run(server))
        assert seen.startswith("Grüße "), "what came before the cut is not lost"
        assert "acme" in said
        assert "broke off" in said


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_an_end_without_a_reason_is_a_broken_answer(framing: str) -> None:
    answer = events(chunk({"content": "x"}), done=False).replace(framing=framing)
    assert "broke off" in str(failure(answer))


@pytest.mark.parametrize(
    "answer",
    [
        raw(b""),
        raw(b'data: {"choices": [{"delta": {"content": \n\n'),
        raw(b"data: nonsense\n\n"),
        events("[]"),
        events('"text"'),
        events({"choices": "many"}),
        events({"choices": [{"delta": {"content": 5}}]}),
        events({"choices": [{"delta": {"tool_calls": [5]}}]}),
        events({"choices": [{"delta": {}, "finish_reason": "error"}]}),
        document({"detail": "not here"}),
        document([]),
        raw(b'{"choices": [{"mess', {"content-type": "application/json"}),
    ],
)
def test_what_is_no_chat_completion_is_a_broken_answer(answer: Answer) -> None:
    found = failure(answer)
    assert isinstance(found, StreamBroken)
    assert "/v1/chat/completions" in str(found)


def test_malformed_json_is_shown_shortly() -> None:
    found = failure(raw(b"data: oops " + b"x" * 5000 + b"\n\n"))
    assert "oops xxx" in str(found)
    assert len(str(found)) < 400


def test_what_a_service_sends_cannot_steer_the_terminal() -> None:
    found = failure(raw(b"data: oops \x1b]0;title\x07\x1b[31m red\n\n"))
    assert "oops" in str(found)
    assert str(found).isprintable()


def test_a_web_page_names_the_url_and_what_to_do() -> None:
    found = failure(html())
    assert isinstance(found, Unreachable), "which is not tried again"
    assert "/v1/chat/completions" in str(found)
    assert "base URL" in str(found)


@pytest.mark.parametrize(
    ("reported", "kind"),
    [
        ({"message": "Provider returned error", "code": 502}, Overloaded),
        ({"message": "slow down", "code": 429}, RateLimited),
        ({"message": "Rate limit reached", "type": "rate_limit_exceeded"}, RateLimited),
        ({"message": "no more", "code": "insufficient_quota"}, QuotaExhausted),
        ({"message": "The server had an error", "type": "server_error"}, Overloaded),
        ({"message": "Overloaded", "type": "overloaded_error"}, Overloaded),
        ({"message": "maximum context length is 8192 tokens"}, ContextOverflow),
        ({"message": "Incorrect API key provided"}, AuthFailed),
        ({"message": "Failed to call a function", "code": "tool_use_failed"}, StreamBroken),
        ({"message": "something else"}, StreamBroken),
        ("plain text", StreamBroken),
    ],
)
def test_an_error_object_inside_a_good_answer(reported: object, kind: type[ProviderError]) -> None:
    """It has its type, and what came before it is not lost, though it came in the same read."""
    stream = burst(events(chunk({"content": "partial"}), {"error": reported}))

    async def run(server: ModelServer) -> tuple[list[Delta], ProviderError]:
        seen: list[Delta] = []
        async with aclosing(chat(server.url)) as provider:
            with pytest.raises(ProviderError) as raised:
                await answer_of(provider, into=seen)
        return seen, raised.value

    with ModelServer(stream) as server:
        seen, found = asyncio.run(run(server))
    assert seen == [TextDelta(text="partial")]
    assert type(found) is kind
    message = reported["message"] if isinstance(reported, dict) else reported
    assert str(message) in str(found)


FAILURES: list[tuple[int, object, type[ProviderError], str]] = [
    (401, "bad key", AuthFailed, "Check the key"),
    (403, "not allowed", AuthFailed, "ACME_API_KEY"),
    (402, "Insufficient credits", QuotaExhausted, "billing"),
    (429, "slow down", RateLimited, "Wait a little"),
    (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, QuotaExhausted, ""),
    (429, "Your credit balance is too low", QuotaExhausted, "credit"),
    (413, "Request too large", ContextOverflow, "/compact"),
    (400, {"error": {"message": "m", "code": "context_length_exceeded"}}, ContextOverflow, "scripted"),
    (400, "This model's maximum context length is 8192 tokens", ContextOverflow, ""),
    (400, "the request exceeds the available context size", ContextOverflow, ""),
    (400, {"error": {"message": "m", "code": "content_policy_violation"}}, Refused, "Rephrase"),
    (403, "Your input was flagged by moderation", Refused, ""),
    (400, "temperature must be below 2", BadRequest, "temperature must be below 2"),
    (400, "max_tokens is too large: 99999", BadRequest, "max_tokens"),
    (400, "model scripted does not support tools", BadRequest, "does not support tools"),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, BadRequest, "field required"),
    (405, {"message": "method not allowed"}, BadRequest, "method not allowed"),
    (400, {"error": "just text"}, BadRequest, "just text"),
    (400, [{"error": {"code": 400, "message": "in a list"}}], BadRequest, "in a list"),
    (400, {"error": {"message": "outer", "metadata": {"raw": "inner reason"}}}, BadRequest, "inner reason"),
    (500, "boom", Overloaded, "boom"),
    (503, {"detail": "loading"}, Overloaded, "loading"),
    (529, "overloaded", Overloaded, "Try again"),
    (408, "timeout", Overloaded, ""),
]


@pytest.mark.parametrize(("status", "body", "kind", "advice"), FAILURES)
def test_http_errors_have_their_type_and_say_what_to_do(
    status: int, body: object, kind: type[ProviderError], advice: str
) -> None:
    found = failure(error(status, body))
    assert type(found) is kind
    assert (found.status, found.provider) == (status, "acme")
    assert advice in str(found)
    assert str(status) in str(found)


@pytest.mark.parametrize(
    ("headers", "low", "high"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": "0.5"}, 0.5, 0.5),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
    ],
)
def test_retry_after_in_seconds_or_as_a_date(headers: Mapping[str, str], low: float, high: float) -> None:
    found = failure(error(429, "slow down", headers))
    assert isinstance(found, RateLimited)
    assert found.retry_after is not None
    assert low <= found.retry_after <= high


def test_retry_after_as_a_date_that_is_to_come() -> None:
    begun = datetime.now(UTC)
    date = format_datetime(begun + timedelta(seconds=90), usegmt=True)
    found = failure(error(429, "slow down", {"Retry-After": date}))
    passed = (datetime.now(UTC) - begun).total_seconds()
    assert isinstance(found, RateLimited)
    assert found.retry_after is not None
    assert 88 - passed <= found.retry_after <= 91


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "soon"}, {"Retry-After": "inf"}, {"Retry-After": "nan"}])
def test_without_a_usable_retry_after_there_is_none(headers: Mapping[str, str]) -> None:
    found = failure(error(429, "slow down", headers))
    assert isinstance(found, RateLimited)
    assert found.retry_after is None


def test_a_limit_a_minute_that_calls_itself_a_quota_passes() -> None:
    """Gemini's: the text of an exhausted account, and a time to come back."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    body = [{"error": {"code": 429, "message": "You exceeded your current quota", "details": details}}]
    found = failure(error(429, body))
    assert isinstance(found, RateLimited)
    assert found.retry_after == 34


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "The model `scripted` does not exist or you do not have access to it."),
        (400, {"error": {"message": "m", "code": "model_not_found"}}),
        (400, "scripted is not a valid model ID"),
        (400, "The model scripted has been decommissioned and is no longer supported"),
        (404, "Not Found"),
    ],
)
def test_a_model_that_is_not_served_names_those_that_are(status: int, said: object) -> None:
    async def run(server: ModelServer) -> ProviderError:
        async with aclosing(chat(server.url, model="qwen3-32")) as provider:
            with pytest.raises(ProviderError) as raised:
                await answer_of(provider)
            return raised.value

    with ModelServer(
        error(status, said), models=["llama-70b", *(f"m{i}" for i in range(20)), "qwen/qwen3-32b"]
    ) as server:
        found = asyncio.run(run(server))
        assert server.requests[-1].path == "/v1/models"
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert isinstance(found, ModelNotFound)
    assert "qwen/qwen3-32b" in found.served
    said_text = str(found)
    assert "qwen3-32" in said_text
    assert said_text.index("qwen/qwen3-32b") < said_text.index("llama-70b"), "the nearest name comes first"
    assert "more" in said_text
    assert "--model" in said_text


def test_a_model_that_is_listed_and_refused_is_told_as_that() -> None:
    """Accounts have no access to every model; "it serves m1, and not m1" would help nobody."""
    found = failure(error(404, "The model `scripted` does not exist or you do not have access to it."))
    assert isinstance(found, ModelNotFound)
    assert "lists the model 'scripted', but this account may not use it" in str(found)
    assert str(found).count("scripted") == 1, "it is not offered as another one"


def test_a_list_of_models_is_taken_as_it_can_be_used() -> None:
    """What nobody could type is no name, and there is an end to them."""
    names = ["good", "x" * 100_000, "\x1b]0;title\x07", "\u202eevil", *(f"m{i}" for i in range(20_000))]

    async def run(server: ModelServer) -> list[str]:
        async with aclosing(chat(server.url)) as provider:
            return [model.name for model in await provider.served()]

    with ModelServer(models=names) as server:
        served = asyncio.run(run(server))
    assert served[:2] == ["good", "m0"]
    assert len(served) <= 5_000


class NeverContent(ChatCompletions):
    """An adapter that finds something to leave out of every request."""

    async def _adapted(self, request: Request, status: int, said: bytes) -> bool:
        return True


def test_what_is_sent_again_without_a_pause_has_an_end() -> None:
    """I22"""
    with ModelServer(*[error(400, "no such field")] * 100) as server:

        async def run() -> None:
            made = NeverContent(endpoint(server.url), lambda: make_client(HttpSettings(), timeout_read=50.0, tls=None))
            async with aclosing(made) as provider:
                with pytest.raises(BadRequest):
                    await answer_of(provider)

        asyncio.run(run())
        assert len(server.requests) < 20


def test_a_path_that_does_not_exist_is_no_missing_model() -> None:
    """The model is served, so it must be the URL."""
    found = failure(error(404, "Not Found"))
    assert type(found) is BadRequest
    assert "/v1/chat/completions" in str(found)
    assert "base URL" in str(found)


def test_a_redirect_names_the_new_address() -> None:
    found = failure(error(308, "moved", {"Location": "https://acme.example/v2/chat/completions?key=secret"}))
    assert "https://acme.example/v2/chat/completions" in str(found)
    assert "secret" not in str(found)


def test_an_error_page_of_a_gateway_is_shown_as_text() -> None:
    page = b"<html><head><style>b{}</style></head><body><h1>502 Bad Gateway</h1></body></html>"
    found = failure(raw(page, {"content-type": "text/html"}, status=502))
    assert isinstance(found, Overloaded)
    assert "502 Bad Gateway" in str(found)
    assert "<" not in str(found)


def test_long_bodies_are_cut() -> None:
    assert len(str(failure(error(400, "x" * 100_000)))) < 1000
    assert len(str(failure(raw(b"y" * 1_000_000, status=500)))) < 1000


@transports
def test_nobody_listens(transport: Transport) -> None:
    with ModelServer() as server:
        url = server.url

    async def run() -> ProviderError:
        async with aclosing(chat(url, transport=transport)) as provider:
            with pytest.raises(Unreachable) as raised:
                await answer_of(provider)
            return raised.value

    said = str(asyncio.run(run()))
    assert url in said
    assert "Is the server running?" in said


@pytest.mark.parametrize(
    "url", ["no-such-host.invalid", "ftp://acme.example/v1", "http://", "http://[::1", "http://a b/"]
)
def test_a_base_url_that_is_none(url: str) -> None:
    async def run() -> ProviderError:
        async with aclosing(chat(url)) as provider:
            with pytest.raises(Unreachable) as raised:
                await answer_of(provider)
            return raised.value

    assert "base URL" in str(asyncio.run(run()))


@transports
@pytest.mark.parametrize("answer", [hang(), hang_after(200, text("x" * 500, chunks=10))])
def test_silence_is_noticed(transport: Transport, answer: Answer) -> None:
    found = failure(answer, transport=transport, silence=0.2)
    assert isinstance(found, Unreachable)
    assert "0.2 s" in str(found)


@pytest.mark.slow
def test_silence_is_counted_from_the_last_piece_of_the_answer() -> None:
    """An answer may take longer than the limit as long as something of it comes."""
    deltas, _ = ask(paced(0.25, text("x" * 12, chunks=12)), silence=2.0)
    assert text_of(deltas) == "x" * 12


@transports
def test_a_server_that_closes_without_an_answer(transport: Transport) -> None:
    found = failure(drop(), transport=transport)
    assert isinstance(found, StreamBroken)
    assert " gave no usable answer: " in str(found)
    assert str(found).endswith(". Try again.")


@transports
def test_cancelling_closes_the_connection(transport: Transport) -> None:
    async def run(server: ModelServer) -> None:
        async with aclosing(chat(server.url, transport=transport, silence=300.0)) as provider:
            task = asyncio.create_task(answer_of(provider))
            await asyncio.to_thread(server.wait_for, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with ModelServer(hang()) as server:
        asyncio.run(run(server))
        assert server.requests[0].gone.wait(50)


def test_answers_share_a_connection() -> None:
    async def run(server: ModelServer, ends: Sequence[int]) -> None:
        async with aclosing(chat(server.url)) as provider:
            for ended in ends:
                await answer_of(provider)
                await asyncio.to_thread(server.wait_for_ends, ended)

    with ModelServer(text("a"), error(500), text("b")) as server:
        with pytest.raises(Overloaded):
            asyncio.run(run(server, ends=(0, 0, 0)))
        assert {asked.connection for asked in server.requests} == {1}
    with ModelServer(text("a"), closing(text("b")), text("c")) as server:
        asyncio.run(run(server, ends=(0, 1, 1)))
        assert [asked.connection for asked in server.requests] == [1, 1, 2]


# Secrets


@pytest.mark.parametrize(
    "answer",
    [
        error(401, f"Incorrect API key provided: {KEY}"),
        error(400, {"echo": {"authorization": f"Bearer {KEY}"}}),
        raw(f"<html>Bearer {KEY}</html>".encode(), status=500),
        raw(f"data: oops {KEY}\n\n".encode()),
        events({"error": {"message": f"bad {KEY}"}}),
        html().replace(steps=(f"<html>{KEY}".encode(),)),
        document({"detail": KEY}),
        error(404, f"model not found for {KEY}"),
    ],
)
def test_no_error_shows_the_key(answer: Answer) -> None:
    """I24: not even where the server sends it back."""
    found = failure(answer)
    shown: BaseException | None = found
    while shown is not None:
        assert KEY not in f"{shown!s} {shown!r}"
        shown = shown.__cause__ or shown.__context__


def asked_for(number: int, *answers: Answer, transport: Transport) -> list[RecordedRequest]:
    """The requests of one provider that is asked so often, each time with a longer conversation."""

    async def run(server: ModelServer) -> None:
        async with aclosing(chat(server.url, transport=transport, headers={"x-team": "blue"})) as provider:
            for length in range(number):
                await answer_of(provider, request(*[user("Hello")] * (length + 1)))

    with ModelServer(*answers) as server:
        asyncio.run(run(server))
        return server.requests


@transports
def test_later_requests_have_the_headers_of_the_first_and_their_own_length(transport: Transport) -> None:
    first, *others = asked_for(3, *[text("Hello.")] * 3, transport=transport)
    for other in others:
        assert list(other.headers) == list(first.headers)
        assert {**other.headers, "content-length": ""} == {**first.headers, "content-length": ""}
        assert other.headers["content-length"] == str(len(other.content))
        assert len(other.content) > len(first.content)


@transports
def test_a_cookie_of_the_service_comes_back_with_the_next_request(transport: Transport) -> None:
    given = text("Hello.")
    given = given.replace(headers=(*given.headers, ("set-cookie", "route=7")))
    requests = asked_for(3, given, text("Hello."), text("Hello."), transport=transport)
    assert [asked.headers.get("cookie") for asked in requests] == [None, "route=7", "route=7"]


def test_no_error_shows_a_secret_header_or_the_query() -> None:
    """I24: keys also come in headers of config.yaml and in the base URL."""
    found = failure(error(400, "bad header hunter2hunter2"), headers={"x-api-key": "hunter2hunter2"})
    assert "hunter2" not in str(found)

    async def run() -> ProviderError:
        async with aclosing(chat("http://me:hunter2@127.0.0.1:1/v1?key=hunter2")) as provider:
            with pytest.raises(Unreachable) as raised:
                await answer_of(provider)
            return raised.value

    found = asyncio.run(run())
    assert "hunter2" not in str(found)
    assert "127.0.0.1:1/v1" in str(found)


@pytest.mark.parametrize("key", ["sk-secret\nsecret", "sk-secret-schlüssel", "sk-secret\x00"])
@transports
def test_a_key_that_cannot_be_sent(key: str, transport: Transport) -> None:
    """I24: the libraries below would show it in their own errors."""
    found = failure(text("never"), key=Secret(key), transport=transport)
    assert isinstance(found, AuthFailed)
    assert "ACME_API_KEY" in str(found)
    assert "sk-secret" not in str(found)


def test_a_short_stand_in_for_a_key_is_no_secret() -> None:
    """Local servers are given "none"; cutting it out of every text would garble them."""
    assert "); the report does not list these tests" in str(
        failure(error(400, "); the report does not list these tests"), key=Secret("none"))
    )


def test_the_factory_makes_a_provider_that_connects_when_it_is_asked() -> None:
    def connect() -> httpx.AsyncClient:
        raise AssertionError("a client before the first request")

    provider = create(endpoint("http://127.0.0.1:1/v1", context_window=9, max_tools=3), connect)
    assert (provider.name, provider.model) == ("acme", "scripted")
    assert (provider.context_window, provider.max_tools) == (9, 3)
    asyncio.run(provider.aclose())


def test_a_message_is_encoded_once() -> None:
    """So that round 20 costs what round 2 does: only what is new since the last request is encoded."""
    wire = ChatWire(endpoint("http://acme.example/v1"))
    asked = request(*(user(f"line {number}\n" * 20) for number in range(3000)))

    first = times_called("dump", lambda: wire.body(asked, wire.optional(asked)))
    more = asked.replace(messages=(*asked.messages, user("more")))
    later = times_called("dump", lambda: wire.body(more, wire.optional(more)))
    assert later < first / 100
