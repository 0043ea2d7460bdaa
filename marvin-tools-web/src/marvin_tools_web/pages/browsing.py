"""Web pages as text, without a browser."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from marvin_core import (
    Fetched,
    Field,
    Link,
    Record,
    ToolContext,
    ToolError,
    ToolResult,
    fetch,
    in_thread,
    one_line,
    plain_text,
    tool,
    web_address,
)

from .. import child_process
from ..services.visible_text import seen

LARGEST = 20_000_000
"""Bytes of a page or document at most."""
_READER = child_process.program("marvin_tools_web.pages.page_reader")
_ACCEPT = "text/html, application/xhtml+xml, application/pdf;q=0.9, text/*;q=0.8, application/json;q=0.7, */*;q=0.5"
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")
_TEXT_ENDINGS = ("+json", "+xml", "+yaml")
_SAMPLE = 4_096
_TITLE_SEARCH = 100_000
_TITLE = re.compile(r"<title\b[^>]{0,200}>([^<]{0,2000})", re.IGNORECASE)
_TITLE_SHOWN = 200
_KIND_SHOWN = 80
_TEXT = 2_000_000
"""Characters of a page that are kept for paging."""
_KEPT = 8
"""Pages that a session keeps, so that later parts are of the same page, which is not fetched again."""
_LYNX = (
    *("lynx", "-stdin", "-dump", "-force_html", "-assume_charset=utf-8", "-display_charset=utf-8"),
    *("-width=200", "-hiddenlinks=ignore", "-nocolor", "-nopause", "-noreferer", "-restrictions=all"),
)
_LYNX_LARGEST = 5_000_000
_INDENTATION = re.compile(r"^ {5,}", re.MULTILINE)
_GAPS = re.compile(r"\n{3,}")


class Page(Record):
    """A page as text. `url` is its URL after redirects."""

    url: str
    title: str
    text: str


@tool(access=["net"], labels=["web"])
async def browse_web(
    url: Annotated[str, "Address of the page or PDF"],
    max_length: Annotated[int, Field(ge=1, le=8000), "Characters to show"] = 4000,
    offset: Annotated[int, Field(ge=0), "Where to continue, from an earlier answer"] = 0,
    *,
    context: ToolContext,
) -> ToolResult:
    """Read a web page or PDF as text, with its links. JavaScript does not run; scrape_page does that."""
    pages = await context.resource(_kept)
    page = pages.get(url) if offset else None
    if page is None:
        await context.may_reach(str(web_address(url)))
        page = await read_page(url, context)
        pages.pop(url, None)
        pages[url] = page
        while len(pages) > _KEPT:
            del pages[next(iter(pages))]
    return ToolResult(content=part_of(page, offset, max_length), show=[Link(url=page.url, text=page.title or page.url)])


@asynccontextmanager
async def _kept() -> AsyncIterator[dict[str, Page]]:
    yield {}


def part_of(page: Page, offset: int, length: int) -> str:
    """A part of a page, with its title and URL and where the next part begins.

    Raises:
        ToolError: the page ends before this part.
    """
    whole = len(page.text)
    if offset and offset >= whole:
        raise ToolError(f"The page has {whole:,} characters, so there is nothing at {offset:,}. Use a lower offset.")
    part = page.text[offset : offset + length]
    head = f"{page.title}\n{page.url}" if page.title else page.url
    if not whole:
        return f"{head}\n\n[The page has no text. It may need JavaScript: try scrape_page.]"
    end = offset + len(part)
    if end < whole:
        left = f"\n\n[Characters {offset:,} to {end:,} of {whole:,}. To continue, use offset={end}.]"
    else:
        left = f"\n\n[The end, at character {whole:,}.]" if offset else ""
    return f"{head}\n\n{part.strip(chr(10))}{left}"


async def read_page(url: str, context: ToolContext) -> Page:
    """Fetch a page and convert it to text.

    Raises:
        ToolError: it is not available, or cannot be converted; the text says what to do.
    """
    page = await _page(await fetch(context.http, url, headers={"accept": _ACCEPT}, largest=LARGEST), context)
    return page.replace(text=await in_thread(lambda: seen(page.text)))


async def _page(fetched: Fetched, context: ToolContext) -> Page:
    kind = await in_thread(lambda: _kind(fetched))
    if kind == "pdf":
        return await _document(fetched, context)
    if kind == "html":
        return await page_of(await in_thread(lambda: fetched.text), fetched.url, context)
    if kind == "text":
        text = await in_thread(lambda: fetched.text[:_TEXT])
        return Page(url=fetched.url, title="", text=text)
    what = one_line(fetched.kind, _KIND_SHOWN) or "data of an unknown kind"
    raise ToolError(
        f"{fetched.short_url} is not a page but {what} ({len(fetched.content):,} bytes). Save it with "
        "download_file, or read another address."
    )


def _kind(fetched: Fetched) -> str:
    """The kind of a response, from its first bytes and then from its media type; empty if it is not text."""
    head = fetched.content[:_SAMPLE].lstrip()
    if head.startswith(b"%PDF-") or (fetched.kind == "application/pdf" and b"%PDF-" in fetched.content[:_SAMPLE]):
        return "pdf"
    if fetched.kind in _HTML:
        return "html"
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ""
    if fetched.kind in ("", "text/plain", "application/octet-stream") and head[:200].lower().startswith(
        (b"<!doctype html", b"<html", b"<head")
    ):
        return "html"
    is_text = fetched.kind.startswith(_TEXTS) or fetched.kind.endswith(_TEXT_ENDINGS) or not fetched.kind
    return "text" if is_text else ""


async def page_of(markup: str, url: str, context: ToolContext) -> Page:
    """A page from its HTML: by lynx if installed, else by the page reader, and by marvin_core's converter if both
    fail."""
    title = await in_thread(lambda: _title(markup))
    text = ""
    if context.processes.which("lynx") is not None and len(markup) <= _LYNX_LARGEST:
        text = await _by_lynx(markup, url, context)
    if not text:
        found = await _read({"kind": "html", "url": url}, markup.encode("utf-8", "replace"), context)
        text = found.get("text", "")
    if not text:
        text = await in_thread(lambda: plain_text(markup))
    return Page(url=url, title=title, text=text[:_TEXT])


def _title(markup: str) -> str:
    found = _TITLE.search(markup[:_TITLE_SEARCH])
    return one_line(html.unescape(found[1]), _TITLE_SHOWN).strip() if found else ""


async def _by_lynx(markup: str, url: str, context: ToolContext) -> str:
    """The text of a page with its links numbered and listed below; empty if lynx fails."""
    # The declared encoding no longer holds. Without a base, links would point to the file that lynx reads.
    head = f'<base href="{html.escape(url)}"><meta charset="utf-8">'
    stdin = (head + markup).encode("utf-8", "replace")
    result = await context.processes.run(
        _LYNX, stdin=stdin, timeout=_limit(context), output_limit=4 * _TEXT, env={"TERM": "dumb"}
    )
    if result.exit_code != 0 or result.omitted:
        return ""
    text = result.output.decode("utf-8", "replace")
    return await in_thread(lambda: _GAPS.sub("\n\n", _INDENTATION.sub("    ", text)).strip())


async def _document(fetched: Fetched, context: ToolContext) -> Page:
    found = await _read({"kind": "pdf", "url": fetched.url}, fetched.content, context)
    if not found.get("text"):
        why = found.get("error") or "it is too large or too complex to be read"
        raise ToolError(
            f"The PDF {fetched.short_url} cannot be read: {why}. Save it with download_file, or use another source."
        )
    return Page(url=fetched.url, title=one_line(found.get("title", ""), _TITLE_SHOWN), text=found["text"])


async def _read(asked: dict[str, str], body: bytes, context: ToolContext) -> dict[str, str]:
    """The result of the page reader; nothing if it fails, or takes too long or too much memory."""
    result = await context.processes.run(
        _READER, stdin=child_process.question(asked, body), timeout=_limit(context), output_limit=8 * _TEXT
    )
    try:
        found: dict[str, str] = await in_thread(lambda: json.loads(result.output))
    except ValueError:
        return {}
    return found


def _limit(context: ToolContext) -> float:
    """Timeout in seconds of one way to read a page: it leaves time for a simpler one."""
    return min(context.timeouts.page, context.time_left / 2)
