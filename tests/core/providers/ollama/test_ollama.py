"""Ollama's own interface against a real server: what is sent, what is understood, how it fails."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
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
from marvin_core.providers.http.sse import JsonLines
from marvin_core.providers.ollama.stream import OllamaStream
from marvin_core.providers.ollama.truncation import PromptWatch
from marvin_core.testing import Answer, cut_after, document, drop, error, hang, html, raw, split
from tests.support import answers_ollama as ollama
from tests.support.answers_ollama import OllamaServer, ask, connected, sent
from tests.support.chatting import TRANSPORTS, Transport, answer_of, calls_of, endpoint, merged, request, text_of

READ_FILE = ToolSpec(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    access=frozenset({"read"}),
)
PICTURE = Image(media_type="image/png", data="QUJD")
transports = pytest.mark.parametrize("transport", TRANSPORTS)


def failure(*script: Answer, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(*script, **options)
    return raised.value


# What is sent


def test_a_request_in_ollamas_own_format() -> None:
    """It asks for the window, as Ollama's own is far smaller, and for an error instead of a cut conversation."""
    deltas, requests = ask(ollama.text("Hi"))
    assert text_of(deltas) == "Hi"
    (asked,) = requests
    assert (asked.method, asked.path) == ("POST", "/api/chat")
    assert "authorization" not in asked.headers
    assert asked.body == {
        "model": "qwen3:8b",
        "stream": True,
        "think": False,
        "truncate": False,
        "shift": False,
        "options": {"num_ctx": 32_768},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    }


def test_the_window_and_the_limit_of_the_answer_are_options() -> None:
    body = sent(context_window=8_192, max_output_tokens=99)
    assert body["options"] == {"num_ctx": 8_192, "num_predict": 99}


@pytest.mark.parametrize("ending", ["", "/", "/api", "/api/", "/v1", "/v1/", "/api/chat", "/v1/chat/completions"])
def test_the_base_url_may_end_in_what_other_programs_want_there(ending: str) -> None:
    async def run(server: OllamaServer) -> str:
        async with aclosing(connected(server, base_url=server.url + ending)) as provider:
            return text_of(await answer_of(provider))

    with OllamaServer(ollama.text("Hi")) as server:
        assert asyncio.run(run(server)) == "Hi"
        assert server.requests[0].path == "/api/chat"


def test_a_key_is_sent_where_there_is_one() -> None:
    """Ollama's service on the web takes one."""
    _, requests = ask(ollama.text("Hi"), key=Secret("sk-0123456789"))
    assert requests[0].headers["authorization"] == "Bearer sk-0123456789"


def test_tools() -> None:
    assert sent(tools=(READ_FILE,))["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "read_file",
                "description": "Read a file.",
                "parameters": dict(READ_FILE.parameters),
            },
        }
    ]


def test_where_no_tool_may_be_called_none_is_on_offer() -> None:
    """The format has no choice of tools."""
    assert "tools" not in sent(tools=(READ_FILE,), tool_choice="none")
    assert "tools" not in sent()


def test_a_second_round_of_tools_with_thinking() -> None:
    """Arguments are objects, outputs name their tool and call, and the model's own reasoning goes back to it."""
    asked = Message(
        role="assistant",
        provider="ollama",
        model="qwen3:8b",
        content=(
            Thinking(text="I need both."),
            Text(text="Looking."),
            ToolCall(id="c1", name="read_file", arguments='{"path": "a"}'),
            ToolCall(id="c2", name="read_file", arguments='{"path": "b",}'),
        ),
    )
    outputs = tool(
        [
            ToolOutput(call_id="c1", name="read_file", content=(Text(text="A"), Text(text="A"))),
            ToolOutput(call_id="c2", name="read_file", content=()),
        ]
    )
    body = sent(user("Go"), asked, outputs, tools=(READ_FILE,), thinking="medium")
    assert body["think"] is True
    assert body["messages"][1:] == [
        {"role": "user", "content": "Go"},
        {
            "role": "assistant",
            "content": "Looking.",
            "thinking": "I need both.",
            "tool_calls": [
                {"id": "c1", "function": {"name": "read_file", "arguments": {"path": "a"}}},
                {"id": "c2", "function": {"name": "read_file", "arguments": {"path": "b"}}},
            ],
        },
        {"role": "tool", "tool_name": "read_file", "tool_call_id": "c1", "content": "AA"},
        {"role": "tool", "tool_name": "read_file", "tool_call_id": "c2", "content": "(no output)"},
    ]


