"""A conversation that goes from one model service to another, for every ordered pair, and back again.

What the first service answered is read by its adapter; what the second one is asked is checked against all that the
services behind its format are known to refuse. The same checks see every tool of the installed packs.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from marvin_core.api.errors import BadRequest
from marvin_core.api.messages import Image, Message, Text, Thinking, ToolOutput, from_dict, to_dict, tool, user
from marvin_core.api.providers import ClientFactory, Endpoint, Provider, Request, Secret, ThinkingLevel
from marvin_core.api.record import Record
from marvin_core.api.tools import ToolSpec
from marvin_core.conversation.pairing import interrupted
from marvin_core.engine.assembly import Assembly
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers import offline
from marvin_core.providers.anthropic import provider as anthropic
from marvin_core.providers.chat_completions import provider as chat_completions
from marvin_core.providers.codex import provider as codex
from marvin_core.providers.http.images import NOT_SEEN
from marvin_core.providers.ollama import provider as ollama
from marvin_core.providers.responses import provider as responses
from marvin_core.testing import Answer, error, events
from marvin_core.tools.schema import describe
from marvin_core.util.schemas.normal_form import normal_form
from tests.support import answers_anthropic, answers_ollama, answers_responses, strict_wires
from tests.support.chatting import TIMEOUTS, answer_of, call_piece, chunk
from tests.support.engine import SPECS, make, run
from tests.support.engine_tools import look, picture
from tests.support.installed import specs as installed

PICTURE = Image(media_type="image/png", data="QUJD")
OPAQUE = re.compile(r"OPAQUE-[a-z]+-[0-9-]+")
THOUGHT = re.compile(r"THOUGHT-[a-z-]+")
LOOK, PICTURE_TOOL = (describe(each, source="tests") for each in (look, picture))
UNREADABLE = "look at x"
CUT = '{"name": "cut o'


class Wire(Record):
    """A wire format in the hands of one service: its adapter, the answers of one turn, and what it demands.

    `answers` is told of the number of the turn, as opaque data and ids differ from turn to turn.
    """

    name: str
    create: Callable[[Endpoint, ClientFactory], Provider]
    model: str
    answers: Callable[[str, int], Sequence[Answer]]
    check: strict_wires.Check
    window: int | None = 200_000

    def provider(self, base_url: str = "http://127.0.0.1:9/v1", client: ClientFactory | None = None) -> Any:
        """A new adapter."""
        given = Endpoint(
            provider=self.name,
            base_url=base_url,
            model=self.model,
            key=Secret("key"),
            key_hint="",
            context_window=self.window,
            max_tools=None if self.create is anthropic.create else 128,
            timeouts=TIMEOUTS,
        )
        return self.create(given, client or (lambda: pytest.fail("nothing is sent")))


# What each service answers in a turn: thinking, text and two calls; unreadable arguments; a cut-off call; the end.


def chat_answers(
    ids: Sequence[str], details: bool = False, field: str = "reasoning"
) -> Callable[[str, int], Sequence[Answer]]:
    """Chat completions, the calls with these ids; `details` adds the opaque reasoning of OpenRouter."""

    def answers(name: str, turn: int) -> Sequence[Answer]:
        opaque = [{"type": "reasoning.encrypted", "index": 0, "data": f"OPAQUE-{name}-{turn}"}]
        told: Any = f"THOUGHT-{name}"
        if field == "content":
            told = [{"type": "thinking", "thinking": [{"type": "text", "text": told}]}]
        thought = chunk({field: told, **({"reasoning_details": opaque} if details else {})})
        return (
            events(
                thought,
                chunk({"content": "I look."}),
                call_piece('{"name":"x"}', index=0, id=ids[0], type="function", name="look"),
                call_piece("{}", index=1, id=ids[1], type="function", name="picture"),
                chunk({}, "tool_calls"),
            ),
            events(thought, call_piece(UNREADABLE, index=0, id=ids[0], name="look at.it"), chunk({}, "tool_calls")),
            events(chunk({"content": "Again."}), call_piece(CUT, index=0, id=ids[1], name="look"), chunk({}, "length")),
            events(thought, chunk({"content": "Done."}), chunk({}, "stop")),
        )

    return answers


def gemini_answers(name: str, turn: int) -> Sequence[Answer]:
    """Google's: signatures on the first call of an answer and on its text, and calls without ids."""

    def signed(number: int) -> dict[str, Any]:
        return {"google": {"thought_signature": f"OPAQUE-{name}-{turn}-{number}"}}

    return (
        events(
            chunk({"content": f"<thought>THOUGHT-{name}</thought>", "extra_content": {"google": {"thought": True}}}),
            call_piece('{"name":"x"}', index=0, id="", name="look", extra_content=signed(1)),
            call_piece("{}", index=1, id="", name="picture"),
            chunk({}, "stop"),
        ),
        events(call_piece(UNREADABLE, index=0, id="", name="look at.it", extra_content=signed(2)), chunk({}, "stop")),
        events(call_piece(CUT, index=0, id="", name="look", extra_content=signed(3)), chunk({}, "length")),
        events(chunk({"content": "Done.", "extra_content": signed(4)}), chunk({}, "stop")),
    )


