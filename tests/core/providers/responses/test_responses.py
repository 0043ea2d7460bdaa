"""The Responses API adapter against a real server: what is sent, what is understood, how it fails."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    from_dict,
    to_dict,
    tool,
    user,
)
from marvin_core.api.providers import (
    CallDelta,
    Delta,
    Request,
    Secret,
    Stop,
    TextDelta,
    ThinkingDelta,
    ThinkingLevel,
    UsageDelta,
)
from marvin_core.api.tools import ToolSpec
from marvin_core.engine.assembly import Assembly
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.resilient import Resilient
from marvin_core.providers.responses.provider import Responses, create
from marvin_core.providers.responses.request import ResponsesWire
from marvin_core.providers.responses.stream import ResponsesStream
from marvin_core.testing import (
    Answer,
    ModelServer,
    RecordedRequest,
    burst,
    cut_after,
    document,
    drop,
    error,
    hang,
    hang_after,
    html,
    raw,
)
from tests.support import answers_responses as responses
from tests.support.chatting import KEY, TIMEOUTS, TRANSPORTS, Transport, answer_of, calls_of, endpoint, request, text_of
from tests.support.counting import times_called
from tests.support.engine import make, run
from tests.support.examples import examples

MODEL = "gpt-5.1"
READ_FILE = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    access=frozenset({"read"}),
)
PICTURE = Image(media_type="image/png", data="QUJD")
USED = UsageDelta(usage=Usage(input_tokens=11, output_tokens=7, cache_read_tokens=4, reasoning_tokens=3))
transports = pytest.mark.parametrize("transport", TRANSPORTS)


def connected(base_url: str, *, transport: Transport = "direct", silence: float = 50.0, **changes: Any) -> Responses:
    """The adapter; `changes` are fields of its endpoint."""
    settings = HttpSettings(transport=transport, timeouts=TIMEOUTS)
    given = endpoint(base_url, **{"timeouts": TIMEOUTS, "model": MODEL, "max_tools": 128, **changes})
    return Responses(given, lambda: make_client(settings, timeout_read=silence, tls=None))


def ask(*script: Answer, asked: Request | None = None, **options: Any) -> tuple[list[Delta], list[RecordedRequest]]:
    """One answer to one request, and what the server was asked for it."""

    async def go(server: ModelServer) -> list[Delta]:
        async with aclosing(connected(server.url, **options)) as provider:
            return await answer_of(provider, asked)

    with ModelServer(*script) as server:
        return asyncio.run(go(server)), server.requests


def sent(*messages: Message, **options: Any) -> dict[str, Any]:
    """The body of a request with these messages."""
    fields = {name: options.pop(name) for name in list(options) if name in Request._defaults}
    _, requests = ask(responses.text("ok"), asked=request(*messages, **fields), **options)
    body: dict[str, Any] = requests[-1].body
    return body


def failure(*script: Answer, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(*script, **options)
    return raised.value


def assembled(deltas: Sequence[Delta], provider: str = "acme", model: str = MODEL) -> Message:
    """The message that the agent makes of an answer, after it was written to a session and read back."""
    assembly = Assembly(provider, model)
    for delta in deltas:
        assembly.feed(delta)
    return from_dict(json.loads(json.dumps(to_dict(assembly.message()))))


def output(call_id: str, *content: Text | Image, name: str = "read_file", is_error: bool = False) -> ToolOutput:
    return ToolOutput(call_id=call_id, name=name, content=content, is_error=is_error)


# What is sent


def test_a_plain_request() -> None:
    """Nothing is stored at the service, and reasoning is asked for in the form that can be sent back."""
    deltas, requests = ask(responses.text("Hi"), headers={"x-team": "blue"})
    assert text_of(deltas) == "Hi"
    (asked,) = requests
    assert (asked.method, asked.path) == ("POST", "/v1/responses")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["x-team"] == "blue"
    assert asked.body == {
        "model": MODEL,
        "stream": True,
        "store": False,
        "instructions": "Be brief.",
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "none"},
        "prompt_cache_key": asked.body["prompt_cache_key"],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}],
    }


@pytest.mark.parametrize("ending", ["", "/", "/responses", "/responses/", "?version=1"])
def test_the_base_url_may_name_the_whole_path(ending: str) -> None:
    async def go(server: ModelServer) -> str:
        async with aclosing(connected(server.url + ending)) as provider:
            return text_of(await answer_of(provider))

    with ModelServer(responses.text("Hi")) as server:
        assert asyncio.run(go(server)) == "Hi"
        assert server.requests[0].path == "/v1/responses" + (ending if "?" in ending else "")


def test_tools_and_limits_are_sent_as_asked() -> None:
    body = sent(tools=(READ_FILE,), tool_choice="none", max_output_tokens=99)
    assert body["tools"] == [
        {
            "type": "function",
            "name": "read_file",
            "description": "Read a file.",
            "parameters": dict(READ_FILE.parameters),
            "strict": False,
        }
    ]
    assert body["tool_choice"] == "none"
    assert body["parallel_tool_calls"] is True
    assert body["max_output_tokens"] == 99


def test_the_smallest_answer_that_the_service_takes() -> None:
    assert sent(max_output_tokens=1)["max_output_tokens"] == 16


def test_without_tools_nothing_is_said_about_tools() -> None:
    assert sent(tool_choice="none").keys().isdisjoint({"tools", "tool_choice", "parallel_tool_calls"})


def test_a_provider_is_never_sent_more_tools_than_it_takes() -> None:
    tools = tuple(READ_FILE.replace(name=f"tool_{number}") for number in range(5))
    assert [entry["name"] for entry in sent(tools=tools, max_tools=3)["tools"]] == ["tool_0", "tool_1", "tool_2"]


@pytest.mark.parametrize(
    ("model", "thinking", "reasoning"),
    [
        ("gpt-5.1", "off", {"effort": "none"}),
        ("gpt-6.1-sol", "off", {"effort": "low", "summary": "auto"}),
        ("gpt-6-luna", "high", {"effort": "high", "summary": "auto"}),
        ("gpt-9", "medium", {"effort": "medium", "summary": "auto"}),
        ("gpt-5.1", "medium", {"effort": "medium", "summary": "auto"}),
        ("gpt-5", "off", {"effort": "minimal", "summary": "auto"}),
        ("gpt-5-mini", "high", {"effort": "high", "summary": "auto"}),
        ("gpt-5.3-codex", "off", {"effort": "low", "summary": "auto"}),
        ("o3", "off", {"effort": "low", "summary": "auto"}),
        ("o4-mini", "low", {"effort": "low", "summary": "auto"}),
        ("openai/gpt-5.2", "low", {"effort": "low", "summary": "auto"}),
        ("gpt-5.6-terra", "off", {"effort": "none"}),
        ("gpt-6-sol", "off", {"effort": "none"}),
        ("gpt-6-astra", "off", {"effort": "low", "summary": "auto"}),
        ("gpt-6.2-sol", "off", {"effort": "low", "summary": "auto"}),
        ("openai/gpt-7", "medium", {"effort": "medium", "summary": "auto"}),
        ("gpt-10.1-nova", "off", {"effort": "low", "summary": "auto"}),
        ("gpt-6-chat-latest", "high", None),
        ("gpt-5.2-pro", "low", {"summary": "auto"}),
        ("gpt-5-pro", "high", {"effort": "high", "summary": "auto"}),
        ("gpt-4.1", "high", None),
        ("gpt-5-chat-latest", "high", None),
        ("SmolLM2", "low", None),
    ],
)
def test_how_much_a_model_reasons(model: str, thinking: ThinkingLevel, reasoning: dict[str, str] | None) -> None:
    """Each takes other efforts, and one that does not reason refuses the fields."""
    body = sent(model=model, thinking=thinking)
    assert body.get("reasoning") == reasoning
    assert ("include" in body) == (reasoning is not None)


def test_an_effort_that_a_model_refuses_gives_way_to_the_nearest() -> None:
    """So that off stays the least that it can do, and does not become what it does by itself."""
    said = (
        "Unsupported value: 'none' is not supported with the 'gpt-6-nova' model. Supported values are: 'low', 'high'."
    )
    refused = error(400, {"error": {"message": said, "param": "reasoning.effort", "code": "unsupported_value"}})

    async def go(server: ModelServer) -> None:
        async with aclosing(connected(server.url, model="gpt-6-nova")) as provider:
            for level in ("off", "off", "high"):
                await answer_of(provider, request(thinking=level))

    with ModelServer(refused, *(responses.text("x") for _ in range(3))) as server:
        asyncio.run(go(server))
        assert [asked.body["reasoning"]["effort"] for asked in server.requests] == ["none", "low", "low", "high"]


def test_what_stays_the_same_of_the_prompt_is_marked_for_the_cache() -> None:
    """From 5.6 on a prompt with a changing end would otherwise be written into the cache anew each time, for money."""
    body = sent(model="gpt-6.1-sol", system="Be brief. Today is Sunday.", stable=9)
    assert "instructions" not in body
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    assert body["input"][0] == {
        "type": "message",
        "role": "developer",
        "content": [
            {"type": "input_text", "text": "Be brief.", **mark},
            {"type": "input_text", "text": " Today is Sunday."},
        ],
    }
    earlier = sent(model="gpt-5.5", system="Be brief. Today is Sunday.", stable=9)
    assert (earlier["instructions"], len(earlier["input"])) == ("Be brief. Today is Sunday.", 1)
    assert earlier["prompt_cache_key"] == body["prompt_cache_key"]


def test_a_service_that_takes_no_marks_gets_none() -> None:
    refused = error(400, "Unknown parameter: 'input[0].content[0].prompt_cache_breakpoint'.")

    async def go(server: ModelServer) -> None:
        async with aclosing(connected(server.url, model="gpt-6")) as provider:
            for _ in range(2):
                await answer_of(provider, request(stable=2))

    with ModelServer(refused, responses.text("a"), responses.text("b")) as server:
        asyncio.run(go(server))
        assert ["instructions" in asked.body for asked in server.requests] == [False, True, True]


@pytest.mark.parametrize(
    ("model", "cache", "kept"),
    [
        ("gpt-5.1", "1h", True),
        ("gpt-5", "1h", True),
        ("gpt-4.1", "1h", True),
        ("gpt-5.1", "5m", False),
        ("gpt-5.1", "", False),
        ("gpt-5.6-sol", "1h", False),
        ("gpt-6", "1h", False),
        ("o3", "1h", False),
    ],
)
def test_a_cache_that_is_to_last(model: str, cache: str, kept: bool) -> None:
    assert sent(model=model, cache=cache).get("prompt_cache_retention") == ("24h" if kept else None)


def test_what_is_written_into_the_cache_is_counted() -> None:
    """From 5.6 on it costs more than what is read for the first time."""
    usage = {
        "input_tokens": 900,
        "output_tokens": 7,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 800},
    }
    deltas, _ = ask(responses.text("x", usage=usage))
    expected = Usage(input_tokens=900, output_tokens=7, cache_read_tokens=1, cache_write_tokens=800)
    assert UsageDelta(usage=expected) in deltas


def test_a_conversation_has_one_cache_key_also_after_it_was_resumed() -> None:
    first = user("Fix the bug")
    grown = (first, Message(role="assistant", content=(Text(text="Done."),)), user("And the other"))
    key = sent(first)["prompt_cache_key"]
    assert sent(*(from_dict(to_dict(message)) for message in grown))["prompt_cache_key"] == key
    assert sent(user("Something else"))["prompt_cache_key"] != key
    assert len(key) <= 64


def test_calls_and_outputs() -> None:
    asked = Message(
        role="assistant",
        content=(
            Text(text="Looking."),
            ToolCall(id="c1", name="read_file", arguments='{"path": "a"}'),
            ToolCall(id="c2", name="read_file", arguments='{"path": "b"}'),
            ToolCall(id="c3", name="read_file", arguments="{}"),
        ),
    )
    outputs = tool(
        [
            output("c1", Text(text="A"), Text(text="A")),
            output("c2"),
            output("c3", Text(text="Error: no such file."), is_error=True),
        ]
    )
    assert sent(user("Go"), asked, outputs)["input"][1:] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path": "a"}'},
        {"type": "function_call", "call_id": "c2", "name": "read_file", "arguments": '{"path": "b"}'},
        {"type": "function_call", "call_id": "c3", "name": "read_file", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "AA"},
        {"type": "function_call_output", "call_id": "c2", "output": "(no output)"},
        {"type": "function_call_output", "call_id": "c3", "output": "Error: no such file."},
    ]


def test_images_of_a_user_and_of_an_output() -> None:
    seen = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    called = Message(role="assistant", content=(ToolCall(id="c1", name="shot", arguments="{}"),))
    body = sent(user("Look", PICTURE), called, tool([output("c1", Text(text="one"), PICTURE, name="shot")]))
    assert body["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look"}, seen]},
        {"type": "function_call", "call_id": "c1", "name": "shot", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "one"}, seen]},
    ]


def test_a_system_message_inside_a_conversation_comes_from_the_developer() -> None:
    """ChatGPT's service refuses the older name of the role."""
    (_, added) = sent(user("a"), Message(role="system", content=(Text(text="b"),)))["input"]
    assert added == {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "b"}]}


