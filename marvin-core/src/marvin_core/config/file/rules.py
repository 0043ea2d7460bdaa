"""The rules in `permissions:` of config.yaml, each with examples that it must match or must not match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...util.patterns.texts import Pattern
from ...util.text import hint_at, to_json

_KEYS = ("rule", "match", "not_match")


def rule_text(entry: Any) -> str:
    """The text of a rule. Its examples are checked.

    Raises:
        ValueError: the entry is not a rule, or contradicts an example; the text says what is wrong.
    """
    if not isinstance(entry, dict):
        return _text(entry)
    for key in entry:
        if key not in _KEYS:
            hint = hint_at(str(key), _KEYS, "An entry has rule, match and not_match.")
            raise ValueError(f"unknown key {str(key)!r} of a rule. {hint}")
    text = _text(entry.get("rule"))
    _, bracket, rest = text.partition("(")
    pattern = Pattern(rest.removesuffix(")") if bracket else "*")
    for example in _examples(entry.get("match")):
        if not pattern.fits(example):
            raise ValueError(
                f"{text} does not match {example!r}, which is listed in its `match`. Correct one of the two."
            )
    for example in _examples(entry.get("not_match")):
        if pattern.fits(example):
            raise ValueError(f"{text} matches {example!r}, which is listed in its `not_match`. Correct one of the two.")
    return text


def _text(value: Any) -> str:
    text = value.strip() if isinstance(value, str) else ""
    tool, bracket, rest = text.partition("(")
    if not tool.strip() or (bracket and not rest.endswith(")")):
        raise ValueError(f"{to_json(value):.80} is not a rule. A rule is TOOL or TOOL(PATTERN).")
    return text


def _examples(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"match and not_match must be lists of text; found {to_json(value):.80}.")
    return [str(one) for one in value]