def anthropic_answers(name: str, turn: int) -> Sequence[Answer]:
    """Anthropic's: signed thinking, and thinking that nobody can read."""
    thought, said, called = answers_anthropic.thought, answers_anthropic.said, answers_anthropic.called
    return (
        answers_anthropic.message(
            thought(f"THOUGHT-{name}", f"OPAQUE-{name}-{turn}-1"),
            answers_anthropic.redacted(f"OPAQUE-{name}-{turn}-2"),
            said("I look."),
            called("look", {"name": "x"}, call_id=f"toolu_{turn}a"),
            called("picture", {}, call_id=f"toolu_{turn}b"),
            finish="tool_use",
        ),
        answers_anthropic.message(called("look at.it", UNREADABLE, call_id=f"toolu_{turn}c"), finish="tool_use"),
        answers_anthropic.message(said("Again."), called("look", CUT, call_id=f"toolu_{turn}d"), finish="max_tokens"),
        answers_anthropic.message(thought(f"THOUGHT-{name}", f"OPAQUE-{name}-{turn}-3"), said("Done.")),
    )


def responses_answers(name: str, turn: int) -> Sequence[Answer]:
    """The Responses API's: encrypted reasoning before what it led to."""
    said, called = answers_responses.said, answers_responses.called

    def reasoning(number: int) -> dict[str, Any]:
        return answers_responses.reasoning(f"THOUGHT-{name}", f"OPAQUE-{name}-{turn}-{number}")

    first = [called("look", {"name": "x"}, f"call_{turn}_" + "x" * 50), called("picture", {}, f"call_{turn}b")]
    return (
        answers_responses.answer(reasoning(1), said("I look.", phase="commentary"), *first),
        answers_responses.answer(reasoning(2), called("look at.it", UNREADABLE, f"call_{turn}c")),
        answers_responses.answer(said("Again."), called("look", CUT, f"call_{turn}d"), finish="max_output_tokens"),
        answers_responses.answer(reasoning(3), said("Done.", phase="final_answer")),
    )


def ollama_answers(name: str, turn: int) -> Sequence[Answer]:
    """Ollama's: calls without ids, whose arguments are objects."""
    calls: Sequence[tuple[str, dict[str, Any]]] = (("look", {"name": "x"}), ("picture", {}))
    return (
        answers_ollama.calls(*calls, text=f"<think>THOUGHT-{name}</think>I look."),
        answers_ollama.calls(("look at.it", {})),
        answers_ollama.calls(("look", {}), text="Again.", finish="length"),
        answers_ollama.text("Done.", thinking=f"THOUGHT-{name}"),
    )