@pytest.mark.parametrize(
    ("received", "expected"),
    [('{"path": "a",}', {"path": "a"}), ("", {}), ("not JSON at all", {}), ('{"path": "a', {})],
)
def test_arguments_go_back_as_a_json_object_whatever_was_received(received: str, expected: object) -> None:
    called = Message(role="assistant", content=(ToolCall(id="c1", name="read_file", arguments=received),))
    body = sent(user("Go"), called, tool([output("c1", Text(text="x"))]), tools=(READ_FILE,))
    assert json.loads(body["input"][1]["arguments"]) == expected


def test_what_another_service_allows_in_ids_and_names_is_written_so_that_this_one_takes_it() -> None:
    """A refused id would end the session: the call and its output keep belonging together."""
    long = "toolu_" + "x" * 80
    called = Message(
        role="assistant",
        content=(
            ToolCall(id=long, name="read_file", arguments="{}"),
            ToolCall(id="functions.f:0", name="functions.read file", arguments="{}"),
            ToolCall(id="c3", name="", arguments="{}"),
        ),
    )
    outputs = tool([output(long), output("functions.f:0"), output("c3")])
    items = sent(user("Go"), called, outputs)["input"][1:]
    ids = [item["call_id"] for item in items]
    assert ids[:3] == ids[3:]
    assert len(set(ids[:3])) == 3
    assert all(len(each) <= 64 and each.replace("_", "").isalnum() for each in ids)
    assert [item["name"] for item in items[:3]] == ["read_file", "functions_read_file", "unknown"]


