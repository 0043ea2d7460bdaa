"""Converts a model's words for the parts of a finding."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .findings import Finding, Severity, worst

CLAIM_LIMIT = 2_000
EVIDENCE_LIMIT = 2_000
"""Characters of each part that are kept."""
_SHORT_LIMIT = 200
_VALUES = 20
_UNSTATED: Severity = "high"
"""The severity of a finding without one: omitting it must not make it harmless."""

_SAID: dict[Severity, str] = {
    "critical": "critical crit blocker blocking severe fatal p0 s0 s1 sev0 sev1 🚨",
    "high": "high major important serious p1 s2 sev2 🔴 🟠",
    "medium": "medium med moderate p2 s3 sev3 🟡",
    "low": "low minor trivial nit nitpick info informational suggestion cosmetic p3 p4 s4 sev4 🟢 🔵",
}
_SAID_ALONE: dict[Severity, str] = {
    "high": "error must",
    "medium": "normal warning should",
    "low": "note could style",
}
"""Words that are common in sentences: they count only where hardly any other word is next to them."""


def _by_word(said: Mapping[Severity, str]) -> Mapping[str, Severity]:
    return {word: severity for severity, words in said.items() for word in words.split()}


_WORDS, _ALONE = _by_word(_SAID), _by_word(_SAID_ALONE)
_FEW, _VERY_FEW = 4, 2
"""The maximum number of words of a severity, and of one that is a common word. Longer texts are sentences."""
_SETTLED = frozenset("resolved fixed settled closed addressed mended done verified passed".split())
_HARMLESS = frozenset("none praise positive strength".split()) | _SETTLED
"""Statuses and severities that mean, as a whole, that there is nothing to fix."""
_OWN = ("claim", "issue", "problem", "finding")
"""Keys that only findings have. Examples in a document have titles and messages, too."""
_CLAIM = (*_OWN, "title", "summary", "message")
_MORE = ("description", "detail", "details", "explanation")
_EVIDENCE = ("evidence", "quote", "proof", "snippet", "excerpt", "code", "reason", "why", "rationale")
_FILE = ("file", "path", "document", "filename", "location", "where")
_SEVERITY = ("severity", "priority", "level", "impact")
_STATUS = ("status", "state", "resolution")
_ID = ("id", "finding_id", "ref")
_WORD = re.compile(r"[^\W\d_]")
_TOKEN = re.compile(r"[^\W_]+|[🚨🔴🟠🟡🟢🔵]")


def finding_of(value: Mapping[str, Any]) -> Finding | None:
    """The finding in an object; None without one."""
    fields = {re.sub(r"[\s-]+", "_", key.strip("*_ ").casefold()): each for key, each in value.items()}
    claim, more = _first(fields, _CLAIM), _first(fields, _MORE)
    said = ": ".join(part for part in (claim, more) if part)
    if not _WORD.search(said) or not (_first(fields, _OWN) or _first(fields, _SEVERITY)):
        return None
    if any(fields.get(name) is True for name in _SETTLED):
        return None
    if _says(_first(fields, _STATUS), _SETTLED) or _says(_first(fields, _SEVERITY), _HARMLESS):
        return None
    return Finding(
        id=_first(fields, _ID)[:_SHORT_LIMIT],
        severity=severity_of(_first(fields, _SEVERITY)) or _UNSTATED,
        file=_place(fields),
        claim=said[:CLAIM_LIMIT],
        evidence=_first(fields, _EVIDENCE)[:EVIDENCE_LIMIT],
    )


def severity_of(text: str) -> Severity | None:
    """The severity in a text, the worst of several; None if it has none, or is a sentence."""
    tokens = _TOKEN.findall(text[:_SHORT_LIMIT].casefold())
    named = [_WORDS[token] for token in (tokens if len(tokens) <= _FEW else tokens[:1]) if token in _WORDS]
    if not named and len(tokens) <= _VERY_FEW:
        named = [_ALONE[token] for token in tokens if token in _ALONE]
    return worst(named) if named else None


def _says(text: str, words: frozenset[str]) -> bool:
    """Whether a text consists of one of these words."""
    tokens = _TOKEN.findall(text[:_SHORT_LIMIT].casefold())
    return len(tokens) == 1 and tokens[0] in words


def _place(fields: Mapping[str, Any]) -> str:
    file, line = _first(fields, _FILE), _first(fields, ("line", "lines", "line_number"))
    return (f"{file}:{line}" if file and line and ":" not in file else file)[:_SHORT_LIMIT]


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := _text(fields.get(name)))), "")


def _text(value: Any) -> str:
    """A value as text; of lists and objects their values, joined."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, (int, float)):
        return f"{value}"
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    parts = [each.strip() if isinstance(each, str) else f"{each}" for each in list(inner)[:_VALUES]]
    return "; ".join(part[:EVIDENCE_LIMIT] for part in parts if part)