def test_what_another_provider_thought_is_left_out() -> None:
    data = ProviderData(provider="anthropic", data={"signature": "s"})
    answer = Message(
        role="assistant",
        provider="anthropic",
        content=(Thinking(text="hm", provider_data=data), Text(text="Yes.", provider_data=data)),
    )
    only = Message(role="assistant", provider="ollama", content=(Thinking(text="hm"),))
    assert sent(user("a"), answer, user("b"), only, user("c"))["messages"][1:] == [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "b"},
        {"role": "user", "content": "c"},
    ]


def test_images_of_a_user_and_of_an_output() -> None:
    """Outputs are text: their images follow in a user message behind all outputs."""
    called = Message(
        role="assistant",
        content=(ToolCall(id="c1", name="shot", arguments="{}"), ToolCall(id="c2", name="shot", arguments="{}")),
    )
    outputs = tool(
        [
            ToolOutput(call_id="c1", name="shot", content=(PICTURE,)),
            ToolOutput(call_id="c2", name="shot", content=(Text(text="two"), PICTURE)),
        ]
    )
    messages = sent(user("Look", PICTURE), called, outputs)["messages"]
    assert messages[1] == {"role": "user", "content": "Look", "images": ["QUJD"]}
    assert [message["role"] for message in messages[3:]] == ["tool", "tool", "user"]
    assert [message["content"] for message in messages[3:5]] == ["(an image, in the next message)", "two"]
    assert messages[5]["images"] == ["QUJD", "QUJD"]
    assert "shot (c1), shot (c2)" in messages[5]["content"]


@pytest.mark.parametrize(
    ("model", "level", "expected"),
    [
        ("qwen3:8b", "off", False),
        ("qwen3:8b", "low", True),
        ("qwen3:8b", "high", True),
        ("gpt-oss:20b", "off", "low"),
        ("gpt-oss:20b", "low", "low"),
        ("gpt-oss:20b", "medium", "medium"),
        ("gpt-oss:20b", "high", "high"),
    ],
)
def test_levels_of_thinking(model: str, level: ThinkingLevel, expected: object) -> None:
    """Off is said, as a model that can think does so otherwise. Only gpt-oss has levels in every version."""
    body = sent(thinking=level, model=model)
    assert body["think"] is expected or body["think"] == expected


@pytest.mark.parametrize(
    "refusal",
    [
        '"qwen3:8b" does not support thinking',
        'think value "high" is not supported for this model',
        "json: cannot unmarshal string into Go struct field ChatRequest.think of type bool",
    ],
)
def test_a_model_that_cannot_think_is_asked_without_and_stays_so(refusal: str) -> None:
    async def run(server: OllamaServer) -> list[str]:
        async with aclosing(connected(server)) as provider:
            return [text_of(await answer_of(provider, request(thinking="high"))) for _ in range(2)]

    with OllamaServer(error(400, {"error": refusal}), ollama.text("one"), ollama.text("two")) as server:
        assert asyncio.run(run(server)) == ["one", "two"]
        assert ["think" in asked.body for asked in server.requests] == [True, False, False]


def test_a_conversation_grows_and_shrinks_between_requests() -> None:
    first, second, third = user("1"), user("2"), user("3")

    async def run(server: OllamaServer) -> None:
        async with aclosing(connected(server)) as provider:
            for messages, tools in (((first,), ()), ((first, second, third), (READ_FILE,)), ((third,), ())):
                await answer_of(provider, request(*messages, tools=tools))

    with OllamaServer(*[ollama.text("a")] * 3) as server:
        asyncio.run(run(server))
        bodies = [asked.body for asked in server.requests]
    assert [[message["content"] for message in body["messages"][1:]] for body in bodies] == [
        ["1"],
        ["1", "2", "3"],
        ["3"],
    ]
    assert ["tools" in body for body in bodies] == [False, True, False]


