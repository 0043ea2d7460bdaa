"""The price of a model request: from config.yaml, a small cache, or the bundled price table."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ..api.limits import Price
from ..api.messages import Usage
from ..api.providers import ModelFacts
from ..util.numbers import amount
from ..util.state_files import read_trusted_json, write_cache

_PER = 1_000_000
_KEPT = 7 * 24 * 3600
"""The number of seconds after which a price is looked up again: the table contains prices that change on a date."""
_TABLE_NAMES = {"gemini": "google", "codex": "openai", "openai-compat": "openrouter", "copilot": "github-copilot"}
"""Providers with another name in the price table."""
_FREE: Mapping[str, Any] = {"input": 0.0, "output": 0.0}
_DEAREST_WRITE = 1.25
"""The price of writing into Anthropic's cache, relative to that of input: the maximum of all services."""
_MAKER = b"\n        model_match="
_NEXT = rb"\n        \w"
_CLAUSE = r"\b(contains|starts_with|ends_with|equals|regex)='((?:[^'\\]|\\.)*)'"
"""The pattern of the names of models by which the table identifies their makers."""
_used: set[Path] = set()
"""The newer tables that are already in use."""
_ANYWHERE = "openai-compat"
"""The provider for any service, which depends on the address."""


Listed: TypeAlias = Callable[[str, str], ModelFacts]
"""Returns the facts about a model from the list of a service, if it is already known."""


class Prices:
    """Looks up prices.

    The price of a model is looked up in the table once, and then cached in a file, since importing the table takes most
    of a second. The cache is valid for a week, or until the table changes. With `long_writes`, data stay in Anthropic's
    cache for an hour, which costs twice as much as input. `listed` gives prices from a service's own list for models
    that the table lacks; no service is contacted for it.
    """

    def __init__(
        self, own: Mapping[str, Price], cache: Path, listed: Listed | None = None, *, long_writes: bool = False
    ) -> None:
        self._own = own
        self._cache = cache
        self._listed = listed
        self._free: dict[str, bool | None] = {}
        self._long_writes = long_writes
        self._addresses: dict[str, str] = {}
        self._known: dict[str, Any] | None = None
        self._since = 0.0

    def add(self, provider: str, base_url: str, *, free: bool | None) -> None:
        """Set the address of a provider, by which the table identifies it, and whether it is free.

        None for `free` means the price of the service that makes the model; a model that no service sells is free.
        """
        self._addresses[provider] = base_url
        self._free[provider] = free

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        """USD for one request; None if no price is known."""
        rates = self._rates(provider, model)
        return None if rates is None else _bill(rates, usage)

    def worst(self, provider: str, model: str, input_tokens: int, output_tokens: int) -> float | None:
        """The maximum price in USD of a request of this size: with nothing read from a cache, or everything written to
        one."""
        fresh = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        written = fresh.replace(cache_write_tokens=input_tokens)
        costs = [self.cost(provider, model, usage) for usage in (fresh, written)]
        known = [cost for cost in costs if cost is not None]
        return max(known, default=None)

    def is_known(self, provider: str, model: str) -> bool:
        """Whether the price is known without importing the table."""
        return self._given(provider, model) is not None or self._key(provider, model) in self._kept()

    def _given(self, provider: str, model: str) -> Mapping[str, Any] | None:
        """The price in config.yaml; otherwise 0, if the provider is free."""
        own = self._own.get(f"{provider}/{model}") or self._own.get(model)
        if own is not None:
            return own.as_dict()
        return {} if self._free.get(provider) else None

    def _is_by_model(self, provider: str) -> bool:
        """Whether the model decides if this provider is free."""
        return self._free.get(provider, False) is None

    def _key(self, provider: str, model: str) -> str:
        address = self._addresses.get(provider, "")
        key = f"{provider}/{model} {address}".rstrip()
        return f"{key} by model" if self._is_by_model(provider) else key

    def _kept(self) -> dict[str, Any]:
        if self._known is None:
            kept = read_trusted_json(self._cache)
            current = (
                isinstance(kept, dict)
                and kept.get("table") == table_stamp(self._cache.parent)
                and _is_fresh(kept.get("since"))
            )
            rates = kept.get("rates") if current else None
            found = rates if isinstance(rates, dict) else {}
            self._known = {key: value for key, value in found.items() if value is None or _are_rates(value)}
            self._since = float(kept["since"]) if self._known else time.time()
        return self._known

    def _rates(self, provider: str, model: str) -> Mapping[str, Any] | None:
        given = self._given(provider, model)
        if given is not None:
            return given
        known = self._kept()
        key = self._key(provider, model)
        if key not in known:
            known[key] = self._looked_up(provider, model)
            write_cache(self._cache, {"table": table_stamp(self._cache.parent), "since": self._since, "rates": known})
        rates: Mapping[str, Any] | None = known[key]
        if self._listed is not None and (rates is None or (rates == _FREE and self._is_by_model(provider))):
            rates = listed_rates(self._listed(provider, model), model) or rates
        if rates and self._long_writes and "claude" in model:
            return {**rates, "cache_write": _twice(rates["input"])}
        return rates

    def _looked_up(self, provider: str, model: str) -> Mapping[str, Any] | None:
        try:
            use_updated_table(self._cache.parent)
            if self._is_by_model(provider):
                return table_rates(makers_entry(model) if _may_be_sold(model) else None) or _FREE
            return table_rates(table_entry(provider, self._addresses.get(provider, ""), model))
        except Exception:  # a broken table has no price, and must not end a run
            return None


