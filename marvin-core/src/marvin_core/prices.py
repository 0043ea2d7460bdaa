"""The price of a model request: from config.yaml, a small cache, else the bundled price table."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .config import Price
from .files import read_trusted_json, write_cache
from .messages import Usage

_PER = 1_000_000
_KEPT = 7 * 24 * 3600
"""Seconds after which looked-up prices are looked up again."""
_TABLE_NAMES = {"gemini": "google", "codex": "openai", "openai-compat": "openrouter"}
"""Where the price table names a provider differently."""


class Prices:
    """Looks prices up.

    `local` holds the providers whose requests cost nothing, since they run on this machine. A model
    is looked up in the table once and then kept in the cache file, since the table takes most of a
    second to import.
    """

    def __init__(self, own: Mapping[str, Price], cache: Path, local: frozenset[str] = frozenset()) -> None:
        self._own = own
        self._cache = cache
        self._local = local
        self._known: dict[str, Any] | None = None

    def cost(self, provider: str, model: str, usage: Usage) -> float | None:
        """USD for one request; None where no price is known."""
        if provider in self._local:
            return 0.0
        own = self._own.get(f"{provider}/{model}") or self._own.get(model)
        if own is not None:
            return _bill(own.as_dict(), usage)
        rates = self._rates(provider, model)
        return None if rates is None else _bill(rates, usage)

    def is_known(self, provider: str, model: str) -> bool:
        """Whether the price is at hand, without importing the table."""
        own = f"{provider}/{model}" in self._own or model in self._own
        return provider in self._local or own or f"{provider}/{model}" in self._kept()

    def _kept(self) -> dict[str, Any]:
        if self._known is None:
            kept = read_trusted_json(self._cache) if self._is_fresh() else None
            self._known = kept if isinstance(kept, dict) else {}
        return self._known

    def _is_fresh(self) -> bool:
        """Whether the cache was begun not long ago: the table behind it is updated with the library."""
        try:
            return time.time() - self._cache.stat().st_mtime < _KEPT
        except OSError:
            return False

    def _rates(self, provider: str, model: str) -> Mapping[str, Any] | None:
        known = self._kept()
        key = f"{provider}/{model}"
        if key not in known:
            known[key] = _table_rates(_TABLE_NAMES.get(provider, provider), model)
            write_cache(self._cache, known)
        rates: Mapping[str, Any] | None = known[key]
        return rates


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
    )
    return total / _PER


def _table_rates(provider: str, model: str) -> dict[str, Any] | None:
    """The rates of the bundled table, in USD per million tokens; a tiered one is [[start, rate], ...]."""
    from datetime import UTC, datetime

    from genai_prices.data_snapshot import get_snapshot

    try:
        _, entry = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    price = entry.get_prices(datetime.now(UTC))
    fields = {
        "input": "input_mtok",
        "output": "output_mtok",
        "cache_read": "cache_read_mtok",
        "cache_write": "cache_write_mtok",
    }
    rates = {name: _rate(getattr(price, field, None)) for name, field in fields.items()}
    return rates if rates["input"] is not None or rates["output"] is not None else None


def _rate(value: Any) -> Any:
    if value is None:
        return None
    if hasattr(value, "tiers"):
        return [[0, float(value.base)], *([tier.start, float(tier.price)] for tier in value.tiers)]
    return float(value)
