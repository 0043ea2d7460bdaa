"""Services that refuse what others take: what is known of them beforehand, and what is learnt from one refusal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marvin_core.api.messages import Message, Text, Thinking, ToolCall, ToolOutput, tool, user
from marvin_core.api.providers import Request, ThinkingLevel
from marvin_core.engine.assembly import Assembly
from marvin_core.providers.chat_completions.provider import create
from marvin_core.providers.chat_completions.request import ChatWire
from marvin_core.providers.http.efforts import other_effort
from marvin_core.providers.http.encoding import dump, object_arguments
from marvin_core.providers.http.turns import GO_ON, UNDERSTOOD
from marvin_core.testing import Answer, error, events, text
from tests.support import strict_services as strict
from tests.support.chatting import answer_of, call_piece, chat, chunk, endpoint, request
from tests.support.examples import examples

LOOKED = ToolOutput(call_id="call_1", name="look", content=(Text(text="ok"),))


def thinks_and_calls(number: int, field: str = "reasoning_content") -> Answer:
    return events(
        chunk({field: f"thought {number}"}),
        call_piece("{}", index=0, id=f"call_{number}", name="look"),
        chunk({}, "tool_calls"),
    )


def elsewhere(number: int) -> list[Message]:
    """A round of calls with another service."""
    call = ToolCall(id=f"toolu_{number}", name="look", arguments="{}")
    return [
        Message(role="assistant", provider="anthropic", model="claude", content=(Thinking(text="secret"), call)),
        tool([LOOKED.replace(call_id=call.id)]),
    ]


def turn(server: strict.StrictServer, before: Sequence[Message] = (), *, rounds: int = 3, **fields: Any) -> list[str]:
    """A turn of so many rounds of calls after these messages, and its end; what was refused on the way."""
    options = {"provider": "acme", "model": "m", **fields}
    level = options.pop("thinking", "high")

    async def run() -> None:
        messages: list[Message] = [*before, user("Go.")]
        async with aclosing(chat(server.url, **options)) as provider:
            for _ in range(rounds + 1):
                assembly = Assembly(options["provider"], options["model"])
                for delta in await answer_of(provider, request(*messages, thinking=level)):
                    assembly.feed(delta)
                messages.append(assembly.message())
                if messages[-1].calls:
                    outputs = [LOOKED.replace(call_id=call.id) for call in messages[-1].calls]
                    messages.append(tool(outputs))

    with server:
        asyncio.run(run())
    return server.refused


def script(field: str = "reasoning_content") -> list[Answer]:
    return [*(thinks_and_calls(number, field) for number in (1, 2, 3)), text("Done.")]


# Reasoning that goes back


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_goes_back_in_the_field_that_it_came_in(field: str) -> None:
    """Any server: whoever shows reasoning in a field of an answer knows that field."""
    server = strict.StrictServer(*script(field))
    assert turn(server) == []
    told = [message.get(field) for message in server.taken[-1]["messages"] if message["role"] == "assistant"]
    assert told == ["thought 1", "thought 2", "thought 3"]


@pytest.mark.parametrize("rule", [strict.wants_reasoning, strict.wants_reasoning_of_calls])
def test_a_service_that_demands_reasoning_gets_it_at_once(rule: strict.Rule) -> None:
    assert turn(strict.StrictServer(*script(), rules=(rule,))) == []


@pytest.mark.parametrize(
    ("rule", "provider"), [(strict.wants_reasoning, "deepseek"), (strict.wants_reasoning_of_calls, "moonshot")]
)
def test_a_conversation_begun_elsewhere_goes_on_there(rule: strict.Rule, provider: str) -> None:
    """What another service thought stays with it: an empty field says so, and nothing is refused on the way."""
    server = strict.StrictServer(*script(), rules=(rule,))
    assert turn(server, [user("Hi"), *elsewhere(1), *elsewhere(2)], provider=provider) == []
    assert "secret" not in json.dumps(server.taken)


@pytest.mark.parametrize("rule", [strict.wants_reasoning, strict.wants_reasoning_of_calls])
def test_the_demand_of_an_unknown_service_is_learnt_from_one_refusal(rule: strict.Rule) -> None:
    """A gateway with such a model behind it."""
    server = strict.StrictServer(*script(), rules=(rule,))
    assert len(turn(server, [user("Hi"), *elsewhere(1)])) == 1
    assert len(server.taken) == 4


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_service_that_refuses_what_it_gave_is_sent_it_once(field: str) -> None:
    server = strict.StrictServer(*script(field), rules=(strict.wants_no_reasoning,))
    assert len(turn(server)) == 1
    assert len(server.taken) == 4
    assert server.taken[-1]["reasoning_effort"] == "high", "and what sets the thinking is still said"


def test_deepseek_that_is_not_to_think_is_asked_not_to() -> None:
    server = strict.StrictServer(text("Done."), rules=(strict.wants_reasoning,))
    assert turn(server, [user("Hi"), *elsewhere(1)], rounds=0, provider="deepseek", thinking="off") == []
    assert server.taken[0]["thinking"] == {"type": "disabled"}


def test_reasoning_of_a_service_that_sends_details_goes_back_as_these() -> None:
    piece = {"type": "reasoning.text", "text": "hm", "index": 0}
    answer = events(
        chunk({"reasoning": "hm", "reasoning_details": [piece]}),
        call_piece("{}", index=0, id="call_1", name="look"),
        chunk({}, "tool_calls"),
    )
    server = strict.StrictServer(answer, text("Done."))
    assert turn(server, rounds=1, provider="openrouter") == []
    sent = server.taken[-1]["messages"][-2]
    assert sent["reasoning_details"] == [piece]
    assert "reasoning" not in sent


# Mistral


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
MISTRAL = (
    strict.wants_nine,
    strict.wants_no_reasoning,
    strict.wants_an_answer_to_outputs,
    strict.wants_the_user_last,
)


def mistral_script() -> list[Answer]:
    first = events(
        chunk({"content": [{**THOUGHT, "thinking": [{"type": "text", "text": "h"}]}]}),
        chunk({"content": [{**THOUGHT, "thinking": [{"type": "text", "text": "m"}]}]}),
        chunk({"content": [{"type": "text", "text": "I "}]}),
        chunk({"content": "look."}),
        call_piece("{}", index=0, id="D681PevKs", name="look"),
        chunk({}, "tool_calls"),
    )
    return [first, text("Done.")]


def test_thinking_of_mistral_is_thinking_and_goes_back_as_the_part_that_it_was() -> None:
    server = strict.StrictServer(*mistral_script(), rules=MISTRAL)
    assert turn(server, rounds=1, provider="mistral") == []
    sent = server.taken[-1]["messages"][-2]
    assert sent["content"] == [THOUGHT, {"type": "text", "text": "I look."}]
    assert sent["tool_calls"][0]["id"] == "D681PevKs"
    assert "stream_options" not in server.taken[0]


def begun() -> list[Message]:
    """A session from elsewhere, with what Mistral refuses: ids, an image of a tool, a word behind an output."""
    return [user("Hi"), *elsewhere(1), user("And?"), *elsewhere(2), user("Well?"), user("So?")]


def test_a_session_begun_elsewhere_goes_on_at_mistral() -> None:
    server = strict.StrictServer(*mistral_script(), rules=MISTRAL)
    assert turn(server, begun(), rounds=1, provider="mistral") == []
    said = server.taken[0]["messages"]
    assert [message["role"] for message in said[1:]] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool", "assistant", "user"),
    ]
    assert said[4]["content"] == UNDERSTOOD
    assert said[-1]["content"] == "Well?\n\nSo?\n\nGo."


@pytest.mark.parametrize("status", [400, 404, 422, 500])
def test_its_models_behind_other_servers_are_understood_after_a_refusal_of_each_kind(status: int) -> None:
    """llama.cpp, vLLM, MLX and others fill the templates of these models, and some of them answer 404 or 500."""
    rules = (strict.wants_nine, strict.wants_turns_or_outputs, strict.wants_the_user_last)
    server = strict.StrictServer(*script(), rules=rules, status=status)
    assert len(turn(server, begun())) == 2
    assert len(server.taken) == 4


@given(st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=30, unique=True))
@settings(deadline=None)
def test_ids_of_any_kind_become_nine_letters_each_its_own(ids: list[str]) -> None:
    wire = ChatWire(endpoint("https://api.mistral.ai/v1", provider="mistral"))
    messages: list[Message] = [user("Go.")]
    for given_id in ids:
        call = ToolCall(id=given_id, name="look", arguments="{}")
        messages += [Message(role="assistant", content=(call,)), tool([LOOKED.replace(call_id=given_id)])]
    body = json.loads(wire.body(request(*messages), {}))
    asked = [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]
    told = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
    assert asked == told
    assert len(set(asked)) == len(ids)
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in asked)


# Answers in a row


def said(*texts: str) -> list[Message]:
    return [Message(role="assistant", content=(Text(text=one),)) for one in texts]


@pytest.mark.parametrize("provider", ["acme", "llama-server", "gemini", "groq", "openrouter", "mistral", "deepseek"])
def test_answers_in_a_row_are_one_and_something_to_go_on_from_stands_behind_them(provider: str) -> None:
    """As while a model explores on its own: nobody says anything in between."""
    rules = (strict.wants_one_answer_at_the_end, strict.wants_the_user_last, strict.wants_turns)
    server = strict.StrictServer(text("Done."), rules=rules)

    async def run() -> None:
        async with aclosing(chat(server.url, provider=provider)) as model:
            await answer_of(model, request(user("Explore."), *said("One.", "Two.", "Three.")))

    with server:
        asyncio.run(run())
    assert server.refused == []
    told = [(message["role"], message["content"]) for message in server.taken[0]["messages"][1:]]
    assert told == [("user", "Explore."), ("assistant", "One.\n\nTwo.\n\nThree."), ("user", GO_ON)]


def test_calls_and_reasoning_of_joined_answers_are_kept() -> None:
    call = ToolCall(id="c1", name="look", arguments="{}")
    first = Message(
        role="assistant",
        provider="deepseek",
        model="scripted",
        content=(Thinking(text="a"), Text(text="One.")),
    )
    messages = (user("Go."), first, Message(role="assistant", content=(call,)), tool([LOOKED.replace(call_id="c1")]))
    wire = ChatWire(endpoint("http://acme.example/v1", provider="deepseek"))
    body = json.loads(wire.body(request(*messages), {}))
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["content"] == "One."
    assert body["messages"][2]["tool_calls"][0]["id"] == "c1"


# Caches that have to be asked for


@pytest.mark.parametrize(
    ("provider", "model", "cache", "expected"),
    [
        ("openrouter", "anthropic/claude-opus-5.5", "", {"type": "ephemeral"}),
        ("openrouter", "anthropic/claude-opus-5.5", "1h", {"type": "ephemeral", "ttl": "1h"}),
        ("openrouter", "openai/gpt-5.1", "1h", None),
        ("acme", "claude-opus-5-5", "1h", None),
    ],
)
def test_claude_behind_openrouter_is_cached(provider: str, model: str, cache: str, expected: object) -> None:
    """Otherwise each request of a conversation is paid for in full."""
    options: dict[str, Any] = {"provider": provider, "model": model, "cache": cache}
    server = strict.StrictServer(*script())
    turn(server, **options)
    assert [body.get("cache_control") for body in server.taken] == [expected] * 4


# Efforts


@pytest.mark.parametrize(
    ("refused", "said_of_it", "expected"),
    [
        ("none", "Unsupported value: 'none' is not supported. Supported values are: 'low', 'medium', 'high'.", "low"),
        ("none", "Supported values are: 'minimal', 'low', 'medium', and 'high'.", "minimal"),
        ("medium", "reasoning_effort must be one of 'none' or 'high'", "high"),
        ("medium", "expected one of `low`, `high`", "low"),
        ("high", "supported: [low], [medium]", "medium"),
        ("none", "Reasoning is mandatory for this endpoint and cannot be disabled.", "low"),
        ("high", "Reasoning is mandatory for this endpoint and cannot be disabled.", ""),
        ("low", "reasoning_effort is not supported with this model", ""),
        ("", "Supported values are: 'low'", ""),
    ],
)
def test_another_effort(refused: str, said_of_it: str, expected: str) -> None:
    assert other_effort(refused, said_of_it) == expected


@pytest.mark.parametrize(
    ("provider", "level", "refusals", "expected"),
    [
        (
            "openrouter",
            "off",
            ["Reasoning is mandatory for this endpoint and cannot be disabled."],
            ["none", "low", "low"],
        ),
        ("xai", "off", ["reasoning_effort: expected one of `low`, `high`"], ["none", "low", "low"]),
        ("acme", "medium", ["reasoning_effort must be 'none' or 'high'"], ["medium", "high", "high"]),
        ("acme", "medium", ["'reasoning_effort': 'low' or 'max'", "reasoning_effort?"], ["medium", "low", None, None]),
    ],
)
def test_an_effort_that_is_refused_gives_way_to_the_nearest(
    provider: str, level: ThinkingLevel, refusals: Sequence[str], expected: Sequence[str | None]
) -> None:
    def effort(body: Mapping[str, Any]) -> str | None:
        found = body.get("reasoning", {}).get("effort") or body.get("reasoning_effort")
        return None if found is None else str(found)

    async def run() -> None:
        async with aclosing(chat(server.url, provider=provider)) as model:
            for _ in range(2):
                await answer_of(model, request(thinking=level))

    server = strict.StrictServer(*(error(400, one) for one in refusals), text("a"), text("b"))
    with server:
        asyncio.run(run())
    assert [effort(body) for body in server.taken] == expected


# Values that are no JSON


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def strictly(text_: str | bytes) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is not valid JSON")

    return json.loads(text_, parse_constant=refuse)


@given(JSON)
def test_what_is_sent_is_json_whatever_it_holds(value: Any) -> None:
    strictly(dump(value))


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("wire", ["chat-completions", "ollama", "messages", "responses"])
def test_a_number_that_json_does_not_have_ends_no_session(name: str, wire: str) -> None:
    """It came in a call, maybe of another service, and goes back with every request from then on."""
    from marvin_core.providers.selection.catalog import WIRES
    from marvin_core.util.imports import imported

    call = ToolCall(id="c1", name="look", arguments=f'{{"a": {{"b": [1, {name}]}}}}')
    messages = (user("Go."), Message(role="assistant", content=(call,)), tool([LOOKED.replace(call_id="c1")]))
    make = imported("provider", WIRES[wire])
    provider: Any = make(endpoint("http://acme.example/v1"), lambda: pytest.fail("nothing is sent"))
    body = strictly(provider._body(Request(system="", messages=messages)))
    assert "1e999" not in json.dumps(body)
    assert name not in json.dumps(body)


@given(st.text(alphabet='{}[]":,0123456789eE.-+aNInfity\\ud8', max_size=40))
@examples(300)
def test_arguments_are_always_an_object_for_strict_readers(arguments: str) -> None:
    given_call = ToolCall(id="c", name="look", arguments=arguments)
    assert isinstance(strictly(object_arguments(given_call, ())), dict)


def test_the_factory_is_the_adapter_of_the_three_new_services() -> None:
    for provider in ("mistral", "deepseek", "xai"):
        made = create(endpoint("http://127.0.0.1:9/v1", provider=provider), lambda: pytest.fail("nothing is sent"))
        assert made.name == provider
