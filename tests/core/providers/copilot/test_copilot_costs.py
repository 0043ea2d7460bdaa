"""What Copilot says of the cost: credits are money, anything else is an estimate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from marvin_core import Usage, UsageDelta
from marvin_core.api.providers import Endpoint, Secret
from marvin_core.providers.copilot.answer import CopilotAnswer

ENDPOINT = Endpoint(provider="copilot", base_url="", model="claude-haiku-4.5", key=Secret(""), key_hint="")


def used(*events: dict[str, Any], endpoint: Endpoint = ENDPOINT) -> Usage:
    """What an answer says after these reports of the runtime, each in its shape."""
    answer = CopilotAnswer(endpoint, set())
    usage = Usage()
    for event in events:
        counts = dict.fromkeys(("cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost"))
        fields = {"input_tokens": 100, "output_tokens": 10, "finish_reason": "stop", "content_filter_triggered": False}
        data = SimpleNamespace(**{**counts, **fields, **event})
        (delta,) = answer.feed(SimpleNamespace(type=SimpleNamespace(value="assistant.usage"), data=data))
        assert isinstance(delta, UsageDelta)
        usage = delta.usage
    return usage


def credited(nano: Any) -> dict[str, Any]:
    return {"copilot_usage": SimpleNamespace(total_nano_aiu=nano), "cost": 1.0}


def test_credits_are_what_it_costs() -> None:
    usage = used(credited(2_500_000_000), credited(500_000_000))
    assert usage.cost == pytest.approx(0.03)
    assert usage.estimate is None
    assert (usage.input_tokens, usage.output_tokens) == (200, 20)


@pytest.mark.parametrize(("multiplier", "estimate"), [(1.0, 0.04), (0.33, 0.0132), (0, 0.0), (None, 0.04), ("x", 0.04)])
def test_without_credits_the_multiplier_gives_an_estimate(multiplier: Any, estimate: float) -> None:
    usage = used({"cost": multiplier})
    assert usage.cost is None
    assert usage.estimate == pytest.approx(estimate)


def test_where_one_report_has_no_credits_the_whole_is_an_estimate() -> None:
    usage = used(credited(1_000_000_000), {"cost": 1.0})
    assert usage.cost is None
    assert usage.estimate == pytest.approx(0.05)


def test_a_service_of_ones_own_behind_it_bills_neither() -> None:
    usage = used(credited(1_000_000_000), endpoint=ENDPOINT.replace(base_url="https://models.example/v1"))
    assert (usage.cost, usage.estimate) == (None, None)


@pytest.mark.parametrize("bad", [-5, "7", True, float("nan"), 1e999, [], 10**400])
def test_counts_that_are_none_count_as_nothing(bad: Any) -> None:
    usage = used({"input_tokens": bad, "output_tokens": bad, "cost": bad, "cache_read_tokens": bad}, credited(bad))
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (100, 10, 0)
    assert usage.cost is None
