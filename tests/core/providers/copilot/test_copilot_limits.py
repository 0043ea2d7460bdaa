"""An answer of Copilot's runtime has the ceilings that those of all other services have."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest

from marvin_core.api.errors import ProviderError, StreamBroken, Unreachable
from marvin_core.api.limits import Limits
from marvin_core.api.providers import Endpoint, Secret
from marvin_core.api.timeouts import Timeouts
from marvin_core.providers.copilot.answer import CopilotAnswer
from marvin_core.providers.copilot.patience import Patience

ENDPOINT = Endpoint(
    provider="copilot",
    base_url="",
    model="claude-haiku-4.5",
    key=Secret(""),
    key_hint="",
    limits=Limits(event=1_000, answer=10_000, arguments=10_000, stream=50_000),
    timeouts=Timeouts(answer=100.0),
)


def event(kind: str, **data: Any) -> Any:
    return SimpleNamespace(type=SimpleNamespace(value=kind), data=SimpleNamespace(**data))


def said(size: int) -> Any:
    return event("assistant.message_delta", delta_content="x" * size)


def thought(size: int) -> Any:
    return event("assistant.reasoning_delta", delta_content="x" * size)


def called(call_id: str, size: int) -> Any:
    return event("assistant.tool_call_delta", tool_call_id=call_id, tool_name="look", input_delta="x" * size)


def requested(size: int) -> Any:
    request = SimpleNamespace(tool_call_id="a", name="look", arguments={"text": "x" * size})
    return event("assistant.message", content="", tool_requests=[request])


def fed(make: Any, most: int = 10_000) -> tuple[int, ProviderError | None]:
    """How many events were taken before the answer failed, and how it did."""
    answer = CopilotAnswer(ENDPOINT, {"look"})
    for number in range(most):
        list(answer.feed(make(number)))
        if answer.failure is not None:
            return number + 1, answer.failure
    return most, None


@pytest.mark.parametrize(
    ("make", "taken", "name"),
    [
        (lambda _: said(1_001), 1, "event"),
        (lambda _: said(1_000), 11, "answer"),
        (lambda _: thought(1_000), 11, "answer"),
        (lambda number: (said, thought)[number % 2](1_000), 11, "answer"),
        (lambda _: called("a", 1_000), 10, "arguments"),
        (lambda number: called(f"c{number:04}", 0), 48, "arguments"),
        (lambda _: requested(20_000), 1, "arguments"),
        (lambda _: event("assistant.other", message="x" * 1_000), 51, "stream"),
    ],
)
def test_an_answer_beyond_a_limit_ends(make: Any, taken: int, name: str) -> None:
    count, failure = fed(make)
    assert isinstance(failure, StreamBroken)
    assert failure.final
    assert f"limits.{name} in config.yaml" in str(failure)
    assert str(failure).startswith("copilot sent ")
    assert count == taken


def test_what_is_within_the_limits_is_an_answer() -> None:
    assert fed(lambda _: said(1_000), most=10) == (10, None)
    assert fed(lambda number: event("assistant.heartbeat", number=number)) == (10_000, None)


def test_calls_without_end_take_little_memory() -> None:
    tracemalloc.start()
    fed(lambda number: called(f"c{number}", 0), most=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20_000_000


def test_an_answer_has_an_end_in_time() -> None:
    patience = Patience(ENDPOINT, 10.0, 0.0)
    assert patience.left(0.0) == 10.0
    for second in range(9, 99, 9):
        assert patience.heard(second, float(second)) is None
    assert patience.left(99.0) == 1.0
    late = patience.heard(100, 100.0)
    assert isinstance(late, StreamBroken)
    assert "did not end its answer within 100 s" in str(late)
    assert isinstance(patience.over(100.0), StreamBroken)


def test_what_is_no_part_of_the_answer_is_no_life() -> None:
    patience = Patience(ENDPOINT, 10.0, 0.0)
    assert patience.heard(5, 1.0) is None
    assert patience.heard(5, 10.0) is None
    assert patience.left(10.0) == 1.0
    lifeless = patience.heard(5, 11.0)
    assert isinstance(lifeless, Unreachable)
    assert "sent no part of an answer for 10 s" in str(lifeless)


def test_silence_is_silence() -> None:
    patience = Patience(ENDPOINT, 10.0, 0.0)
    assert patience.heard(5, 1.0) is None
    assert "copilot sent nothing for 10 s" in str(patience.over(11.0))
    assert Patience(ENDPOINT, None, 0.0).left(0.0) == 100.0
