"""A finding out of the words that models use for its parts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .findings import Finding, Severity

CLAIM_LIMIT = 2_000
EVIDENCE_LIMIT = 2_000
"""Characters of each part that are kept."""
_SHORT_LIMIT = 200
_VALUES = 20
_UNSTATED: Severity = "high"
"""What is not said counts as bad enough to mend: nothing becomes harmless by being left out."""

_SAID: dict[Severity, str] = {
    "critical": "critical crit blocker blocking severe fatal p0 🚨",
    "high": "high major important serious error must p1 🔴 🟠",
    "medium": "medium med moderate normal warning should p2 🟡",
    "low": "low minor trivial nit nitpick info informational suggestion note could cosmetic style p3 p4 🟢 🔵",
}
_WORDS: dict[str, Severity] = {word: severity for severity, words in _SAID.items() for word in words.split()}
_OWN = ("claim", "issue", "problem", "finding")
"""What only findings have. Examples in a document have titles and messages, too."""
_CLAIM = (*_OWN, "title", "summary", "message")
_MORE = ("description", "detail", "details", "explanation")
_EVIDENCE = ("evidence", "quote", "proof", "snippet", "excerpt", "code", "reason", "why", "rationale")
_FILE = ("file", "path", "document", "filename", "location", "where")
_SEVERITY = ("severity", "priority", "level", "impact")
_ID = ("id", "finding_id", "ref")
_WORD = re.compile(r"[^\W\d_]")
_TOKEN = re.compile(r"[^\W_]+|[🚨🔴🟠🟡🟢🔵]")


def finding_of(value: Mapping[str, Any]) -> Finding | None:
    """The finding in an object; None where it holds none."""
    fields = {re.sub(r"[\s-]+", "_", key.strip("*_ ").casefold()): each for key, each in value.items()}
    claim, more = _first(fields, _CLAIM), _first(fields, _MORE)
    said = ": ".join(part for part in (claim, more) if part)
    if not _WORD.search(said) or not (_first(fields, _OWN) or _first(fields, _SEVERITY)):
        return None
    return Finding(
        id=_first(fields, _ID)[:_SHORT_LIMIT],
        severity=severity_of(_first(fields, _SEVERITY)) or _UNSTATED,
        file=_place(fields),
        claim=said[:CLAIM_LIMIT],
        evidence=_first(fields, _EVIDENCE)[:EVIDENCE_LIMIT],
    )


def severity_of(text: str) -> Severity | None:
    """The severity that some words name; None where they name none."""
    for token in _TOKEN.findall(text[:_SHORT_LIMIT].casefold()):
        if token in _WORDS:
            return _WORDS[token]
    return None


def _place(fields: Mapping[str, Any]) -> str:
    file, line = _first(fields, _FILE), _first(fields, ("line", "lines", "line_number"))
    return (f"{file}:{line}" if file and line and ":" not in file else file)[:_SHORT_LIMIT]


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := _text(fields.get(name)))), "")


def _text(value: Any) -> str:
    """A value as words; of lists and objects what they hold, one behind the other."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, (int, float)):
        return f"{value}"
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    parts = [each.strip() if isinstance(each, str) else f"{each}" for each in list(inner)[:_VALUES]]
    return "; ".join(part[:EVIDENCE_LIMIT] for part in parts if part)
