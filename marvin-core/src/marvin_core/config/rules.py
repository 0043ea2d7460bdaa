"""The rules below `permissions:` in config.yaml, each with the examples that it must and must not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..api.errors import ConfigError
from ..util.patterns.texts import Pattern
from ..util.text import hint_at

_KEYS = ("rule", "match", "not_match")


def checked_rule(entry: Any, place: str) -> str:
    """The text of a rule whose examples hold. `place` says where it stands, as `FILE, line N: KEY`.

    Raises:
        ConfigError: where it is no rule, or an example speaks against it.
    """
    if not isinstance(entry, dict):
        return _text(entry, place)
    for key in entry:
        if key not in _KEYS:
            hint = hint_at(str(key), _KEYS, "An entry has rule, match and not_match.")
            raise ConfigError(f"{place}: unknown key {str(key)!r} of a rule. {hint}")
    text = _text(entry.get("rule"), place)
    _, bracket, rest = text.partition("(")
    pattern = Pattern(rest.removesuffix(")") if bracket else "*")
    for example in _examples(entry.get("match"), place):
        if not pattern.fits(example):
            raise ConfigError(
                f"{place}: {text} does not fit {example!r}, which is in its `match`. Correct one of the two."
            )
    for example in _examples(entry.get("not_match"), place):
        if pattern.fits(example):
            raise ConfigError(f"{place}: {text} fits {example!r}, which its `not_match` names. Correct one of them.")
    return text


def _text(value: Any, place: str) -> str:
    text = value.strip() if isinstance(value, str) else ""
    tool, bracket, rest = text.partition("(")
    if not tool.strip() or (bracket and not rest.endswith(")")):
        raise ConfigError(f"{place} has {str(value)!r:.80}. A rule is TOOL or TOOL(PATTERN).")
    return text


def _examples(value: Any, place: str) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"{place}: match and not_match take lists of texts, found {str(value)!r:.80}.")
    return [str(one) for one in value]