def test_the_second_round_carries_the_reasoning_of_the_first() -> None:
    """Each item stands before what it led to, with its id and its encrypted content; no other id is sent."""
    first, second = responses.reasoning("Look first."), responses.reasoning()
    answer = responses.answer(
        first,
        responses.said("Looking.", phase="commentary"),
        second,
        responses.called("read_file", {"path": "a"}, "c1"),
        responses.called("read_file", {"path": "b"}, "c2"),
    )
    deltas, _ = ask(answer)
    message = assembled(deltas)
    items = sent(user("Go"), message, tool([output("c1"), output("c2")]))["input"][1:6]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]}
    assert items == [
        first,
        {**said, "phase": "commentary"},
        second,
        {"type": "function_call", "call_id": "c1", "name": "read_file", "arguments": '{"path": "a"}'},
        {"type": "function_call", "call_id": "c2", "name": "read_file", "arguments": '{"path": "b"}'},
    ]


def test_several_reasoning_items_in_a_row_all_go_back() -> None:
    items = [responses.reasoning("One."), responses.reasoning(), responses.reasoning("Two.")]
    deltas, _ = ask(responses.answer(*items, responses.said("x")))
    message = assembled(deltas)
    assert sent(user("Go"), message, user("on"))["input"][1:4] == items
    (thinking,) = [block for block in message.content if isinstance(block, Thinking)]
    assert thinking.text == "One.\n\nTwo."


