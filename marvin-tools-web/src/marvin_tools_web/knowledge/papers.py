"""Scientific papers: Semantic Scholar for all fields, arXiv for preprints.

Source: api.semanticscholar.org/api-docs/graph, info.arxiv.org/help/api/user-manual.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from marvin_core import (
    Fetched,
    Field,
    Link,
    Record,
    RequestFailed,
    ToolContext,
    ToolError,
    ToolResult,
    in_thread,
    numbered,
    one_line,
    tool,
)

from .. import child_process
from ..services import values
from ..services.backends import Backend, first_answer, source_line
from ..services.catalog import ARXIV, SEMANTIC_SCHOLAR
from ..services.client import ServiceClient
from ..services.queries import checked

_QUERY = 300
_RESULTS = 9_000
_ABSTRACT = 500
_AUTHORS = 4
_FIELDS = "title,year,authors,venue,abstract,tldr,citationCount,openAccessPdf,url,externalIds"
_READER = child_process.program("marvin_tools_web.pages.feed_reader")
_FEED = 3_000_000
NAMES_FIELDS = re.compile(r"\b(?:ti|au|abs|co|jr|cat|rn|id|all):(?=[\w\"(])", re.IGNORECASE)
"""Whether a query uses arXiv's query language: it names a field."""
_WORDS = re.compile(r'"([^"]{1,200})"|([^\W_](?:[\w.\'-]{0,98}\w)?)')
"""A phrase or a word; other characters could be operators of the query language."""
_JOINING = ("AND", "OR", "ANDNOT")
_YEARS = range(1000, 10_000)
_MOST_WORDS = 20


class Paper(Record):
    """A paper.

    `others` is the number of authors who are not named, `where` is the journal or the category, `cited` the number of
    citations, and `pdf` the URL of the full text.
    """

    title: str
    url: str
    year: str = ""
    authors: tuple[str, ...] = ()
    others: int = 0
    where: str = ""
    cited: int | None = None
    summary: str = ""
    pdf: str = ""
    doi: str = ""


class Papers(Record):
    """Papers of a search, and their total number."""

    papers: tuple[Paper, ...]
    total: int | None


