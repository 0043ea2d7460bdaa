"""Bills: the user's own prices, the cache, the bundled table, and what is known to be unknown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Usage
from marvin_core.config import Price
from marvin_core.prices import Prices

BIG = Usage(input_tokens=100_000, output_tokens=2_000, cache_read_tokens=60_000, cache_write_tokens=10_000)


def with_rates(folder: Path, rates: Any, key: str = "p/m") -> Prices:
    """Prices whose cache file holds these rates."""
    cache = folder / "prices.json"
    cache.write_text(json.dumps({key: rates}))
    cache.chmod(0o600)
    return Prices({}, cache)


def test_what_runs_on_this_machine_costs_nothing(tmp_path: Path) -> None:
    """I11: and it is known to cost nothing, without asking any table."""
    prices = Prices({}, tmp_path / "prices.json", frozenset({"ollama"}))
    assert prices.cost("ollama", "anything", BIG) == 0.0
    assert prices.is_known("ollama", "anything")
    assert list(tmp_path.iterdir()) == []


def test_own_prices_come_first_and_those_of_a_provider_before_those_of_a_model(tmp_path: Path) -> None:
    own = {"gpt-5.1": Price(input=1.0), "mine/gpt-5.1": Price(input=2.0), "free": Price()}
    prices = Prices(own, tmp_path / "prices.json")
    usage = Usage(input_tokens=1_000_000)
    assert prices.cost("openai", "gpt-5.1", usage) == 1.0
    assert prices.cost("mine", "gpt-5.1", usage) == 2.0
    assert prices.cost("mine", "free", usage) == 0.0
    assert prices.is_known("mine", "gpt-5.1")
    assert prices.is_known("openai", "free")


def test_cached_tokens_are_billed_apart_from_fresh_ones(tmp_path: Path) -> None:
    """I11: 30,000 fresh, 60,000 read from the cache, 10,000 written to it, 2,000 out."""
    prices = with_rates(tmp_path, {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75})
    bill = (30_000 * 3.0 + 60_000 * 0.3 + 10_000 * 3.75 + 2_000 * 15.0) / 1_000_000
    assert prices.cost("p", "m", BIG) == pytest.approx(bill) == pytest.approx(0.1755)


def test_without_a_price_of_their_own_cached_tokens_cost_as_fresh_ones(tmp_path: Path) -> None:
    prices = with_rates(tmp_path, {"input": 3.0, "output": 15.0, "cache_read": None})
    assert prices.cost("p", "m", BIG) == pytest.approx((100_000 * 3.0 + 2_000 * 15.0) / 1_000_000)


def test_a_service_that_counts_more_cached_than_all_tokens_is_not_owed_money(tmp_path: Path) -> None:
    prices = with_rates(tmp_path, {"input": 3.0, "output": 0.0, "cache_read": 0.3})
    usage = Usage(input_tokens=10, cache_read_tokens=1_000_000)
    assert prices.cost("p", "m", usage) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("tokens", "bill"),
    [
        (100_000, 100_000 * 2.0 + 1_000 * 12.0),
        (200_000, 200_000 * 2.0 + 1_000 * 12.0),
        (200_001, 200_001 * 4.0 + 1_000 * 18.0),
        (1_500_000, 1_500_000 * 8.0 + 1_000 * 18.0),
    ],
)
def test_beyond_a_threshold_all_tokens_cost_the_higher_rate(tmp_path: Path, tokens: int, bill: float) -> None:
    """I11: the input decides the tier, of the output's rate too."""
    rates = {"input": [[0, 2.0], [200_000, 4.0], [1_000_000, 8.0]], "output": [[0, 12.0], [200_000, 18.0]]}
    usage = Usage(input_tokens=tokens, output_tokens=1_000)
    assert with_rates(tmp_path, rates).cost("p", "m", usage) == pytest.approx(bill / 1_000_000)


def test_no_price_is_unknown_and_remembered_as_unknown(tmp_path: Path) -> None:
    """I11: never zero."""
    prices = with_rates(tmp_path, None)
    assert prices.is_known("p", "m")
    assert prices.cost("p", "m", BIG) is None


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "gpt-5.1"),
        ("gemini", "gemini-3-pro-preview"),
        ("groq", "llama-3.3-70b-versatile"),
    ],
)
@pytest.mark.parametrize("tokens", [100_000, 200_000, 200_001])
def test_bills_agree_with_those_of_the_price_table_itself(
    tmp_path: Path, provider: str, model: str, tokens: int
) -> None:
    """I11: the default models, below and above their thresholds, with cached tokens."""
    from genai_prices import Usage as TableUsage
    from genai_prices import calc_price

    usage = Usage(input_tokens=tokens, output_tokens=2_000, cache_read_tokens=60_000)
    got = Prices({}, tmp_path / "prices.json").cost(provider, model, usage)
    table = {"gemini": "google"}.get(provider, provider)
    counted = TableUsage(input_tokens=tokens, output_tokens=2_000, cache_read_tokens=60_000)
    assert got == pytest.approx(float(calc_price(counted, model, provider_id=table).total_price))


def test_a_price_is_looked_up_in_the_table_once_and_kept(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "prices.json"
    first = Prices({}, cache)
    assert not first.is_known("openai", "gpt-5.1")
    cost = first.cost("openai", "gpt-5.1", BIG)
    assert cost is not None
    assert first.cost("openai", "no-such-model-at-all", BIG) is None
    code = (
        "import sys; from pathlib import Path; from marvin_core.messages import Usage\n"
        "from marvin_core.prices import Prices\n"
        "prices = Prices({}, Path(sys.argv[1]))\n"
        "usage = Usage(input_tokens=100_000, output_tokens=2_000, cache_read_tokens=60_000,"
        " cache_write_tokens=10_000)\n"
        "print(prices.is_known('openai', 'gpt-5.1'), prices.cost('openai', 'gpt-5.1', usage),\n"
        "      prices.cost('openai', 'no-such-model-at-all', usage), 'genai_prices' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(cache)], capture_output=True, check=True, text=True, timeout=30
    )
    assert done.stdout.split() == ["True", str(cost), "None", "False"]


@pytest.mark.parametrize("content", ["", "{", "[]", "5"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, content: str) -> None:
    cache = tmp_path / "prices.json"
    cache.write_text(content)
    cache.chmod(0o600)
    assert Prices({}, cache).cost("openai", "gpt-5.1", BIG)
    assert "openai/gpt-5.1" in json.loads(cache.read_text())


def test_a_cache_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    with_rates(tmp_path, {"input": 0.0, "output": 0.0}, "openai/gpt-5.1")
    (tmp_path / "prices.json").chmod(0o666)
    assert Prices({}, tmp_path / "prices.json").cost("openai", "gpt-5.1", BIG)


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert Prices({}, tmp_path / "cache" / "prices.json").cost("openai", "gpt-5.1", BIG)
