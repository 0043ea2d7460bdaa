"""Reads a feed in a process of its own: `python -m marvin_tools_web.pages.feed_reader`.

Asked with `url`, `type` (the media type with its parameters) and `most`, it answers with what `read` returns.
"""

from __future__ import annotations

import html
import io
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin

from marvin_core import one_line, plain_text

from ..child_process import serve

_MEMORY = 600 * 1024 * 1024
_MARKUP = 20_000
"""Characters of a text with markup that are looked at."""
_TEXT = 1_000
_ADDRESS = 2_000
_PAGE = 500_000
_FEEDS = 5
_NAMES = 30
_NUMBER = 20
_FEED_TYPES = ("application/rss+xml", "application/atom+xml")
_DECLARED = re.compile(rb"^\s*<\?xml[^>]{0,200}\?>")
_LINK = re.compile(r"<link\b([^<>]{1,2000})", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""\b(type|href)\s{0,9}=\s{0,9}("[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)


def read(url: str, kind: str, body: bytes, most: int) -> dict[str, Any]:
    """What a feed says: its title, how many entries it has, and the first of them; of a web page its feeds."""
    import feedparser  # type: ignore[import-untyped]

    # As a file: the parser would take text for an address, and fetch it. Its own work on markup is left out, which
    # takes long where a text is made for that.
    headers = {"content-type": kind, "content-location": url}
    options = {"response_headers": headers, "resolve_relative_uris": False, "sanitize_html": False}
    try:
        feed = feedparser.parse(io.BytesIO(body), **options)
    except (ValueError, LookupError):  # it names an encoding that is none of text
        headers["content-type"] = "application/xml; charset=utf-8"
        feed = feedparser.parse(io.BytesIO(_DECLARED.sub(b"", body, count=1)), **options)
    if not feed.entries and not feed.get("version"):
        return {"feeds": list(_feeds(url, body))}
    return {
        "title": plain(feed.feed.get("title", "")),
        "count": len(feed.entries),
        "total": str(feed.feed.get("opensearch_totalresults", ""))[:_NUMBER],
        "entries": [_entry(url, entry) for entry in feed.entries[:most]],
    }


def _entry(url: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    published = entry.get("published_parsed") or entry.get("updated_parsed")
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
    """A date in words; empty where it is none that a calendar has."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", parsed) if parsed else ""
    except (ValueError, TypeError, OverflowError):
        return ""


def _address(base: str, link: str) -> str:
    """The address of the web that a link leads to; empty where it is none: what stands there may be any text."""
    try:
        found = urljoin(base, link.strip()) if link else ""
    except ValueError:
        return ""
    is_one = found.startswith(("https://", "http://")) and found.isprintable() and " " not in found
    return found if is_one and len(found) <= _ADDRESS else ""


def _feeds(url: str, body: bytes) -> Iterator[str]:
    """The feeds that a web page names."""
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
    """The text of some markup, on one line."""
    return one_line(plain_text(str(markup)[:_MARKUP], lines=False)[:_TEXT])


def _answer(asked: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    return read(asked["url"], asked["type"], body, asked["most"])


if __name__ == "__main__":
    serve(_answer, _MEMORY)
