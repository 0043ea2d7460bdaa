"""Settings that a flag, a variable and config.yaml can say, or that take a few words only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from ..api.config import SandboxUse, ToolSearchUse
from ..api.errors import ConfigError, UsageError
from ..util.numbers import amount

if TYPE_CHECKING:
    from collections.abc import Sequence

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
            f"Agents may be nested {MAX_DEPTH} levels deep; this one would be at level {found}. Do the work in the "
            "agent that started it."
        )
    return max(found, 0)


def sandbox_use(flag: str | None, variable: str, setting: SandboxUse) -> SandboxUse:
    """Whether commands run in a sandbox, by --sandbox, else MARVIN_SANDBOX, else `sandbox:` of config.yaml.

    Raises:
        ConfigError: where MARVIN_SANDBOX is none of auto, required and off.
    """
    return _chosen("sandbox", get_args(SandboxUse), flag, variable) or setting


def tool_search_use(flag: str | None, variable: str, setting: ToolSearchUse) -> ToolSearchUse:
    """Whether tools may wait until a model looks for them, by --tool-search, else MARVIN_TOOL_SEARCH, else config.yaml.

    Raises:
        ConfigError: where MARVIN_TOOL_SEARCH is none of on, off and auto.
    """
    return _chosen("tool-search", get_args(ToolSearchUse), flag, variable) or setting


def _chosen(word: str, allowed: Sequence[str], flag: str | None, variable: str) -> Any:
    """What was chosen of several words, by a flag, else a variable; None where nothing was."""
    for name, value in ((f"--{word}", flag), (f"MARVIN_{word.upper().replace('-', '_')}", variable)):
        if value:
            if value not in allowed:
                raise ConfigError(f"{name} is {value!r}; use {', '.join(allowed[:-1])} or {allowed[-1]}.")
            return value
    return None


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
    text = f"{name} is {value!r}; use an amount in US dollars, 0 or more, as in 2.50."
    raise ConfigError(text) if flag is None else UsageError(text)


def screen_reader_use(flag: bool, variable: str, setting: bool) -> bool:
    """Whether the chat is written for a screen reader: the flag, else the variable, else config.yaml.

    Raises:
        ConfigError: where the variable says neither on nor off.
    """
    if variable not in ("", "0", "1", "on", "off"):
        raise ConfigError(f"MARVIN_SCREEN_READER is {variable!r}; it takes on or off.")
    return flag or (variable in ("1", "on") if variable else setting)