def listed_rates(facts: ModelFacts, model: str) -> Mapping[str, Any] | None:
    """The rates in a service's list for a model; None if it has none that are reliable.

    A price of 0 counts only if the name says so, like `:free` of OpenRouter: gateways use it for unknown prices. If the
    price of writing to a cache is missing, that of the most expensive known service is used.
    """
    if facts.input is None or facts.output is None or not (facts.input or facts.output or model.endswith(":free")):
        return None
    write = facts.input * _DEAREST_WRITE if facts.cache_write is None else max(facts.cache_write, facts.input)
    requests = (facts.request or 0.0) * 1_000
    return {"input": facts.input, "output": facts.output, "cache_write": write, "thousand_requests": requests}


def _twice(rate: Any) -> Any:
    return [[start, 2 * price] for start, price in rate] if isinstance(rate, list) else 2 * rate


def _is_fresh(since: Any) -> bool:
    return amount(since) is not None and 0 <= time.time() - since < _KEPT


def _are_rates(value: Any) -> bool:
    """Whether this can be a cached result for a model; the file may be damaged."""
    if not isinstance(value, dict) or value.get("input") is None or value.get("output") is None:
        return False
    return all(rate is None or amount(rate) is not None or _are_tiers(rate) for rate in value.values())


def _are_tiers(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    pairs = [isinstance(tier, list) and len(tier) == 2 and None not in map(amount, tier) for tier in value]
    return all(pairs) and any(not start for start, _ in value)


def updated_table(cache_folder: Path) -> Path:
    """The file of the newer table."""
    return cache_folder / "price_table.json"


def bundled_stamp() -> int:
    """When the bundled table was installed, found without importing it; 0 if there is none."""
    return max(map(stamp_of, _table_files()), default=0)


def table_stamp(cache_folder: Path) -> int:
    """A value that changes with the table in use: the newer one of the two."""
    return max(bundled_stamp(), stamp_of(updated_table(cache_folder)))


def stamp_of(path: str | Path) -> int:
    """When a file was changed last, in nanoseconds; 0 if there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def use_updated_table(cache_folder: Path) -> None:
    """Use the newer table instead of the bundled one, if it exists and is not damaged."""
    path = updated_table(cache_folder)
    if path in _used or stamp_of(path) <= bundled_stamp():
        return
    _used.add(path)
    try:
        take_table(read_trusted_json(path), cache_folder)
    except Exception:  # whatever is wrong with it, the bundled one is right
        return


def take_table(table: Any, cache_folder: Path) -> int:
    """Use this newer table from now on; returns the number of its services. Raises an error if it is not valid."""
    from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
    from genai_prices.types import (
        _providers_from_raw,
    )  # the library uses it only to read its own update

    providers = _providers_from_raw(table)
    if not providers:
        raise ValueError("it contains no service")
    set_custom_snapshot(DataSnapshot(providers=providers, from_auto_update=True))
    _used.add(updated_table(cache_folder))
    return len(providers)


def _table_files() -> list[str]:
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("genai_prices")
    return [f"{folder}/data.py" for folder in (spec.submodule_search_locations if spec else None) or []]


def _may_be_sold(model: str) -> bool:
    """Whether the table may know who sells a model; found without importing it, which takes most of a second."""
    name = model.rpartition("/")[2].lower()
    try:
        parts = [part for path in _table_files() for part in Path(path).read_bytes().split(_MAKER)[1:]]
    except OSError:
        return True
    clauses = [
        clause
        for part in parts
        for clause in re.findall(_CLAUSE, re.split(_NEXT, part, maxsplit=1)[0].decode("utf-8", "replace"))
    ]
    return not clauses or any(_fits(kind, value, name) for kind, value in clauses)


def _fits(kind: str, value: str, name: str) -> bool:
    if kind == "regex":
        return bool(re.search(value.replace("\\\\", "\\"), name, re.IGNORECASE))
    return value.lower() in name  # for the beginning, the end and the whole as well: it may be more than it must


def _bill(rates: Mapping[str, Any], usage: Usage) -> float:
    def rate(name: str, fallback: float) -> float:
        value = rates.get(name)
        if isinstance(value, list):  # tiers: the rate of the highest start that the input goes beyond
            value = [price for start, price in sorted(value) if not start or usage.input_tokens > start][-1]
        return fallback if value is None else float(value)

    full = rate("input", 0.0)
    fresh = usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens
    total = (
        max(fresh, 0) * full
        + usage.cache_read_tokens * rate("cache_read", full)
        + usage.cache_write_tokens * rate("cache_write", full)
        + usage.output_tokens * rate("output", 0.0)
        + rate("thousand_requests", 0.0) * _PER / 1_000
    )
    return total / _PER


def makers_entry(model: str) -> Any:
    """The table's entry for a model at the service named before the model's name, else at the service that makes it.

    None if neither sells it.
    """
    from genai_prices.data_snapshot import get_snapshot

    service, _, name = model.rpartition("/")
    ways = [(name, service.rpartition("/")[2])] if service else []
    for reference, provider in (*ways, (name, None)):
        try:
            entry = get_snapshot().find_provider_model(reference, None, provider, None)[1]
        except LookupError:
            continue
        if table_rates(entry) is not None:
            return entry
    return None


def table_rates(entry: Any) -> dict[str, Any] | None:
    """The rates of an entry of the bundled table in USD per million tokens; tiered ones are [[start, rate], ...].

    Without a price for input or for output, the price of a model is unknown.
    """
    from datetime import UTC, datetime

    if entry is None:
        return None
    price = entry.get_prices(datetime.now(UTC))
    fields = {
        "input": "input_mtok",
        "output": "output_mtok",
        "cache_read": "cache_read_mtok",
        "cache_write": "cache_write_mtok",
        "thousand_requests": "requests_kcount",
    }
    rates = {name: _rate(getattr(price, field, None)) for name, field in fields.items()}
    return None if rates["input"] is None or rates["output"] is None else rates


def table_entry(provider: str, address: str, model: str) -> Any:
    """The entry of the price table for a model, or None. It is found by the provider's name, else by its address."""
    from genai_prices.data_snapshot import get_snapshot

    find = get_snapshot().find_provider_model
    ways: list[tuple[str | None, str | None]]
    ways = [(_TABLE_NAMES.get(provider, provider), None)] if provider != _ANYWHERE or not address else []
    ways += [(None, address)] if address else []
    for name, url in ways:
        try:
            return find(model, None, name, url)[1]
        except LookupError:
            continue
    return None


def _rate(value: Any) -> Any:
    if value is None:
        return None
    if hasattr(value, "tiers"):
        return [[0, float(value.base)], *([tier.start, float(tier.price)] for tier in value.tiers)]
    return float(value)
