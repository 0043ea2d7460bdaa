"""What a summary uses is counted, tries that failed and models that gave up among it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from marvin_core import MarvinError, Overloaded, Stop, StreamBroken, TextDelta, Usage, UsageDelta
from marvin_core.api.messages import user
from marvin_core.api.providers import Provider
from marvin_core.api.timeouts import Timeouts
from marvin_core.conversation.summarizer import Summarizer
from marvin_core.providers.resilient import NoAlternatives, Resilient
from marvin_core.testing import ScriptedProvider
from marvin_core.usage.meter import UsageMeter
from marvin_core.util.bus import Bus
from tests.support.engine import run

TIMEOUTS = Timeouts(retry_backoff=(0.0, 0.0))
USED = UsageDelta(usage=Usage(input_tokens=100, output_tokens=10))


class Other(NoAlternatives):
    def __init__(self, other: Provider) -> None:
        self._other = other

    async def fallbacks(self, failed: Provider) -> AsyncIterator[Provider]:
        yield self._other


def summary(provider: Provider) -> tuple[str, UsageMeter]:
    meter = UsageMeter(lambda provider, model, usage: usage.input_tokens * 0.01, lambda provider, model: True)
    summarizer = Summarizer(provider=provider, meter=meter, bus=Bus(), limit=50.0)
    return run(summarizer.summary([user("Build the parser.")], 10_000)), meter


def test_a_try_that_failed_is_counted_beside_the_one_that_did_not() -> None:
    """I11: the service bills both."""
    provider = ScriptedProvider(
        [USED, StreamBroken("cut off")],
        [StreamBroken("no answer")],
        [TextDelta(text="Summed up."), USED, Stop(reason="stop")],
    )
    text, meter = summary(Resilient(provider, TIMEOUTS))
    assert text == "Summed up."
    assert meter.summary()["llm_turns"] == 3
    assert meter.summary()["session_cost"] is None  # of the second nobody knows
    assert meter.known_cost() == 2.0


def test_each_model_is_counted_under_its_own_name() -> None:
    dear = ScriptedProvider([TextDelta(text="So"), USED, Overloaded("gone", status=503)], name="dear", model="large")
    cheap = ScriptedProvider([TextDelta(text="Summed up."), USED, Stop(reason="stop")], name="cheap", model="small")
    text, meter = summary(Resilient(dear, TIMEOUTS, Other(cheap), restarts=True))
    assert text == "Summed up."
    assert {name: list(models) for name, models in meter.by_provider().items()} == {
        "dear": ["large"],
        "cheap": ["small"],
    }
    assert meter.known_cost() == 1.0
    assert meter.summary()["session_cost"] is None  # of the answer that broke off, only the beginning was counted


def test_a_summary_that_fails_is_counted() -> None:
    with pytest.raises(MarvinError):
        summary(ScriptedProvider([USED, StreamBroken("cut off")]))
