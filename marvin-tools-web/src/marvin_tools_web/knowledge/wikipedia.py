"""The tools for Wikipedia, or for another wiki that the user names."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from marvin_core import (
    Field,
    JsonFile,
    Link,
    ToolContext,
    ToolError,
    ToolResult,
    head_and_tail,
    in_thread,
    near_names,
    numbered,
    one_line,
    tool,
    update_file,
)

from .. import child_process
from ..downloads import filenames
from ..services.asked import checked
from ..services.backends import source_line
from ..services.catalog import WIKIPEDIA
from . import mediawiki

_LABELS = ["Wikipedia"]
_RESULTS = 6_000
_LEAD = 6_000
_EXTRACT = 700
_QUERY = 300
_SECTIONS = 40
_HEADING = re.compile(r"^(={2,4}) ?([^=\n]{1,120}?) ?\1 *$", re.MULTILINE)
_FOLDER = "wikipedia"
_SEARCHER = child_process.program("marvin_tools_web.knowledge.article_search")
_MATCHES = 20
_FOUND = 6_000
_PATTERN = 500


@tool(access=["net"], labels=_LABELS, probe={"query": "bridge", "max_results": 1})
async def wiki_search(
    query: Annotated[str, "Words to look for"],
    max_results: Annotated[int, Field(ge=1, le=10), "Most articles"] = 5,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find Wikipedia articles."""
    asked = checked(query, "query", _QUERY)
    found = await mediawiki.search(context, asked, max_results)
    if not found.hits:
        hint = f" Did you mean {found.suggestion!r}?" if found.suggestion else " Try other or fewer words."
        return ToolResult(content=f"Wikipedia has no article about {asked!r}.{hint}")
    entries = [
        "\n".join(filter(None, (f"{hit.title}{f' ({hit.words:,} words)' if hit.words else ''}", hit.url, hit.snippet)))
        for hit in found.hits[:max_results]
    ]
    text = numbered(entries, _RESULTS, total=found.total, advice="For more use other words or a larger max_results.")
    links = [Link(url=hit.url, text=hit.title) for hit in found.hits[:max_results]]
    return ToolResult(content=f"{text}\n{source_line([WIKIPEDIA])}", show=links)


@tool(access=["net"], labels=_LABELS, probe={"title": "Bridge"})
async def wiki_summary(title: Annotated[str, "The article's title"], *, context: ToolContext) -> ToolResult:
    """Show the beginning of a Wikipedia article."""
    article = await _article(title, context, lead=True)
    text = (
        head_and_tail(article.text, _LEAD, "wiki_full has all of it.") or "[The article has no beginning of its own.]"
    )
    note = (
        "\n[The title means several things. Find the right one with wiki_search.]" if article.is_disambiguation else ""
    )
    return ToolResult(
        content=f"{article.title}\n{article.url}\n\n{text}{note}\n{source_line([WIKIPEDIA])}",
        show=[Link(url=article.url, text=article.title)],
    )


@tool(access=["net", "write"], labels=_LABELS)
async def wiki_full(title: Annotated[str, "The article's title"], *, context: ToolContext) -> ToolResult:
    """Save a whole Wikipedia article to disk, to look into it with wiki_grep; shows where it is and how it begins."""
    article = await _article(title, context, lead=False)
    folder = context.folders.data / _FOLDER
    path = folder / f"{filenames.safe(article.title.replace('/', '_')) or 'article'}.txt"
    content = f"{article.title}\n{article.url}\n\n{article.text}\n".encode("utf-8", "replace")
    try:
        await in_thread(lambda: folder.mkdir(exist_ok=True))
        await in_thread(lambda: update_file(path, lambda _: content, context.timeouts))
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror}. Use wiki_summary, and tell the user.") from error

    def note(index: dict[str, str]) -> None:
        index.update({_key(title): path.name, _key(article.title): path.name})

    await _index(context).change(note)
    headings = [found[2] for found in _HEADING.finditer(article.text)]
    listed = f"Sections: {'; '.join(headings[:_SECTIONS])}" if headings else ""
    begin = one_line(article.text[: 2 * _EXTRACT], _EXTRACT)
    parts = [
        f"{article.title}\n{article.url}\nSaved {path} ({len(article.text):,} characters).",
        listed,
        begin,
        f"[Look into it with wiki_grep, title {article.title!r}.]\n{source_line([WIKIPEDIA])}",
    ]
    return ToolResult(
        content="\n\n".join(filter(None, parts)),
        details={"path": str(path), "characters": len(article.text), "sections": headings[:_SECTIONS]},
        show=[Link(url=article.url, text=article.title)],
    )


@tool(access=["read"], labels=_LABELS)
async def wiki_grep(
    title: Annotated[str, "An article that wiki_full saved"],
    pattern: Annotated[str, "Regular expression, of any case"],
    *,
    context: ToolContext,
) -> str:
    """Search a saved Wikipedia article; shows the paragraphs that match, and their sections."""
    if not pattern or len(pattern) > _PATTERN:
        raise ToolError(f"pattern has {len(pattern):,} characters. Give one of 1 to {_PATTERN}.")
    index = await _index(context).read()
    name = index.get(_key(title))
    path = context.folders.data / _FOLDER / filenames.safe(name) if name else None
    try:
        content = await in_thread(path.read_bytes) if path is not None else None
    except OSError:
        content = None
    if content is None:
        near = near_names(_key(title), sorted(index))
        hint = f" Saved are: {', '.join(near or sorted(index)[:10])}." if index else ""
        raise ToolError(f"The article {one_line(title, _QUERY)!r} is not saved. Save it with wiki_full first.{hint}")
    result = await context.processes.run(
        _SEARCHER,
        stdin=child_process.question({"pattern": pattern, "most": _MATCHES}, content),
        timeout=context.timeouts.search,
    )
    try:
        found: dict[str, Any] = json.loads(result.output)
    except ValueError:
        raise ToolError(
            f"{pattern!r} takes too long: it tries too many ways to match. "
            "Write it without a repetition in a repetition."
        ) from None
    if "error" in found:
        raise ToolError(
            f"{pattern!r} is no regular expression: {found['error']}. For the text itself use {re.escape(pattern)!r}."
        )
    if not found["matches"]:
        return f"Nothing in the article {name!r} matches {pattern!r}. Try another pattern, or read its wiki_summary."
    return numbered(found["matches"], _FOUND, total=found["total"], advice="Use a narrower pattern.")


async def _article(title: str, context: ToolContext, *, lead: bool) -> mediawiki.Article:
    """The article; where there is none, the error names those that a search finds."""
    asked = checked(title, "title", _QUERY)
    found = await mediawiki.article(context, asked, lead=lead)
    if found is not None:
        return found
    near = (await mediawiki.search(context, asked, 5)).hits
    hint = f"Near it are: {'; '.join(hit.title for hit in near)}." if near else "Find one with wiki_search."
    raise ToolError(f"Wikipedia has no article {asked!r}. {hint}")


def _key(title: str) -> str:
    return " ".join(title.replace("_", " ").split()).casefold()[:_QUERY]


def _index(context: ToolContext) -> JsonFile[dict[str, str]]:
    return JsonFile(context.folders.data / _FOLDER / "index.json", dict, timeouts=context.timeouts)