def test_reasoning_that_nothing_follows_is_not_sent() -> None:
    """The service refuses it: "provided without its required following item"."""
    own = ProviderData(provider="acme", data={"items": [responses.reasoning()]})
    alone = Message(role="assistant", content=(Thinking(text="", provider_data=own),), provider="acme", model=MODEL)
    assert [item["type"] for item in sent(user("a"), alone, user("b"))["input"]] == ["message", "message"]


def test_reasoning_without_encrypted_content_is_not_kept() -> None:
    """It is a reference to what the service has not stored: "Item with id 'rs_...' not found"."""
    deltas, _ = ask(responses.answer(responses.reasoning("hm", encrypted=""), responses.said("x")))
    assert deltas == [ThinkingDelta(text="hm"), TextDelta(text="x"), USED, Stop(reason="stop")]


@pytest.mark.parametrize(("provider", "model"), [("other", MODEL), ("acme", "gpt-5.2")])
def test_a_transcript_of_another_provider_or_model(provider: str, model: str) -> None:
    """Calls, images and texts stay; what only the other one can read is left out."""
    asked = Message(
        role="assistant",
        provider=provider,
        model=model,
        content=(
            Thinking(text="hm", provider_data=ProviderData(provider=provider, data={"items": [responses.reasoning()]})),
            Text(text="Looking."),
            ToolCall(
                id="c1",
                name="shot",
                arguments="{}",
                provider_data=ProviderData(provider=provider, data={"extra_content": {"google": {}}}),
            ),
        ),
    )
    assert sent(user("Go", PICTURE), asked, tool([output("c1", PICTURE)]), user("on"))["input"][1:] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
        {"type": "function_call", "call_id": "c1", "name": "shot", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_image", "image_url": "data:image/png;base64,QUJD"}],
        },
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "on"}]},
    ]


def test_data_of_another_wire_under_the_same_name_does_no_harm() -> None:
    """`providers:` may give a name another wire between two runs."""
    own = ProviderData(provider="acme", data={"signature": "abc"})
    asked = Message(
        role="assistant",
        content=(Thinking(text="hm", provider_data=own), Text(text="x")),
        provider="acme",
        model=MODEL,
    )
    assert [item["type"] for item in sent(user("a"), asked, user("b"))["input"]] == ["message"] * 3


def test_text_that_cannot_be_encoded_is_sent_all_the_same() -> None:
    assert sent(user("a\udcffb"))["input"][0]["content"][0]["text"] == "a?b"


def test_a_message_is_encoded_once() -> None:
    """So that round 20 costs what round 2 does: only what is new since the last request is encoded."""
    wire = ResponsesWire(endpoint("http://127.0.0.1:9", model=MODEL))
    asked = request(*(user(f"line {number}\n" * 20) for number in range(3000)))

    first = times_called("dump", lambda: wire.body(asked))
    more = asked.replace(messages=(*asked.messages, user("more")))
    later = times_called("dump", lambda: wire.body(more))
    assert later < first / 100


# What the service does not take is left out


