"""Bills: the user's own prices, the cache, the bundled table, and what is known to be unknown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from marvin_core import Usage
from marvin_core.api.limits import Price
from marvin_core.api.providers import ModelFacts
from marvin_core.usage.prices import Prices

BIG = Usage(input_tokens=100_000, output_tokens=2_000, cache_read_tokens=60_000, cache_write_tokens=10_000)


def with_rates(folder: Path, rates: Any, key: str = "p/m") -> Prices:
    """Prices whose cache file holds these rates."""
    cache = folder / "prices.json"
    Prices({}, cache).cost("nobody", "nothing", BIG)  # begins the file
    cache.write_text(json.dumps({**json.loads(cache.read_text()), "rates": {key: rates}}))
    return Prices({}, cache)


def test_what_runs_on_this_machine_costs_nothing(tmp_path: Path) -> None:
    """I11: and it is known to cost nothing, without asking any table."""
    prices = Prices({}, tmp_path / "prices.json")
    prices.add("ollama", "http://127.0.0.1:11434", free=True)
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


def test_a_server_on_this_machine_can_be_given_a_price(tmp_path: Path) -> None:
    """It may hand requests on to a service that costs."""
    prices = Prices({"m": Price(input=2.0)}, tmp_path / "prices.json")
    prices.add("p", "http://127.0.0.1:8080", free=True)
    assert prices.cost("p", "m", Usage(input_tokens=1_000_000)) == 2.0
    assert prices.cost("p", "other", Usage(input_tokens=1_000_000)) == 0.0


def test_providers_can_be_told_of_later(tmp_path: Path) -> None:
    prices = Prices({}, tmp_path / "prices.json")
    prices.add("ollama", "http://127.0.0.1:11434", free=True)
    assert prices.cost("ollama", "m", BIG) == 0.0
    prices.add("ollama", "https://models.example.com", free=False)
    assert prices.cost("ollama", "m", BIG) is None


def test_a_service_is_known_to_the_table_by_its_address(tmp_path: Path) -> None:
    """I11: a model costs what the service asks for it, which is not what OpenRouter asks."""
    prices = Prices({}, tmp_path / "prices.json")
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    assert prices.cost("openai-compat", "openai/gpt-oss-120b", usage) is not None
    prices.add("openai-compat", "https://api.groq.com/openai/v1", free=False)
    prices.add("mine", "https://api.groq.com/openai/v1", free=False)
    assert prices.cost("openai-compat", "llama-3.3-70b-versatile", usage) == pytest.approx(0.59 + 0.79)
    assert prices.cost("mine", "llama-3.3-70b-versatile", usage) == pytest.approx(0.59 + 0.79)
    prices.add("openai-compat", "https://models.example.com/v1", free=False)
    assert prices.cost("openai-compat", "llama-3.3-70b-versatile", usage) is None


def test_the_worst_case_writes_everything_into_a_cache_where_that_is_dearer(tmp_path: Path) -> None:
    prices = with_rates(tmp_path, {"input": 3.0, "output": 15.0, "cache_write": 3.75})
    assert prices.worst("p", "m", 100_000, 1_000) == pytest.approx(0.39)
    cheap = with_rates(tmp_path, {"input": 3.0, "output": 15.0, "cache_write": 1.0})
    assert cheap.worst("p", "m", 100_000, 1_000) == pytest.approx(0.315)
    assert cheap.worst("p", "unknown", 1, 1) is None


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


HAND_COMPUTED = [
    # 20,000 fresh at 3.00, 60,000 read at 0.30, 20,000 written at 3.75, 2,000 out at 15.00
    ("anthropic", "claude-sonnet-4-5", (100_000, 2_000, 60_000, 20_000), 0.183),
    # beyond 200,000 the long rates: 6.00, 0.60, 7.50 and 22.50
    ("anthropic", "claude-sonnet-4-5", (300_000, 2_000, 200_000, 20_000), 0.48 + 0.12 + 0.15 + 0.045),
    # 40,000 fresh at 1.25, 60,000 cached at 0.125, 2,000 out (1,500 of them reasoning) at 10.00
    ("openai", "gpt-5.1", (100_000, 2_000, 60_000, 0), 0.05 + 0.0075 + 0.02),
    ("codex", "gpt-5.1-codex", (100_000, 2_000, 60_000, 0), 0.05 + 0.0075 + 0.02),
    ("gemini", "gemini-2.5-pro", (200_000, 2_000, 0, 0), 0.25 + 0.02),
    # one token beyond: 2.50 for all of them, 0.25 for cached ones, 15.00 out
    ("gemini", "gemini-2.5-pro", (200_001, 2_000, 100_001, 0), 0.25 + 0.02500025 + 0.03),
    ("groq", "llama-3.3-70b-versatile", (100_000, 2_000, 0, 0), 0.059 + 0.00158),
    ("openai-compat", "anthropic/claude-sonnet-4.5", (100_000, 2_000, 60_000, 20_000), 0.183),
    ("copilot", "claude-haiku-4.5", (100_000, 2_000, 0, 0), 0.11),
]


@pytest.mark.parametrize(("provider", "model", "tokens", "bill"), HAND_COMPUTED)
def test_bills_agree_with_those_made_by_hand(
    tmp_path: Path, provider: str, model: str, tokens: tuple[int, int, int, int], bill: float
) -> None:
    """I11: from the price lists of the services; reasoning is part of the output and not billed again."""
    fed, out, read, written = tokens
    usage = Usage(
        input_tokens=fed, output_tokens=out, cache_read_tokens=read, cache_write_tokens=written, reasoning_tokens=1_500
    )
    assert Prices({}, tmp_path / "prices.json").cost(provider, model, usage) == pytest.approx(bill)


@pytest.mark.parametrize("model", ["no-such-model-at-all", "text-embedding-3-small", ""])
def test_a_model_without_a_price_for_its_answers_is_unknown(tmp_path: Path, model: str) -> None:
    """I11: never zero."""
    assert Prices({}, tmp_path / "prices.json").cost("openai", model, BIG) is None


def test_a_price_for_each_request_is_part_of_the_bill(tmp_path: Path) -> None:
    prices = with_rates(tmp_path, {"input": 1.0, "output": 1.0, "thousand_requests": 12.0})
    assert prices.cost("p", "m", Usage(input_tokens=1_000)) == pytest.approx(0.001 + 0.012)


@pytest.mark.parametrize("outdated", [{"table": 1}, {"since": 0}, {"since": 9e12}])
def test_prices_of_another_table_or_of_long_ago_are_looked_up_again(tmp_path: Path, outdated: dict[str, Any]) -> None:
    """Also where the clock went backwards."""
    with_rates(tmp_path, {"input": 0.0, "output": 0.0}, "openai/gpt-5.1")
    cache = tmp_path / "prices.json"
    usage = Usage(input_tokens=1_000_000)
    assert Prices({}, cache).cost("openai", "gpt-5.1", usage) == 0.0
    cache.write_text(json.dumps({**json.loads(cache.read_text()), **outdated}))
    assert Prices({}, cache).cost("openai", "gpt-5.1", usage) == pytest.approx(1.25)


def test_adding_a_model_does_not_make_old_prices_young(tmp_path: Path) -> None:
    with_rates(tmp_path, {"input": 0.0, "output": 0.0}, "openai/gpt-5.1")
    cache = tmp_path / "prices.json"
    before = json.loads(cache.read_text())["since"]
    assert Prices({}, cache).cost("openai", "gpt-4o", BIG)
    kept = json.loads(cache.read_text())
    assert kept["since"] == before
    assert set(kept["rates"]) == {"openai/gpt-5.1", "openai/gpt-4o"}


def test_a_price_is_looked_up_in_the_table_once_and_kept(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "prices.json"
    first = Prices({}, cache)
    assert not first.is_known("openai", "gpt-5.1")
    cost = first.cost("openai", "gpt-5.1", BIG)
    assert cost is not None
    assert first.cost("openai", "no-such-model-at-all", BIG) is None
    code = (
        "import sys; from pathlib import Path; from marvin_core.api.messages import Usage\n"
        "from marvin_core.usage.prices import Prices\n"
        "prices = Prices({}, Path(sys.argv[1]))\n"
        "usage = Usage(input_tokens=100_000, output_tokens=2_000, cache_read_tokens=60_000,"
        " cache_write_tokens=10_000)\n"
        "print(prices.is_known('openai', 'gpt-5.1'), prices.cost('openai', 'gpt-5.1', usage),\n"
        "      prices.cost('openai', 'no-such-model-at-all', usage), 'genai_prices' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(cache)], capture_output=True, check=True, text=True, timeout=150
    )
    assert done.stdout.split() == ["True", str(cost), "None", "False"]


@pytest.mark.parametrize("content", ["", "{", "[]", "5", "{}", '{"table": 1, "since": "long", "rates": 3}'])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, content: str) -> None:
    cache = tmp_path / "prices.json"
    cache.write_text(content)
    cache.chmod(0o600)
    assert Prices({}, cache).cost("openai", "gpt-5.1", BIG)
    assert "openai/gpt-5.1" in json.loads(cache.read_text())["rates"]


def test_a_cache_that_others_can_write_is_not_believed(tmp_path: Path) -> None:
    with_rates(tmp_path, {"input": 0.0, "output": 0.0}, "openai/gpt-5.1")
    (tmp_path / "prices.json").chmod(0o666)
    assert Prices({}, tmp_path / "prices.json").cost("openai", "gpt-5.1", BIG)


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert Prices({}, tmp_path / "cache" / "prices.json").cost("openai", "gpt-5.1", BIG)


@pytest.mark.parametrize(
    ("provider", "model", "size", "twice"),
    [
        ("anthropic", "claude-sonnet-4-5", 100_000, True),
        ("anthropic", "claude-sonnet-4-5", 300_000, True),
        ("openrouter", "anthropic/claude-sonnet-4.5", 100_000, True),
        ("openai", "gpt-5.1", 100_000, False),
        ("mine", "claude-at-home", 100_000, False),
    ],
)
def test_what_is_to_stay_in_a_cache_for_an_hour_costs_twice_as_much_as_input(
    tmp_path: Path, provider: str, model: str, size: int, twice: bool
) -> None:
    """Also in the reservation beforehand; what the user says of prices counts as it stands."""
    own = {"claude-at-home": Price(input=1.0, cache_write=1.0)}
    prices = Prices(own, tmp_path / "prices.json", long_writes=True)
    fresh = prices.cost(provider, model, Usage(input_tokens=size))
    written = prices.cost(provider, model, Usage(input_tokens=size, cache_write_tokens=size))
    assert fresh
    assert written == pytest.approx(2 * fresh if twice else fresh)
    assert prices.worst(provider, model, size, 0) == pytest.approx(written)


DAMAGED: list[Any] = [
    -1.0, "3", True, [], {}, [[0]], [[0, -1.0]], [[5, 1.0]], [["0", 1.0]], [0, 1.0],
]  # fmt: skip


@pytest.mark.parametrize("rate", DAMAGED)
@pytest.mark.parametrize("name", ["input", "output", "cache_read", "thousand_requests"])
def test_a_damaged_cache_is_looked_up_again(tmp_path: Path, name: str, rate: Any) -> None:
    """It raises nothing and bills nothing that is no price."""
    prices = with_rates(tmp_path, {"input": 3.0, "output": 15.0, name: rate}, "openai/gpt-5.1")
    usage = Usage(input_tokens=1_000_000)
    assert prices.cost("openai", "gpt-5.1", usage) == 1.25
    assert prices.worst("openai", "gpt-5.1", 1_000_000, 0) == 1.25


GATEWAY = "http://127.0.0.1:4000/v1"


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("anthropic/claude-opus-4-6", 5.0),
        ("claude-opus-4-6", 5.0),
        ("openai/gpt-5.1", 1.25),
        ("gpt-5.1", 1.25),
        ("scripted", 0.0),
        ("qwen/qwen3-32b", 0.0),
        ("llama-3.3-70b", 0.0),
        ("", 0.0),
    ],
)
def test_a_gateway_on_this_machine_costs_what_its_model_costs(tmp_path: Path, model: str, cost: float) -> None:
    """I11: by the service that makes it; what nobody sells is free, and known to be so the next time."""
    usage = Usage(input_tokens=1_000_000)
    for name in ("openai-compat", "mine"):
        prices = Prices({}, tmp_path / "prices.json")
        prices.add(name, GATEWAY, free=None)
        assert prices.cost(name, model, usage) == cost
        again = Prices({}, tmp_path / "prices.json")
        again.add(name, GATEWAY, free=None)
        assert again.is_known(name, model)


def test_what_is_said_to_be_free_or_not_goes_before_the_rule(tmp_path: Path) -> None:
    usage = Usage(input_tokens=1_000_000)
    prices = Prices({}, tmp_path / "prices.json")
    prices.add("mine", GATEWAY, free=True)
    assert prices.cost("mine", "claude-opus-4-6", usage) == 0.0
    prices.add("mine", GATEWAY, free=None)
    assert prices.cost("mine", "unheard-of", usage) == 0.0
    prices.add("mine", GATEWAY, free=False)
    assert prices.cost("mine", "unheard-of", usage) is None


def test_models_that_nobody_sells_are_found_without_importing_the_table(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from marvin_core import Usage
from marvin_core.usage.prices import Prices

prices = Prices({}, Path(sys.argv[1]))
prices.add("mine", "http://127.0.0.1:1/v1", free=None)
assert prices.cost("mine", "qwen/qwen3-32b", Usage(input_tokens=1)) == 0.0
assert "genai_prices" not in sys.modules
assert prices.cost("mine", "claude-opus-4-6", Usage(input_tokens=1))
assert "genai_prices" in sys.modules
"""
    subprocess.run([sys.executable, "-P", "-c", code, str(tmp_path / "prices.json")], check=True, timeout=100)


