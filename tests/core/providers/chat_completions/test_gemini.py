"""Gemini through its compatible interface: signatures go back with their calls, in every kind of conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from marvin_core.api.messages import Message, ProviderData, Text, Thinking, ToolCall, ToolOutput, tool, user
from marvin_core.api.providers import CallDelta, Delta, Stop, ThinkingDelta
from marvin_core.engine.assembly import Assembly
from marvin_core.testing import Answer, events, text
from tests.support.chatting import ask, call_piece, chunk, merged, request

GEMINI: Mapping[str, Any] = {"provider": "gemini", "model": "gemini-3-pro-preview"}
PLACEHOLDER = {"google": {"thought_signature": "skip_thought_signature_validator"}}


def signed(signature: str) -> dict[str, Any]:
    return {"google": {"thought_signature": signature}}


def answered(deltas: Sequence[Delta], **endpoint: Any) -> Message:
    """The message that a session keeps of these deltas."""
    given = {**GEMINI, **endpoint}
    assembly = Assembly(given["provider"], given["model"])
    for delta in deltas:
        assembly.feed(delta)
    return assembly.message()


def outputs_of(message: Message) -> Message:
    return tool([ToolOutput(call_id=call.id, name=call.name, content=(Text(text="ok"),)) for call in message.calls])


def sent(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    """The messages of a request as they go to Gemini, without the system prompt."""
    fields = {name: options.pop(name) for name in ("thinking", "tools") if name in options}
    _, requests = ask(text("ok"), asked=request(*messages, **fields), **{**GEMINI, **options})
    found: list[dict[str, Any]] = requests[-1].body["messages"][1:]
    return found


def called(*calls: tuple[str, str], provider: str = "anthropic", signature: str = "") -> Message:
    """An answer with calls, each an id and a name, of another provider unless one is given."""
    data = ProviderData(provider=provider, data={"extra_content": signed(signature)}) if signature else None
    blocks = [ToolCall(id=i, name=name, arguments="{}", provider_data=data) for i, name in calls]
    return Message(role="assistant", provider=provider, content=tuple(blocks))


PARALLEL = events(
    chunk({"role": "assistant", "content": None}),
    call_piece('{"a":1}', index=0, id="f1", type="function", name="look", extra_content=signed("SIG-1")),
    call_piece('{"a":2}', index=1, id="f2", type="function", name="look"),
    chunk({}, "tool_calls"),
)


def test_parallel_calls_go_back_with_the_signature_on_the_first_alone() -> None:
    deltas, _ = ask(PARALLEL, **GEMINI)
    answer = answered(deltas)
    assert sent(user("Go"), answer, outputs_of(answer)) == [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "f1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"a":1}'},
                    "extra_content": {"google": {"thought_signature": "SIG-1"}},
                },
                {"id": "f2", "type": "function", "function": {"name": "look", "arguments": '{"a":2}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "f1", "content": "ok"},
        {"role": "tool", "tool_call_id": "f2", "content": "ok"},
    ]


def test_a_second_round_of_tools_returns_both_signatures() -> None:
    """Each step of a turn has its own; Google checks all of the turn."""
    first = answered(ask(PARALLEL, **GEMINI)[0])
    again = events(
        call_piece("{}", index=0, id="f3", type="function", name="now", extra_content=signed("SIG-2")),
        chunk({}, "tool_calls"),
    )
    history = (user("Go"), first, outputs_of(first))
    second = answered(ask(again, asked=request(*history, thinking="high"), **GEMINI)[0])
    messages = sent(*history, second, outputs_of(second), thinking="high")
    signatures = [
        call.get("extra_content", {}).get("google", {}).get("thought_signature")
        for message in messages
        for call in message.get("tool_calls", ())
    ]
    assert signatures == ["SIG-1", None, "SIG-2"]


def test_a_signature_that_comes_after_the_arguments_is_kept() -> None:
    late = events(
        call_piece("{}", index=0, id="f1", name="look"),
        chunk({"tool_calls": [{"index": 0, "extra_content": signed("SIG")}]}),
        chunk({}, "tool_calls"),
    )
    deltas, _ = ask(late, **GEMINI)
    assert [delta.provider_data for delta in deltas if isinstance(delta, CallDelta) and delta.provider_data] == [
        ProviderData(provider="gemini", data={"extra_content": signed("SIG")})
    ]
    assert answered(deltas).calls[0].arguments == "{}"


def test_the_signature_of_a_text_goes_back_with_it() -> None:
    answer = events(chunk({"content": "Yes."}), chunk({"content": "", "extra_content": signed("SIG-T")}, "stop"))
    deltas, _ = ask(answer, **GEMINI)
    kept = answered(deltas)
    assert kept.text == "Yes."
    assert sent(user("a"), kept, user("b"))[1] == {
        "role": "assistant",
        "content": "Yes.",
        "extra_content": {"google": {"thought_signature": "SIG-T"}},
    }


def test_calls_of_another_model_get_what_google_accepts_instead_of_a_signature() -> None:
    """A session that changes to Gemini in its middle is refused otherwise."""
    foreign = called(("c1", "look"), ("c2", "look"))
    entries = sent(user("Go"), foreign, outputs_of(foreign))[1]["tool_calls"]
    assert entries[0]["extra_content"] == PLACEHOLDER
    assert "extra_content" not in entries[1]


def test_the_signature_of_another_provider_is_not_sent() -> None:
    foreign = called(("c1", "look"), provider="vertex", signature="SIG-V")
    entries = sent(user("Go"), foreign, outputs_of(foreign))[1]["tool_calls"]
    assert entries[0]["extra_content"] == PLACEHOLDER


@pytest.mark.parametrize(
    "options",
    [
        {"model": "gemini-2.5-flash"},
        {"provider": "acme", "model": "gemini-3-pro-preview"},
    ],
)
def test_nothing_is_made_up_where_no_signature_is_asked_for(options: Mapping[str, str]) -> None:
    foreign = called(("c1", "look"))
    assert "extra_content" not in sent(user("Go"), foreign, outputs_of(foreign), **options)[1]["tool_calls"][0]


def test_a_session_that_leaves_gemini_takes_no_signature_along() -> None:
    answer = answered(ask(PARALLEL, **GEMINI)[0])
    there = sent(user("Go"), answer, outputs_of(answer), provider="groq", model="llama-3.3-70b-versatile")
    assert "extra_content" not in there[1]["tool_calls"][0]


def test_summaries_of_thoughts_are_thinking_and_no_text() -> None:
    """They come in the text, between tags, where `include_thoughts` asks for them."""
    thought = {"google": {"thought": True}}
    answer = events(
        chunk({"content": "<thought>**Plan**\n", "extra_content": thought}),
        chunk({"content": "Look first.", "extra_content": thought}),
        chunk({"content": "</thought>It is 4."}),
        chunk({}, "stop"),
    )
    deltas, _ = ask(answer, **GEMINI)
    kept = answered(deltas)
    assert [block.text for block in kept.content if isinstance(block, Thinking)] == ["**Plan**\nLook first."]
    assert kept.text == "It is 4."
    assert not any(isinstance(delta, ThinkingDelta) and delta.provider_data for delta in deltas)


def test_a_call_that_was_cut_off_still_looks_so() -> None:
    """I26: what is kept of the answer as a whole does not stand behind it."""
    cut = events(
        chunk({"content": "Yes.", "extra_content": signed("SIG-T")}),
        call_piece('{"path": "/et', index=0, id="f1", name="look"),
        chunk({}, "length"),
    )
    deltas, _ = ask(cut, **GEMINI)
    assert merged(deltas)[-1] == Stop(reason="length")
    assert [call.complete for call in answered(deltas).calls] == [False]


@pytest.mark.parametrize("body", [[{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}]])
def test_errors_in_a_list_are_understood(body: object) -> None:
    from marvin_core.api.errors import BadRequest
    from marvin_core.testing import error

    with pytest.raises(BadRequest, match="bad"):
        ask(error(400, body), **GEMINI)


def answer_with(delta: Mapping[str, Any]) -> Answer:
    return events(chunk({"content": "x"}), chunk(delta, "stop"))


@pytest.mark.parametrize("extra", [None, {}, [], "text", {"google": None}, {"google": {"thought": True}}])
def test_other_content_beside_the_text_is_no_signature(extra: object) -> None:
    deltas, _ = ask(answer_with({"extra_content": extra}), **GEMINI)
    assert not any(isinstance(delta, ThinkingDelta) for delta in deltas)