REFUSED: Mapping[str, tuple[dict[str, object], str]] = {
    "summary": (
        {
            "message": "Your organization must be verified for summaries.",
            "param": "reasoning.summary",
        },
        '"summary"',
    ),
    "effort": (
        {"message": "Unsupported value: 'low' is not supported with the 'o3' model.", "param": "reasoning.effort"},
        '"effort"',
    ),
    "encrypted": ({"message": "Encrypted content is not supported with this model."}, '"include"'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_service_refuses_is_left_out_from_then_on(case: str) -> None:
    refusal, field = REFUSED[case]
    refused = error(400, {"error": {"type": "invalid_request_error", "code": "unsupported_value", **refusal}})

    async def go(server: ModelServer) -> list[str]:
        async with aclosing(connected(server.url, model="o3")) as provider:
            return [text_of(await answer_of(provider)) for _ in range(2)]

    with ModelServer(refused, responses.text("one"), responses.text("two")) as server:
        assert asyncio.run(go(server)) == ["one", "two"]
        assert [field in asked.content.decode() for asked in server.requests] == [True, False, False]
    assert isinstance(failure(refused, refused, model="o3"), BadRequest)


def test_reasoning_that_the_service_can_no_longer_read_is_given_up() -> None:
    """After a change of the account, say: the conversation goes on without it, new reasoning is kept."""
    said = {"error": {"code": "invalid_encrypted_content", "message": "The encrypted content gAAA... is not valid."}}
    old, new = responses.reasoning(), responses.reasoning()
    before = assembled(ask(responses.answer(old, responses.said("a")))[0])

    async def go(server: ModelServer) -> None:
        async with aclosing(connected(server.url)) as provider:
            after = assembled(await answer_of(provider, request(user("1"), before, user("2"))))
            await answer_of(provider, request(user("1"), before, user("2"), after, user("3")))

    with ModelServer(error(400, said), responses.answer(new, responses.said("b")), responses.text("c")) as server:
        asyncio.run(go(server))
        kept = [[item["id"] for item in asked.body["input"] if "id" in item] for asked in server.requests]
    assert kept == [[old["id"]], [], [new["id"]]]
    assert isinstance(failure(error(400, said)), BadRequest), "there was no reasoning to leave out"


# What is understood


@transports
def test_an_answer_with_thinking_text_and_usage(transport: Transport) -> None:
    item, said = responses.reasoning("hm"), responses.said("Hello, wörld 👋")
    deltas, _ = ask(responses.answer(item, said, chunks=4), transport=transport)
    assert joined(deltas) == [
        ThinkingDelta(text="hm", provider_data=ProviderData(provider="acme", data={"items": [item]})),
        TextDelta(text="Hello, wörld 👋"),
        USED,
        Stop(reason="stop"),
    ]


@transports
def test_several_calls_in_fragments(transport: Transport) -> None:
    first, second = {"path": "a.py"}, {"path": "ü", "n": 3}
    answer = responses.calls(("read_file", first), ("write_file", second), text="Well:", chunks=5)
    deltas, _ = ask(answer, transport=transport)
    assert text_of(deltas) == "Well:"
    assert [(name, json.loads(arguments)) for _, name, arguments in calls_of(deltas)] == [
        ("read_file", first),
        ("write_file", second),
    ]
    assert deltas[-1] == Stop(reason="tool_calls")


def test_a_burst_becomes_one_delta_of_each_kind() -> None:
    deltas, _ = ask(burst(responses.text("word " * 200, chunks=200, thinking="hm")))
    assert [type(delta) for delta in deltas] == [ThinkingDelta, ThinkingDelta, TextDelta, UsageDelta, Stop]


def joined(deltas: Sequence[Delta]) -> list[Delta]:
    """The deltas with neighbours of one kind joined: what does not depend on how reads fell."""
    out: list[Delta] = []
    for delta in deltas:
        last = out[-1] if out else None
        if isinstance(delta, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(text=last.text + delta.text)
        elif isinstance(delta, ThinkingDelta) and isinstance(last, ThinkingDelta):
            data = delta.provider_data or last.provider_data
            out[-1] = ThinkingDelta(text=last.text + delta.text, provider_data=data)
        elif isinstance(delta, CallDelta) and isinstance(last, CallDelta) and delta.key == last.key:
            out[-1] = last.replace(arguments=last.arguments + delta.arguments)
        else:
            out.append(delta)
    return out


REASONING = responses.reasoning("Grüß\u2028Gott\u0085👋")
SAMPLE = (
    b": welcome\r\n\r\n"
    + responses.answer(
        REASONING,
        responses.said("Ja, 👋", phase="commentary"),
        responses.called("read_file", '{"path": "äb"}', "c1"),
        responses.called("look", "{}", "c2"),
        chunks=3,
    ).body
)
SAMPLE_DELTAS = [
    ThinkingDelta(
        text="Grüß\u2028Gott\u0085👋",
        provider_data=ProviderData(provider="acme", data={"items": [REASONING], "phase": "commentary"}),
    ),
    TextDelta(text="Ja, 👋"),
    CallDelta(key=0, id="c1", name="read_file", arguments='{"path": "äb"}'),
    CallDelta(key=1, id="c2", name="look", arguments="{}"),
    USED,
    Stop(reason="tool_calls"),
]


def decoded(*reads: bytes) -> list[Delta]:
    stream = ResponsesStream(endpoint("http://acme.example/v1"), "http://acme.example/v1/responses")
    deltas = [delta for read in reads for delta in stream.feed(read)]
    deltas += stream.finish()
    assert stream.failure is None
    return joined(deltas)


@examples(300)
@given(st.sets(st.integers(1, len(SAMPLE) - 1), max_size=40))
def test_a_stream_cut_anywhere_means_the_same(cuts: set[int]) -> None:
    """Cuts inside a character, a CRLF, a field name and a JSON escape included."""
    edges = [0, *sorted(cuts), len(SAMPLE)]
    assert decoded(*(SAMPLE[a:b] for a, b in itertools.pairwise(edges))) == SAMPLE_DELTAS


@pytest.mark.slow
def test_a_stream_cut_at_every_byte_means_the_same() -> None:
    for cut in range(1, len(SAMPLE), 3):
        assert decoded(SAMPLE[:cut], SAMPLE[cut:]) == SAMPLE_DELTAS
    assert decoded(*(SAMPLE[i : i + 1] for i in range(len(SAMPLE)))) == SAMPLE_DELTAS


def added(item: Mapping[str, Any], **place: Any) -> dict[str, Any]:
    return {"type": "response.output_item.added", "item": item, **place}


def done(item: Mapping[str, Any], **place: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "item": item, **place}


def piece(delta: object, **place: Any) -> dict[str, Any]:
    return {"type": "response.function_call_arguments.delta", "delta": delta, **place}


def call(item_id: str, call_id: str, name: str = "f", arguments: object = "") -> dict[str, Any]:
    return {"type": "function_call", "id": item_id, "call_id": call_id, "name": name, "arguments": arguments}


CALL_STREAMS: Mapping[str, tuple[list[dict[str, Any]], list[tuple[str, str, str]]]] = {
    "ids only, as llama.cpp sends them": (
        [
            added(call("fc_1", "x")),
            piece("[1", item_id="fc_1"),
            added(call("fc_2", "y", "g")),
            piece("[2", item_id="fc_2"),
            piece("]", item_id="fc_1"),
            piece("]", item_id="fc_2"),
        ],
        [("x", "f", "[1]"), ("y", "g", "[2]")],
    ),
    "places only": (
        [
            added(call("", "x"), output_index=0),
            added(call("", "y", "g"), output_index=1),
            piece("1", output_index=0),
            piece("2", output_index=1),
            piece("1", output_index=0),
        ],
        [("x", "f", "11"), ("y", "g", "2")],
    ),
    "another id in each event, as Copilot sends them": (
        [
            added(call("a", "x"), output_index=0),
            piece("{}", item_id="b", output_index=0),
            done(call("c", "x", arguments="{}"), output_index=0),
        ],
        [("x", "f", "{}")],
    ),
    "neither ids nor places": (
        [added(call("", "x")), piece('{"a":'), piece("1}"), added(call("", "y", "g")), piece("{}")],
        [("x", "f", '{"a":1}'), ("y", "g", "{}")],
    ),
    "only the end of each": (
        [done(call("fc_1", "x", arguments='{"a": 1}')), done(call("fc_2", "y", "g", "{}"))],
        [("x", "f", '{"a": 1}'), ("y", "g", "{}")],
    ),
    "arguments as an object": ([done(call("fc_1", "x", arguments={"a": "ü"}))], [("x", "f", '{"a": "ü"}')]),
    "one id for two calls": (
        [done(call("fc_1", "x", arguments="{}")), done(call("fc_2", "x", "g", "{}"))],
        [("x", "f", "{}"), ("call_0", "g", "{}")],
    ),
    "no id of the call": ([done(call("fc_1", "", arguments="{}"))], [("fc_1", "f", "{}")]),
    "no id at all": ([done(call("", "", arguments="{}"))], [("call_0", "f", "{}")]),
}


@pytest.mark.parametrize("kind", CALL_STREAMS)
def test_calls_are_told_apart_however_a_server_names_them(kind: str) -> None:
    payloads, expected = CALL_STREAMS[kind]
    deltas, _ = ask(responses.events(*payloads, responses.ended()))
    assert calls_of(deltas) == expected
    assert deltas[-1] == Stop(reason="tool_calls")


def test_made_up_ids_are_new_to_the_conversation() -> None:
    earlier = Message(role="assistant", content=(ToolCall(id="call_0", name="f", arguments="{}"),))
    answer = responses.events(done(call("", "", arguments="{}")), responses.ended())
    deltas, _ = ask(answer, asked=request(user("a"), earlier, tool([output("call_0")])))
    assert calls_of(deltas) == [("call_1", "f", "{}")]


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("completed", "stop"), ("max_output_tokens", "length"), ("content_filter", "refused"), ("other", "length")],
)
def test_reasons_to_stop(finish: str, reason: StopReason) -> None:
    deltas, _ = ask(responses.text("x", finish=finish))
    assert deltas[-1] == Stop(reason=reason)


def test_a_call_that_the_limit_cut_off_never_runs() -> None:
    """I26: its arguments are incomplete, whatever can be read of them."""
    payloads = [added(call("fc_1", "x")), piece('{"path": "a', item_id="fc_1")]
    deltas, _ = ask(responses.events(*payloads, responses.ended(finish="max_output_tokens")))
    assert [call.complete for call in assembled(deltas).calls] == [False]


def test_a_refusal_is_text_with_its_reason() -> None:
    pieces = [{"type": "response.refusal.delta", "item_id": "m", "delta": text} for text in ("I can", "not.")]
    deltas, _ = ask(responses.events(*pieces, responses.ended()))
    assert joined(deltas) == [TextDelta(text="I cannot."), USED, Stop(reason="refused")]


def test_texts_and_thoughts_of_several_parts_are_kept_apart() -> None:
    item = {**responses.reasoning(encrypted=""), "summary": [{"text": "One."}, {"text": "Two."}]}
    answer = responses.answer(
        item, responses.reasoning("Three.", encrypted=""), responses.said("a"), responses.said("b")
    )
    deltas, _ = ask(answer)
    assert joined(deltas)[:2] == [ThinkingDelta(text="One.\n\nTwo.\n\nThree."), TextDelta(text="a\n\nb")]


def test_remarks_on_the_way_and_the_answer_go_back_as_what_they_were() -> None:
    """Models from gpt-5.3-codex on stop early where that is lost."""
    items = [responses.said("Let me see.", phase="commentary"), responses.said("Four.", phase="final_answer")]
    message = assembled(ask(responses.answer(*items))[0])
    assert message.text == "Let me see.\n\nFour."
    assert [item.get("phase") for item in sent(user("a"), message, user("b"))["input"]] == [
        None,
        "commentary",
        "final_answer",
        None,
    ]


def test_open_reasoning_is_thinking() -> None:
    deltas, _ = ask(
        responses.events(
            {"type": "response.reasoning_text.delta", "item_id": "r", "delta": "hm"},
            {"type": "response.output_text.delta", "item_id": "m", "delta": "x"},
            responses.ended(),
        )
    )
    assert deltas[:2] == [ThinkingDelta(text="hm"), TextDelta(text="x")]


def test_items_that_only_end_are_understood() -> None:
    item = responses.reasoning("hm")
    message = {**responses.said("x"), "content": [{"type": "output_text", "text": "x"}, {"refusal": "no"}]}
    deltas, _ = ask(responses.events(done(item), done(message), responses.ended()))
    assert joined(deltas) == [
        ThinkingDelta(text="hm", provider_data=ProviderData(provider="acme", data={"items": [item]})),
        TextDelta(text="xno"),
        USED,
        Stop(reason="refused"),
    ]


def test_unknown_events_and_items_are_passed_over() -> None:
    deltas, _ = ask(
        responses.events(
            {"type": "response.queued"},
            {"type": "keepalive", "sequence_number": 1},
            {"type": "codex.rate_limits", "rate_limits": {}},
            {"object": "something"},
            done({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
            *responses.streamed(responses.said("x")),
            responses.ended(),
        )
    )
    assert deltas == [TextDelta(text="x"), USED, Stop(reason="stop")]


def test_an_answer_without_usage() -> None:
    deltas, _ = ask(responses.text("x", usage=None))
    assert deltas == [TextDelta(text="x"), Stop(reason="stop")]


@transports
def test_the_end_of_the_answer_is_its_end_though_the_connection_stays_open(transport: Transport) -> None:
    deltas, _ = ask(responses.text("x").replace(ending="hang"), transport=transport, silence=30.0)
    assert deltas[-1] == Stop(reason="stop")


def test_one_json_document_is_an_answer_too() -> None:
    item = responses.reasoning("hm")
    ended = responses.ended(item, responses.said("Hi"), responses.called("f", {"a": 1}, "x"))
    deltas, _ = ask(document(ended["response"]))
    assert joined(deltas) == [
        ThinkingDelta(text="hm", provider_data=ProviderData(provider="acme", data={"items": [item]})),
        TextDelta(text="Hi"),
        CallDelta(key=0, id="x", name="f", arguments='{"a": 1}'),
        USED,
        Stop(reason="tool_calls"),
    ]


# How it fails


@transports
def test_an_answer_cut_in_the_middle(transport: Transport) -> None:
    whole = responses.text("Grüße aus Wien", chunks=["Grüße ", "aus Wien"])
    body = whole.body
    first = body.index(b"aus Wien") - 20

    async def go(server: ModelServer) -> tuple[str, str]:
        seen: list[Delta] = []
        async with aclosing(connected(server.url, transport=transport)) as provider:
            with pytest.raises(StreamBroken) as raised:
                await answer_of(provider, into=seen)
        return text_of(seen), str(raised.value)

    for cut in (first, first + 60, len(body) - 30):
        with ModelServer(cut_after(cut, whole)) as server:
            seen, said = asyncio.run(go(server))
        assert seen.startswith("Grüße "), "what came before the cut is not lost"
        assert "broke off" in said


def test_an_end_without_the_last_event_is_a_broken_answer() -> None:
    assert "broke off" in str(failure(responses.events(*responses.streamed(responses.said("x")))))


def test_a_stream_that_breaks_while_the_model_reasons_is_asked_for_again() -> None:
    """Nothing was shown: the opaque reasoning alone does not count as an answer."""
    broken = responses.events(*responses.streamed(responses.reasoning()))

    async def go(server: ModelServer) -> str:
        provider = Resilient(connected(server.url), TIMEOUTS)
        try:
            return text_of(await answer_of(provider))
        finally:
            await provider.aclose()

    with ModelServer(broken, responses.text("Hi", thinking="hm")) as server:
        assert asyncio.run(go(server)) == "Hi"
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "answer",
    [
        raw(b""),
        raw(b"data: nonsense\n\n"),
        responses.events("[]"),
        responses.events('"text"'),
        responses.events({"type": "response.output_text.delta"}),
        responses.events({"type": "response.output_text.delta", "delta": {"a": 1}}),
        responses.events({"type": "response.output_item.added", "item": 5}),
        responses.events({"type": "response.output_item.done", "item": {}}),
        responses.events({"type": "response.completed"}),
        document({"detail": "not here"}),
        document([]),
        document({"object": "response", "status": "in_progress", "output": [responses.said("x")]}),
        raw(b'{"output": [{"ty', {"content-type": "application/json"}),
    ],
)
def test_what_is_no_response_is_a_broken_answer(answer: Answer) -> None:
    found = failure(answer)
    assert isinstance(found, StreamBroken)
    assert "/v1/responses" in str(found)


def test_a_web_page_is_another_place() -> None:
    found = failure(html())
    assert isinstance(found, Unreachable)
    assert "/v1/responses" in str(found)


@pytest.mark.parametrize(
    ("reported", "kind"),
    [
        (responses.failed("rate_limit_exceeded", "Rate limit reached. Please try again in 1.2s."), RateLimited),
        (responses.failed("context_length_exceeded", "Your input exceeds the context window."), ContextOverflow),
        (responses.failed("server_error", "The model produced an error."), Overloaded),
        (responses.failed("insufficient_quota", "You exceeded your current quota."), QuotaExhausted),
        (responses.failed("usage_limit_reached", "The usage limit has been reached."), QuotaExhausted),
        (responses.failed("invalid_prompt", "Your prompt was flagged: it may violate our usage policy."), Refused),
        (responses.failed("invalid_image", "The image cannot be read."), BadRequest),
        (responses.failed("odd", "Something else."), StreamBroken),
        ({"type": "response.failed", "response": {"error": None}}, StreamBroken),
        ({"type": "response.cancelled", "response": {}}, StreamBroken),
        ({"type": "error", "code": "server_error", "message": "Oops.", "param": None}, Overloaded),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "Bad field."}}, BadRequest),
        ({"error": {"message": "upstream is down", "code": 502}}, Overloaded),
    ],
)
def test_an_error_inside_a_good_answer(reported: Mapping[str, Any], kind: type[ProviderError]) -> None:
    """It has its type, and what came before it is not lost, though it came in the same read."""
    stream = burst(responses.events(*responses.streamed(responses.said("partial"))[:-1], reported))

    async def go(server: ModelServer) -> tuple[list[Delta], ProviderError]:
        seen: list[Delta] = []
        async with aclosing(connected(server.url)) as provider:
            with pytest.raises(ProviderError) as raised:
                await answer_of(provider, into=seen)
        return seen, raised.value

    with ModelServer(stream) as server:
        seen, found = asyncio.run(go(server))
    assert seen == [TextDelta(text="partial")]
    assert type(found) is kind


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (
            401,
            {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}},
            AuthFailed,
            "ACME_API_KEY",
        ),
        (403, "Country not supported", AuthFailed, "Check the key"),
        (429, {"error": {"message": "quota", "code": "insufficient_quota"}}, QuotaExhausted, "billing"),
        (429, {"error": {"message": "m", "type": "usage_limit_reached", "resets_in_seconds": 99}}, QuotaExhausted, "m"),
        (429, "Rate limit reached", RateLimited, "Wait a little"),
        (400, {"error": {"message": "m", "code": "context_length_exceeded"}}, ContextOverflow, "/compact"),
        (400, {"error": {"message": "m", "code": "model_not_found"}}, ModelNotFound, "scripted"),
        (400, {"error": {"message": "Invalid 'tools': array too long"}}, BadRequest, "array too long"),
        (400, {"detail": "Unsupported parameter: max_output_tokens"}, BadRequest, "Unsupported parameter"),
        (500, {"error": {"message": "The server had an error"}}, Overloaded, "server had an error"),
        (503, "Slow down", Overloaded, "Try again"),
    ],
)
def test_an_answer_that_is_an_error(status: int, body: object, kind: type[ProviderError], said: str) -> None:
    found = failure(error(status, body))
    assert type(found) is kind
    assert found.status == status or kind is ModelNotFound
    assert said in str(found)


