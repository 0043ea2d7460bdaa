"""The tool search_news."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from marvin_core import Fetched, Field, Link, ToolContext, ToolError, ToolResult, numbered, tool

from ..services import values
from ..services.backends import all_failed, source_line
from ..services.catalog import DUCKDUCKGO_NEWS, GNEWS, NEWSAPI, Service
from ..services.client import Params, ServiceClient
from ..services.queries import checked
from .results import Result, texts, without_duplicates

_LONGEST = 300
_CHARACTERS = 24_000
_LINKS = 5
_SNIPPET = 300
_DAYS = {"d": 1, "w": 7, "m": 30}
_PAID = 10
"""Articles that GNews gives without a paid plan."""
_VQD = re.compile(r"""vqd=(?:"([\d-]+)"|'([\d-]+)'|([\d-]+))""")
"""The token in DuckDuckGo's page that requests for news need."""
_HEAD = 500_000
_REMOVED = "[Removed]"
_SIGNS = re.compile(r"[^\w\s\"]+")


@tool(
    access=["net"],
    labels=["GNews", "NewsAPI", "DuckDuckGo News"],
    aliases={"query": ["q", "topic"], "max_results": ["num_results", "count"]},
    probe={"query": "weather", "max_results": 1},
)
async def search_news(
    query: Annotated[str, "The topic of the news"],
    max_results: Annotated[int, Field(ge=1, le=50), "Maximum articles"] = 20,
    time_filter: Annotated[Literal["", "d", "w", "m"], "Of the last day, week, month"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Search the news of several services at once, the newest first."""
    asked = checked(query, "query", _LONGEST)
    since = _since(context, time_filter)
    services, answers = _services(context, asked, max_results, time_filter, since)
    given = await asyncio.gather(*(_either(answer) for answer in answers))
    failures = [str(one) for one in given if isinstance(one, ToolError)]
    lists = [one for one in given if not isinstance(one, ToolError)]
    if not lists:
        raise all_failed(failures, "Use web_search.")
    worked = [service for service, one in zip(services, given, strict=True) if not isinstance(one, ToolError)]
    dated = sorted((result for one in lists for result in one), key=lambda result: result.date, reverse=True)
    found = [one for one in without_duplicates(dated) if not since or not one.date or one.date >= since.isoformat()]
    source = source_line(worked, failures)
    if not found:
        return ToolResult(content=f"There is no news about {asked!r}. Use other words, or a longer time.\n{source}")
    shown = found[:max_results]
    links = [Link(url=result.url, text=result.title) for result in shown[:_LINKS]]
    return ToolResult(content=f"{numbered(texts(shown), _CHARACTERS)}\n{source}", show=links)


def _since(context: ToolContext, time_filter: str) -> datetime | None:
    if not time_filter:
        return None
    now = datetime.fromtimestamp(context.clock.now(), UTC).replace(microsecond=0)
    return now - timedelta(days=_DAYS[time_filter])


def _services(
    context: ToolContext, query: str, most: int, time_filter: str, since: datetime | None
) -> tuple[Sequence[Service], Sequence[Callable[[], Awaitable[list[Result]]]]]:
    """The services and their calls: those with a key, and the one that needs none."""
    services: list[Service] = []
    answers: list[Callable[[], Awaitable[list[Result]]]] = []
    gnews, newsapi = context.secret("GNEWS_API_KEY", None), context.secret("NEWSAPI_KEY", None)
    if gnews:
        services.append(GNEWS)
        answers.append(lambda: _by_gnews(context, gnews, query, most, since))
    if newsapi:
        services.append(NEWSAPI)
        answers.append(lambda: _by_newsapi(context, newsapi, query, most, since))
    services.append(DUCKDUCKGO_NEWS)
    answers.append(lambda: _by_duckduckgo(context, query, time_filter))
    return services, answers


async def _either(ask: Callable[[], Awaitable[list[Result]]]) -> list[Result] | ToolError:
    try:
        return await ask()
    except ToolError as error:
        return error


async def _by_gnews(context: ToolContext, key: str, query: str, most: int, since: datetime | None) -> list[Result]:
    """Source: docs.gnews.io/endpoints/search-endpoint and docs.gnews.io/authentication"""
    # Some characters are operators of its query language, and an error elsewhere.
    params: Params = {
        "q": " ".join(_SIGNS.sub(" ", query).split()) or query,
        "max": min(most, _PAID),
        "lang": "en",
        "sortby": "publishedAt",
        "from": _zulu(since),
    }
    client = ServiceClient(context, GNEWS)
    return await client.get_json("search", read_articles, params=params, headers={"x-api-key": key})


async def _by_newsapi(context: ToolContext, key: str, query: str, most: int, since: datetime | None) -> list[Result]:
    """Source: newsapi.org/docs/endpoints/everything"""
    params: Params = {"q": query, "pageSize": most, "sortBy": "publishedAt", "from": _zulu(since)}
    client = ServiceClient(context, NEWSAPI)
    return await client.get_json("everything", read_articles, params=params, headers={"x-api-key": key})


def _zulu(when: datetime | None) -> str | None:
    return None if when is None else when.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_articles(answer: Any) -> list[Result]:
    """The articles in an answer of GNews or NewsAPI.

    Raises:
        ValueError: it is not a valid answer.
    """
    given = values.required(answer, "articles")
    found = [
        Result(
            title=values.plain(one, "title"),
            url=values.address(one, "url"),
            snippet=values.plain(one, "description", limit=_SNIPPET),
            source=values.plain(one, "source", "name", limit=80),
            date=_date(values.text(one, "publishedAt")),
        )
        for one in given
        if values.address(one, "url") and values.text(one, "title") != _REMOVED
    ]
    if given and not found and not all(values.text(one, "title") == _REMOVED for one in given):
        raise ValueError("there are articles without addresses")
    return found


async def _by_duckduckgo(context: ToolContext, query: str, time_filter: str) -> list[Result]:
    client = ServiceClient(context, DUCKDUCKGO_NEWS)
    token = await client.get("", _token, params={"q": query})
    params: Params = {
        "l": "us-en",
        "o": "json",
        "noamp": 1,
        "q": query,
        "vqd": token,
        "p": -1,
        "df": time_filter or None,
    }
    return await client.get_json("news.js", read_duckduckgo, params=params)


def _token(answer: Fetched) -> str:
    found = _VQD.search(answer.text[:_HEAD])
    if found is None:
        raise ValueError("there is no token")
    return str(found[found.lastindex or 0])


def read_duckduckgo(answer: Any) -> list[Result]:
    """The articles in an answer of DuckDuckGo's news.

    Raises:
        ValueError: it is not a valid answer.
    """
    given = values.required(answer, "results")
    found = [
        Result(
            title=values.plain(one, "title"),
            url=values.address(one, "url"),
            snippet=values.plain(one, "excerpt", limit=_SNIPPET),
            source=values.plain(one, "source", limit=80),
            date=_moment(values.number(one, "date")),
        )
        for one in given
        if values.address(one, "url")
    ]
    if given and not found:
        raise ValueError("there are articles without addresses")
    return found


def _moment(seconds: float | None) -> str:
    try:
        return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _date(text: str) -> str:
    """A date of any time zone in UTC; empty if it is invalid."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return ""
