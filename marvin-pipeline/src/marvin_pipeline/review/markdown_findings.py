"""Parses findings in Markdown: lists, headings and tables, from reviewers that do not write JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .findings import Finding, Severity
from .reading import CLAIM_LIMIT, finding_of, severity_of

_ITEM = re.compile(r"^(?:\s{0,3}(?:[-*+•]|\d{1,3}[.)])\s+|#{1,6}\s+|\*\*(?=\S))(?P<text>.*)$")
_FIELD = re.compile(
    r"^\s*(?:[-*+•]\s+)?[*_`]*"
    r"(?P<name>severity|priority|file|path|location|claim|issue|problem|description|evidence|quote|id)"
    r"[*_`]*\s*[:=][*_`]*\s*(?P<value>.*)$",
    re.IGNORECASE,
)
_MARK = re.compile(r"^[^\w\n🚨🔴🟠🟡🟢🔵]*(?P<words>[🚨🔴🟠🟡🟢🔵])\s*")
_TAG = re.compile(
    r"^[\s\[(*_`]*(?:(?:severity|priority)[*_`]*\s*[:=]?[\s*_`]*)?"
    r"(?P<words>P\d|[^\W\d_]+(?:\s?/\s?[^\W\d_]+)?)"
    r"(?:\s+(?:severity|priority|risk|impact|issue|finding|problem|bug)s?)?"
    r"(?:\s*[\])*_`:|–—]+|\.(?=\s|$)|\s+-+(?=\s)|\s*$)[\s\])*_`:|.–—-]*",
    re.IGNORECASE,
)
"""A severity before a text: in brackets, in bold, or separated. A sentence may begin with such a word."""
_LOUD = re.compile(r"^\W*(?P<words>[A-Z]{3,})\b[\s:]*")
_NUMBERED = re.compile(
    r"^\W*(?:finding|issue|problem)?\s*#?(?:\d{1,3}|[A-Z]{1,3}-?\d{1,3})\s*[.:)\]–—-]+\s*", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"“`]([^\"”`]{8,300})[\"”`]")
_PATH = re.compile(r"[\w./-]{1,120}\.[A-Za-z]{1,5}(?::\d+(?:-\d+)?)?\b")
_LINE_LIMIT = 2_000
_CELLS = 8


def markdown_findings(text: str) -> list[Finding]:
    """The findings in a text: items with a severity before them or on a line below them.

    A heading with a severity applies to the items below it. Items without one belong to the finding before.
    """
    lines = [line[:_LINE_LIMIT] for line in text.splitlines()]
    found: list[Finding] = []
    section = ""
    is_open = False
    for is_heading, item in _items(lines):
        if is_heading:
            section, is_open = "", False
        alone = _tag(item[0])
        if alone and not alone[1].strip(":*"):
            section, item = alone[0], ["", *item[1:]]
        finding = _finding(item, section)
        if finding is not None:
            found.append(finding)
            is_open = True
        elif is_open and (more := _words(item)):
            found[-1] = found[-1].replace(claim=f"{found[-1].claim}\n{more}"[:CLAIM_LIMIT])
    return found or list(_rows(lines))


def _items(lines: Iterable[str]) -> Iterator[tuple[bool, list[str]]]:
    """The lines of each item, and whether it is a heading: a line with a marker, and the lines up to the next one.

    Fields belong to their item.
    """
    item: list[str] = []
    is_heading = False
    for line in lines:
        begun = _ITEM.match(line)
        if begun and not (item and _FIELD.match(line)):
            if item:
                yield is_heading, item
            item, is_heading = [begun["text"]], line.lstrip().startswith("#")
        elif item:
            item.append(line)
    if item:
        yield is_heading, item


def _tag(text: str) -> tuple[Severity, str] | None:
    """The severity before a text, and the text; None without one."""
    severity = None
    if mark := _MARK.match(text):
        severity, text = severity_of(mark["words"]), text[mark.end() :]
    for form in (_TAG, _LOUD):
        tag = form.match(text)
        if tag and (named := severity_of(tag["words"])):
            return severity or named, text[tag.end() :]
    return (severity, text) if severity else None


def _finding(item: list[str], section: str) -> Finding | None:
    fields: dict[str, str] = {}
    words: list[str] = []
    for line in item:
        field = _FIELD.match(line)
        if field:
            fields.setdefault(field["name"].casefold(), field["value"].strip("* "))
        elif line.strip():
            words.append(line.strip())
    head = words[0] if words else ""
    for begun in (head, _NUMBERED.sub("", head)):  # P1 may be a severity or a number
        head = begun
        if tag := _tag(begun):
            fields.setdefault("severity", tag[0])
            head = tag[1]
            break
    if not severity_of(fields.get("severity", "") or fields.get("priority", "") or section):
        return None
    said = " ".join([head, *words[1:]]).replace("**", "").strip()
    fields.setdefault("severity", fields.get("priority", "") or section)
    fields.setdefault("claim", fields.pop("issue", "") or fields.pop("problem", "") or said)
    if path := _PATH.search(said):
        fields.setdefault("file", path[0])
    if quote := _QUOTED.search(said):
        fields.setdefault("evidence", quote[1])
    return finding_of(fields)


def _words(item: list[str]) -> str:
    return " ".join(line.strip() for line in item if line.strip()).replace("**", "")


def _rows(lines: list[str]) -> Iterator[Finding]:
    """The rows of tables with a severity column."""
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
