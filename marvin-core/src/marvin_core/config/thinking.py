"""The thinking levels of models, from flags, a variable and config.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast, get_args

from ..api.errors import ConfigError, MarvinError, UsageError
from ..api.providers import ThinkingLevel
from .tiers import ALIASES, TIERS

if TYPE_CHECKING:
    from ..api.config import Source
    from .file.sections import FileSettings

_LEVELS: Sequence[ThinkingLevel] = get_args(ThinkingLevel)


def thinking_fields(flags: Sequence[str], variable: str | None, settings: FileSettings, model: str) -> dict[str, Any]:
    """The thinking level of the run, its origin, and the levels of tiers. `model` is the initial model of the run.

    Raises:
        UsageError, ConfigError: a level or a tier does not exist.
    """
    bare, by_flag = "", {}
    for value in flags:
        tier, equals, level = value.partition("=")
        if equals:
            by_flag[_tier(tier, f"--thinking {value}", UsageError)] = _level(level, f"--thinking {value}", UsageError)
        else:
            bare = _level(value, "--thinking", UsageError)
    by_file = {ALIASES.get(name, name): level for name, level in settings.tier_thinking.items()}
    tier = ALIASES.get(model, "")
    candidates: tuple[tuple[str | None, Source], ...] = (
        (by_flag.get(tier), "flag"),
        (bare, "flag"),
        (_level(variable, "MARVIN_THINKING", ConfigError) if variable else None, "environment"),
        (by_file.get(tier), "file"),
        (settings.thinking, "file"),
    )
    chosen, source = next((candidate for candidate in candidates if candidate[0]), ("off", ""))
    return {"thinking": chosen, "thinking_from": source, "tier_thinking": {**by_file, **by_flag}}


def _tier(name: str, place: str, error: type[MarvinError]) -> str:
    tier = ALIASES.get(name, name)
    if tier not in TIERS:
        raise error(f"{place}: unknown tier {name!r}. Known: {', '.join([*TIERS, *ALIASES])}.")
    return tier


def _level(value: str, place: str, error: type[MarvinError]) -> ThinkingLevel:
    if value not in _LEVELS:
        raise error(f"{place}: unknown thinking level {value!r}. Use one of: {', '.join(_LEVELS)}.")
    return cast("ThinkingLevel", value)