LONG = "call_" + "y" * 90
WIRES = (
    Wire(
        name="plain",
        create=chat_completions.create,
        model="some-model",
        answers=chat_answers(("functions.look:0", "ü|1 two")),
        check=strict_wires.vllm,
    ),
    Wire(
        name="openrouter",
        create=chat_completions.create,
        model="z-ai/glm-5",
        answers=chat_answers((LONG + "1", LONG + "2"), details=True),
        check=strict_wires.openrouter,
    ),
    Wire(
        name="groq",
        create=chat_completions.create,
        model="qwen/qwen3-32b",
        answers=chat_answers(("k4x9", "z2p1")),
        check=strict_wires.groq,
    ),
    Wire(
        name="llama-server",
        create=chat_completions.create,
        model="",
        answers=chat_answers(
            ("Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF", "Bb3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF"), field="reasoning_content"
        ),
        check=strict_wires.llama_server,
    ),
    Wire(
        name="deepseek",
        create=chat_completions.create,
        model="deepseek-v4-pro",
        answers=chat_answers(("call_00_9nLf", "call_01_9nLf"), field="reasoning_content"),
        check=strict_wires.deepseek,
    ),
    Wire(
        name="moonshot",
        create=chat_completions.create,
        model="kimi-k3",
        answers=chat_answers(("look:0", "picture:1"), field="reasoning_content"),
        check=strict_wires.moonshot,
    ),
    Wire(
        name="zhipu",
        create=chat_completions.create,
        model="glm-5.3",
        answers=chat_answers(("call_-8", "call_-9"), field="reasoning_content"),
        check=strict_wires.zhipu,
    ),
    Wire(
        name="xai",
        create=chat_completions.create,
        model="grok-4.3",
        answers=chat_answers(("call-1a", "call-1b"), field="reasoning_content"),
        check=strict_wires.xai,
    ),
    Wire(
        name="mistral",
        create=chat_completions.create,
        model="mistral-medium-3-5",
        answers=chat_answers(("D681PevKs", "a1b2c3d4e"), field="content"),
        check=strict_wires.mistral,
    ),
    Wire(
        name="gemini",
        create=chat_completions.create,
        model="gemini-3-pro-preview",
        answers=gemini_answers,
        check=strict_wires.gemini,
    ),
    Wire(
        name="anthropic",
        create=anthropic.create,
        model="claude-opus-4-6",
        answers=anthropic_answers,
        check=strict_wires.anthropic,
    ),
    Wire(
        name="claude",
        create=anthropic.create,
        model="claude-sonnet-4-5",
        answers=anthropic_answers,
        check=strict_wires.anthropic,
    ),
    Wire(
        name="sonnet",
        create=anthropic.create,
        model="claude-sonnet-5-5",
        answers=anthropic_answers,
        check=strict_wires.anthropic,
    ),
    Wire(
        name="openai",
        create=responses.create,
        model="gpt-5.1",
        answers=responses_answers,
        check=strict_wires.responses,
    ),
    Wire(
        name="codex",
        create=codex.create,
        model="gpt-5.3-codex",
        answers=responses_answers,
        check=strict_wires.codex,
    ),
    Wire(
        name="ollama",
        create=ollama.create,
        model="qwen3:8b",
        answers=ollama_answers,
        check=strict_wires.ollama,
    ),
)
BY_NAME = {wire.name: wire for wire in WIRES}
RETURNS_OPAQUE = {"openrouter", "gemini", "anthropic", "claude", "sonnet", "openai", "codex"}
RETURNS_TEXT = {"plain", "groq", "llama-server", "deepseek", "moonshot", "zhipu", "xai", "mistral", "ollama"}
SOURCES = (*BY_NAME, "offline")
PAIRS = [(first, second) for first, second in product(SOURCES, BY_NAME) if first != second]


def turn_of_offline() -> list[Message]:
    """A turn of the provider that is no model: one call and its output as the answer."""
    given = Endpoint(provider="offline", base_url="", model="offline", key=Secret(""), key_hint="")
    asked = user("pwd")
    messages = [asked]
    for _ in range(2):
        deltas = run(
            _all(
                offline.create(given, lambda: pytest.fail("nothing is sent")),
                Request(system="", messages=tuple(messages), tools=installed()),
            )
        )
        messages.append(assembled("offline", "offline", deltas))
        if messages[-1].calls:
            messages.append(tool([output(call, Text(text="/here")) for call in messages[-1].calls]))
    return messages