def test_the_service_says_when_to_come_back() -> None:
    found = failure(error(429, "slow down", {"Retry-After": "7"}))
    assert isinstance(found, RateLimited)
    assert found.retry_after == 7


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 11.5s. Visit our site.", 11.5),
        ("Please try again in 20ms.", 0.02),
        ("Please try again in 1m2s.", 62.0),
        ("Try again later.", None),
    ],
)
def test_inside_a_stream_only_the_text_says_when_to_come_back(said: str, seconds: float | None) -> None:
    found = failure(responses.events(responses.failed("rate_limit_exceeded", f"Rate limit reached. {said}")))
    assert isinstance(found, RateLimited)
    assert found.retry_after == seconds


@transports
@pytest.mark.parametrize("answer", [hang(), hang_after(200, responses.text("x" * 500, chunks=10))])
def test_silence_is_noticed(transport: Transport, answer: Answer) -> None:
    found = failure(answer, transport=transport, silence=0.2)
    assert isinstance(found, Unreachable)
    assert "0.2 s" in str(found)


def test_a_server_that_closes_without_an_answer() -> None:
    assert "gave no usable answer" in str(failure(drop()))


@pytest.mark.parametrize(
    "answer",
    [
        error(401, f"Incorrect API key provided: {KEY}"),
        raw(f"data: oops {KEY}\n\n".encode()),
        responses.events(responses.failed("odd", f"bad {KEY}")),
        document({"detail": KEY}),
        responses.events({"type": "response.output_text.delta", "delta": {"key": KEY}}),
    ],
)
def test_no_error_shows_the_key(answer: Answer) -> None:
    """I24: not even where the server sends it back."""
    found = failure(answer)
    shown: BaseException | None = found
    while shown is not None:
        assert KEY not in f"{shown!s} {shown!r}"
        shown = shown.__cause__ or shown.__context__