# What is understood


@transports
def test_an_answer_with_thinking_text_and_usage(transport: Transport) -> None:
    usage = {"prompt_eval_count": 30, "prompt_eval_cached_count": 20, "eval_count": 7}
    answer = ollama.text("Hello, wörld 👋", chunks=4, thinking="hm", usage=usage)
    deltas, _ = ask(answer, transport=transport)
    assert merged(deltas) == [
        ThinkingDelta(text="hm"),
        TextDelta(text="Hello, wörld 👋"),
        UsageDelta(usage=Usage(input_tokens=30, output_tokens=7, cache_read_tokens=20)),
        Stop(reason="stop"),
    ]


def test_a_prompt_that_was_cached_may_be_without_a_count() -> None:
    deltas, _ = ask(ollama.text("x", usage={"eval_count": 7}))
    assert deltas[-2] == UsageDelta(usage=Usage(output_tokens=7))


@transports
def test_calls_come_whole_and_get_ids_of_their_own(transport: Transport) -> None:
    """Also two calls of one tool with the same arguments, which nothing but their order tells apart."""
    same = ("read_file", {"path": "ü"})
    deltas, _ = ask(ollama.calls(same, same, ("now", {}), text="Well:"), transport=transport)
    assert text_of(deltas) == "Well:"
    assert calls_of(deltas) == [
        ("call_0", "read_file", '{"path": "ü"}'),
        ("call_1", "read_file", '{"path": "ü"}'),
        ("call_2", "now", "{}"),
    ]
    assert deltas[-1] == Stop(reason="tool_calls")


def test_ids_that_ollama_gives_are_kept_unless_they_stand_twice() -> None:
    deltas, _ = ask(ollama.calls(("f", {}), ("g", {}), ("h", {}), ids=("a", "a", "b")))
    assert [call_id for call_id, _, _ in calls_of(deltas)] == ["a", "call_0", "b"]


def test_made_up_ids_are_new_to_the_conversation() -> None:
    earlier = Message(role="assistant", content=(ToolCall(id="call_0", name="f", arguments="{}"),))
    output = tool([ToolOutput(call_id="call_0", name="f", content=(Text(text="x"),))])
    deltas, _ = ask(ollama.calls(("f", {})), asked=request(user("a"), earlier, output))
    assert calls_of(deltas) == [("call_1", "f", "{}")]


@pytest.mark.parametrize(("finish", "reason"), [("stop", "stop"), ("length", "length"), ("", "stop"), ("load", "stop")])
def test_reasons_to_stop(finish: str, reason: StopReason) -> None:
    deltas, _ = ask(ollama.text("x", finish=finish))
    assert deltas[-1] == Stop(reason=reason)


def test_reasoning_in_tags_at_the_beginning_is_no_text() -> None:
    """So do models that Ollama does not know as thinking ones."""
    answer = ollama.text("", chunks=["<thi", "nk>\nhm", "</thi", "nk>\n\nYes, <think> is a tag"])
    assert merged(ask(answer)[0])[:2] == [ThinkingDelta(text="\nhm"), TextDelta(text="Yes, <think> is a tag")]


