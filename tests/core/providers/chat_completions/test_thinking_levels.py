"""How much a model thinks, in the words of each service that speaks chat completions; and what it thought."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import BadRequest, ContextOverflow
from marvin_core.api.messages import Image, Message, ProviderData, Text, Thinking, ToolCall, ToolOutput, tool, user
from marvin_core.api.providers import Stop, TextDelta, ThinkingDelta, ThinkingLevel
from marvin_core.engine.assembly import Assembly
from marvin_core.providers.chat_completions.services import service_of
from marvin_core.providers.http.thinking_tags import ThinkingTags
from marvin_core.testing import Answer, ModelServer, document, error, events, text
from tests.support.chatting import answer_of, ask, call_piece, chat, chunk, endpoint, merged, request, text_of

COMMON = {"model", "messages", "stream", "stream_options", "max_tokens"}
LEVELS: tuple[ThinkingLevel, ...] = ("off", "low", "medium", "high")


def thinking_of(provider: str, model: str, level: ThinkingLevel) -> dict[str, Any]:
    """What a request says about thinking."""
    _, requests = ask(text("ok"), asked=request(thinking=level), provider=provider, model=model)
    return {name: value for name, value in requests[-1].body.items() if name not in COMMON}


def gemini(**config: Any) -> dict[str, Any]:
    return {"extra_body": {"google": {"thinking_config": {"include_thoughts": True, **config}}}}


def unshown(**config: Any) -> dict[str, Any]:
    return {"extra_body": {"google": {"thinking_config": config}}}


def llama(**kwargs: Any) -> dict[str, Any]:
    return {"chat_template_kwargs": kwargs}


EFFORT = [{}, *({"reasoning_effort": level} for level in LEVELS[1:])]
NOTHING: list[dict[str, Any]] = [{}, {}, {}, {}]
GROQ_QWEN = {"reasoning_effort": "default", "reasoning_format": "parsed"}
THREE = [unshown(thinking_level="low"), *(gemini(thinking_level=level) for level in LEVELS[1:])]
BUDGETS = [gemini(thinking_budget=tokens) for tokens in (1_024, 8_192, 24_576)]
ENABLED = {"thinking": {"type": "enabled"}}
DISABLED = {"thinking": {"type": "disabled"}}
KEPT = {"thinking": {"type": "enabled", "clear_thinking": False}}
HIGH = {"reasoning_effort": "high"}
LLAMA = [
    llama(enable_thinking=False, reasoning_effort="low"),
    *(llama(enable_thinking=True, reasoning_effort=level) for level in LEVELS[1:]),
]


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("acme", "any", EFFORT),
        ("gemini", "gemini-3.1-pro-preview", THREE),
        ("gemini", "gemini-flash-latest", [unshown(thinking_level="minimal"), *THREE[1:]]),
        ("gemini", "gemini-3.8-flash", [unshown(thinking_level="minimal"), *THREE[1:]]),
        ("gemini", "gemini-3-pro-preview", [*THREE[:2], gemini(thinking_level="high"), THREE[3]]),
        ("gemini", "gemini-2.5-pro", [unshown(thinking_budget=128), *BUDGETS]),
        ("gemini", "gemini-2.5-flash", [{"reasoning_effort": "none"}, *BUDGETS]),
        ("gemini", "gemini-2.0-flash", NOTHING),
        ("groq", "openai/gpt-oss-120b", [{"reasoning_effort": "low"}, *EFFORT[1:]]),
        ("deepseek", "deepseek-v4-pro", [DISABLED, *({**ENABLED, **effort} for effort in EFFORT[1:])]),
        ("moonshot", "kimi-k3", [DISABLED, ENABLED, ENABLED, ENABLED]),
        ("zhipu", "glm-5.3", [DISABLED, KEPT, KEPT, KEPT]),
        ("mistral", "mistral-medium-3-5", [{}, HIGH, HIGH, HIGH]),
        ("mistral", "mistral-small-latest", [{}, HIGH, HIGH, HIGH]),
        ("mistral", "mistral-large-4-0", [{"reasoning_effort": "none"}, *EFFORT[1:]]),
        ("mistral", "mistral-large-2512", [{}, HIGH, HIGH, HIGH]),
        ("xai", "grok-4.3", [{"reasoning_effort": "none"}, *EFFORT[1:]]),
        ("xai", "grok-5", [{"reasoning_effort": "none"}, *EFFORT[1:]]),
        ("xai", "grok-latest", [{"reasoning_effort": "none"}, *EFFORT[1:]]),
        ("xai", "grok-4", EFFORT),
        ("xai", "grok-4.20-non-reasoning", NOTHING),
        ("groq", "qwen/qwen3-32b", [{**GROQ_QWEN, "reasoning_effort": "none"}, GROQ_QWEN, GROQ_QWEN, GROQ_QWEN]),
        ("groq", "llama-3.3-70b-versatile", NOTHING),
        ("openrouter", "qwen/qwen3-32b", [{"reasoning": {"effort": e}} for e in ("none", *LEVELS[1:])]),
        ("llama-server", "", LLAMA),
        ("local", "", LLAMA),
    ],
)
def test_levels_in_the_words_of_each_service(provider: str, model: str, expected: list[Mapping[str, Any]]) -> None:
    assert [thinking_of(provider, model, level) for level in LEVELS] == expected


@pytest.mark.parametrize(
    ("provider", "base_url", "service"),
    [
        ("openai-compat", "https://openrouter.ai/api/v1", "openrouter"),
        ("openai-compat", "http://127.0.0.1:8080/v1", ""),
        ("work", "https://api.groq.com/openai/v1", "groq"),
        ("work", "https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("gemini", "http://127.0.0.1:4010/v1beta/openai", "gemini"),
        ("acme", "http://[::1", ""),
        ("mine", "https://api.deepseek.com", "deepseek"),
        ("mine", "https://api.moonshot.cn/v1", "moonshot"),
        ("mine", "https://api.z.ai/api/coding/paas/v4", "zhipu"),
        ("mine", "https://api.mistral.ai/v1", "mistral"),
        ("mine", "https://api.x.ai/v1", "xai"),
    ],
)
def test_a_service_is_told_by_its_host_or_by_its_name(provider: str, base_url: str, service: str) -> None:
    assert service_of(endpoint(base_url, provider=provider)) == service


# What a service refuses


def bodies(*script: Answer, asked: Any = None, times: int = 2, **options: Any) -> list[dict[str, Any]]:
    """The bodies of all requests that so many answers took."""

    async def run(server: ModelServer) -> None:
        async with aclosing(chat(server.url, **options)) as provider:
            for _ in range(times):
                await answer_of(provider, asked)

    with ModelServer(*script) as server:
        asyncio.run(run(server))
        return [one.body for one in server.requests]


@pytest.mark.parametrize(
    ("provider", "model", "refusal", "left_out"),
    [
        ("groq", "openai/gpt-oss-20b", "`reasoning_effort` is not supported with this model", {"reasoning_effort"}),
        ("groq", "qwen/qwen3-32b", "reasoning_format is not supported with this model", {"reasoning_format"}),
        ("openrouter", "a/b", "Reasoning is mandatory for this endpoint and cannot be disabled.", {"reasoning"}),
        ("gemini", "gemini-3-pro-preview", "Thinking level is not supported for this model.", {"extra_body"}),
        ("llama-server", "", "param chat_template_kwargs is not supported", {"chat_template_kwargs"}),
        ("acme", "m", "Unrecognized request argument supplied: reasoning_effort", {"reasoning_effort"}),
        ("acme", "m", "Unknown field: stream_options", {"stream_options"}),
    ],
)
def test_a_field_that_is_refused_is_left_out_from_then_on(
    provider: str, model: str, refusal: str, left_out: set[str]
) -> None:
    asked = request(thinking="low")
    sent = bodies(error(400, refusal), text("a"), text("b"), asked=asked, provider=provider, model=model)
    assert [sent[0].keys() - body.keys() for body in sent] == [set(), left_out, left_out]


def test_several_refused_fields_are_left_out_one_after_the_other() -> None:
    script = (error(400, "stream_options?"), error(422, "reasoning_effort?"), text("a"), text("b"))
    sent = bodies(*script, asked=request(thinking="low"))
    assert [{"stream_options", "reasoning_effort"} & body.keys() for body in sent] == [
        {"stream_options", "reasoning_effort"},
        {"reasoning_effort"},
        set(),
        set(),
    ]


@pytest.mark.parametrize("refusal", ["max_tokens is too large: 99999", "I think not"])
def test_what_is_refused_again_is_an_error(refusal: str) -> None:
    with pytest.raises(BadRequest, match=refusal):
        ask(*[error(400, refusal)] * 3, asked=request(thinking="low", max_output_tokens=99_999))


def test_the_newer_name_of_the_limit_is_used_where_it_is_asked_for() -> None:
    refusal = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
    sent = bodies(error(400, refusal), text("a"), text("b"), asked=request(max_output_tokens=99))
    assert [(body.get("max_tokens"), body.get("max_completion_tokens")) for body in sent] == [
        (99, None),
        (None, 99),
        (None, 99),
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (400, "'messages.1': for 'role:user' the following must be satisfied[('messages.1.content' must be a string"),
        (400, "Failed to deserialize: messages[1]: unknown variant `image_url`, expected `text`"),
    ],
)
def test_a_model_that_does_not_see_says_so(status: int, said: str) -> None:
    asked = request(user("Look", Image(media_type="image/png", data="QUJD")))
    with pytest.raises(BadRequest, match="does not accept images") as raised:
        ask(error(status, said), asked=asked)
    assert "--model" in str(raised.value)
    assert "/tree" in str(raised.value)


def test_a_server_whose_model_has_no_name_is_spoken_of_all_the_same() -> None:
    said = "request (9018 tokens) exceeds the available context size (4096 tokens), try increasing it"
    with pytest.raises(ContextOverflow, match="context window of the model"):
        ask(error(400, said), model="")


# What a model thought


@pytest.mark.parametrize(
    ("content", "thinking", "shown"),
    [
        ("<think>hm</think>Yes.", "hm", "Yes."),
        ("\n<think>\nhm\n</think>\n\nYes.", "\nhm\n", "Yes."),
        ("<thought>hm</thought>Yes.", "hm", "Yes."),
        ("<think></think>Yes.", "", "Yes."),
        ("<think>never closed", "never closed", ""),
        ("<think>a</th b", "a</th b", ""),
        ("Yes, <think>no</think>", "", "Yes, <think>no</think>"),
        ("<thinking>no</thinking>", "", "<thinking>no</thinking>"),
        ("<", "", "<"),
        (" \n", "", " \n"),
        ("<think>a</think><think>b</think>", "a", "<think>b</think>"),
    ],
)
def test_tags_at_the_beginning_of_an_answer_are_thinking(content: str, thinking: str, shown: str) -> None:
    deltas, _ = ask(events(chunk({"content": content}), chunk({}, "stop")))
    assert "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)) == thinking
    assert text_of(deltas) == shown


TEXTS = st.lists(st.sampled_from(["<think>", "</think>", "<thought>", "<th", "ink>", "a", " ", "\n", "é"]), max_size=12)


@given(TEXTS.map("".join))
def test_cutting_a_text_anywhere_changes_nothing(content: str) -> None:
    def pieces(*parts: str) -> list[tuple[str, str]]:
        tags = ThinkingTags()
        found = [piece for part in parts for piece in tags.feed(part)] + tags.finish()
        return [(kind, "".join(text for k, text in found if k == kind)) for kind in ("thinking", "text")]

    whole = pieces(content)
    assert pieces(*content) == whole
    for cut in range(len(content) + 1):
        assert pieces(content[:cut], content[cut:]) == whole


def test_text_that_only_begins_like_a_tag_comes_before_the_call_behind_it() -> None:
    deltas, _ = ask(events(chunk({"content": "<th"}), call_piece("{}", index=0, id="c", name="f"), chunk({}, "stop")))
    assert [type(delta).__name__ for delta in deltas] == ["TextDelta", "CallDelta", "Stop"]
    assert deltas[0] == TextDelta(text="<th")


# OpenRouter's reasoning, returned

ROUTED: Mapping[str, Any] = {"provider": "openrouter", "model": "anthropic/claude-sonnet-4.5"}
PIECES: list[dict[str, Any]] = [
    {"type": "reasoning.text", "text": "Let me ", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.text", "signature": "SIG", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.text", "text": "look.", "signature": None, "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "AAAA", "id": "call_1", "format": "google-gemini-v1", "index": 1},
]
WHOLE = [
    {
        "type": "reasoning.text",
        "text": "Let me look.",
        "signature": "SIG",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": "AAAA", "id": "call_1", "format": "google-gemini-v1", "index": 1},
]


def routed(finish: str = "tool_calls") -> Message:
    """An answer with reasoning and a call, as a session keeps it."""
    answer = events(
        *(chunk({"reasoning": piece.get("text"), "reasoning_details": [piece]}) for piece in PIECES),
        call_piece("{}", index=0, id="call_1", name="look"),
        chunk({}, finish),
    )
    deltas, _ = ask(answer, **ROUTED)
    assembly = Assembly(ROUTED["provider"], ROUTED["model"])
    for delta in deltas:
        assembly.feed(delta)
    return assembly.message()


def returned(answer: Message, **options: Any) -> dict[str, Any]:
    """The answer as a later request sends it."""
    output = tool([ToolOutput(call_id="call_1", name="look", content=(Text(text="ok"),))])
    _, requests = ask(text("ok"), asked=request(user("Go"), answer, output, thinking="high"), **{**ROUTED, **options})
    found: dict[str, Any] = requests[-1].body["messages"][2]
    return found


def test_a_second_round_of_tools_returns_the_reasoning_whole() -> None:
    answer = routed()
    assert "".join(block.text for block in answer.content if isinstance(block, Thinking)) == "Let me look."
    assert returned(answer) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
        "reasoning_details": WHOLE,
    }


@pytest.mark.parametrize("options", [{"model": "google/gemini-3-pro"}, {"provider": "groq"}])
def test_the_reasoning_of_another_model_is_left_out(options: Mapping[str, str]) -> None:
    """A signature means something to the model that made it only."""
    assert "reasoning_details" not in returned(routed(), **options)


def test_a_call_that_was_cut_off_still_looks_so() -> None:
    """I26: the reasoning that is kept does not stand behind it."""
    assert [call.complete for call in routed("length").calls] == [False]


def test_reasoning_without_calls_is_returned_with_the_text() -> None:
    data = ProviderData(provider="openrouter", data={"reasoning_details": WHOLE})
    answer = Message(
        role="assistant",
        model=ROUTED["model"],
        content=(Thinking(text="hm"), Text(text="Yes."), Thinking(text="", provider_data=data)),
    )
    assert returned(answer)["reasoning_details"] == WHOLE


def test_an_answer_of_thinking_alone_stays_an_empty_answer() -> None:
    """What is kept for the service is nothing that a user could read."""
    deltas, _ = ask(events(chunk({"reasoning_details": PIECES[:1]}), chunk({}, "stop")), **ROUTED)
    assert merged(deltas)[-1] == Stop(reason="stop")
    assembly = Assembly("openrouter", "m")
    for delta in deltas:
        assembly.feed(delta)
    assert assembly.is_empty


def test_calls_are_sent_without_what_a_service_did_not_give() -> None:
    answer = Message(role="assistant", content=(ToolCall(id="call_1", name="look", arguments="{}"),))
    assert returned(answer).keys() == {"role", "content", "tool_calls"}


# How large the window is


PROPS = {"default_generation_settings": {"id": 0, "n_ctx": 4_096}, "total_slots": 1}


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        ({"id": "scripted", "context_length": 131_072}, 131_072),  # OpenRouter
        ({"id": "scripted", "context_window": 8_192}, 8_192),  # Groq
        ({"id": "scripted", "max_model_len": 32_000}, 32_000),  # vLLM
        ({"id": "/models/a.gguf", "meta": {"n_ctx_train": 262_144, "n_ctx": 8_192}}, 8_192),  # llama.cpp
        ({"id": "/models/a.gguf", "meta": {"n_ctx_train": 262_144}}, 4_096),  # what the server gives it
        ({"id": "scripted"}, None),
        ({"id": "scripted", "context_length": "large"}, None),
        (None, None),
        ([], None),
    ],
)
def test_a_window_that_nobody_configured_is_asked_for(listed: object, expected: int | None) -> None:
    class Listing(ModelServer):
        def answer_to(self, request: Any) -> Answer:
            return document(PROPS if request.path == "/props" else {"object": "list", "data": [listed]})

    async def run(server: ModelServer) -> list[int | None]:
        async with aclosing(chat(server.url)) as provider:
            return [provider.context_window, await provider.find_window(), provider.context_window]

    with Listing() as server:
        assert asyncio.run(run(server)) == [None, expected, expected]


def test_a_window_that_is_configured_is_not_asked_for() -> None:
    async def run() -> int | None:
        async with aclosing(chat("http://127.0.0.1:1/v1", context_window=9)) as provider:
            return await provider.find_window()

    assert asyncio.run(run()) == 9


def test_a_server_that_is_not_there_tells_no_window() -> None:
    async def run() -> int | None:
        async with aclosing(chat("http://127.0.0.1:1/v1")) as provider:
            return await provider.find_window()

    assert asyncio.run(run()) is None
