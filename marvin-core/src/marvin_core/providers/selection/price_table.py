"""Facts about models from the bundled price table, whose import takes most of a second."""

from __future__ import annotations

from pathlib import Path

from ...api.providers import ModelFacts
from ...usage.prices import makers_entry, table_entry, table_rates, use_updated_table


def table_facts(provider: str, address: str, model: str, cache_folder: Path, *, by_maker: bool = False) -> ModelFacts:
    """The window and the prices of a model in the table; nothing if the table does not have it.

    With `by_maker`, the facts of the maker's own service, whichever service is used.
    """
    use_updated_table(cache_folder)
    entry = makers_entry(model) if by_maker else table_entry(provider, address, model)
    if entry is None:
        return ModelFacts()
    rates = table_rates(entry) or {}
    window = entry.context_window
    return ModelFacts(
        window=window if isinstance(window, int) and window > 0 else None,
        input=_base(rates.get("input")),
        output=_base(rates.get("output")),
    )


def _base(rate: object) -> float | None:
    """A rate, or the lowest one of its tiers."""
    if isinstance(rate, list):
        rate = rate[0][1]
    return float(rate) if isinstance(rate, (int, float)) else None
