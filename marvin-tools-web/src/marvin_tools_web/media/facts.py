"""Formats facts from services, for the tools of this group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from marvin_core import Link, ToolResult, numbered

from ..services import values

_RESULTS = 7_000
_NOTHING = frozenset({"", "n/a", "none", "null"})


def joined(*facts: str) -> str:
    """The non-empty facts, on one line."""
    return "; ".join(filter(None, facts))


def lines(*texts: str) -> str:
    """The non-empty texts, one a line."""
    return "\n".join(filter(None, texts))


def labelled(label: str, value: str) -> str:
    """A fact after its label; nothing for an empty fact."""
    return f"{label}: {value}" if value.strip().lower() not in _NOTHING else ""


def names(value: Any, *path: str | int, key: str = "name", most: int = 8) -> str:
    """The names of the objects in a list."""
    return ", ".join(filter(None, (values.text(one, key, limit=80) for one in values.objects(value, *path)[:most])))


def given(value: Mapping[str, Any], key: str, limit: int = 300) -> str:
    """A text; also empty if the service writes that it has none."""
    found = values.text(value, key, limit=limit)
    return "" if found.lower() in _NOTHING else found


def listed(entries: Iterable[str], source: str, links: Iterable[Link] = (), total: int | None = None) -> ToolResult:
    """A numbered list with its source."""
    text = numbered(entries, _RESULTS, total=total, advice="Use more specific words for other results.")
    return ToolResult(content=f"{text}\n{source}", show=list(links))