async def _all(provider: Provider, request: Request) -> list[Any]:
    stream = cast("AsyncGenerator[Any, None]", provider.stream(request))
    async with aclosing(stream):
        return [delta async for delta in stream]


def assembled(provider: str, model: str, deltas: Sequence[Any]) -> Message:
    """The message that the agent makes of an answer, after it was written to a session and read back."""
    assembly = Assembly(provider, model)
    for delta in deltas:
        assembly.feed(delta)
    return from_dict(json.loads(json.dumps(to_dict(assembly.message()))))


def output(call: Any, *content: Text | Image, is_error: bool = False) -> ToolOutput:
    return ToolOutput(call_id=call.id, name=call.name, content=content, is_error=is_error)


def turn_of(name: str, turn: int, before: Sequence[Message] = ()) -> list[Message]:
    """What a session keeps of a turn with this service: a prompt with an image, four answers, and the outputs."""
    if name == "offline":
        return turn_of_offline()
    wire = BY_NAME[name]
    provider = wire.provider()
    messages = [user(f"Look at this ({turn})", PICTURE)]
    results: Sequence[Callable[[Any], ToolOutput]] = (
        lambda call: output(call, Text(text="seen"), PICTURE) if call.name == "look" else output(call, PICTURE),
        lambda call: output(call, Text(text=""), is_error=True),
        lambda call: interrupted(call.id, call.name),
        lambda call: pytest.fail("the last answer has no call"),
    )
    for scripted, result in zip(wire.answers(name, turn), results, strict=True):
        answer = provider._answer(Request(system="", messages=(*before, *messages)))
        deltas = [*answer.feed(scripted.body), *answer.finish()]
        assert answer.failure is None, answer.failure
        messages.append(assembled(name, wire.model, deltas))
        if messages[-1].calls:
            messages.append(tool([result(call) for call in messages[-1].calls]))
    assert len(messages) == 8
    return messages


@cache
def first_turn(name: str) -> tuple[Message, ...]:
    return tuple(turn_of(name, 1))


def body_of(name: str, *messages: Message, thinking: ThinkingLevel = "high", **options: Any) -> dict[str, Any]:
    """What the service is asked, after the check of all that it demands."""
    tools = options.pop("tools", (LOOK, PICTURE_TOOL))
    wire = BY_NAME[name]
    sent = wire.provider()._body(
        Request(system="Be brief.", messages=messages, tools=tools, thinking=thinking, **options)
    )
    body: dict[str, Any] = json.loads(sent)
    wire.check(body)
    return body


def opaque_in(body: Mapping[str, Any]) -> list[str]:
    """The opaque data in a request, in order."""
    return OPAQUE.findall(json.dumps(body))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_second_service_accepts_what_the_first_one_left(first: str, second: str) -> None:
    """I15: with parallel, unreadable and cut-off calls, images and thinking; what is the first one's own stays."""
    said = first_turn(first)
    for thinking in get_args(ThinkingLevel):
        body = body_of(second, *said, user("Go on."), thinking=thinking)
        text = json.dumps(body, ensure_ascii=False)
        assert opaque_in(body) == []
        assert not THOUGHT.search(text)
        assert "Go on." in text
        assert "Done." in text or first == "offline"
        assert text.count("QUJD") == (0 if first == "offline" else 3), "all images are there"


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_it_accepts_it_in_the_middle_of_a_turn_too(first: str, second: str) -> None:
    """I15: as when the first one failed after the calls, and a fallback goes on."""
    said = first_turn(first)
    for end in range(3, len(said), 2):
        assert said[end - 1].role == "tool"
        assert opaque_in(body_of(second, *said[:end])) == []


