"""The tool web_search."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from marvin_core import Fetched, Field, Link, RequestFailed, ToolContext, ToolError, ToolResult, numbered, tool

from .. import child_process
from ..services import values
from ..services.backends import Backend, first_answer
from ..services.catalog import BRAVE, DUCKDUCKGO, MOJEEK, SEARXNG
from ..services.client import Params, ServiceClient
from ..services.queries import checked
from ..settings import WebSettings
from .results import Result, texts, unwrapped, without_duplicates

_LONGEST = 500
_CHARACTERS = 16_000
_LINKS = 5
_PAGE = 3_000_000
_NAME = 40
_ENGINES = 5
_READER = child_process.program("marvin_tools_web.search.page_reader")
_FRESHNESS = {"d": "pd", "w": "pw", "m": "pm", "y": "py"}
_RANGES = {"d": "day", "w": "week", "m": "month", "y": "year"}
_NOTHING = ("no-results", "No results found", "No results.", "no pages found")
"""What a page without results says."""
_ADS = "https://duckduckgo.com/y.js?"


LABELS = tuple(service.title for service in (SEARXNG, BRAVE, DUCKDUCKGO, MOJEEK))
"""The services, in the order in which they are asked."""


@tool(
    access=["net"],
    labels=LABELS,
    aliases={"query": ["q", "search_term"], "max_results": ["num_results", "count"]},
    probe={"query": "weather", "max_results": 1},
)
async def web_search(
    query: Annotated[str, "Words, as for a search engine"],
    max_results: Annotated[int, Field(ge=1, le=20), "Maximum results"] = 5,
    time_filter: Annotated[Literal["", "d", "w", "m", "y"], "Of the last day, week, month, year"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Search the web: titles, addresses and snippets."""
    asked = checked(query, "query", _LONGEST)
    backends: list[Backend[list[Result]]] = []
    if context.settings(WebSettings).services.searxng:
        backends.append(Backend(SEARXNG, lambda: _by_searxng(context, asked, time_filter)))
    key = context.secret("BRAVE_API_KEY", None)
    if key:
        backends.append(Backend(BRAVE, lambda: _by_brave(context, key, asked, max_results, time_filter)))
    backends.append(Backend(DUCKDUCKGO, lambda: _by_duckduckgo(context, asked, time_filter)))
    if not time_filter:  # Mojeek cannot search by time
        backends.append(Backend(MOJEEK, lambda: _by_mojeek(context, asked)))
    answered = await first_answer(context.origin, backends, "Try again later, or open a known page with browse_web.")
    found = without_duplicates(answered.value, by_title=False)
    if not found:
        return ToolResult(content=f"Nothing was found for {asked!r}. Use other or fewer words.\n{answered.source}")
    shown = found[:max_results]
    links = [Link(url=result.url, text=result.title) for result in shown[:_LINKS]]
    return ToolResult(content=f"{numbered(texts(shown), _CHARACTERS)}\n{answered.source}", show=links)


async def _by_brave(context: ToolContext, key: str, query: str, most: int, time_filter: str) -> list[Result]:
    """Source: api-dashboard.search.brave.com/app/documentation/web-search"""
    params: Params = {"q": query, "count": most, "freshness": _FRESHNESS.get(time_filter)}
    return await ServiceClient(context, BRAVE).get_json(
        "web/search", read_brave, params=params, headers={"x-subscription-token": key}
    )


def read_brave(answer: Any) -> list[Result]:
    """The results in an answer of Brave.

    Raises:
        ValueError: it is not a valid answer.
    """
    if values.text(answer, "type") != "search":
        raise ValueError("it does not offer a search")
    if values.inner(answer, "web") is None:
        return []  # without results
    return _results(values.required(answer, "web", "results"), "url", "description")


async def _by_searxng(context: ToolContext, query: str, time_filter: str) -> list[Result]:
    """Source: docs.searxng.org/dev/search_api.html"""
    params: Params = {"q": query, "format": "json", "time_range": _RANGES.get(time_filter)}
    try:
        return await ServiceClient(context, SEARXNG).get_json("search", read_searxng, params=params)
    except RequestFailed as error:
        if error.status != 403:
            raise
        raise ToolError(f"{error} Its settings must allow JSON: `search: {{formats: [html, json]}}`.") from error


def read_searxng(answer: Any) -> list[Result]:
    """The results in an answer of SearXNG.

    Raises:
        ValueError: it is not a valid answer.
        RequestFailed: it found nothing because its search engines did not answer.
    """
    given = values.required(answer, "results")
    silent = values.inner(answer, "unresponsive_engines")
    if not given and isinstance(silent, list) and silent:
        named = [values.text(one, 0, limit=_NAME) or values.text(one, limit=_NAME) for one in silent]
        told = ", ".join(filter(None, named[:_ENGINES]))
        raise RequestFailed(f"its engines do not answer ({told or 'it did not say which'}). Try another source.")
    return _results(given, "url", "content")


def _results(given: list[Any], url: str, snippet: str) -> list[Result]:
    found = [
        Result(title=values.plain(one, "title"), url=values.address(one, url), snippet=values.plain(one, snippet))
        for one in given
        if values.address(one, url)
    ]
    if given and not found:
        raise ValueError("there are results without addresses")
    return found


async def _by_duckduckgo(context: ToolContext, query: str, time_filter: str) -> list[Result]:
    client = ServiceClient(context, DUCKDUCKGO)
    form = {"q": query, "b": "", "l": "us-en", **({"df": time_filter} if time_filter else {})}
    page = await client.post_form("html/", form, _page, largest=_PAGE)
    return await _on_page(context, client, "duckduckgo", page)


async def _by_mojeek(context: ToolContext, query: str) -> list[Result]:
    client = ServiceClient(context, MOJEEK)
    page = await client.get("search", _page, params={"q": query}, largest=_PAGE)
    return await _on_page(context, client, "mojeek", page)


def _page(answer: Fetched) -> str:
    if answer.kind not in ("text/html", "application/xhtml+xml", ""):
        raise ValueError("it is not a page")
    return answer.text


async def _on_page(context: ToolContext, client: ServiceClient, engine: str, page: str) -> list[Result]:
    """The results on a page, parsed by a process that ends with the call and has a memory limit."""
    asked = child_process.question({"engine": engine}, page.encode("utf-8", "replace"))
    limit = min(context.timeouts.page, context.time_left / 2)
    result = await context.processes.run(_READER, stdin=asked, timeout=limit)
    try:
        given = json.loads(result.output)
    except ValueError:
        raise await client.unusable("its page cannot be read. Try another source.") from None
    found = [one for one in map(_of_page, given) if one.url]
    if not found and not any(said in page for said in _NOTHING):
        # A CAPTCHA page.
        raise await client.unusable("it sent a page without results, which it sometimes does for programs. Try later.")
    return found


def _of_page(item: Mapping[str, Any]) -> Result:
    url = unwrapped(values.text(item, "href", limit=2_000))
    return Result(
        title=values.plain(item, "title"),
        url=url if url.startswith(("https://", "http://")) and not url.startswith(_ADS) else "",
        snippet=values.plain(item, "body"),
    )
