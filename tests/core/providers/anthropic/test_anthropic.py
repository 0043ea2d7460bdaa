"""The adapter for the Messages API against a real server: what is sent, what is understood, how it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from typing import Any

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
    Provider,
    Request,
    Secret,
    Stop,
    TextDelta,
    ThinkingDelta,
    UsageDelta,
)
from marvin_core.api.tools import ToolSpec
from marvin_core.engine.assembly import Assembly
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.anthropic.provider import create
from marvin_core.providers.anthropic.request import AnthropicWire
from marvin_core.providers.anthropic.stream import AnthropicStream
from marvin_core.testing import (
    Answer,
    ModelServer,
    RecordedRequest,
    burst,
    cut_after,
    document,
    drop,
    hang,
    hang_after,
    html,
    raw,
)
from tests.support import engine
from tests.support.answers_anthropic import (
    SIGNATURE,
    called,
    calls,
    error,
    events,
    message,
    redacted,
    said,
    text,
    thought,
)
from tests.support.chatting import KEY, TIMEOUTS, answer_of, calls_of, endpoint, merged, request, text_of
from tests.support.counting import times_called
from tests.support.examples import examples

READ_FILE = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    access=frozenset({"read"}),
)
MARK = {"cache_control": {"type": "ephemeral"}}
OPUS = "claude-opus-4-6"
SONNET = "claude-sonnet-4-5"
PICTURE = Image(media_type="image/png", data="QUJD")
SEEN = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}


def claude(base_url: str, *, silence: float = 50.0, **changes: Any) -> Provider:
    """The adapter; `changes` are fields of its endpoint."""
    fields = {"provider": "anthropic", "model": OPUS, "key_hint": "ANTHROPIC_API_KEY", "timeouts": TIMEOUTS, **changes}
    client = HttpSettings(transport="direct", timeouts=TIMEOUTS)
    return create(endpoint(base_url, **fields), lambda: make_client(client, timeout_read=silence, tls=None))


def ask(*script: Answer, asked: Request | None = None, **options: Any) -> tuple[list[Delta], list[RecordedRequest]]:
    """One answer to one request, and what the server was asked for it."""

    async def run(server: ModelServer) -> list[Delta]:
        async with aclosing(claude(server.url, **options)) as provider:
            return await answer_of(provider, asked)

    with ModelServer(*script) as server:
        return asyncio.run(run(server)), server.requests


def sent(*messages: Message, **options: Any) -> dict[str, Any]:
    """The body of a request with these messages."""
    fields = {name: options.pop(name) for name in list(options) if name in Request._defaults}
    _, requests = ask(text("ok"), asked=request(*messages, **fields), **options)
    body: dict[str, Any] = requests[-1].body
    return body


def failure(*script: Answer, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(*script, **options)
    return raised.value


def answer(*content: Any, model: str = OPUS) -> Message:
    return Message(role="assistant", content=content, provider="anthropic", model=model)


def call(call_id: str, name: str = "read_file", arguments: str = '{"path": "a"}') -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def output(call_id: str, *content: Any, is_error: bool = False) -> ToolOutput:
    return ToolOutput(call_id=call_id, name="read_file", content=content or (Text(text="A"),), is_error=is_error)


def signed(said: str, model: str = OPUS, provider: str = "anthropic") -> Thinking:
    """Thinking as the adapter keeps it."""
    block = {"type": "thinking", "thinking": said, "signature": SIGNATURE}
    return Thinking(text=said, provider_data=ProviderData(provider=provider, data={"model": model, "blocks": [block]}))


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    return [without_marks(inner) for inner in value] if isinstance(value, list) else value


def marked(value: Any) -> list[str]:
    """The text (or the id) of each marked block, in order."""
    if isinstance(value, list):
        return [name for inner in value for name in marked(inner)]
    if not isinstance(value, dict):
        return []
    own = [value.get("text") or value.get("tool_use_id") or value["name"]] if "cache_control" in value else []
    return own + [name for inner in value.values() for name in marked(inner)]


# What is sent


def test_a_plain_request() -> None:
    deltas, requests = ask(text("Hi"), headers={"X-Team": "blue"})
    assert text_of(deltas) == "Hi"
    (asked,) = requests
    assert (asked.method, asked.path) == ("POST", "/v1/messages")
    assert asked.headers["x-api-key"] == KEY
    assert "authorization" not in asked.headers
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert asked.headers["content-type"] == "application/json"
    assert "anthropic-beta" not in asked.headers
    assert asked.headers["x-team"] == "blue"
    assert asked.body == {
        "model": OPUS,
        "max_tokens": 8192,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hello", **MARK}]}],
    }


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/messages", "/messages"])
def test_the_base_url_may_lack_the_version_or_name_the_whole_path(ending: str) -> None:
    """ANTHROPIC_BASE_URL is read by other programs, too, which add /v1 themselves."""

    async def run(server: ModelServer) -> str:
        async with aclosing(claude(server.url.removesuffix("/v1") + ending)) as provider:
            return text_of(await answer_of(provider))

    with ModelServer(text("Hi")) as server:
        assert asyncio.run(run(server)) == "Hi"
        assert server.requests[0].path == "/v1/messages"


def test_tools_and_a_choice() -> None:
    body = sent(tools=(READ_FILE, READ_FILE.replace(name="other")), tool_choice="none")
    form = {"description": "Read a file.", "input_schema": dict(READ_FILE.parameters)}
    assert body["tools"] == [{"name": "read_file", **form}, {"name": "other", **form, **MARK}]
    assert body["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in sent(tools=(READ_FILE,))
    assert sent(tools=(), tool_choice="none").keys().isdisjoint({"tools", "tool_choice"})


def test_a_round_of_calls_and_outputs() -> None:
    asked = answer(Text(text="Looking."), call("c1"), call("c2", arguments='{"path": "b"}'))
    outputs = tool([output("c1", Text(text="A"), Text(text="A")), output("c2", Text(text=""))])
    assert without_marks(sent(user("Go"), asked, outputs, tools=(READ_FILE,))["messages"]) == [
        {"role": "user", "content": [{"type": "text", "text": "Go"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}},
                {"type": "tool_use", "id": "c2", "name": "read_file", "input": {"path": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "AA"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "(no output)"},
            ],
        },
    ]


def test_an_output_that_is_an_error_has_only_text() -> None:
    failed = tool([output("c1", Text(text="Error: no."), PICTURE, is_error=True)])
    assert without_marks(sent(user("Go"), answer(call("c1")), failed)["messages"][2]["content"]) == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "Error: no.", "is_error": True}
    ]


def test_images_in_a_prompt_and_in_an_output() -> None:
    drawing = Image(media_type="image/svg+xml", data="QUJD")
    shown = tool([output("c1", Text(text="It:"), PICTURE)])
    messages = without_marks(sent(user("Look", PICTURE, drawing), answer(call("c1")), shown)["messages"])
    note = {"type": "text", "text": "(an image in a format that cannot be shown here: image/svg+xml)"}
    assert messages[0]["content"] == [{"type": "text", "text": "Look"}, SEEN, note]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "It:"}, SEEN]}
    ]


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
        ('{"path": "a",}', {"path": "a"}),
        ("", {}),
        ("not JSON at all", {}),
        ('{"path": "a', {}),
        ("[1]", {}),
        ('{"path": NaN}', {}),
        ('{"path": 1e999}', {}),
        ('{"path": "\\udcff"}', {"path": "?"}),
    ],
)
def test_arguments_go_back_as_an_object_whatever_was_received(received: str, expected: Mapping[str, object]) -> None:
    asked = answer(call("c1", arguments=received))
    body = sent(user("Go"), asked, tool([output("c1")]), tools=(READ_FILE,))
    assert body["messages"][1]["content"][0]["input"] == expected


def test_messages_alternate_and_outputs_stand_first() -> None:
    """A line that the user sent while tools ran stands behind their outputs; blank text is refused, so left out."""
    messages = sent(
        user("a"), user("b"), answer(Text(text="  \n"), call("c1")), user("hurry"), tool([output("c1")]), user(" ")
    )["messages"]
    assert [turn["role"] for turn in messages] == ["user", "assistant", "user"]
    assert [block["text"] for block in messages[0]["content"]] == ["a", "b"]
    assert [block["type"] for block in messages[1]["content"]] == ["tool_use"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "text"]


def test_text_behind_calls_comes_before_them() -> None:
    """A cancelled answer ends in a note; the outputs must follow the calls immediately."""
    cancelled = answer(call("c1"), Text(text="[Cancelled]"))
    messages = sent(user("Go"), cancelled, tool([output("c1")]))["messages"]
    assert [block["type"] for block in messages[1]["content"]] == ["text", "tool_use"]


def test_a_conversation_that_ends_with_an_answer_is_gone_on_with() -> None:
    """/retry after a broken answer: newer models refuse a conversation that ends with one."""
    messages = sent(user("Tell"), answer(Text(text="Once upon ")))["messages"]
    assert messages[-1] == {"role": "user", "content": [{"type": "text", "text": "Continue.", **MARK}]}


def test_a_conversation_with_calls_always_defines_tools() -> None:
    """A summary is asked for without tools; the service refuses calls in a conversation that defines none."""
    body = sent(user("Go"), answer(call("c1")), tool([output("c1")]), user("Sum up"))
    assert body["tools"] == [{"name": "read_file", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


def test_text_that_cannot_be_encoded_is_sent_all_the_same() -> None:
    """A file name that is not UTF-8 reaches the conversation with a lone surrogate."""
    assert sent(user("a\udcffb"))["messages"][0]["content"][0]["text"] == "a?b"


@pytest.mark.parametrize(
    ("wanted", "limit", "thinking", "expected"),
    [
        (None, None, "off", 8192),
        (None, 4096, "off", 4096),
        (None, 128000, "off", 32000),
        (None, 128000, "low", 64000),
        (99, 128000, "off", 99),
        (99999, 4096, "off", 4096),
    ],
)
def test_the_length_of_an_answer(wanted: int | None, limit: int | None, thinking: str, expected: int) -> None:
    body = sent(max_output_tokens=wanted, max_output=limit, thinking=thinking)
    assert body["max_tokens"] == expected


def test_a_conversation_grows_and_shrinks_between_requests() -> None:
    first, second, third = user("1"), answer(Text(text="2")), user("3")

    async def run(server: ModelServer) -> None:
        async with aclosing(claude(server.url)) as provider:
            for messages, tools in (((first,), ()), ((first, second, third), (READ_FILE,)), ((third,), ())):
                await answer_of(provider, request(*messages, tools=tools))

    with ModelServer(text("a"), text("b"), text("c")) as server:
        asyncio.run(run(server))
        bodies = [asked.body for asked in server.requests]
    said_in = [[turn["content"][0]["text"] for turn in body["messages"]] for body in bodies]
    assert said_in == [["1"], ["1", "2", "3"], ["3"]]
    assert ["tools" in body for body in bodies] == [False, True, False]


def test_a_message_is_encoded_once() -> None:
    """So that round 20 costs what round 2 does: only what is new since the last request is encoded."""
    wire = AnthropicWire(endpoint("http://127.0.0.1:9", provider="anthropic", model=OPUS))
    said = [user(f"l\xefne {number}\n" * 50) if number % 2 else answer(Text(text="x" * 500)) for number in range(3000)]

    first = times_called("dump", lambda: wire.body(request(*said)))
    later = times_called("dump", lambda: wire.body(request(*said, user("more"))))
    assert later < first / 100


# Cache marks


@pytest.mark.parametrize(("cache", "mark"), [("1h", {"type": "ephemeral", "ttl": "1h"}), ("5m", {"type": "ephemeral"})])
def test_a_cache_that_is_to_last(cache: str, mark: Mapping[str, str]) -> None:
    """All marks alike: a longer one must not stand behind a shorter one."""
    text_of_body = json.dumps(sent(user("a"), tools=(READ_FILE,), system="ab", stable=1, cache=cache))
    assert text_of_body.count('"cache_control"') == text_of_body.count(f'"cache_control": {json.dumps(mark)}') == 3


def test_a_gateway_that_knows_one_lifetime_gets_that() -> None:
    async def run(server: ModelServer) -> None:
        async with aclosing(claude(server.url, model=OPUS, cache="1h")) as provider:
            for _ in range(2):
                await answer_of(provider, request())

    refusal = error(
        400, "invalid_request_error", "messages.0.content.0.cache_control.ttl: Extra inputs are not permitted"
    )
    with ModelServer(refusal, text("a"), text("b")) as server:
        asyncio.run(run(server))
        assert ['"ttl"' in asked.content.decode() for asked in server.requests] == [True, False, False]


def test_marks_follow_a_growing_conversation() -> None:
    """Each request has a mark where the one before it ended, so that all of that is read from the cache."""
    tools, system = (READ_FILE,), "Always the same. Today is Monday."
    fields: dict[str, Any] = {"tools": tools, "system": system, "stable": len("Always the same. ")}
    said: list[Message] = [user("first")]
    bodies = []
    for number in range(3):
        bodies.append(sent(*said, **fields))
        said += [answer(call(f"c{number}")), tool([output(f"c{number}")])]
    assert bodies[-1]["system"] == [
        {"type": "text", "text": "Always the same. ", **MARK},
        {"type": "text", "text": "Today is Monday."},
    ]
    assert [marked([body["tools"], body["system"], body["messages"]]) for body in bodies] == [
        ["read_file", "Always the same. ", "first"],
        ["read_file", "Always the same. ", "first", "c0"],
        ["read_file", "Always the same. ", "c0", "c1"],
    ]


@pytest.mark.parametrize(
    ("system", "stable", "expected"),
    [
        ("", 0, None),
        (" \n", 2, None),
        ("all", 3, [{"type": "text", "text": "all", **MARK}]),
        ("all", 99, [{"type": "text", "text": "all", **MARK}]),
        ("all\n\n", 3, [{"type": "text", "text": "all\n\n", **MARK}]),
        ("  some", 2, [{"type": "text", "text": "  some"}]),
        ("some", 0, [{"type": "text", "text": "some"}]),
    ],
)
def test_no_blank_block_of_the_system_prompt(system: str, stable: int, expected: object) -> None:
    assert sent(system=system, stable=stable).get("system") == expected


PARTS = st.sampled_from([Text(text="t"), Text(text=" "), PICTURE])
ROUNDS = st.lists(
    st.tuples(
        st.lists(PARTS, max_size=3),
        st.lists(st.sampled_from([Text(text="t"), Text(text=""), signed("hm"), Thinking(text="x")]), max_size=3),
        st.lists(st.sampled_from(["", "call_0", "a|b", "ü"]), max_size=3, unique=True),
        st.lists(PARTS, max_size=2),
        st.booleans(),
    ),
    max_size=5,
)


@examples(150)
@given(rounds=ROUNDS, level=st.sampled_from(["off", "high"]), model=st.sampled_from([OPUS, SONNET, "claude-opus-5-5"]))
def test_every_conversation_makes_a_request_of_the_form_that_is_accepted(
    rounds: list[tuple[Any, Any, list[str], Any, bool]], level: Any, model: str
) -> None:
    """I15: messages alternate and begin and end with the user's, nothing is blank, each call has its output behind
    it and an id of its own, and at most four places are marked, none of them thinking."""
    messages = [user("begin")]
    for asked, answered, ids, shown, failed in rounds:
        messages += [Message(role="user", content=tuple(asked)), answer(*answered, *map(call, ids))]
        if ids:
            messages.append(tool([output(call_id, *shown, is_error=failed) for call_id in ids]))
    wire = AnthropicWire(endpoint("http://127.0.0.1:9", provider="anthropic", model=model))
    body = json.loads(wire.body(request(*messages, tools=(READ_FILE,), thinking=level, stable=4)))
    turns = body["messages"]
    assert [turn["role"] for turn in turns] == [("user", "assistant")[n % 2] for n in range(len(turns))]
    assert turns[-1]["role"] == "user"
    taken: list[str] = []
    for turn, following in zip(turns, [*turns[1:], None], strict=True):
        assert turn["content"]
        assert all(block["text"].strip() for block in turn["content"] if block["type"] == "text")
        asked_for = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
        taken += asked_for
        if asked_for:
            got = [block["tool_use_id"] for block in following["content"][: len(asked_for)]]
            assert got == asked_for
        assert not any("cache_control" in block for block in turn["content"] if "thinking" in block["type"])
    assert len(taken) == len(set(taken))
    assert all(taken_id.replace("_", "a").isalnum() and taken_id.isascii() for taken_id in taken)
    assert json.dumps(body).count('"cache_control"') <= 4


# Thinking


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-3-5-haiku-20241022", {}),
        ("claude-3-opus-20240229", {}),
        ("claude-2.1", {}),
        ("claude-3-7-sonnet-latest", {"thinking": {"type": "enabled", "budget_tokens": 10000}}),
        ("claude-opus-4-20250514", {"thinking": {"type": "enabled", "budget_tokens": 10000}}),
        ("claude-haiku-4-5-20251001", {"thinking": {"type": "enabled", "budget_tokens": 10000}}),
        ("kimi-k3", {"thinking": {"type": "enabled", "budget_tokens": 10000}}),
        (OPUS, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}),
        ("anthropic/claude-sonnet-4.6", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}),
        (
            "claude-opus-4-8",
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "medium"}},
        ),
        (
            "claude-opus-5-5",
            {
                "thinking": {
                    "type": "adaptive",
                    "block_binding": {"prefix_mismatch_behavior": "drop_block"},
                    "display": "summarized",
                },
                "output_config": {"effort": "medium"},
            },
        ),
    ],
)
def test_thinking_is_asked_for_as_each_generation_takes_it(model: str, expected: Mapping[str, Any]) -> None:
    body = sent(model=model, thinking="medium", max_output=64000)
    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == expected
    assert "temperature" not in body


BOUND = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}, "display": "summarized"}
LEAST = {"thinking": {"type": "adaptive", **BOUND}, "output_config": {"effort": "low"}}
UNSEEN = {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-3-5-haiku-20241022", {}),
        ("claude-haiku-4-5-20251001", {}),
        (OPUS, {}),
        ("claude-opus-4-8", {}),
        ("kimi-k3", {"thinking": {"type": "disabled"}}),
        ("claude-opus-5", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-5", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-5-5", {"thinking": {"type": "disabled"}}),
        ("claude-haiku-6", {"thinking": {"type": "disabled"}}),
        ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}),
        ("anthropic/claude-sonnet-6.1", {"thinking": {"type": "between_tools"}}),
        ("claude-opus-5-5", LEAST),
        ("claude-fable-5-1", LEAST),
        ("claude-fable-5", UNSEEN),
        ("claude-opus-6", LEAST),
        ("claude-marvel-7", LEAST),
    ],
)
def test_off_is_the_least_that_each_generation_can_do(model: str, expected: Mapping[str, Any]) -> None:
    body = sent(model=model, max_output=64000)
    assert {name: body[name] for name in ("thinking", "output_config") if name in body} == expected


NOT_DISABLED = '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive".'
USE_BETWEEN = '"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools".'
NOT_BETWEEN = '"thinking.type.between_tools" is not supported for this model.'


@pytest.mark.parametrize(
    ("model", "refusals", "expected"),
    [
        ("claude-haiku-7", [NOT_DISABLED], ["disabled", "adaptive", "adaptive"]),
        ("claude-haiku-7", [USE_BETWEEN], ["disabled", "between_tools", "between_tools"]),
        ("claude-haiku-7", [USE_BETWEEN, NOT_BETWEEN], ["disabled", "between_tools", "adaptive", "adaptive"]),
        ("claude-sonnet-8", [NOT_BETWEEN], ["between_tools", "adaptive", "adaptive"]),
        ("glm-5.3", ["thinking: unknown field"], ["disabled", "", ""]),
    ],
)
def test_a_way_to_think_less_that_is_refused_gives_way_to_the_next(
    model: str, refusals: Sequence[str], expected: Sequence[str]
) -> None:
    """What a model of tomorrow takes is not in any table."""

    async def run(server: ModelServer) -> None:
        async with aclosing(claude(server.url, model=model)) as provider:
            for _ in range(2):
                await answer_of(provider, request())

    with ModelServer(*(error(400, "invalid_request_error", said) for said in refusals), text("a"), text("b")) as server:
        asyncio.run(run(server))
        assert [asked.body.get("thinking", {"type": ""})["type"] for asked in server.requests] == expected


def test_unsigned_thinking_goes_back_to_models_of_other_makers_only() -> None:
    """DeepSeek and Kimi in this format refuse a conversation that lacks it; Claude one that has it."""
    shown = message(thought("Let me", ""), called("read_file", {"path": "a"}), finish="tool_use")
    for model, expected in (("deepseek-v4-pro", True), (SONNET, False)):
        deltas, _ = ask(shown, model=model)
        assembly = Assembly("anthropic", model)
        for delta in deltas:
            assembly.feed(delta)
        made = assembly.message()
        outputs = tool([output(call.id) for call in made.calls])
        body = sent(user("Go"), made, outputs, model=model, thinking="high", max_output=64000)
        kinds = [block["type"] for block in body["messages"][1]["content"]]
        assert ("thinking" in kinds) is expected


def test_the_newest_models_are_told_what_to_do_with_thinking_from_before_a_change() -> None:
    """They refuse it otherwise; the field for that needs a header."""
    _, requests = ask(text("ok"), model="claude-opus-5-5", headers={"Anthropic-Beta": "mine"})
    assert requests[0].headers["anthropic-beta"] == "mine,thinking-binding-controls-2026-08-01"
    own = answer(signed("hm", "claude-opus-5-5"), Text(text="x"), model="claude-opus-5-5")
    body = sent(user("a"), own, user("b"), model="claude-opus-5-5")
    assert body["thinking"] == {"type": "adaptive", **BOUND}
    assert body["messages"][1]["content"][0]["type"] == "thinking"


@pytest.mark.parametrize(
    ("most", "budget"), [(64000, 24000), (8192, 4096), (2000, 1024), (1025, 1024), (1024, None), (10, None)]
)
def test_a_budget_leaves_room_for_the_answer(most: int, budget: int | None) -> None:
    body = sent(model=SONNET, thinking="high", max_output_tokens=most)
    assert body["max_tokens"] == most
    assert body.get("thinking") == (budget and {"type": "enabled", "budget_tokens": budget})


def rounds_of_thinking(model: str, **fields: Any) -> tuple[Any, Any]:
    """The body of the request for a second round of calls, and what the model was shown to have thought."""
    first = message(thought("Let me"), redacted("QQ=="), said("Well."), called("read_file", {"path": "a"}))
    second = message(called("read_file", {"path": "b"}), finish="tool_use")

    async def run(server: ModelServer) -> list[Message]:
        said: list[Message] = [user("Go")]
        async with aclosing(claude(server.url, model=model)) as provider:
            for _ in range(3):
                assembly = Assembly("anthropic", model)
                for delta in await answer_of(provider, request(*said, tools=(READ_FILE,), **fields)):
                    assembly.feed(delta)
                # As a session writes and reads it.
                answered = from_dict(json.loads(json.dumps(to_dict(assembly.message()))))
                said += [answered, tool([output(call.id) for call in answered.calls])]
        return said

    with ModelServer(first, second, text("Done.")) as server:
        said_in_all = asyncio.run(run(server))
        return server.requests[-1].body, said_in_all


@pytest.mark.parametrize("model", [SONNET, OPUS, "claude-opus-5-5"])
def test_thinking_goes_back_verbatim_in_a_second_round_of_calls(model: str) -> None:
    body, said_in_all = rounds_of_thinking(model, thinking="high")
    assert without_marks(body["messages"][1]["content"])[:3] == [
        {"type": "thinking", "thinking": "Let me", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "QQ=="},
        {"type": "text", "text": "Well."},
    ]
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert "thinking" in body
    assert said_in_all[1].content[0].text == "Let me"


def test_thinking_that_is_not_shown_goes_back_as_well() -> None:
    """Newer models send a signature without a text."""
    deltas, _ = ask(message(thought(""), said("Hi")))
    data = next(delta.provider_data for delta in deltas if isinstance(delta, ThinkingDelta))
    assert data is not None
    assert data.data["blocks"] == [{"type": "thinking", "thinking": "", "signature": SIGNATURE}]


def test_without_thinking_none_is_sent_back() -> None:
    body = sent(user("a"), answer(signed("hm"), Text(text="x")), user("b"))
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text"]


@pytest.mark.parametrize(
    "foreign",
    [
        signed("hm", provider="gemini"),
        signed("hm", model="claude-opus-4-5"),
        Thinking(text="hm"),
        Thinking(text="hm", provider_data=ProviderData(provider="anthropic", data={"signature": "old"})),
    ],
)
def test_thinking_of_others_is_dropped(foreign: Thinking) -> None:
    """A signature of another provider or model makes the whole request fail."""
    body = sent(user("a"), answer(foreign, Text(text="x")), user("b"), thinking="high")
    assert [block["type"] for block in body["messages"][1]["content"]] == ["text"]


def test_thinking_switched_on_between_a_call_and_its_output_waits_for_the_next_prompt() -> None:
    """With a budget the service refuses a turn that did not begin with thinking; adaptive models accept it."""
    turn = [user("Go"), answer(call("c1"), model=SONNET), tool([output("c1")])]
    assert "thinking" not in sent(*turn, model=SONNET, thinking="high")
    assert "thinking" not in sent(*turn, user("hurry"), model=SONNET, thinking="high")
    assert "thinking" in sent(*turn, answer(Text(text="ok"), model=SONNET), user("Next"), model=SONNET, thinking="high")
    assert "thinking" in sent(*turn, model=OPUS, thinking="high")
    begun = [user("Go"), answer(signed("hm", SONNET), call("c1"), model=SONNET), tool([output("c1")])]
    later = [answer(call("c2"), model=SONNET), tool([output("c2")])]
    assert "thinking" in sent(*begun, *later, model=SONNET, thinking="high")


def test_thinking_that_is_refused_is_left_out_from_then_on() -> None:
    """Of a session that another account began: the conversation would be refused for ever."""
    refusal = error(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")
    asked = request(user("a"), answer(signed("hm"), Text(text="x")), user("b"), thinking="high")
    deltas, requests = ask(refusal, text("ok"), asked=asked)
    assert text_of(deltas) == "ok"
    kinds = [[block["type"] for block in one.body["messages"][1]["content"]] for one in requests]
    assert kinds == [["thinking", "text"], ["text"]]
    assert isinstance(failure(refusal, refusal, text("never"), asked=asked), BadRequest)


# Conversations that began with another provider


def test_calls_of_others_get_ids_and_names_that_are_accepted() -> None:
    """Other services use other characters, or one id again in a later answer."""
    messages = [
        user("Go"),
        Message(role="assistant", content=(call("fc_1|call+ü", "functions.read file"),), provider="openai"),
        tool([output("fc_1|call+ü")]),
        Message(role="assistant", content=(call("call_0"),), provider="llama-server"),
        tool([output("call_0")]),
        Message(role="assistant", content=(call("call_0"), call("")), provider="llama-server"),
        tool([output("call_0"), output("")]),
    ]
    turns = sent(*messages)["messages"]
    asked = [block for turn in turns[1::2] for block in turn["content"]]
    got = [block["tool_use_id"] for turn in turns[2::2] for block in turn["content"]]
    ids = [block["id"] for block in asked]
    assert ids == got
    assert len(set(ids)) == 4
    assert ids[1:3] == ["call_0", "call_0_2"]
    assert all(set(one) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-") and one for one in ids)
    assert asked[0]["name"] == "functions_read_file"
    assert ids == [b["id"] for turn in sent(*messages, user("x"))["messages"][1::2] for b in turn["content"]]


@pytest.mark.parametrize(
    "provider_data",
    [
        ProviderData(provider="gemini", data={"extra_content": {"google": {"thought_signature": "s"}}}),
        ProviderData(provider="openai", data={"id": "rs_1", "encrypted_content": "x"}),
    ],
)
def test_a_transcript_of_another_provider_with_calls_images_and_thinking(provider_data: ProviderData) -> None:
    """Nothing that belongs to the other provider is sent."""
    made = Message(
        role="assistant",
        content=(
            Thinking(text="hm", provider_data=provider_data),
            Text(text="Looking.", provider_data=provider_data),
            call("call_1").replace(provider_data=provider_data),
        ),
        provider=provider_data.provider,
    )
    for level in ("off", "high"):
        body = sent(user("Look", PICTURE), made, tool([output("call_1", PICTURE)]), thinking=level, tools=(READ_FILE,))
        assert without_marks(body["messages"]) == [
            {"role": "user", "content": [{"type": "text", "text": "Look"}, SEEN]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Looking."},
                    {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": [SEEN]}]},
        ]


# What is understood

SAMPLE = message(
    thought("hm"),
    redacted("QQ=="),
    said("Grüß\u2028Gott\u0085👋", ["Grüß\u2028", "Gott\u0085👋"]),
    called("read_file", '{"path": "äb"}', chunks=3, call_id="toolu_a"),
    called("list", {}, call_id="toolu_b"),
    usage={"input_tokens": 3, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 100, "output_tokens": 4},
    finish="tool_use",
).body


def decoded(*reads: bytes) -> Message:
    """The message that an answer in these reads becomes."""
    stream = AnthropicStream(endpoint("http://a.example/v1", provider="anthropic", model=OPUS), "http://a.example")
    assembly = Assembly("anthropic", OPUS)
    for delta in [*(delta for read in reads for delta in stream.feed(read)), *stream.finish()]:
        assembly.feed(delta)
    assert stream.failure is None
    return assembly.message()


def expected_of_sample() -> Message:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "QQ=="},
    ]
    return Message(
        role="assistant",
        content=(
            Thinking(
                text="hm", provider_data=ProviderData(provider="anthropic", data={"model": OPUS, "blocks": blocks})
            ),
            Text(text="Grüß\u2028Gott\u0085👋"),
            ToolCall(id="toolu_a", name="read_file", arguments='{"path": "äb"}'),
            ToolCall(id="toolu_b", name="list", arguments="{}"),
        ),
        provider="anthropic",
        model=OPUS,
        usage=Usage(input_tokens=123, output_tokens=4, cache_read_tokens=20, cache_write_tokens=100),
        stop_reason="tool_calls",
    )


@pytest.mark.slow
def test_a_stream_cut_at_any_byte_means_the_same() -> None:
    """Cuts inside a character, a field name and a JSON escape included. Input counts what the cache read and wrote."""
    expected = expected_of_sample()
    assert decoded(SAMPLE) == expected
    for sample in (SAMPLE, SAMPLE.replace(b"\n", b"\r\n")):
        for cut in range(1, len(sample)):
            assert decoded(sample[:cut], sample[cut:]) == expected
    assert decoded(*(SAMPLE[n : n + 1] for n in range(len(SAMPLE)))) == expected


def test_the_same_over_a_connection() -> None:
    steps = tuple(SAMPLE[n : n + 7] for n in range(0, len(SAMPLE), 7))
    deltas, _ = ask(raw(SAMPLE).replace(steps=steps))
    assembly = Assembly("anthropic", OPUS)
    for delta in deltas:
        assembly.feed(delta)
    assert assembly.message() == expected_of_sample()


def test_a_burst_becomes_one_delta_of_each_kind() -> None:
    deltas, _ = ask(burst(text("word " * 200, chunks=200)))
    assert len([delta for delta in deltas if isinstance(delta, TextDelta)]) == 1
    deltas, _ = ask(burst(calls(("f", {"a": "b" * 500}), chunks=100)))
    assert len([delta for delta in deltas if isinstance(delta, CallDelta)]) == 1


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refused"),
        ("something_new", "stop"),
    ],
)
def test_the_reasons_to_stop(finish: str, expected: StopReason) -> None:
    deltas, _ = ask(text("Hi", finish=finish))
    assert deltas[-1] == Stop(reason=expected)


def start(index: int, block: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, kind: str, **fields: Any) -> Mapping[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
HI = piece(0, "text_delta", text="Hi")


@pytest.mark.parametrize(
    "stream",
    [
        [HI, END],
        [start(0, {"type": "text", "text": "Hi"}), END],
        [{"type": "content_block_stop", "index": 5}, HI, END, {"type": "message_stop"}],
        [{"type": "news", "x": 1}, {"other": 1}, HI, piece(0, "citations_delta", citation={}), END],
        [
            start(0, {"type": "server_tool_use", "id": "s", "name": "web", "input": {}}),
            piece(0, "input_json_delta", partial_json='{"a"'),
            piece(1, "text_delta", text="Hi"),
            END,
        ],
        [HI, END, {"type": "message_stop"}, piece(0, "text_delta", text="too late")],
        [{"type": "message_start", "message": {}}, HI, {**END, "usage": None}],
    ],
)
def test_streams_that_deviate(stream: list[Mapping[str, Any]]) -> None:
    """Unknown events and blocks, missing and additional beginnings and ends."""
    deltas, _ = ask(events(*stream))
    assert text_of(deltas) == "Hi"
    assert calls_of(deltas) == []
    assert deltas[-1] == Stop(reason="stop")


def test_calls_whose_fragments_alternate_or_come_whole() -> None:
    stream = [
        start(0, {"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        start(1, {"type": "tool_use", "id": "b", "name": "g", "input": {"whole": "ü"}}),
        piece(0, "input_json_delta", partial_json='{"x"'),
        {"type": "content_block_stop", "index": 1},
        piece(0, "input_json_delta", partial_json=": 1}"),
        {"type": "content_block_stop", "index": 0},
        END,
    ]
    deltas, _ = ask(events(*stream))
    assert calls_of(deltas) == [("a", "f", '{"x": 1}'), ("b", "g", '{"whole": "ü"}')]
    assert deltas[-1] == Stop(reason="tool_calls")


def test_an_answer_that_is_one_document_and_no_stream() -> None:
    content = [{"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}]
    usage = {"input_tokens": 5, "output_tokens": 6}
    deltas, _ = ask(document({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage}))
    assert text_of(deltas) == "Hi"
    assert calls_of(deltas) == [("a", "f", '{"x": 1}')]
    assert deltas[-1] == Stop(reason="tool_calls")


def test_usage_is_known_from_the_beginning_and_at_its_end() -> None:
    """A cancelled answer has cost its input; some gateways send zeros in the first or in the last event."""
    first = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    last = {**END, "usage": {"input_tokens": 0, "cache_read_input_tokens": None, "output_tokens": 8}}
    stream = AnthropicStream(endpoint("http://a.example/v1"), "http://a.example/v1/messages")
    deltas = [delta for step in events(first, HI, last).steps for delta in stream.feed(step)]  # type: ignore[arg-type]
    usages = [delta.usage for delta in deltas if isinstance(delta, UsageDelta)]
    assert usages == [Usage(input_tokens=9, output_tokens=1), Usage(input_tokens=9, output_tokens=8)]


# How it fails

LONG = "prompt is too long: 210000 tokens > 200000 maximum"
WINDOW = "input length and `max_tokens` exceed context limit: 150000 + 64000 > 200000"
CREDIT = "Your credit balance is too low to access the Anthropic API."
SPENT = "You have reached your specified API usage limits. You will regain access on 2026-12-01."
FAILURES: list[tuple[int, str, str, type[ProviderError], str]] = [
    (400, "invalid_request_error", "messages: at least one message is required", BadRequest, "at least one message"),
    (400, "invalid_request_error", LONG, ContextOverflow, "/compact"),
    (400, "invalid_request_error", WINDOW, ContextOverflow, "/compact"),
    (400, "invalid_request_error", CREDIT, QuotaExhausted, "billing"),
    (400, "invalid_request_error", SPENT, QuotaExhausted, "2026-12-01"),
    (400, "invalid_request_error", "Output blocked by content filtering policy", Refused, "Rephrase"),
    (401, "authentication_error", "invalid x-api-key", AuthFailed, "ANTHROPIC_API_KEY"),
    (402, "billing_error", "There is an issue with your billing", QuotaExhausted, "billing"),
    (403, "permission_error", "Your API key may not use this", AuthFailed, "Check the key"),
    (413, "request_too_large", "Request exceeds the maximum size", ContextOverflow, "/compact"),
    (429, "rate_limit_error", "Number of request tokens has exceeded your limit", RateLimited, "Wait a little"),
    (500, "api_error", "Internal server error", Overloaded, "Try again"),
    (504, "timeout_error", "The request timed out", Overloaded, "Try again"),
    (529, "overloaded_error", "Overloaded", Overloaded, "Try again"),
]


@pytest.mark.parametrize(("status", "name", "said", "kind", "advice"), FAILURES)
def test_errors_have_their_type_and_say_what_to_do(
    status: int, name: str, said: str, kind: type[ProviderError], advice: str
) -> None:
    found = failure(error(status, name, said))
    assert type(found) is kind
    assert (found.status, found.provider) == (status, "anthropic")
    assert advice in str(found)


def test_a_rate_limit_says_when_to_come_back() -> None:
    found = failure(error(429, "rate_limit_error", "slow down", {"Retry-After": "7"}))
    assert isinstance(found, RateLimited)
    assert found.retry_after == 7


@pytest.mark.parametrize(
    ("name", "said", "kind"),
    [
        ("overloaded_error", "Overloaded", Overloaded),
        ("api_error", "Something happened", Overloaded),
        ("rate_limit_error", "slow down", RateLimited),
        ("authentication_error", "bad key", AuthFailed),
        ("permission_error", "no", AuthFailed),
        ("billing_error", "no", QuotaExhausted),
        ("request_too_large", "no", ContextOverflow),
        ("invalid_request_error", LONG, ContextOverflow),
        ("new_error", "what is that", StreamBroken),
    ],
)
def test_an_error_event_inside_an_answer(name: str, said: str, kind: type[ProviderError]) -> None:
    """It has its type, and what came before it is not lost, though it came in the same read."""
    stream = burst(events(HI, {"type": "error", "error": {"type": name, "message": said}}))

    async def run(server: ModelServer) -> tuple[list[Delta], ProviderError]:
        seen: list[Delta] = []
        async with aclosing(claude(server.url)) as provider:
            with pytest.raises(ProviderError) as raised:
                await answer_of(provider, into=seen)
        return seen, raised.value

    with ModelServer(stream) as server:
        seen, found = asyncio.run(run(server))
    assert merged(seen) == [TextDelta(text="Hi")]
    assert type(found) is kind
    assert said in str(found)


@pytest.mark.parametrize("said", ["model: claude-opus-4.6", "Not found"])
def test_a_model_that_is_not_served_names_those_that_are(said: str) -> None:
    async def run(server: ModelServer) -> ProviderError:
        async with aclosing(claude(server.url, model="claude-opus-4.6")) as provider:
            with pytest.raises(ModelNotFound) as raised:
                await answer_of(provider)
            return raised.value

    with ModelServer(error(404, "not_found_error", said), models=["claude-haiku-4-5", OPUS]) as server:
        found = asyncio.run(run(server))
        assert server.requests[-1].path == "/v1/models?limit=1000"
        assert server.requests[-1].headers["x-api-key"] == KEY
        assert server.requests[-1].headers["anthropic-version"] == "2023-06-01"
    assert isinstance(found, ModelNotFound)
    assert found.served == ("claude-haiku-4-5", OPUS)
    assert OPUS in str(found)


def test_a_path_that_does_not_exist_is_no_missing_model() -> None:
    found = failure(error(404, "not_found_error", "Not found"), model="scripted")
    assert type(found) is BadRequest
    assert "base URL" in str(found)


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (html(), Unreachable),
        (html(status=502), Overloaded),
        (drop(), StreamBroken),
        (hang(), Unreachable),
        (hang_after(400, text("x" * 500, chunks=10)), Unreachable),
        (cut_after(400, text("x" * 500, chunks=10)), StreamBroken),
        (events(HI), StreamBroken),
        (events(), StreamBroken),
        (raw(b"data: oops\n\n"), StreamBroken),
        (raw(b"data: 5\n\n"), StreamBroken),
        (raw(b'data: {"type": "content_block_start"}\n\n'), StreamBroken),
        (document({"object": "chat.completion", "choices": []}), StreamBroken),
        (document([]), StreamBroken),
        (document({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}), Overloaded),
    ],
)
def test_answers_that_are_none(broken: Answer, kind: type[ProviderError]) -> None:
    found = failure(broken, silence=0.2)
    assert type(found) is kind
    assert "anthropic" in str(found)


def test_an_answer_that_gave_its_reason_to_stop_is_complete() -> None:
    """The connection is lost before message_stop: nothing is missing."""
    whole = text("Hi")
    deltas, _ = ask(cut_after(len(whole.body) - len(whole.steps[-1]), whole))  # type: ignore[arg-type]
    assert text_of(deltas) == "Hi"
    assert deltas[-1] == Stop(reason="stop")


@pytest.mark.parametrize(
    "told",
    [
        error(401, "authentication_error", f"invalid x-api-key {KEY}"),
        events({"type": "error", "error": {"type": "api_error", "message": KEY}}),
        raw(f"data: oops {KEY}\n\n".encode()),
    ],
)
def test_no_error_shows_the_key(told: Answer) -> None:
    """I24: not even where the service sends it back."""
    found = failure(told)
    assert KEY not in f"{found!s} {found!r}"


def test_a_key_that_cannot_be_sent() -> None:
    """I24: the libraries below would show it in their own errors."""
    found = failure(text("never"), key=Secret("sk-secret\nsecret"))
    assert isinstance(found, AuthFailed)
    assert "ANTHROPIC_API_KEY" in str(found)
    assert "sk-secret" not in str(found)


# In a session


@pytest.mark.parametrize("model", [OPUS, SONNET])
def test_a_session_with_tools_and_thinking(tmp_path: Path, model: str) -> None:
    """Two rounds of calls, one of them failing, then another prompt: each request is what the service accepts."""
    script = (
        calls(("look", {"name": "x"}), ("no_such_tool", {}), thinking="Let me look."),
        calls(("look", {"name": "y"}), text="Once more."),
        text("Done."),
        text("Bye."),
    )
    with ModelServer(*script) as server:

        async def go() -> list[str]:
            provider: Any = claude(server.url, model=model)
            made = engine.make(tmp_path, provider=provider)
            made.session.models.think("high")
            try:
                return [(await made.session.submit(prompt)).text for prompt in ("go", "thanks")]
            finally:
                await made.session.close()
                await provider.aclose()

        assert engine.run(go()) == ["Once more.\nDone.", "Bye."]
        bodies = [asked.body for asked in server.requests]
    assert all("thinking" in body for body in bodies)
    turns = bodies[-1]["messages"]
    assert [[block["type"] for block in turn["content"]] for turn in turns] == [
        ["text"],
        ["thinking", "tool_use", "tool_use"],
        ["tool_result", "tool_result"],
        ["text", "tool_use"],
        ["tool_result"],
        ["text"],
        ["text"],
    ]
    assert [block.get("is_error", False) for block in turns[2]["content"]] == [False, True]
    assert turns[2]["content"][0]["content"] == "x done"
    for earlier, later in pairwise(bodies):
        kept = without_marks(earlier["messages"])
        assert without_marks(later["messages"])[: len(kept)] == kept, "what was sent stays as it was"
    assert marked(bodies[-1]["messages"])[-1] == "thanks"
