"""RSS and Atom feeds."""

from __future__ import annotations

import json
from typing import Annotated, Any

from marvin_core import (
    Fetched,
    Field,
    Link,
    ToolContext,
    ToolError,
    ToolResult,
    fetch,
    in_thread,
    numbered,
    one_line,
    tool,
    web_address,
)

from .. import child_process

_LARGEST = 10_000_000
_SUMMARY = 300
_LINKS = 5
_KIND = 80
_SHARE = 0.8
"""The share of the remaining time that parsing may take; the rest is for the answer."""
_CHARACTERS = 60_000
_ACCEPT = "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5"
_READER = child_process.program("marvin_tools_web.pages.feed_reader")


@tool(access=["net"], labels=["web"])
async def read_rss(
    url: Annotated[str, "The address of the feed"],
    max_items: Annotated[int, Field(ge=1, le=20), "How many entries to show"] = 5,
    *,
    context: ToolContext,
) -> ToolResult:
    """Show the newest entries of an RSS or Atom feed: title, date, address and summary."""
    address = url.strip()
    if address.startswith("feed:"):  # as in feed://example.org/blog and feed:https://example.org/blog
        address = address.removeprefix("feed:").lstrip("/")
    await context.may_reach(str(web_address(address)))
    page = await fetch(context.http, address, headers={"accept": _ACCEPT}, largest=_LARGEST)
    feed = await _read(page, max_items, context)
    if "error" in feed:
        raise ToolError(f"{page.short_url} is damaged and cannot be read ({feed['error']}). Use another source.")
    if "feeds" in feed:
        raise ToolError(_no_feed(feed["feeds"], page))
    title, entries = feed["title"] or page.short_url, feed["entries"]
    head = f"{title}: {len(entries)} of {feed['count']} entries" if entries else f"{title}: no entries"
    text = "\n\n".join(filter(None, (head, numbered(map(_entry, entries), _CHARACTERS))))
    links = [Link(url=entry["link"], text=entry["title"]) for entry in entries if entry["link"]]
    return ToolResult(content=text, show=links[:_LINKS])


async def _read(page: Fetched, most: int, context: ToolContext) -> dict[str, Any]:
    """The contents of a feed, parsed by a process that ends with the call and has a memory limit."""
    asked = {"url": page.url, "type": page.headers.get("content-type", ""), "most": most}
    question = child_process.question(asked, page.content)
    result = await context.processes.run(_READER, stdin=question, timeout=context.time_left * _SHARE)
    try:
        found: dict[str, Any] = await in_thread(lambda: json.loads(result.output))
    except ValueError:
        raise ToolError(
            f"{page.short_url} cannot be read as a feed: it is too large or too complex to be read. Use another source."
        ) from None
    return found


def _entry(entry: dict[str, str]) -> str:
    lines = [entry["title"] or "(no title)"]
    if entry["published"]:
        lines[0] += f" ({entry['published']} UTC)"
    if entry["link"]:
        lines.append(entry["link"])
    summary = entry["summary"]
    if summary:
        lines.append(summary if len(summary) <= _SUMMARY else summary[:_SUMMARY].rstrip() + "...")
    return "\n".join(lines)


def _no_feed(feeds: list[str], page: Fetched) -> str:
    if feeds:
        return f"{page.short_url} is a web page. It links to these feeds: {', '.join(feeds)}. Read one of them."
    kind = one_line(page.kind, _KIND) or "something"
    return f"{page.short_url} is not a feed but {kind}. Look for the address of the feed on the site."
