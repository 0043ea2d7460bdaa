"""The tools bookmark_list and bookmark_search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from marvin_core import Field, ToolContext, ToolError, in_thread, numbered, one_line, tool

from ..names import folded
from .store import Bookmark, bookmarks, split_tags, tags_of, told

_CHARACTERS = 20_000
_TAGS_NAMED = 30
_TAG, _QUERY = 60, 200
"""Characters of a tag and of a query in an answer."""


@tool(access=["read"], aliases={"limit": ("max_results", "most")})
async def bookmark_list(
    tag: Annotated[str, "Only bookmarks with this tag"] = "",
    limit: Annotated[int, Field(ge=1, le=200), "Maximum bookmarks"] = 20,
    *,
    context: ToolContext,
) -> str:
    """List bookmarks, the newest first."""
    found = await bookmarks(context).read()
    if not found:
        return "There are no bookmarks yet. Use bookmark_save to save one."
    wanted = set(split_tags(tag))
    chosen = [one for one in reversed(found) if wanted <= set(map(folded, tags_of(one)))]
    if not chosen:
        tags = sorted({name for one in found for name in tags_of(one)})
        known = ", ".join(tags[:_TAGS_NAMED]) + (", ..." if len(tags) > _TAGS_NAMED else "")
        return f"No bookmark has the tag {one_line(tag, _TAG)!r}. Available: {known or 'none'}."
    return _shown(chosen, limit)


@tool(access=["read"], aliases={"query": ("text", "q", "keyword"), "limit": ("max_results", "most")})
async def bookmark_search(
    query: Annotated[str, "Words; case is ignored"],
    limit: Annotated[int, Field(ge=1, le=200), "Maximum bookmarks"] = 10,
    *,
    context: ToolContext,
) -> str:
    """Search the titles, addresses, tags and notes of bookmarks."""
    words = list(filter(None, (word.lstrip("#") for word in folded(query).split())))
    if not words:
        raise ToolError("The query is empty. Give a word, or list all bookmarks with bookmark_list.")
    found = await bookmarks(context).read()
    chosen = await in_thread(lambda: _chosen(found, words))
    if not chosen:
        asked = one_line(query, _QUERY)
        return f"None of the {len(found):,} bookmarks has {asked!r}. Try fewer words, or bookmark_list."
    return _shown(chosen, limit)


def _chosen(found: Sequence[Bookmark], words: Sequence[str]) -> list[Bookmark]:
    """The bookmarks that contain all words: those with more of them in title and tags first, then the newest."""
    ranked: list[tuple[int, int, Bookmark]] = []
    for place, bookmark in enumerate(found):
        named = folded(f"{bookmark.get('title') or ''} {' '.join(tags_of(bookmark))}")
        whole = f"{named} {folded(str(bookmark['url']))} {folded(str(bookmark.get('notes') or ''))}"
        if all(word in whole for word in words):
            ranked.append((sum(word in named for word in words), place, bookmark))
    return [bookmark for _, _, bookmark in sorted(ranked, key=lambda one: (-one[0], -one[1]))]


def _shown(chosen: Sequence[Bookmark], limit: int) -> str:
    advice = "Search for more words, or raise limit."
    return numbered(told(chosen[:limit]), _CHARACTERS, total=len(chosen), advice=advice)
