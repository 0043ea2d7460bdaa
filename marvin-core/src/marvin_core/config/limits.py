"""Settings that a flag, a variable or config.yaml sets, and settings with a few valid words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from ..api.config import SandboxUse, ToolSearchUse
from ..api.errors import ConfigError, UsageError
from ..util.numbers import amount

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_DEPTH = 5


def depth(value: str) -> int:
    """The nesting depth of this agent, from MARVIN_DEPTH.

    Raises:
        ConfigError: the value is not a number, or exceeds the maximum depth.
    """
    try:
        found = int(value or 0)
    except ValueError:
        raise ConfigError(f"MARVIN_DEPTH is {value!r}; it must be a whole number. Unset it.") from None
    if found > MAX_DEPTH:
        raise ConfigError(
            f"Agents may be nested {MAX_DEPTH} levels deep; this one would be at level {found}. Do the work in the "
            "agent that started it."
        )
    return max(found, 0)


def sandbox_use(flag: str | None, variable: str, setting: SandboxUse) -> SandboxUse:
    """Whether commands run in a sandbox: from --sandbox, else MARVIN_SANDBOX, else `sandbox:` of config.yaml.

    Raises:
        ConfigError: MARVIN_SANDBOX is not auto, required or off.
    """
    return _chosen("sandbox", get_args(SandboxUse), flag, variable) or setting


def tool_search_use(flag: str | None, variable: str, setting: ToolSearchUse) -> ToolSearchUse:
    """Whether tools are hidden until a search: from --tool-search, else MARVIN_TOOL_SEARCH, else config.yaml.

    Raises:
        ConfigError: MARVIN_TOOL_SEARCH is not on, off or auto.
    """
    return _chosen("tool-search", get_args(ToolSearchUse), flag, variable) or setting


def _chosen(word: str, allowed: Sequence[str], flag: str | None, variable: str) -> Any:
    """The chosen word, from a flag or else a variable; None if neither is set."""
    for name, value in ((f"--{word}", flag), (f"MARVIN_{word.upper().replace('-', '_')}", variable)):
        if value:
            if value not in allowed:
                raise ConfigError(f"{name} is {value!r}; use {', '.join(allowed[:-1])} or {allowed[-1]}.")
            return value
    return None


def max_cost(flag: str | None, variable: str | None) -> float | None:
    """The cost ceiling in USD, from --max-cost or else MARVIN_MAX_COST; None without one.

    Raises:
        UsageError, ConfigError: the value is not an amount.
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
    text = f"{name} is {value!r}; use an amount in US dollars, 0 or more, as in 2.50."
    raise ConfigError(text) if flag is None else UsageError(text)


def screen_reader_use(flag: bool, variable: str, setting: bool) -> bool:
    """Whether the chat is made for a screen reader: from the flag, else the variable, else config.yaml.

    Raises:
        ConfigError: the variable is neither on nor off.
    """
    if variable not in ("", "0", "1", "on", "off"):
        raise ConfigError(f"MARVIN_SCREEN_READER is {variable!r}; it takes on or off.")
    return flag or (variable in ("1", "on") if variable else setting)
