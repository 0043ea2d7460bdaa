"""A real model behind llama.cpp's own server, in the four formats that it speaks.

What so small a model says is of no use and never the same; that it comes whole, is counted and can be gone on with is.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from typing import Any

import pytest

from marvin_core.api.messages import Message, Text, user
from marvin_core.api.providers import Endpoint, Measures, Request, Secret, ThinkingLevel
from marvin_core.api.timeouts import Timeouts
from marvin_core.http.client import HttpSettings, make_client
from marvin_core.providers.chat_completions.provider import create
from tests.e2e.support_e2e import Marvin, assert_loadable, block_texts
from tests.real.components import asked
from tests.real.llama_server import NAME, WINDOW
from tests.support.chatting import answer_of, text_of

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("llama"), pytest.mark.timeout(300)]

LIMIT = 240.0
"""Seconds: on a busy machine it reads some fifty tokens a second and says twenty."""
ADDRESSES = {
    "llama-server": ("LLAMA_SERVER_URL", "/v1"),
    "openai-compat": ("OPENAI_COMPAT_URL", "/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", ""),
    "openai": ("OPENAI_BASE_URL", "/v1"),
}
TOOLS = ("--tools", "read_file,create_file")


@pytest.fixture(params=ADDRESSES)
def provider(request: pytest.FixtureRequest, marvin: Marvin, llama: str) -> str:
    name: str = request.param
    variable, base = ADDRESSES[name]
    marvin.env |= {variable: llama + base, "LLM_PROVIDER": name}
    return name


def used(events: list[dict[str, Any]]) -> dict[str, int]:
    """What the last request used, in tokens."""
    usage: dict[str, int] = [event["usage"] for event in events if event["type"] == "usage"][-1]
    return usage


def test_an_answer_is_streamed_and_counted_and_gone_on_with(marvin: Marvin, provider: str) -> None:
    first = marvin.ask(*TOOLS, "--output-format", "stream-json", prompt="Tell me about the sea.", limit=LIMIT)
    assert first.code == 0, first.said
    events = first.events()
    pieces = [event["delta"] for event in events if event["type"] == "message_update" and event["kind"] == "text"]
    assert len(pieces) > 1
    assert "".join(pieces) == block_texts(marvin.messages()[-1])
    usage = used(events)
    assert 100 < usage["input_tokens"] < WINDOW
    assert 1 < usage["output_tokens"] < WINDOW
    cost = first.cost()
    assert (cost["session_cost"] is not None, cost["llm_turns"]) == (True, 1)
    assert "" not in cost["model_turns"], "the model has a name"

    second = marvin.ask(*TOOLS, "--continue", "--output-format", "stream-json", prompt="And more.", limit=LIMIT)
    assert second.code == 0, second.said
    assert used(second.events())["input_tokens"] > usage["input_tokens"], "it was told what was said before"
    assert [message["role"] for message in marvin.messages()] == ["user", "assistant"] * 2


def test_a_conversation_that_outgrows_the_window_goes_on(marvin: Marvin, provider: str) -> None:
    """I15: what does not fit is refused; what is older makes room, is kept in a backup, and the answer comes."""
    story = " ".join(["the grey heron stands in the river and waits"] * 45)
    first = marvin.ask(*TOOLS, prompt=f"First part: {story}", limit=LIMIT)
    assert first.code == 0, first.said
    result = marvin.ask(*TOOLS, "--continue", prompt=f"Second part: {story}", limit=LIMIT)
    assert result.code == 0, result.said
    assert result.text.strip()
    assert re.search("The conversation was (compacted|shortened): ", result.said)
    kept = list((marvin.project / ".marvin" / "logs").glob("context-backup-*.jsonl"))
    assert any("First part: the grey heron" in path.read_text("utf-8") for path in kept)
    assert_loadable(marvin.messages())


def test_answers_in_a_row_are_gone_on_from(llama: str) -> None:
    """As in play mode: the server refuses two of them at the end, and would continue the text of one."""
    told = [Message(role="assistant", content=(Text(text=text),)) for text in ("One.", "Two.", "Three.")]
    given = Endpoint(provider="llama-server", base_url=f"{llama}/v1", model=NAME, key=Secret(""), key_hint="")

    async def said(level: ThinkingLevel) -> str:
        settings = HttpSettings(timeouts=Timeouts(http=LIMIT))
        # A connection of its own for each: the server may close one at any time after an answer.
        provider = create(given, lambda: make_client(settings, timeout_read=LIMIT, tls=None))
        try:
            request = Request(system="Be brief.", messages=(user("Explore."), *told), thinking=level)
            return text_of(await answer_of(provider, request))
        finally:
            await provider.aclose()

    levels: tuple[ThinkingLevel, ...] = ("off", "high")
    assert all(asyncio.run(said(level)).strip() for level in levels)


def test_a_prompt_larger_than_the_window_is_said_to_be_one(marvin: Marvin, provider: str) -> None:
    words = " ".join(f"word{number}" for number in range(WINDOW))
    result = marvin.run("--non-interactive", *TOOLS, stdin=words.encode(), limit=LIMIT)
    assert result.code == 1
    last = result.said.splitlines()[-1]
    assert "does not fit into the context window" in last
    assert "choose a model with a larger window" in last
    assert result.cost()["session_cost"] == 0.0
    assert_loadable(marvin.messages())


def test_an_interrupt_ends_an_answer_at_once(marvin: Marvin, provider: str, llama: str) -> None:
    """I22: with 130, what came is kept, and the server's one slot is free for the next."""
    running = marvin.ask_in_background(*TOOLS, prompt="Write a long story about a dragon and a princess.")
    running.until(lambda: len(running.out) > 5, "the beginning of an answer")
    begin = time.monotonic()
    running.send(signal.SIGINT)
    result = running.finish()
    assert result.code == 130
    assert time.monotonic() - begin < 1.0
    assert result.cost()["llm_turns"] == 1
    assert block_texts(marvin.messages()[-1]).startswith(result.text.strip()[:5])
    begin = time.monotonic()
    short = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
    assert asked(f"{llama}/v1/chat/completions", "POST", short)["choices"]
    assert time.monotonic() - begin < 5.0
    assert_loadable(marvin.messages())


def test_the_server_tells_its_window_and_its_model(marvin: Marvin, llama: str) -> None:
    async def window(model: str) -> int | None:
        timeouts = Timeouts()
        async with make_client(HttpSettings(timeouts=timeouts), timeout_read=10.0, tls=None) as client:
            endpoint = Endpoint(
                provider="llama-server",
                base_url=f"{llama}/v1",
                model=model,
                key=Secret(""),
                key_hint="",
                timeouts=timeouts,
            )
            provider = create(endpoint, lambda: client)
            assert isinstance(provider, Measures)
            return await provider.find_window()

    assert [asyncio.run(window(model)) for model in ("", NAME)] == [WINDOW, WINDOW]
    marvin.env["LLAMA_SERVER_URL"] = f"{llama}/v1"
    shown = marvin.run("providers").text
    assert "    answers, 1 model\n" in shown
    assert f"\nllama-server with {NAME} is used, because LLAMA_SERVER_URL is set.\n" in shown
    assert NAME in marvin.run("models", "llama-server").text