@pytest.mark.parametrize("provider", ["openai", "codex"])
def test_what_openai_writes_into_its_cache_costs_more_where_the_table_says_so(tmp_path: Path, provider: str) -> None:
    """From gpt-5.6 on a write is billed at 1.25 times the input; before, it is input as any other."""
    prices = Prices({}, tmp_path / "prices.json")
    written = Usage(input_tokens=100_000, cache_write_tokens=100_000)
    fresh = Usage(input_tokens=100_000)
    newer, older = "gpt-5.6-sol", "gpt-5.1"
    assert prices.cost(provider, newer, written) == pytest.approx(1.25 * (prices.cost(provider, newer, fresh) or 0))
    assert prices.worst(provider, newer, 100_000, 0) == prices.cost(provider, newer, written)
    assert prices.cost(provider, older, written) == prices.cost(provider, older, fresh)


def listing(**facts: Any) -> Callable[[str, str], ModelFacts]:
    return lambda provider, model: ModelFacts(**facts) if provider == "far" else ModelFacts()


@pytest.mark.parametrize(
    ("facts", "model", "usage", "cost"),
    [
        ({"input": 2.0, "output": 8.0}, "new", Usage(input_tokens=1_000_000, output_tokens=500_000), 6.0),
        ({"input": 2.0, "output": 8.0}, "new", Usage(input_tokens=1_000_000, cache_read_tokens=1_000_000), 2.0),
        ({"input": 2.0, "output": 8.0}, "new", Usage(input_tokens=1_000_000, cache_write_tokens=1_000_000), 2.5),
        ({"input": 2.0, "output": 8.0, "cache_write": 4.0}, "new", Usage(input_tokens=5, cache_write_tokens=5), 2e-5),
        ({"input": 2.0, "output": 8.0, "cache_write": 0.0}, "new", Usage(input_tokens=5, cache_write_tokens=5), 1e-5),
        ({"input": 0.0, "output": 0.0, "request": 0.005}, "new:free", Usage(input_tokens=5), 0.005),
        ({"input": 0.0, "output": 0.0}, "new:free", Usage(input_tokens=1_000_000), 0.0),
        ({"input": 0.0, "output": 0.0}, "new", Usage(input_tokens=1_000_000), None),
        ({"input": 2.0}, "new", Usage(input_tokens=1_000_000), None),
        ({}, "new", Usage(input_tokens=1_000_000), None),
        ({"input": 99.0, "output": 99.0}, "gpt-5.1", Usage(input_tokens=1_000_000), 1.25),
        ({"input": 99.0, "output": 99.0}, "mine", Usage(input_tokens=1_000_000), 3.0),
    ],
)
def test_what_the_table_does_not_know_costs_what_the_service_lists(
    tmp_path: Path, facts: Mapping[str, Any], model: str, usage: Usage, cost: float | None
) -> None:
    """I11: config.yaml goes before the table, the table before the list; nothing for nothing is no price."""
    prices = Prices({"mine": Price(input=3.0, output=3.0)}, tmp_path / "prices.json", listing(**facts))
    prices.add("far", "https://api.openai.com/v1", free=False)
    assert prices.cost("far", model, usage) == (None if cost is None else pytest.approx(cost))
    assert Prices({}, tmp_path / "prices.json").cost("other", model, usage) is None or model == "gpt-5.1", "not kept"


def test_a_gateway_on_this_machine_costs_what_it_lists_where_nobody_sells_its_model(tmp_path: Path) -> None:
    usage = Usage(input_tokens=1_000_000)
    prices = Prices({}, tmp_path / "prices.json", listing(input=2.0, output=2.0))
    prices.add("far", GATEWAY, free=None)
    assert prices.cost("far", "unheard-of", usage) == 2.0
    assert prices.cost("far", "gpt-5.1", usage) == 1.25
    prices.add("far", GATEWAY, free=True)
    assert prices.cost("far", "unheard-of", usage) == 0.0