@pytest.mark.parametrize(("first", "second"), [pair for pair in PAIRS if pair[0] in BY_NAME])
def test_back_at_the_first_its_own_data_is_returned_word_for_word(first: str, second: str) -> None:
    """And nothing of the second one's, whose turn came between."""
    said = first_turn(first)
    alone = opaque_in(body_of(first, *said, user("Go on.")))
    assert bool(alone) == (first in RETURNS_OPAQUE)
    between = turn_of(second, 2, said)
    body = body_of(first, *said, *between, user("Back."))
    assert opaque_in(body) == alone
    assert f"THOUGHT-{second}" not in json.dumps(body)
    again = turn_of(first, 3, [*said, *between])
    later = opaque_in(body_of(first, *said, *between, *again, user("Bye.")))
    assert later[: len(alone)] == alone
    assert {one.split("-")[2] for one in later} == ({"1", "3"} if alone else set())


@pytest.mark.parametrize("name", sorted(RETURNS_TEXT))
def test_what_a_model_showed_of_its_thinking_goes_back_as_it_came(name: str) -> None:
    """In each answer that it belongs to, through a session file, and at every level."""
    said = first_turn(name)
    thought = [m for m in said if any(isinstance(block, Thinking) and block.text for block in m.content)]
    assert len(thought) > 1
    for level in get_args(ThinkingLevel):
        text = json.dumps(body_of(name, *said, user("Go on."), thinking=level))
        assert text.count(f"THOUGHT-{name}") == len(thought)


@pytest.mark.parametrize("name", sorted(RETURNS_TEXT - {"ollama", "llama-server"}))
def test_it_does_not_go_to_another_model_of_the_same_service(name: str) -> None:
    wire = BY_NAME[name]
    request = Request(system="", messages=(*first_turn(name), user("Go on.")), tools=(LOOK,), thinking="high")
    body = json.loads(wire.replace(model=f"{wire.model}.9").provider()._body(request))
    wire.check(body)
    assert not THOUGHT.search(json.dumps(body))


@pytest.mark.parametrize("name", sorted(RETURNS_OPAQUE))
def test_another_model_of_the_same_service_gets_nothing_of_the_first_ones(name: str) -> None:
    """Signatures belong to a model; Google's alone are for all of its models."""
    wire = BY_NAME[name]
    request = Request(system="", messages=(*first_turn(name), user("Go on.")), tools=(LOOK,), thinking="high")
    body = json.loads(wire.replace(model=f"{wire.model}.9").provider()._body(request))
    wire.check(body)
    if name == "gemini":
        assert "OPAQUE-gemini-1-1" in opaque_in(body)
    else:
        assert opaque_in(body) == []


def test_the_checks_notice_what_services_refuse() -> None:
    """Or else they would prove nothing."""
    said = [*first_turn("anthropic"), user("Go on.")]
    places: Mapping[str, Sequence[tuple[Any, ...]]] = {
        "plain": [("messages", 2, "tool_calls", 0, "id"), ("messages", 3, "content")],
        "mistral": [("messages", 2, "tool_calls", 0, "id"), ("reasoning_effort",)],
        "gemini": [("messages", 2, "tool_calls", 0, "extra_content", "google", "thought_signature")],
        "anthropic": [("messages", 1, "content", 0, "signature"), ("messages", 2, "content", 0, "tool_use_id")],
        "openai": [("input", 2, "call_id"), ("input", 3, "arguments"), ("input", 5, "call_id")],
        "ollama": [("messages", 3, "tool_call_id"), ("messages", 3, "content")],
    }
    for name, paths in places.items():
        for *path, last in paths:
            body = body_of(name, *said)
            inner: Any = body
            for step in path:
                inner = inner[step]
            assert isinstance(inner[last], str)
            inner[last] = ""
            with pytest.raises((AssertionError, KeyError, ValueError)):
                BY_NAME[name].check(body)


# A real session over real connections


def chat_calls(thought: Mapping[str, Any]) -> Answer:
    return events(
        chunk(thought),
        call_piece('{"name":"x"}', index=0, id="functions.look:0", name="look"),
        call_piece("{}", index=1, id="functions.picture:1", name="picture"),
        chunk({}, "tool_calls"),
    )


