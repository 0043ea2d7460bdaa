"""Answers without an end: each ends at its limit, is told in words, and is not asked for again."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.api.errors import ProviderError, StreamBroken, Unreachable
from marvin_core.api.limits import Limits
from marvin_core.api.providers import Delta, Endpoint
from marvin_core.providers.anthropic.stream import AnthropicStream
from marvin_core.providers.chat_completions.reasoning_details import ReasoningDetails
from marvin_core.providers.chat_completions.stream import ChatStream
from marvin_core.providers.http.answer_stream import AnswerStream
from marvin_core.providers.http.call_fragments import CallAssembler
from marvin_core.providers.http.thinking_tags import ThinkingTags
from marvin_core.providers.ollama.stream import OllamaStream
from marvin_core.providers.resilient import Resilient
from marvin_core.providers.responses.stream import ResponsesStream
from marvin_core.testing import Answer, ModelServer, html, paced, raw, text
from tests.support.chatting import TIMEOUTS, answer_of, call_piece, chat, chunk, endpoint

LIMITS = Limits(event=2_000, document=2_000, values=50, answer=1_000, arguments=1_000, stream=300_000)
URL = "http://127.0.0.1/v1"
GENEROUS = 50.0


def event(payload: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def line(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload).encode() + b"\n"


def forever(piece: bytes, head: bytes = b"") -> Iterator[bytes]:
    return itertools.chain([head], itertools.repeat(piece))


def anthropic(kind: str, **delta: Any) -> bytes:
    return event({"type": "content_block_delta", "index": 0, "delta": {"type": kind, **delta}})


def ollama(endpoint: Endpoint, url: str) -> AnswerStream:
    return OllamaStream(endpoint, url, window=1000, is_cut=lambda prompt: False)


BEGUN = event({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}})
NO_ENDS: Mapping[str, tuple[Callable[..., AnswerStream], Iterator[bytes], str]] = {
    "a line": (ChatStream, forever(b"x" * 100, b"data: "), "limits.event"),
    "a line of two bytes a read": (ChatStream, forever(b"xx", b"data: "), "limits.event"),
    "an event of many lines": (ChatStream, forever(b"data: x\n"), "limits.event"),
    "comments": (ChatStream, forever(b": keep-alive\n\n"), "limits.event"),
    "blank lines": (ChatStream, forever(b"\r\n"), "limits.event"),
    "a document": (ChatStream, forever(b" " * 100, b"{"), "limits.document"),
    "many values": (ChatStream, forever(event({"a": [[] for _ in range(100)]})), "limits.values"),
    "text": (ChatStream, forever(event(chunk({"content": "word "}))), "limits.answer"),
    "white space": (ChatStream, forever(event(chunk({"content": " "}))), "limits.answer"),
    "thinking": (ChatStream, forever(event(chunk({"reasoning_content": "word "}))), "limits.answer"),
    "details": (
        ChatStream,
        forever(event(chunk({"reasoning_details": [{"type": "t", "data": "x"}]}))),
        "limits.answer",
    ),
    "a field of details": (
        ChatStream,
        iter([event(chunk({"reasoning_details": [{"index": 0, "id": "x" * 900}]}))]),
        "limits.answer",
    ),
    "signatures of calls": (
        ChatStream,
        (
            event(chunk({"tool_calls": [{"index": n, "function": {"name": "f"}, "extra_content": {"a": "x" * 900}}]}))
            for n in range(2)
        ),
        "limits.arguments",
    ),
    "arguments": (ChatStream, forever(event(call_piece("xxxx", index=0, name="f"))), "limits.arguments"),
    "calls": (ChatStream, (event(call_piece("", index=n, name="f")) for n in itertools.count()), "limits.arguments"),
    "empty deltas": (ChatStream, forever(event(chunk({}))), "limits.stream"),
    "usage": (ChatStream, forever(event({"choices": [], "usage": {"prompt_tokens": 1}})), "limits.stream"),
    "pings": (AnthropicStream, forever(event({"type": "ping"})), "limits.stream"),
    "blocks": (
        AnthropicStream,
        (
            event({"type": "content_block_start", "index": n, "content_block": {"type": "text", "text": ""}})
            for n in itertools.count()
        ),
        "limits.answer",
    ),
    "a signature": (AnthropicStream, forever(anthropic("signature_delta", signature="x" * 9), BEGUN), "limits.answer"),
    "thinking of Anthropic": (
        AnthropicStream,
        forever(anthropic("thinking_delta", thinking="x"), BEGUN),
        "limits.answer",
    ),
    "empty thinking": (
        AnthropicStream,
        (
            event({"type": "content_block_delta", "index": n, "delta": {"type": "thinking_delta", "thinking": ""}})
            for n in itertools.count()
        ),
        "limits.answer",
    ),
    "items": (
        ResponsesStream,
        (event({"type": "response.output_item.added", "item": {"type": "x", "id": n}}) for n in itertools.count()),
        "limits.answer",
    ),
    "names of an item": (
        ResponsesStream,
        (
            event({"type": "response.output_text.delta", "output_index": 0, "item_id": n, "delta": ""})
            for n in itertools.count()
        ),
        "limits.answer",
    ),
    "encrypted reasoning": (
        ResponsesStream,
        (
            event(
                {
                    "type": "response.output_item.done",
                    "output_index": 0,
                    "item": {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x" * 99},
                }
            )
            for _ in itertools.count()
        ),
        "limits.answer",
    ),
    "a line of Ollama's": (ollama, forever(b"x" * 100, b"{"), "limits.event"),
    "text of Ollama's": (ollama, forever(line({"message": {"content": "word "}})), "limits.answer"),
    "calls of Ollama's": (
        ollama,
        forever(line({"message": {"tool_calls": [{"function": {"name": "f", "arguments": {}}}]}})),
        "limits.arguments",
    ),
}


@pytest.mark.parametrize("kind", NO_ENDS)
def test_an_answer_that_never_ends_is_ended(kind: str) -> None:
    """I22: at its limit, and what came before is kept."""
    make, reads, named = NO_ENDS[kind]
    answer = make(endpoint(URL, limits=LIMITS), URL)
    size = 0
    while answer.failure is None:
        read = next(reads)
        size += len(read)
        answer.feed(read)
        assert size < 2 * LIMITS.stream, "it is without an end"
    assert isinstance(answer.failure, StreamBroken)
    assert answer.failure.final
    assert named in str(answer.failure)
    assert URL in str(answer.failure)


def ask(script: Answer, limits: Limits = LIMITS, silence: float = GENEROUS, **waits: float) -> list[Any]:
    """What a provider under `Resilient` gave, its error last, and how many requests there were."""
    timeouts = TIMEOUTS.replace(**waits)
    found: list[Any] = []

    async def run(url: str) -> None:
        async with aclosing(chat(url, limits=limits, timeouts=timeouts, silence=silence)) as provider:
            deltas: list[Delta] = []
            try:
                async with asyncio.timeout(GENEROUS):
                    await answer_of(Resilient(provider, timeouts), into=deltas)
            except ProviderError as error:
                found.append(error)

    with ModelServer(*[script] * 4) as server:
        asyncio.run(run(server.url))
        found.append(len([asked for asked in server.requests if asked.method == "POST"]))
    return found


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"data: " + b"x" * 10_000),
        raw(b'{"a": "' + b"x" * 10_000),
        raw(b": x\n\n" * 10_000),
        raw(b"".join(event(call_piece("xxxx", index=0, name="f")) for _ in range(1000))),
        raw(gzip.compress(b"data: " + b"x" * 1_000_000), {"content-encoding": "gzip"}),
        raw(gzip.compress(gzip.compress(b"x" * 1_000_000)), {"content-encoding": "gzip, gzip"}),
        raw(b"x", {"content-encoding": "br"}),
        raw(b"not compressed", {"content-encoding": "gzip"}),
        html(),
    ],
)
def test_an_answer_past_a_limit_ends_at_once(answer: Answer) -> None:
    """The same would come again, so nothing is asked for a second time."""
    error, requests = ask(answer)
    assert isinstance(error, (StreamBroken, Unreachable))
    assert requests == 1


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "x-gzip", "identity", "utf-8", ""])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_one_layer_of_compression_is_undone(encoding: str, size: int) -> None:
    plain = b"".join(text("Hello, world.", chunks=5).steps)  # type: ignore[arg-type]  # no pauses
    packers: Mapping[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "x-gzip": lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:]),  # two members in a row
        "deflate": zlib.compress,
        "raw deflate": _raw_deflate,
    }
    packed = packers.get(encoding, bytes)(plain)
    steps = tuple(packed[start : start + size] for start in range(0, len(packed), size))
    headers = (("content-encoding", encoding.removeprefix("raw ")),)
    answer = Answer(headers=headers, steps=steps)

    async def run(url: str) -> list[Delta]:
        async with aclosing(chat(url)) as provider:
            return await answer_of(provider)

    with ModelServer(answer) as server:
        assert "".join(getattr(delta, "text", "") for delta in asyncio.run(run(server.url))) == "Hello, world."
        assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"


def _raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


KEPT_ALIVE = [
    b": keep-alive\n\n",
    event({"choices": []}),
    event(chunk({"content": ""})),
    b"\n",
    event({"type": "ping"}),
]


@pytest.mark.parametrize("nothing", KEPT_ALIVE)
def test_what_only_keeps_a_connection_alive_is_no_life(nothing: bytes) -> None:
    """I22: the run ends, and the reason is told."""
    steps = (*text("x", chunks=1).steps[:1], *[nothing] * 1000)
    error, requests = ask(paced(0.05, raw(b"").replace(steps=steps)), limits=Limits(), silence=0.5)
    assert isinstance(error, Unreachable)
    assert "sent no part of an answer for 0.5 s" in str(error)
    assert "choose another model (/model, --model)" in str(error)
    assert requests == 1


def test_an_answer_that_goes_on_for_ever_word_by_word_is_ended() -> None:
    words = paced(0.05, text("word " * 1000, chunks=1000))
    error, requests = ask(words, limits=Limits(), answer=0.5)
    assert isinstance(error, StreamBroken)
    assert "did not end its answer within 0.5 s, which is over the limit" in str(error)
    assert requests == 1


def test_pings_after_a_complete_answer_do_not_spoil_it() -> None:
    steps = (*text("x").steps[:-1], *[b": keep-alive\n\n"] * 1000)
    (requests,) = ask(paced(0.05, raw(b"").replace(steps=steps)), limits=Limits(), silence=0.5)
    assert requests == 1


# Nothing is looked at more than a few times


def seconds(work: Callable[[int], None], size: int) -> float:
    started = time.process_time()
    work(size)
    return time.process_time() - started


def many_calls(size: int) -> None:
    assembler = CallAssembler("acme", lambda: [f"call_{number}" for number in range(size)])
    for number in range(size):
        assembler.take({"index": number, "function": {"name": "f", "arguments": "{}"}}).piece()


def repeated_names(size: int) -> None:
    assembler = CallAssembler("acme", tuple)
    assembler.take({"index": 0, "function": {"name": "f", "arguments": '{"a": "'}})
    for _ in range(size):
        assembler.take({"index": 0, "function": {"name": "f", "arguments": "{}"}}).piece()
    assert len(assembler.all) == 1


def signed_thinking(size: int) -> None:
    stream = AnthropicStream(endpoint(URL), URL)
    stream.feed(BEGUN)
    for _ in range(size):
        stream.feed(anthropic("thinking_delta", thinking="x" * 50))


def leading_space(size: int) -> None:
    tags = ThinkingTags()
    for _ in range(size):
        tags.feed("  ")


def details(size: int) -> None:
    found = ReasoningDetails()
    for _ in range(size):
        found.add([{"type": "reasoning.text", "index": 0, "text": "x" * 50}])
    assert len(found.all[0]["text"]) == 50 * size


@pytest.mark.parametrize("work", [many_calls, repeated_names, signed_thinking, leading_space, details])
def test_eight_times_as_much_takes_about_eight_times_as_long(work: Callable[[int], None]) -> None:
    """And not sixty-four times."""
    work(100)
    small = min(seconds(work, 3_000) for _ in range(3))
    assert min(seconds(work, 24_000) for _ in range(2)) < 30 * small + 0.05


WORDS = st.sampled_from(['{"a": 1}', '{"a', '": "', "}", "{", "[", "]", '"', "\\", '\\"', "x", " ", "{}", '"}"'])


@given(st.lists(WORDS, max_size=12).map("".join), st.integers(1, 4))
def test_arguments_are_whole_where_their_first_object_ends_them(arguments: str, size: int) -> None:
    """However they are cut: as a JSON parser has it, for what one parses."""
    call = CallAssembler("acme", tuple).take({"index": 0, "function": {"name": "f", "arguments": ""}})
    for start in range(0, len(arguments), size):
        call.add(arguments[start : start + size])
        call.piece()
    try:
        parsed = isinstance(json.loads(arguments), dict)
    except ValueError:
        return
    assert call.is_whole() is parsed


@given(st.data())
def test_cutting_an_answer_anywhere_keeps_its_limits(data: st.DataObject) -> None:
    """A limit counts what came, and not how it came."""
    stream = b"".join(event(chunk({"content": "word " * 20})) for _ in range(30))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=60)))
    answer = ChatStream(endpoint(URL, limits=LIMITS), URL)
    for start, end in itertools.pairwise([0, *cuts, len(stream)]):
        if answer.failure is None:
            answer.feed(stream[start:end])
    assert answer.failure is not None
    assert 1_000 < answer.progress <= 3_000 + 100
