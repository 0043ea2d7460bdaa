"""How deep and how dear a run may get, and how long services keep what they read, as the user says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..api.errors import ConfigError, UsageError
from ..util.numbers import amount

if TYPE_CHECKING:
    from ..api.providers import CacheLifetime

MAX_DEPTH = 5


def depth(value: str) -> int:
    """MARVIN_DEPTH: how deep this agent is nested.

    Raises:
        ConfigError: where it is no number, or deeper than agents may be.
    """
    try:
        found = int(value or 0)
    except ValueError:
        raise ConfigError(f"MARVIN_DEPTH is {value!r}; it must be a whole number. Unset it.") from None
    if found > MAX_DEPTH:
        raise ConfigError(f"Agents may be nested {MAX_DEPTH} deep; this one would be number {found}. Do the work here.")
    return max(found, 0)


def cache_lifetime(value: str) -> CacheLifetime:
    """`cache:` of config.yaml.

    Raises:
        ConfigError: where it is no lifetime that there is.
    """
    if value not in ("", "5m", "1h"):
        raise ConfigError(f"cache in config.yaml is {value!r}; it takes 5m or 1h.")
    return cast("CacheLifetime", value)


def max_cost(flag: str | None, variable: str | None) -> float | None:
    """The cost ceiling in USD, by --max-cost or else MARVIN_MAX_COST; None without one.

    Raises:
        UsageError, ConfigError: where it is no amount.
    """
    name, value = ("--max-cost", flag) if flag is not None else ("MARVIN_MAX_COST", variable or "")
    if not value and flag is None:
        return None
    try:
        dollars = amount(float(value))
    except ValueError:
        dollars = None
    if dollars is not None:
        return dollars
    text = f"{name} is {value!r}; it takes US dollars, from 0 on, as in 2.50."
    raise ConfigError(text) if flag is None else UsageError(text)