def test_the_factory_makes_a_provider_that_connects_when_it_is_asked() -> None:
    def connect() -> Any:
        raise AssertionError("a client before the first request")

    provider = create(endpoint("http://127.0.0.1:1/v1", context_window=9, max_tools=3, key=Secret("")), connect)
    assert (provider.name, provider.model) == ("acme", "scripted")
    assert (provider.context_window, provider.max_tools) == (9, 3)
    asyncio.run(provider.aclose())


# A whole session


def test_a_session_works_through_tools_with_its_reasoning(tmp_path: Path) -> None:
    first = responses.reasoning("Look.")
    round_1 = responses.answer(
        first, responses.called("look", {"name": "a"}, "c1"), responses.called("look", {"name": "b"}, "c2")
    )
    with ModelServer(round_1, responses.text("Done.", phase="final_answer"), responses.text("Bye.")) as server:
        made = make(tmp_path, provider=cast("Any", connected(server.url)))

        async def go() -> list[str]:
            try:
                return [(await made.session.submit(prompt)).text for prompt in ("Go", "And now?")]
            finally:
                await made.session.close()

        assert run(go()) == ["Done.", "Bye."]
        assert made.log == ["+a", "+b", "-a", "-b"]
        second, third = server.requests[1].body["input"], server.requests[2].body["input"]
    assert second[1] == first
    assert [(item["type"], item["call_id"]) for item in second[2:]] == [
        ("function_call", "c1"),
        ("function_call", "c2"),
        ("function_call_output", "c1"),
        ("function_call_output", "c2"),
    ]
    assert [item["output"] for item in second[4:]] == ["a done", "b done"]
    assert third[: len(second)] == second, "what was sent stays as it was, so that the service's cache holds it"
    assert third[len(second)]["phase"] == "final_answer"
