"""The tools for Wikipedia, or for another wiki that the user configured."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any
from urllib.parse import parse_qs, unquote, urlsplit

from marvin_core import (
    Field,
    Link,
    RequestFailed,
    ToolContext,
    ToolError,
    ToolResult,
    head_and_tail,
    numbered,
    one_line,
    tool,
)

from .. import child_process
from ..services.backends import source_line
from ..services.queries import checked
from . import mediawiki
from .saved_articles import SavedArticles

_LABELS = ["Wikipedia"]
_RESULTS = 6_000
_LEAD = 6_000
_EXTRACT = 700
_QUERY = 300
_SECTIONS = 40
_HEADING = re.compile(r"^(={2,4}) ?([^=\n]{1,120}?) ?\1 *$", re.MULTILINE)
_SEARCHER = child_process.program("marvin_tools_web.knowledge.article_search")
_MATCHES = 20
_FOUND = 6_000
_PATTERN = 500


@tool(access=["net"], labels=_LABELS, probe={"query": "bridge", "max_results": 1})
async def wiki_search(
    query: Annotated[str, "Words to search for"],
    max_results: Annotated[int, Field(ge=1, le=10), "Maximum articles"] = 5,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find Wikipedia articles."""
    asked = checked(query, "query", _QUERY)
    found = await mediawiki.search(context, asked, max_results)
    if not found.hits:
        hint = f" Did you mean {found.suggestion!r}?" if found.suggestion else " Try other or fewer words."
        wiki = mediawiki.wiki(context)
        return ToolResult(content=f"{wiki.title} has no article about {asked!r}.{hint}\n{source_line([wiki])}")
    entries = [
        "\n".join(filter(None, (f"{hit.title}{f' ({hit.words:,} words)' if hit.words else ''}", hit.url, hit.snippet)))
        for hit in found.hits[:max_results]
    ]
    text = numbered(
        entries, _RESULTS, total=found.total, advice="For more results, use other words or a larger max_results."
    )
    links = [Link(url=hit.url, text=hit.title) for hit in found.hits[:max_results]]
    return ToolResult(content=f"{text}\n{source_line([mediawiki.wiki(context)])}", show=links)


@tool(access=["net"], labels=_LABELS, probe={"title": "Bridge"})
async def wiki_summary(title: Annotated[str, "The article's title"], *, context: ToolContext) -> ToolResult:
    """Show the beginning of a Wikipedia article."""
    article = await _article(title, context, lead=True)
    text = (
        head_and_tail(article.text, _LEAD, "wiki_full saves the whole article.") or "[The article has no introduction.]"
    )
    note = "\n[The title is ambiguous. Find the right article with wiki_search.]" if article.is_disambiguation else ""
    return ToolResult(
        content=f"{article.title}\n{article.url}\n\n{text}{note}\n{source_line([mediawiki.wiki(context)])}",
        show=[Link(url=article.url, text=article.title)],
    )


@tool(access=["net", "write"], labels=_LABELS)
async def wiki_full(title: Annotated[str, "The article's title"], *, context: ToolContext) -> ToolResult:
    """Save a whole Wikipedia article to disk, to look into it with wiki_grep; shows where it is and how it begins."""
    article = await _article(title, context, lead=False)
    path = await SavedArticles(context).save(title, article)
    headings = [found[2] for found in _HEADING.finditer(article.text)]
    listed = f"Sections: {'; '.join(headings[:_SECTIONS])}" if headings else ""
    begin = one_line(article.text[: 2 * _EXTRACT], _EXTRACT)
    parts = [
        f"{article.title}\n{article.url}\nSaved {path} ({len(article.text):,} characters).",
        listed,
        begin,
        f"[Search it with wiki_grep, title {article.title!r}.]\n{source_line([mediawiki.wiki(context)])}",
    ]
    return ToolResult(
        content="\n\n".join(filter(None, parts)),
        details={"path": str(path), "characters": len(article.text), "sections": headings[:_SECTIONS]},
        show=[Link(url=article.url, text=article.title)],
    )


@tool(access=["read"], labels=_LABELS)
async def wiki_grep(
    title: Annotated[str, "The title of an article that wiki_full saved"],
    pattern: Annotated[str, "A regular expression; case is ignored"],
    *,
    context: ToolContext,
) -> str:
    """Search a saved Wikipedia article; shows the paragraphs that match, and their sections."""
    if not pattern or len(pattern) > _PATTERN:
        raise ToolError(f"pattern has {len(pattern):,} characters. Give one of 1 to {_PATTERN}.")
    name, content = await SavedArticles(context).read(_title_in(title))
    result = await context.processes.run(
        _SEARCHER,
        stdin=child_process.question({"pattern": pattern, "most": _MATCHES}, content),
        timeout=context.timeouts.search,
    )
    try:
        found: dict[str, Any] = json.loads(result.output)
    except ValueError:
        raise ToolError(
            f"{pattern!r} takes too long: it tries too many ways to match. Avoid nested repetitions."
        ) from None
    if "error" in found:
        raise ToolError(
            f"{pattern!r} is not a regular expression: {found['error']}. To search for the literal text, use "
            f"{re.escape(pattern)!r}."
        )
    if not found["matches"]:
        return f"Nothing in the article {name!r} matches {pattern!r}. Try another pattern, or read its wiki_summary."
    return numbered(found["matches"], _FOUND, total=found["total"], advice="Use a narrower pattern.")


async def _article(title: str, context: ToolContext, *, lead: bool) -> mediawiki.Article:
    """The article. If there is none, the error names those that a search finds."""
    asked = checked(_title_in(title), "title", _QUERY)
    found = await mediawiki.article(context, asked, lead=lead)
    if found is not None:
        return found
    try:
        near = (await mediawiki.search(context, asked, 5)).hits
    except RequestFailed:
        near = ()
    hint = f"Similar titles: {'; '.join(hit.title for hit in near)}." if near else "Find one with wiki_search."
    raise ToolError(f"{mediawiki.wiki(context).title} has no article {asked!r}. {hint}")


def _title_in(given: str) -> str:
    """The title in an article's URL; any other text is the title itself."""
    try:
        parts = urlsplit(given.strip())
        named = parse_qs(parts.query).get("title", [""])[0]
    except ValueError:  # such as brackets in something that is not a URL
        return given
    if parts.scheme not in ("http", "https"):
        return given
    after = unquote(parts.path.partition("/wiki/")[2])
    return (named or after).replace("_", " ") or given
