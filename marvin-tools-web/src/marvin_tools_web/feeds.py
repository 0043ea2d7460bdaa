"""RSS and Atom feeds."""

from __future__ import annotations

import io
import time
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Annotated, Any

from marvin_core import Field, ToolContext, ToolError, in_thread, tool

from . import fetching

if TYPE_CHECKING:
    import httpx

_LARGEST = 10_000_000
_SUMMARY = 300
_ACCEPT = "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5"
_FEED_TYPES = ("application/rss+xml", "application/atom+xml")


@tool(access=["net"])
async def read_rss(
    url: Annotated[str, "The address of the feed"],
    max_items: Annotated[int, Field(ge=1, le=20), "How many entries to show"] = 5,
    *,
    context: ToolContext,
) -> str:
    """Show the newest entries of an RSS or Atom feed: title, date, address and summary."""
    async with fetching.opened(context, fetching.checked_url(url), {"accept": _ACCEPT}) as response:
        body = await fetching.limited_body(response, _LARGEST)
    # In a thread: the parser's import and a large feed take a while.
    feed = await in_thread(lambda: _parsed(body, response))
    entries = feed.entries[:max_items]
    if not entries and not feed.get("version"):
        raise ToolError(_no_feed(body, response))
    title = _plain(feed.feed.get("title", "")) or str(response.url)
    head = f"{title}: {len(entries)} of {len(feed.entries)} entries" if entries else f"{title}: no entries"
    return "\n\n".join([head, *(_entry(number, entry) for number, entry in enumerate(entries, 1))])


def _parsed(body: bytes, response: httpx.Response) -> Any:
    import feedparser  # type: ignore[import-untyped]

    headers = {"content-type": response.headers.get("content-type", ""), "content-location": str(response.url)}
    # As a file: the parser would take text for an address, and fetch it.
    return feedparser.parse(io.BytesIO(body), response_headers=headers)


def _entry(number: int, entry: Any) -> str:
    lines = [f"{number}. {_plain(entry.get('title', '')) or '(no title)'}"]
    published = entry.get("published_parsed") or entry.get("updated_parsed")
    if published:
        lines[0] += f" ({time.strftime('%Y-%m-%d %H:%M', published)} UTC)"
    if entry.get("link"):
        lines.append(f"   {entry.link}")
    content = entry.get("summary") or next((part.get("value", "") for part in entry.get("content", [])), "")
    summary = _plain(content)
    if summary:
        lines.append(f"   {summary if len(summary) <= _SUMMARY else summary[:_SUMMARY].rstrip() + '...'}")
    return "\n".join(lines)


def _no_feed(body: bytes, response: httpx.Response) -> str:
    page = _Page()
    page.feed(body.decode(response.encoding or "utf-8", "replace"))
    found = [str(response.url.join(address)) for address in page.feeds]
    if found:
        return f"{response.url} is a web page. It names these feeds: {', '.join(found[:5])}. Read one of them."
    kind = response.headers.get("content-type", "something").partition(";")[0]
    return f"{response.url} is no feed but {kind}. Look for the feed's own address on the site."


class _Page(HTMLParser):
    """The text of some HTML, and the feeds that it names."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.feeds: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and (values.get("type") or "").lower() in _FEED_TYPES and values.get("href"):
            self.feeds.append(str(values["href"]))
        self.words.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.words.append(" ")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _plain(html: str) -> str:
    page = _Page()
    page.feed(html)
    page.close()
    return " ".join("".join(page.words).split())
