"""Findings in Markdown: lists, headings and tables, of reviewers that write no JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .findings import Finding
from .reading import finding_of, severity_of

_ITEM = re.compile(r"^(?:\s{0,3}(?:[-*+•]|\d{1,3}[.)])\s+|#{1,6}\s+|\*\*(?=\S))(?P<text>.*)$")
_FIELD = re.compile(
    r"^\s*(?:[-*+•]\s+)?[*_`]*"
    r"(?P<name>severity|priority|file|path|location|claim|issue|problem|description|evidence|quote|id)"
    r"[*_`]*\s*[:=][*_`]*\s*(?P<value>.*)$",
    re.IGNORECASE,
)
_TAG = re.compile(r"^\W*[\[(]?(?P<words>P\d|[^\W\d_]+|[🚨🔴🟠🟡🟢🔵])(?!\w)[\])]?\W*", re.IGNORECASE)
_NUMBERED = re.compile(
    r"^\W*(?:finding|issue|problem)?\s*#?(?:\d{1,3}|[A-Z]{1,3}-?\d{1,3})\s*[.:)\]–—-]+\s*", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"“`]([^\"”`]{8,300})[\"”`]")
_PATH = re.compile(r"[\w./-]{1,120}\.[A-Za-z]{1,5}(?::\d+(?:-\d+)?)?\b")
_LINE_LIMIT = 2_000
_CELLS = 8


def markdown_findings(text: str) -> list[Finding]:
    """The findings in a text: items that name a severity, in brackets, in front of them or in a line below them."""
    lines = [line[:_LINE_LIMIT] for line in text.splitlines()]
    found = [finding for finding in (_finding(item) for item in _items(lines)) if finding is not None]
    return found or list(_rows(lines))


def _items(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines of each item: a line with a mark, and what follows up to the next one. Fields belong to their item."""
    item: list[str] = []
    for line in lines:
        begun = _ITEM.match(line)
        if begun and not (item and _FIELD.match(line)):
            if item:
                yield item
            item = [begun["text"]]
        elif item:
            item.append(line)
    if item:
        yield item


def _finding(item: list[str]) -> Finding | None:
    fields: dict[str, str] = {}
    words: list[str] = []
    for line in item:
        field = _FIELD.match(line)
        if field:
            fields.setdefault(field["name"].casefold(), field["value"].strip("* "))
        elif line.strip():
            words.append(line.strip())
    head = words[0] if words else ""
    for begun in (head, _NUMBERED.sub("", head)):  # P1 may be a severity, and it may be a number
        head = begun
        tag = _TAG.match(begun)
        if tag and severity_of(tag["words"]):
            fields.setdefault("severity", tag["words"])
            head = begun[tag.end() :]
            break
    if not severity_of(fields.get("severity", "") or fields.get("priority", "")):
        return None
    said = " ".join([head, *words[1:]]).replace("**", "").strip()
    fields.setdefault("claim", fields.pop("issue", "") or fields.pop("problem", "") or said)
    if path := _PATH.search(said):
        fields.setdefault("file", path[0])
    if quote := _QUOTED.search(said):
        fields.setdefault("evidence", quote[1])
    return finding_of(fields)


def _rows(lines: list[str]) -> Iterator[Finding]:
    """The rows of tables whose head names a severity."""
    head: list[str] = []
    for line in lines:
        cells = [cell.strip(" *`") for cell in line.strip().strip("|").split("|")][:_CELLS] if "|" in line else []
        if not cells:
            head = []
        elif not head:
            head = [cell.casefold() for cell in cells]
        elif not set(line) <= set("|-: \t") and ("severity" in head or "priority" in head):
            finding = finding_of(dict(zip(head, cells, strict=False)))
            if finding is not None:
                yield finding
