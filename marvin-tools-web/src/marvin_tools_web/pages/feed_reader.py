"""Parses a feed in a process of its own: `python -m marvin_tools_web.pages.feed_reader`.

The request has `url`, `type` (the media type with its parameters) and `most`; the answer is what `read` returns.
"""

from __future__ import annotations

import html
import io
import re
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

from marvin_core import one_line, plain_text

from ..child_process import serve

_MEMORY = 600 * 1024 * 1024
_MARKUP = 20_000
"""Characters of a text with markup that are parsed."""
_TEXT = 1_000
_ADDRESS = 2_000
_PAGE = 500_000
_FEEDS = 5
_NAMES = 30
_NUMBER = 20
_REASON = 200
_FEED_TYPES = ("application/rss+xml", "application/atom+xml")
_DECLARED = re.compile(rb"^\s*(?:<\?xml[^>]{0,200}\?>)?\s*(?:<!DOCTYPE[^\[>]{0,500}(?:\[[^\]]{0,100000}\]\s*)?>)?")
_MEASURES = re.compile(rb"</?(?:width|height|gml:\w{1,40}|georss:\w{1,40})\b[^<>]{0,1000}>")
_REFERENCE = re.compile(rb"&#(?:[xX]([0-9a-fA-F]{1,40})|([0-9]{1,40}));?")
_LINK = re.compile(r"<link\b([^<>]{1,2000})", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(type|href)\s{0,9}=\s{0,9}("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)


def read(url: str, kind: str, body: bytes, most: int) -> dict[str, Any]:
    """The contents of a feed: its title, the number of entries, and the first of them; for a web page its feeds.

    `error` says why the parser failed.
    """
    try:
        feed = _parsed(url, kind, body)
    except MemoryError:
        raise
    except Exception as error:  # the parser is meant to raise nothing, and fails at some feeds in many ways
        return {"error": one_line(f"{type(error).__name__}: {error}")[:_REASON]}
    if not feed.entries and not feed.get("version"):
        return {"feeds": list(_feeds(url, body))}
    return {
        "title": plain(feed.feed.get("title", "")),
        "count": len(feed.entries),
        "total": str(feed.feed.get("opensearch_totalresults", ""))[:_NUMBER],
        "entries": [_entry(url, entry) for entry in feed.entries[:most]],
    }


def _parsed(url: str, kind: str, body: bytes) -> Any:
    """A parsed feed; if the parser fails, without the parts that it fails at."""
    import feedparser  # type: ignore[import-untyped]

    # As a stream: the parser would take a string for a URL, and fetch it. Its sanitizer is switched off, as hostile
    # text
    # makes it slow.
    headers = {"content-type": kind, "content-location": url}
    options: dict[str, Any] = {"resolve_relative_uris": False, "sanitize_html": False}
    try:
        return feedparser.parse(io.BytesIO(body), response_headers=headers, **options)
    except MemoryError:
        raise
    except Exception:
        # Encodings that are not of text, entities of the document, invalid character numbers, coordinates and sizes.
        headers["content-type"] = "application/xml; charset=utf-8"
        repaired = _REFERENCE.sub(_character, _MEASURES.sub(b"", _DECLARED.sub(b"", body, count=1)))
        return feedparser.parse(io.BytesIO(repaired), response_headers=headers, **options)


def _character(reference: re.Match[bytes]) -> bytes:
    """A character reference, or nothing if there is no such character."""
    number = int(reference[1], 16) if reference[1] else int(reference[2])
    return reference[0] if number <= sys.maxunicode and not 0xD800 <= number <= 0xDFFF else b""


def _entry(url: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    published = entry.get("published_parsed") or ("updated_parsed" in entry and entry["updated_parsed"])
    content = entry.get("summary") or next((part.get("value", "") for part in entry.get("content", [])), "")
    base = entry.get("title_detail", {}).get("base") or url
    return {
        "title": plain(entry.get("title", "")),
        "published": _moment(published),
        "link": _address(base, str(entry.get("link") or "")),
        "summary": plain(content),
        "authors": [plain(author.get("name", "")) for author in entry.get("authors", [])[:_NAMES]],
        "categories": [plain(tag.get("term", "")) for tag in entry.get("tags", [])[:_NAMES]],
    }


def _moment(parsed: Any) -> str:
    """A date as text; empty if it is not a valid one."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", parsed) if parsed else ""
    except (ValueError, TypeError, OverflowError):
        return ""


def _address(base: str, link: str) -> str:
    """The web URL of a link; empty if it is not one, as feeds may contain any text there."""
    try:
        found = urljoin(base, link.strip()) if link else ""
    except ValueError:
        return ""
    is_one = found.startswith(("https://", "http://")) and found.isprintable() and " " not in found
    return found if is_one and len(found) <= _ADDRESS else ""


def _feeds(url: str, body: bytes) -> Iterator[str]:
    """The feeds that a web page links to."""
    page = body[:_PAGE].decode("utf-8", "replace")
    found = 0
    for link in _LINK.finditer(page):
        values = {name.lower(): value.strip("\"'") for name, value in _ATTRIBUTE.findall(link[1])}
        is_feed = values.get("type", "").lower() in _FEED_TYPES and found < _FEEDS
        address = _address(url, html.unescape(values.get("href", ""))) if is_feed else ""
        if address:
            found += 1
            yield address


def plain(markup: object) -> str:
    """The text of a piece of markup, on one line."""
    return one_line(plain_text(str(markup)[:_MARKUP], lines=False)[:_TEXT])


def _answer(asked: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    return read(asked["url"], asked["type"], body, asked["most"])


if __name__ == "__main__":
    serve(_answer, _MEMORY)
