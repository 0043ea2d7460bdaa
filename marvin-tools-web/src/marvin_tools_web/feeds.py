"""RSS and Atom feeds."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

from marvin_core import Field, ToolContext, ToolError, tool

from . import fetching

if TYPE_CHECKING:
    import httpx

_LARGEST = 10_000_000
_SUMMARY = 300
_ACCEPT = "application/rss+xml, application/atom+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5"
_READER = (sys.executable, "-P", "-m", "marvin_tools_web.feed_reader")


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
    feed = await _read(body, response, max_items, context)
    if "feeds" in feed:
        raise ToolError(_no_feed(feed["feeds"], response))
    title, entries = feed["title"] or str(response.url), feed["entries"]
    head = f"{title}: {len(entries)} of {feed['count']} entries" if entries else f"{title}: no entries"
    return "\n\n".join([head, *(_entry(number, entry) for number, entry in enumerate(entries, 1))])


async def _read(body: bytes, response: httpx.Response, most: int, context: ToolContext) -> dict[str, Any]:
    """What is in a feed. A process reads it: that ends with the call, and takes no more memory than it may."""
    asked = {"url": str(response.url), "type": response.headers.get("content-type", ""), "most": most}
    result = await context.processes.run(_READER, stdin=json.dumps(asked).encode() + b"\n" + body)
    try:
        found: dict[str, Any] = json.loads(result.output)
    except ValueError:
        raise ToolError(
            f"{response.url} cannot be read as a feed: it is too large, or made so that reading it takes too much. "
            "Use another source."
        ) from None
    return found


def _entry(number: int, entry: dict[str, str]) -> str:
    lines = [f"{number}. {entry['title'] or '(no title)'}"]
    if entry["published"]:
        lines[0] += f" ({entry['published']} UTC)"
    if entry["link"]:
        lines.append(f"   {entry['link']}")
    summary = entry["summary"]
    if summary:
        lines.append(f"   {summary if len(summary) <= _SUMMARY else summary[:_SUMMARY].rstrip() + '...'}")
    return "\n".join(lines)


def _no_feed(feeds: list[str], response: httpx.Response) -> str:
    if feeds:
        return f"{response.url} is a web page. It names these feeds: {', '.join(feeds)}. Read one of them."
    kind = response.headers.get("content-type", "something").partition(";")[0]
    return f"{response.url} is no feed but {kind}. Look for the feed's own address on the site."
