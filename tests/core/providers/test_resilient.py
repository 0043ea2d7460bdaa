"""Trying again: what is retried, how often, when, and that nothing is ever shown twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

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
from marvin_core.api.providers import CallDelta, Delta, Retrying, Stop, TextDelta, ThinkingDelta
from marvin_core.api.timeouts import Timeouts
from marvin_core.providers.resilient import Resilient
from marvin_core.testing import Answer, ModelServer, ScriptedProvider, calls, cut_after, error, events, text
from tests.support.chatting import TIMEOUTS, TRANSPORTS, Transport, answer_of, chat, chunk, request, text_of
from tests.support.engine import until


def resilient(
    *script: Answer, timeouts: Timeouts = TIMEOUTS, **options: Any
) -> tuple[list[Delta], int, ProviderError | None]:
    """The deltas, the number of requests made, and the error at the end if there was one."""
    seen: list[Delta] = []
    failed: ProviderError | None = None

    async def run(server: ModelServer) -> None:
        nonlocal failed
        async with aclosing(Resilient(chat(server.url, timeouts=timeouts, **options), timeouts)) as provider:
            try:
                await answer_of(provider, into=seen)
            except ProviderError as found:
                failed = found

    with ModelServer(*script) as server:
        asyncio.run(run(server))
        return seen, len(server.requests), failed


def announcements(deltas: list[Delta]) -> list[str]:
    return [delta.text for delta in deltas if isinstance(delta, Retrying)]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rate_limit_passes(transport: Transport) -> None:
    busy = error(429, "slow down")
    seen, asked, failed = resilient(busy, busy, text("Hi"), transport=transport)
    assert failed is None
    assert text_of(seen) == "Hi"
    assert asked == 3
    assert announcements(seen) == [
        "Rate limited by acme, trying again in 0 s (1 of 3)",
        "Rate limited by acme, trying again in 0 s (2 of 3)",
    ]
    assert seen[-1] == Stop(reason="stop")


def test_the_number_of_tries_is_the_number_of_pauses_and_one() -> None:
    seen, asked, failed = resilient(*[error(429, "slow down")] * 9)
    assert isinstance(failed, RateLimited)
    assert asked == 4
    assert len(announcements(seen)) == 3


def test_pauses_grow_and_are_kept() -> None:
    started = time.monotonic()
    seen, _, _ = resilient(error(503), error(503), text("Hi"), timeouts=TIMEOUTS.replace(retry_backoff=(0.1, 0.3)))
    assert time.monotonic() - started >= 0.4
    assert announcements(seen) == [
        "acme is overloaded, trying again in 0.1 s (1 of 2)",
        "acme is overloaded, trying again in 0.3 s (2 of 2)",
    ]


def test_retry_after_replaces_the_pause() -> None:
    timeouts = TIMEOUTS.replace(retry_backoff=(30.0,))
    seen, asked, _ = resilient(error(429, "slow down", {"Retry-After": "0.2"}), text("Hi"), timeouts=timeouts)
    assert announcements(seen) == ["Rate limited by acme, trying again in 0.2 s (1 of 1)"]
    assert (text_of(seen), asked) == ("Hi", 2)


@pytest.mark.parametrize("status", [503, 529])
@pytest.mark.parametrize("headers", [{"Retry-After": "0.2"}, {"retry-after-ms": "200", "retry-after": "9"}], ids=str)
def test_a_service_in_trouble_may_say_when_to_come_back(status: int, headers: Mapping[str, str]) -> None:
    timeouts = TIMEOUTS.replace(retry_backoff=(30.0,))
    seen, asked, _ = resilient(error(status, "busy", headers), text("Hi"), timeouts=timeouts)
    assert announcements(seen) == ["acme is overloaded, trying again in 0.2 s (1 of 1)"]
    assert (text_of(seen), asked) == ("Hi", 2)


def test_a_retry_after_that_is_too_long_ends_it_at_once() -> None:
    seen, asked, failed = resilient(error(429, "slow down", {"Retry-After": "3600"}), text("never"))
    assert isinstance(failed, RateLimited)
    assert failed.retry_after == 3600
    assert (seen, asked) == ([], 1)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_broken_call_is_begun_again(transport: Transport) -> None:
    """Its fragments were not shown; the announcement says to drop them."""
    whole = calls(("f", {"a": "b" * 100}), chunks=10)
    seen, asked, failed = resilient(cut_after(len(whole.body) // 2, whole), whole, transport=transport)
    assert failed is None
    assert asked == 2
    assert announcements(seen) == ["acme gave a broken answer, trying again in 0 s (1 of 3)"]
    at = seen.index(next(delta for delta in seen if isinstance(delta, Retrying)))
    again = [delta for delta in seen[at:] if isinstance(delta, CallDelta)]
    assert "".join(piece.arguments for piece in again) == '{"a": "' + "b" * 100 + '"}'
    assert again[0].name == "f"


@pytest.mark.parametrize("shown", [text("Hello world", chunks=4), text("", thinking="hm")])
def test_what_was_shown_is_never_shown_again(shown: Answer) -> None:
    seen, asked, failed = resilient(cut_after(len(shown.body) - 300, shown), text("never"))
    assert isinstance(failed, StreamBroken)
    assert asked == 1
    assert announcements(seen) == []
    assert any(isinstance(delta, (TextDelta, ThinkingDelta)) for delta in seen)


@pytest.mark.parametrize("code", [429, 502])
def test_an_error_behind_visible_text_is_not_retried(code: int) -> None:
    stream = events(chunk({"content": "partial"}), {"error": {"message": "later", "code": code}})
    seen, asked, failed = resilient(stream, text("never"))
    assert isinstance(failed, (RateLimited, Overloaded))
    assert (text_of(seen), asked) == ("partial", 1)


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (401, "no", AuthFailed),
        (400, "no", BadRequest),
        (402, "no", QuotaExhausted),
        (413, "no", ContextOverflow),
        (400, "content policy", Refused),
    ],
)
def test_what_waiting_does_not_help_fails_at_once(status: int, said: str, kind: type[ProviderError]) -> None:
    seen, asked, failed = resilient(error(status, said), text("never"))
    assert type(failed) is kind
    assert (seen, asked) == ([], 1)


@pytest.mark.parametrize("failed", [Unreachable("gone"), ModelNotFound("no"), asyncio.CancelledError()])
def test_neither_is_this(failed: BaseException) -> None:
    provider = ScriptedProvider([failed], [Stop(reason="stop")])

    async def run() -> None:
        with pytest.raises(type(failed)):
            await answer_of(Resilient(provider, TIMEOUTS))

    asyncio.run(run())
    assert len(provider.requests) == 1


async def read(provider: Resilient, seen: list[Delta]) -> None:
    async with aclosing(provider.stream(request())) as deltas:  # type: ignore[type-var]
        async for delta in deltas:
            seen.append(delta)  # noqa: PERF401  # it is looked at meanwhile


def test_cancelling_during_a_pause_ends_it() -> None:
    provider = ScriptedProvider([RateLimited("busy")], [Stop(reason="stop")])

    async def run() -> None:
        timeouts = TIMEOUTS.replace(retry_backoff=(60.0,))
        seen: list[Delta] = []
        answer = asyncio.ensure_future(read(Resilient(provider, timeouts), seen))
        await until(lambda: bool(announcements(seen)))
        answer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await answer

    asyncio.run(run())
    assert len(provider.requests) == 1


def test_it_shows_the_provider_that_it_wraps() -> None:
    inner = ScriptedProvider(name="acme", model="m1", context_window=1000, max_tools=128)
    outer = Resilient(inner, TIMEOUTS)
    assert (outer.name, outer.model, outer.context_window, outer.max_tools) == ("acme", "m1", 1000, 128)
    asyncio.run(outer.aclose())
    assert inner.closed


def test_each_request_has_its_own_tries() -> None:
    busy = RateLimited("busy")
    done: list[Delta] = [TextDelta(text="x"), Stop(reason="stop")]
    provider = ScriptedProvider([busy], [busy], [busy], done, [busy], [busy], [busy], done)

    async def run() -> list[str]:
        outer = Resilient(provider, TIMEOUTS)
        return [text_of(await answer_of(outer, request())) for _ in range(2)]

    assert asyncio.run(run()) == ["x", "x"]


def test_an_empty_answer_is_asked_for_again_and_then_is_an_error() -> None:
    empty = [Stop(reason="stop")]
    provider = ScriptedProvider(empty, empty, [TextDelta(text="Here."), *empty])
    deltas = asyncio.run(answer_of(Resilient(provider, TIMEOUTS)))
    told = ["UsageDelta", "Retrying"]  # each was a request whose cost nobody said
    assert [type(delta).__name__ for delta in deltas] == [*told, *told, "TextDelta", "Stop"]
    assert len(provider.requests) == 3

    tries = len(TIMEOUTS.retry_backoff) + 1
    provider = ScriptedProvider(*[empty] * tries)
    with pytest.raises(StreamBroken, match="empty answer"):
        asyncio.run(answer_of(Resilient(provider, TIMEOUTS)))
    assert len(provider.requests) == tries


def test_an_answer_that_ends_without_a_stop_is_asked_for_again() -> None:
    """A provider of a pack may forget it; what was shown of such an answer stays, and is not asked for again."""
    forgetful = ScriptedProvider([CallDelta(key=0, id="a", name="look")], [TextDelta(text="Hi"), Stop(reason="stop")])
    seen = asyncio.run(answer_of(Resilient(forgetful, TIMEOUTS)))
    assert announcements(seen) == ["scripted gave a broken answer, trying again in 0 s (1 of 3)"]
    assert text_of(seen) == "Hi"
    with pytest.raises(StreamBroken, match="ended too early"):
        asyncio.run(answer_of(Resilient(ScriptedProvider([TextDelta(text="Half")]), TIMEOUTS)))
