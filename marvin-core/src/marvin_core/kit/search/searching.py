"""Text search with ripgrep, or with Marvin's own program if that is missing; the results look the same."""

from __future__ import annotations

import os
import stat

from ...api.tool_context import ToolContext
from ..files.encodings import HEAD_BYTES, refuse_binary
from ..files.finding import relative_filter
from ..files.globs import GlobFilter
from ..files.listing import in_repository, list_files
from .results import SearchPlaces, SearchQuery, SearchResult, holds_keys
from .ripgrep import CannotSearch, ripgrep


async def search_files(context: ToolContext, query: SearchQuery) -> SearchResult:
    """Search the text files of a folder, without those that .gitignore excludes; hidden files only if named.

    It uses ripgrep if installed, with PCRE2 for features such as look-ahead; otherwise a program of Marvin's with
    the library `regex`. A search ends with the first match that is not shown.

    Raises:
        ToolError: the pattern is invalid or takes too long, or `start` is a file that is not text.
    """
    places = await _places(context, query)
    if places.files == () and not places.wanted.is_everything:
        return SearchResult(lines=(), matches=0, has_files=False)
    try:
        result = await ripgrep(context, query, places)
    except CannotSearch:
        from .own_search import own_search

        if places.files is None:
            places = SearchPlaces(files=await _all_files(context, query, places.wanted), wanted=places.wanted)
        result = await own_search(context, query, places)
    if result.matches or result.has_more or places.wanted.is_everything:
        return result
    files = places.files if places.files is not None else await _all_files(context, query, places.wanted)
    return result.replace(has_files=bool(files))


async def _places(context: ToolContext, query: SearchQuery) -> SearchPlaces:
    wanted = GlobFilter(relative_filter(context, query.files))
    root = context.paths.root
    if (root / query.start).is_dir():
        # Elsewhere rules of folders above count for it that should not, or do not that should; and what no tool
        # reaches lies in folders with a dot.
        is_top = (root / ".git").exists() or (query.start == "." and not in_repository(root))
        folder = root / query.start
        if any((place / ".rgignore").exists() for place in (folder, *folder.parents)):
            is_top = False  # ripgrep 13 obeys it in spite of --no-ignore-dot; git and glob do not
        if is_top and not wanted.names_hidden and "/." not in f"/{query.start}".removesuffix("/."):
            return SearchPlaces(files=None, wanted=wanted)
        return SearchPlaces(files=await _all_files(context, query, wanted), wanted=wanted)
    with context.paths.open(query.start) as file:
        refuse_binary(query.start, file.read(HEAD_BYTES), os.fstat(file.fileno()).st_size)
    return SearchPlaces(files=(query.start,), wanted=GlobFilter("*"))


async def _all_files(context: ToolContext, query: SearchQuery, wanted: GlobFilter) -> tuple[str, ...]:
    start = query.start
    found = await list_files(context, start, lambda name: wanted(name, start), hidden=wanted.names_hidden)
    names = [name for name, mode, *_ in found if stat.S_ISREG(mode) and not holds_keys(name)]
    return tuple(sorted(names, key=lambda name: name.split("/")))