SAMPLE = b"".join(
    cast(
        "tuple[bytes, ...]",
        ollama.lines(
            {"message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
            {"message": {"role": "assistant", "content": "Grüß\u2028Gott\u0085👋"}, "done": False},
            "",
            {"message": {"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {"path": "äb"}}}]}},
            {"message": {"content": ""}, "done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4},
        ).steps,
    )
).replace(b"\n", b"\r\n")
SAMPLE_DELTAS = [
    ThinkingDelta(text="hm"),
    TextDelta(text="Grüß\u2028Gott\u0085👋"),
    CallDelta(key=0, id="c1", name="f", arguments='{"path": "äb"}'),
    UsageDelta(usage=Usage(input_tokens=3, output_tokens=4)),
    Stop(reason="tool_calls"),
]


def decoded(*reads: bytes) -> list[Delta]:
    url = "http://127.0.0.1/api/chat"
    stream = OllamaStream(endpoint("http://127.0.0.1"), url, window=32_768, is_cut=lambda tokens: False)
    deltas = [delta for read in reads for delta in stream.feed(read)]
    deltas += stream.finish()
    assert stream.failure is None
    return merged(deltas)


def test_a_stream_cut_at_any_byte_means_the_same() -> None:
    """Cuts inside a character, a line end and a JSON escape included; the last line may lack its end."""
    assert decoded(SAMPLE) == decoded(SAMPLE.rstrip()) == SAMPLE_DELTAS
    for cut in range(1, len(SAMPLE)):
        assert decoded(SAMPLE[:cut], SAMPLE[cut:]) == SAMPLE_DELTAS


@transports
def test_a_stream_in_single_bytes_means_the_same(transport: Transport) -> None:
    answer = split(raw(SAMPLE), *range(1, len(SAMPLE)))
    assert merged(ask(answer, transport=transport)[0]) == SAMPLE_DELTAS


PIECES = st.sampled_from([b"{}", b'{"a": "', b'"}', b"x", b" ", b"\n", b"\r\n", b"\n\n", "é\u2028\u0085".encode()])


@given(st.lists(PIECES, max_size=25).map(b"".join))
def test_cutting_lines_anywhere_changes_nothing(stream: bytes) -> None:
    """One read, two reads cut at every byte, and single bytes all give the same lines."""

    def lines(*reads: bytes) -> list[bytes]:
        parser = JsonLines(1_000_000_000)
        found = [line for read in reads for line in parser.feed(read)]
        return found + parser.finish()

    whole = lines(stream)
    assert [line.strip() for line in whole] == [line.strip() for line in stream.split(b"\n") if line.strip()]
    assert lines(*(stream[i : i + 1] for i in range(len(stream)))) == whole
    for cut in range(len(stream) + 1):
        assert lines(stream[:cut], stream[cut:]) == whole


# How it fails


def test_nobody_listens() -> None:
    """The most frequent of all failures: the text says what to type."""
    with OllamaServer() as server:
        gone = server

    async def run() -> None:
        async with aclosing(connected(gone)) as provider:
            await answer_of(provider)

    with pytest.raises(Unreachable) as raised:
        asyncio.run(run())
    said = str(raised.value)
    assert "Is Ollama running? Start it with `ollama serve`" in said
    assert f"http://127.0.0.1:{gone.port}." in said


def test_a_model_that_is_not_there_names_those_that_are() -> None:
    refusal = error(404, {"error": 'model "qwen3:8b" not found, try pulling it first'})
    found = failure(refusal, models=("llama3.2:latest", "qwen3:4b"))
    assert isinstance(found, ModelNotFound)
    assert found.served == ("llama3.2:latest", "qwen3:4b")
    assert "`ollama pull qwen3:8b`" in str(found)
    assert "llama3.2:latest, qwen3:4b" in str(found)


def test_a_model_that_is_not_there_where_there_is_none() -> None:
    found = failure(error(404, {"error": "model 'qwen3:8b' not found"}), models=())
    assert isinstance(found, ModelNotFound)
    assert "none yet" in str(found)


def test_a_model_that_cannot_call_tools_names_one_that_can() -> None:
    refusal = error(400, {"error": "registry.ollama.ai/library/gemma:2b does not support tools"})
    found = failure(refusal, asked=request(tools=(READ_FILE,)))
    assert isinstance(found, BadRequest)
    assert "`ollama pull qwen3-coder:30b`" in str(found)
    assert "--tools=-all" in str(found)


def test_a_model_that_does_not_see_says_so() -> None:
    refusal = error(500, {"error": "this model is missing data required for image input"})
    found = failure(refusal, asked=request(user("Look", PICTURE)))
    assert isinstance(found, BadRequest)
    assert "does not accept images" in str(found)


@pytest.mark.parametrize(
    "answer",
    [
        error(400, {"error": "the input length exceeds the context length"}),
        error(500, {"error": "the request exceeds the available context size, try increasing it"}),
        ollama.lines({"error": "the input length exceeds the context length", "status": 400}),
    ],
)
def test_a_conversation_that_does_not_fit(answer: Answer) -> None:
    """What today's versions answer to `truncate: false`."""
    assert isinstance(failure(answer), ContextOverflow)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(503, {"error": "server busy, please try again.  maximum pending requests exceeded"}), Overloaded),
        (error(500, {"error": "model runner has unexpectedly stopped"}), Overloaded),
        (error(401, {"error": "unauthorized"}), AuthFailed),
        (error(404, "404 page not found"), BadRequest),
        (ollama.lines({"error": "an error was encountered while running the model"}), StreamBroken),
        (ollama.lines({"message": {"content": "a"}}, {"error": "model runner crashed", "status": 500}), Overloaded),
        (ollama.lines({"message": {"content": "a"}, "done": False}), StreamBroken),
        (ollama.lines("[]"), StreamBroken),
        (ollama.lines('"text"'), StreamBroken),
        (ollama.lines({"message": "text"}), StreamBroken),
        (ollama.lines({"message": {"tool_calls": [5]}}), StreamBroken),
        (ollama.lines('{"message": {"cont'), StreamBroken),
        (raw(b""), StreamBroken),
        (html(), Unreachable),
        (drop(), StreamBroken),
    ],
)
def test_failures_have_their_type(answer: Answer, kind: type[ProviderError]) -> None:
    # Twice: a connection that was kept from the question about the model may be found dead, and another one is made.
    assert type(failure(answer, answer)) is kind


@transports
def test_an_answer_cut_in_the_middle_loses_nothing_of_what_came(transport: Transport) -> None:
    whole = ollama.text("", chunks=["Grüße ", "aus Wien"])
    head = len(cast("bytes", whole.steps[0]))

    async def run(server: OllamaServer) -> tuple[str, str]:
        seen: list[Delta] = []
        async with aclosing(connected(server, transport=transport)) as provider:
            with pytest.raises(StreamBroken) as raised:
                await answer_of(provider, into=seen)
        return text_of(seen), str(raised.value)

    for cut in (head, head + 40, len(whole.body) - 60):
        with OllamaServer(cut_after(cut, whole)) as server:
            seen, said = asyncio.run(run(server))
        assert seen.startswith("Grüße ")
        assert "broke off" in said


def test_silence_is_noticed() -> None:
    found = failure(hang(), silence=0.2)
    assert isinstance(found, Unreachable)
    assert "0.2 s" in str(found)
    assert "ollama serve" not in str(found), "it is running"


# A conversation without its beginning


def watched(window: int, *counted: tuple[Request, int]) -> list[bool]:
    """What the watch says to each request and its count of tokens, one after the other."""
    watch = PromptWatch()
    return [watch.is_cut(asked, tokens, window) for asked, tokens in counted]


def conversation(*characters: int) -> list[Request]:
    """Requests of one conversation, each with one more message of so many characters."""
    messages = [user("x" * size) for size in characters]
    return [request(*messages[: n + 1], system="") for n in range(len(messages))]


def test_an_old_server_that_cut_the_conversation_is_noticed() -> None:
    """Its answer is not used: no call of a model that has forgotten its instructions is run."""
    long = request(*(user("some words " * 4_000) for _ in range(8)))
    short = ollama.calls(("write_file", {"path": "a"}), usage={"prompt_eval_count": 30_000, "eval_count": 5})
    found = failure(short, asked=long)
    assert isinstance(found, ContextOverflow)
    assert "did not see the beginning of the conversation" in str(found)
    assert "context_window" in str(found)


def test_a_conversation_that_grew_past_the_window_is_noticed() -> None:
    """Counted whole, as most versions do: 24,000 tokens and a large output; then only what was left of them."""
    assert watched(32_768, *zip(conversation(96_000, 80_000), (24_000, 31_000), strict=True)) == [False, True]


def test_growth_in_small_steps_is_noticed_as_well() -> None:
    steps = conversation(124_000, *([4_000] * 8))
    counts = (31_000, 32_000, *([32_700] * 7))
    seen = watched(32_768, *zip(steps, counts, strict=True))
    assert seen[:2] == [False, False]
    assert seen[-1]


@pytest.mark.parametrize(
    "counts",
    [
        (24_000, 26_000, 28_000, 32_000),  # the whole prompt, as most versions count
        (24_000, 2_000, 2_000, 4_000),  # what was not in the cache
        (24_000, 0, 0, 0),  # nothing where all of it was
        (24_000, 2_000, 28_000, 32_000),  # the cache was given up in between
    ],
)
def test_a_conversation_that_fits_raises_no_alarm(counts: tuple[int, ...]) -> None:
    steps = conversation(96_000, 8_000, 8_000, 16_000)
    assert watched(32_768, *zip(steps, counts, strict=True)) == [False] * 4


def test_a_count_may_shrink_where_the_conversation_did() -> None:
    """After a compaction, another session, or where a template leaves earlier reasoning out."""
    first, second = conversation(96_000, 24_000)
    other = request(user("y" * 90_000), system="")
    assert watched(32_768, (first, 31_000), (other, 20_000)) == [False, False]
    thought = Message(role="assistant", content=(Thinking(text="t" * 24_000), Text(text="x")))
    with_thinking = request(*first.messages, thought, system="")
    later = request(*with_thinking.messages, *second.messages[1:], system="")
    assert watched(32_768, (with_thinking, 30_000), (later, 30_000)) == [False, False]


def test_a_cache_that_was_given_up_in_part_is_not_a_cut() -> None:
    """Where cached tokens are not counted, one more line may count for much, and for less than before."""
    assert watched(32_768, *zip(conversation(124_000, 400), (31_000, 20_000), strict=True)) == [False, False]


def test_text_that_makes_few_tokens_is_not_a_cut() -> None:
    """As many spaces do: the window is far from full."""
    assert watched(32_768, *zip(conversation(300_000), (10_000,), strict=True)) == [False]


def test_a_full_window_is_not_a_cut_one() -> None:
    assert watched(32_768, *zip(conversation(128_000, 2_000), (32_000, 32_500), strict=True)) == [False, False]


# The model's own window


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ({"model_info": {"general.architecture": "gemma2", "gemma2.context_length": 8_192}}, 8_192),
        ({"model_info": {"qwen3.context_length": 262_144}}, 32_768),
        ({"model_info": {}}, 32_768),
        ({"model_info": None}, 32_768),
        ([], 32_768),
    ],
)
def test_a_model_with_a_smaller_window_is_not_asked_for_more(shown: object, expected: int) -> None:
    async def run(server: OllamaServer) -> tuple[int | None, int | None]:
        async with aclosing(connected(server)) as provider:
            before = provider.context_window
            assert await provider.find_window() == provider.context_window
            await answer_of(provider)
            return before, provider.context_window

    with OllamaServer(ollama.text("x"), shown=document(shown)) as server:
        assert asyncio.run(run(server)) == (32_768, expected)
        ((show,), (chat,)) = server.shows, server.requests
    assert (show.path, show.body) == ("/api/show", {"model": "qwen3:8b"})
    assert json.loads(chat.content)["options"]["num_ctx"] == expected