CALLS: Mapping[str, Callable[[], Answer]] = {
    "chat": lambda: chat_calls({"reasoning": "hm"}),
    "deepseek": lambda: chat_calls({"reasoning_content": "hm"}),
    "gemini": lambda: chat_calls({"content": "<thought>hm</thought>"}),
    "mistral": lambda: chat_calls(
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "I"}]}
    ),
    "anthropic": lambda: answers_anthropic.calls(("look", {"name": "x"}), ("picture", {}), thinking="hm"),
    "responses": lambda: answers_responses.calls(("look", {"name": "x"}), ("picture", {}), thinking="hm"),
    "ollama": lambda: answers_ollama.calls(("look", {"name": "x"}), ("picture", {})),
}
ENDS: Mapping[str, Callable[[], Answer]] = {
    **dict.fromkeys(
        ("chat", "deepseek", "gemini", "mistral"), lambda: events(chunk({"content": "Done."}), chunk({}, "stop"))
    ),
    "anthropic": lambda: answers_anthropic.text("Done.", thinking="so"),
    "responses": lambda: answers_responses.text("Done.", thinking="so"),
    "ollama": lambda: answers_ollama.text("Done.", thinking="so"),
}
FORMATS = {"anthropic": "anthropic", "claude": "anthropic", "openai": "responses", "ollama": "ollama"}
FORMATS |= {name: name for name in ("deepseek", "gemini", "mistral")}
WALK: Sequence[str] = (
    "plain",
    "anthropic",
    "openai",
    "gemini",
    "mistral",
    "ollama",
    "deepseek",
    "claude",
    "groq",
    "mistral",
    "plain",
)
WALK = (*WALK, "deepseek", "openai", "ollama")