@tool(access=["net"], labels=["Semantic Scholar", "arXiv"], probe={"query": "graph theory", "max_results": 1})
async def search_papers(
    query: Annotated[str, "Words to search for"],
    max_results: Annotated[int, Field(ge=1, le=20), "Maximum papers"] = 5,
    year_min: Annotated[int, "The earliest year; 0 means any"] = 0,
    year_max: Annotated[int, "The latest year; 0 means any"] = 0,
    open_access_only: Annotated[bool, "Only open access"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find scientific papers, with abstracts and how often they are cited."""
    asked = checked(query, "query", _QUERY)
    wrong = next((year for year in (year_min, year_max) if year and year not in _YEARS), 0)
    if wrong:
        raise ToolError(f"{wrong} is not a year. Give four digits, as in 2020, or 0 for any.")
    if year_min and year_max and year_min > year_max:
        raise ToolError(f"year_min {year_min} is after year_max {year_max}. Swap them.")
    years = f"{year_min or ''}-{year_max or ''}" if year_min or year_max else None
    params: dict[str, str | float | None] = {
        # Words with a hyphen find nothing there.
        "query": asked.replace("-", " "),
        "limit": max_results,
        "fields": _FIELDS,
        "year": years,
        "openAccessPdf": "" if open_access_only else None,
    }

    async def in_arxiv() -> Papers:
        return await _arxiv(context, arxiv_expression(asked, year_min, year_max), max_results, "relevance")

    answered = await first_answer(
        context.origin,
        [
            Backend(SEMANTIC_SCHOLAR, lambda: _scholar(context, params)),
            Backend(ARXIV, in_arxiv),
        ],
        "Try again later, or search with web_search.",
    )
    return _result(answered.value, asked, max_results, answered.source)


@tool(access=["net"], labels=["arXiv"], probe={"query": "graph theory", "max_results": 1})
async def search_arxiv(
    query: Annotated[str, "Words, or fields such as au:hinton AND cat:cs.LG"],
    max_results: Annotated[int, Field(ge=1, le=20), "Maximum papers"] = 5,
    sort_by: Annotated[
        Literal["relevance", "lastUpdatedDate", "submittedDate"], "The order of the results"
    ] = "relevance",
    *,
    context: ToolContext,
) -> ToolResult:
    """Find preprints on arXiv."""
    asked = checked(query, "query", _QUERY)
    found = await _arxiv(context, arxiv_expression(asked, 0, 0), max_results, sort_by)
    return _result(found, asked, max_results, source_line([ARXIV]))


def _result(found: Papers, asked: str, most: int, source: str) -> ToolResult:
    if not found.papers:
        return ToolResult(content=f"No paper matches {asked!r}. Try fewer or other words.\n{source}")
    papers = found.papers[:most]
    text = numbered(map(_in_words, papers), _RESULTS, total=found.total, advice="For other results, use other words.")
    return ToolResult(
        content=f"{text}\n{source}", show=[Link(url=one.url, text=one.title) for one in papers if one.url]
    )


def _in_words(paper: Paper) -> str:
    authors = ", ".join(paper.authors) + (f" and {paper.others} others" if paper.others else "")
    cited = f"cited {paper.cited:,} times" if paper.cited is not None else ""
    facts = "; ".join(filter(None, (authors, paper.where, cited, f"doi:{paper.doi}" if paper.doi else "")))
    title = f"{paper.title}{f' ({paper.year})' if paper.year else ''}"
    pdf = f"PDF: {paper.pdf}" if paper.pdf and paper.pdf != paper.url else ""
    return "\n".join(filter(None, (title, facts, paper.url, pdf, paper.summary)))


async def _scholar(context: ToolContext, params: Mapping[str, str | float | None]) -> Papers:
    key = context.secret("SEMANTIC_SCHOLAR_API_KEY", None)
    client = ServiceClient(context, SEMANTIC_SCHOLAR)
    return await client.get_json(
        "paper/search", scholar_papers, params=params, headers={"x-api-key": key} if key else {}
    )


def scholar_papers(answer: Any) -> Papers:
    total = values.whole(answer, "total")
    if total == 0 and "data" not in answer:
        return Papers(papers=(), total=0)
    found = (_scholar_paper(one) for one in values.objects(values.required(answer, "data")))
    return Papers(papers=tuple(paper for paper in found if paper.title), total=total)


def _scholar_paper(one: Mapping[str, Any]) -> Paper:
    authors = values.objects(one, "authors")
    named = (values.text(author, "name", limit=80) for author in authors[:_AUTHORS])
    year = values.whole(one, "year")
    return Paper(
        title=values.plain(one, "title", limit=300),
        url=values.address(one, "url"),
        year=str(year) if year else "",
        authors=tuple(filter(None, named)),
        others=max(0, len(authors) - _AUTHORS),
        where=values.text(one, "venue", limit=120),
        cited=values.whole(one, "citationCount"),
        summary=values.plain(one, "tldr", "text", limit=_ABSTRACT) or values.plain(one, "abstract", limit=_ABSTRACT),
        pdf=values.address(one, "openAccessPdf", "url"),
        doi=values.text(one, "externalIds", "DOI", limit=120),
    )


def arxiv_expression(asked: str, year_min: int, year_max: int) -> str:
    """The query in arXiv's language: all words are required, unless the query names fields."""
    if NAMES_FIELDS.search(asked):
        expression = asked
    else:
        found = _WORDS.findall(asked)[:_MOST_WORDS]
        texts = [f'"{phrase}"' if phrase else word for phrase, word in found if word.upper() not in _JOINING]
        expression = " AND ".join(f"all:{text}" for text in texts)
    if not expression:
        raise ToolError(f"{asked!r} has no words to search for. Give a few words.")
    if year_min or year_max:
        years = f"[{year_min or 1991:04}01010000 TO {year_max or 9999:04}12312359]"
        expression = f"({expression}) AND submittedDate:{years}"
    return expression


async def _arxiv(context: ToolContext, expression: str, most: int, sort_by: str) -> Papers:
    params: dict[str, str | float | None] = {
        "search_query": expression,
        "start": 0,
        "max_results": most,
        "sortBy": sort_by,
        "sortOrder": "descending",
    }
    client = ServiceClient(context, ARXIV)
    feed = await client.get("query", _feed, params=params, largest=_FEED)
    asked = {"url": feed.url, "type": "application/atom+xml", "most": most}
    question = child_process.question(asked, feed.content)
    result = await context.processes.run(_READER, stdin=question, timeout=context.time_left / 2)
    try:
        found = await in_thread(lambda: json.loads(result.output))
        entries = values.objects(values.required(found, "entries"))
    except (ValueError, TypeError):
        raise RequestFailed(f"{ARXIV.title}: its answer is not a list of papers. Try another source.") from None
    if entries and "/api/errors" in values.text(entries[0], "link"):
        why = values.text(entries[0], "summary") or "it gave no reason"
        raise RequestFailed(f"{ARXIV.title}: the query was refused: {why}. Change the query.")
    return Papers(papers=tuple(map(_arxiv_paper, entries)), total=values.whole(found, "total"))


def _feed(answer: Fetched) -> Fetched:
    """The root of the answer, if it is a feed."""
    if b"<feed" not in answer.content[:2_000] or b"</feed>" not in answer.content[-200:]:
        raise ValueError("no feed")
    return answer


def _arxiv_paper(entry: Mapping[str, Any]) -> Paper:
    url = values.address(entry, "link").replace("http://", "https://", 1)
    authors: Sequence[Any] = values.inner(entry, "authors") or []
    categories: Sequence[Any] = values.inner(entry, "categories") or []
    return Paper(
        title=values.text(entry, "title", limit=300),
        url=url,
        year=values.text(entry, "published")[:10],
        authors=tuple(one_line(str(author), 80) for author in authors[:_AUTHORS]),
        others=max(0, len(authors) - _AUTHORS),
        where=", ".join(one_line(str(one), 40) for one in categories[:4]),
        summary=values.text(entry, "summary", limit=_ABSTRACT),
        pdf=url.replace("/abs/", "/pdf/", 1) if "/abs/" in url else "",
    )
