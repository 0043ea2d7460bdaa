"""Settings that a flag, a variable and config.yaml can say, or that take a few words only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, get_args

from ..api.config import SandboxUse, ToolSearchUse
from ..api.errors import ConfigError, UsageError
from ..util.numbers import amount

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        raise ConfigError(
            f"Agents may be nested {MAX_DEPTH} deep; this one would be at depth {found}. "
            "Do the work in the agent that started it."
        )
    return max(found, 0)


def cache_lifetime(value: str) -> CacheLifetime:
    """`cache:` of config.yaml.

    Raises:
        ConfigError: where it is no lifetime that there is.
    """
    if value not in ("", "5m", "1h"):
        raise ConfigError(f"cache in config.yaml is {value!r}; it takes 5m or 1h.")
    return cast("CacheLifetime", value)


def sandbox_use(flag: str | None, variable: str, setting: str) -> SandboxUse:
    """Whether commands run in a sandbox, by --sandbox, else MARVIN_SANDBOX, else `sandbox:` of config.yaml.

    Raises:
        ConfigError: where it is none of auto, required and off.
    """
    return cast("SandboxUse", _chosen("sandbox", get_args(SandboxUse), flag, variable, setting))


def tool_search_use(flag: str | None, variable: str, setting: str) -> ToolSearchUse:
    """Whether tools may wait until a model looks for them, by --tool-search, else MARVIN_TOOL_SEARCH, else config.yaml.

    Raises:
        ConfigError: where it is none of on, off and auto.
    """
    return cast("ToolSearchUse", _chosen("tool-search", get_args(ToolSearchUse), flag, variable, setting))


def _chosen(word: str, allowed: Sequence[str], flag: str | None, variable: str, setting: str) -> str:
    """What was chosen of several words, by a flag, else a variable, else config.yaml; `auto` where nothing was."""
    key = word.replace("-", "_")
    places = ((f"--{word}", flag), (f"MARVIN_{key.upper()}", variable), (f"{key} in config.yaml", setting))
    for name, value in places:
        if value:
            if value not in allowed:
                raise ConfigError(f"{name} is {value!r}; it takes {', '.join(allowed[:-1])} or {allowed[-1]}.")
            return value
    return "auto"


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


def screen_reader_use(flag: bool, variable: str, settings: Mapping[str, Any]) -> bool:
    """Whether the chat is written for a screen reader: the flag, else the variable, else config.yaml.

    Raises:
        ConfigError: where one of them says neither on nor off.
    """
    said = {"MARVIN_SCREEN_READER": variable, "screen_reader in config.yaml": settings.get("screen_reader", "")}
    for name, value in said.items():
        if value not in ("", "0", "1", "on", "off"):
            raise ConfigError(f"{name} is {value!r}; it takes on or off.")
    return flag or next((value in ("1", "on") for value in said.values() if value), False)