def test_a_session_that_changes_its_service_with_every_prompt(tmp_path: Path) -> None:
    """Each turn has two calls that run, over real connections; each request is accepted."""
    script = [made() for name in WALK for made in (CALLS[FORMATS.get(name, "chat")], ENDS[FORMATS.get(name, "chat")])]
    with answers_ollama.OllamaServer(*script) as server:
        settings = HttpSettings(timeouts=TIMEOUTS)
        base = f"{server.url}/v1"

        async def go() -> list[str]:
            providers = [
                BY_NAME[name].provider(base, lambda: make_client(settings, timeout_read=50.0, tls=None))
                for name in dict.fromkeys(WALK)
            ]
            made = make(tmp_path, provider=providers[0], others=providers[1:], specs=SPECS)
            made.session.models.think("high")
            said: list[str] = []
            try:
                for name in WALK:
                    made.session.models.use(name)
                    said.append((await made.session.submit(f"Ask {name}.")).text)
            finally:
                await made.session.close()
                for provider in providers:
                    await provider.aclose()
            return said

        assert run(go()) == ["I\nDone." if name == "mistral" else "Done." for name in WALK]
        asked = [request.body for request in server.requests if request.method == "POST"]
    assert len(asked) == 2 * len(WALK)
    for number, body in enumerate(asked):
        BY_NAME[WALK[number // 2]].check(body)


# Models that see nothing

BLIND = {
    "groq": error(
        400, {"error": {"message": "'messages[1].content' must be a string", "type": "invalid_request_error"}}
    ),
    "openrouter": error(404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
    "llama-server": error(500, {"error": {"code": 500, "message": "image input is not supported - hint: mmproj"}}),
    "ollama": error(500, {"error": "this model is missing data required for image input"}),
}


@pytest.mark.parametrize("name", BLIND)
def test_a_model_that_sees_nothing_goes_on_with_a_line_for_each_image(name: str) -> None:
    """A session with images would otherwise be of no use to it for ever; it is told once."""
    end = ENDS[FORMATS.get(name, "chat")]
    with answers_ollama.OllamaServer(BLIND[name], end(), end(), BLIND[name]) as server:

        async def go() -> None:
            settings = HttpSettings(timeouts=TIMEOUTS)
            made = BY_NAME[name].provider(
                f"{server.url}/v1", lambda: make_client(settings, timeout_read=50.0, tls=None)
            )
            said = first_turn("anthropic")
            async with aclosing(made) as provider:
                for messages in ((*said, user("Go on.")), said[:3]):
                    await answer_of(provider, Request(system="", messages=messages, tools=(LOOK,)))
                with pytest.raises(BadRequest, match="does not accept images"):
                    await answer_of(provider, Request(system="", messages=(user("See", PICTURE),)))

        run(go())
        bodies = [json.dumps(request.body) for request in server.requests if request.method == "POST"]
    assert [body.count("QUJD") for body in bodies] == [3, 0, 1, 1], "the prompt's own image is refused, not dropped"
    assert [body.count(NOT_SEEN) for body in bodies] == [0, 3, 2, 0]
    for body in bodies:
        BY_NAME[name].check(json.loads(body))


@pytest.mark.parametrize("name", BY_NAME)
def test_an_image_in_a_format_that_services_refuse_is_told_in_words(name: str) -> None:
    """In a prompt and in an output: refused, it would end the session."""
    drawing = Image(media_type="image/svg+xml", data="QUJD")
    asked = next(message for message in first_turn("plain") if message.calls)
    shown = tool([output(call, drawing) for call in asked.calls])
    body = body_of(name, user("Look", drawing), asked, shown, user("Go on."))
    text = json.dumps(body)
    assert "QUJD" not in text
    assert text.count("cannot be shown here: image/svg+xml") == 3


# Every tool through every adapter

NASTY: Mapping[str, Mapping[str, Any]] = {
    "no_parameters": {"type": "object"},
    "nullable": {"type": "object", "properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}},
    "types": {"type": "object", "properties": {"a": {"type": ["string", "integer", "null"]}}},
    "unions": {
        "type": "object",
        "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}},
    },
    "numbers_to_choose": {"type": "object", "properties": {"a": {"enum": [1, 2, 4]}, "b": {"const": True}}},
    "words_to_choose": {"type": "object", "properties": {"a": {"enum": ["x", "y", None]}}},
    "nested": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "required": ["a"],
        "$defs": {
            "A": {"type": "object", "properties": {"b": {"type": "array", "items": {"$ref": "#/$defs/B"}}}},
            "B": {"type": "object", "properties": {"c": {"type": "string", "format": "uri"}}, "title": "B"},
        },
    },
    "lists": {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array", "items": {}}}},
    "pairs": {
        "type": "object",
        "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "maxItems": 2}},
    },
    "tables": {
        "type": "object",
        "properties": {"a": {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}}},
        "additionalProperties": False,
    },
    "anything": {"type": "object", "properties": {"a": {}, "b": {"description": "Any value"}}},
}


def nasty() -> tuple[ToolSpec, ...]:
    return tuple(
        ToolSpec(
            name=name,
            description="A tool.",
            parameters=normal_form(schema),
            access=frozenset({"read"}),
            source="tests",
        )
        for name, schema in NASTY.items()
    )


@pytest.mark.parametrize("name", BY_NAME)
def test_every_tool_is_valid_in_every_format(name: str) -> None:
    """Design section 4: also those of packs that nobody here has seen."""
    tools = (*installed(), *nasty())
    assert len(installed()) > 25
    limit = BY_NAME[name].provider().max_tools or len(tools)
    for start in range(0, len(tools), limit):
        part = tools[start : start + limit]
        body = body_of(name, user("Hello"), tools=part)
        named = [tool.get("name") or tool["function"]["name"] for tool in body["tools"]]
        assert named == [spec.name for spec in part]


def test_what_google_does_not_take_is_said_in_the_description() -> None:
    """And nothing is lost that a model has to know."""
    tools = {
        tool["function"]["name"]: tool["function"] for tool in body_of("gemini", user("x"), tools=nasty())["tools"]
    }
    numbers = tools["numbers_to_choose"]["parameters"]["properties"]
    assert numbers["a"] == {"description": "One of: 1, 2, 4.", "type": "number"}
    assert numbers["b"] == {"description": "One of: true.", "type": "boolean"}
    assert tools["types"]["parameters"]["properties"]["a"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    pairs = tools["pairs"]["parameters"]["properties"]["a"]
    assert pairs["items"] == {"anyOf": [{"type": "string"}, {"type": "number"}]}