def test_a_server_that_tells_no_window_keeps_the_one_asked_for() -> None:
    async def run(server: OllamaServer) -> int | None:
        async with aclosing(connected(server)) as provider:
            return await provider.find_window()

    with OllamaServer(shown=error(404, {"error": "not found"})) as server:
        assert asyncio.run(run(server)) == 32_768


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (document({"model_info": {"gemma2.context_length": 4_096}}), 4_096),
        (document({"model_info": {"qwen3.context_length": 262_144}}), 32_768),
        (document({"model_info": {"a.context_length": "4096", "b.context_length": -1, "7": None}}), 32_768),
        (error(500), 32_768),
        (html(), 32_768),
    ],
)
def test_the_first_request_asks_for_no_more_than_the_model_takes(shown: Answer, expected: int) -> None:
    """Asked once, with the first request and not before: what is more would be cut off without a word."""

    async def run(server: OllamaServer) -> int | None:
        async with aclosing(connected(server)) as provider:
            assert server.shows == []
            for _ in range(2):
                await answer_of(provider)
            return provider.context_window

    with OllamaServer(ollama.text("x"), ollama.text("y"), shown=shown) as server:
        assert asyncio.run(run(server)) == expected
        assert [json.loads(chat.content)["options"]["num_ctx"] for chat in server.requests] == [expected] * 2
        assert len(server.shows) == 1
