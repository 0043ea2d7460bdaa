"""Films and series: OMDb with a key, else a web search.

Source: omdbapi.com
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from marvin_core import Link, RequestFailed, ToolContext, ToolError, ToolResult, tool

from ..search.web import LABELS, web_search
from ..services import values
from ..services.backends import source_line
from ..services.catalog import OMDB
from ..services.client import ServiceClient
from ..services.queries import checked
from .facts import given, joined, labelled, lines, listed

_KEY = "OMDB_API_KEY"
_QUERY = 200
_TITLE = "Give the title of a film or series."
_IMDB = re.compile(r"tt\d{5,10}")
_YEAR = re.compile(r"(?:18|19|20|21)\d\d")
_TOO_MANY = "too many results"
_NOTHING = ("not found", "incorrect imdb id", "conversion from string")
_BY_WEB = 5


@tool(access=["net"], labels=["OMDb", *LABELS], probe={"query": "Metropolis"})
async def search_movies(
    query: Annotated[str, "The title, or a part of it"],
    year: Annotated[str, "The year of its release"] = "",
    type: Annotated[Literal["", "movie", "series", "episode"], "Only these"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Find films and series by their titles."""
    asked = checked(query, "query", _QUERY, _TITLE)
    if year and not _YEAR.fullmatch(year.strip()):
        raise ToolError(f"{year[:40]!r} is not a year. Give four digits, as in 1999, or nothing.")
    params = {"s": asked, "y": year.strip() or None, "type": type or None}
    kind = {"": "film or series", "movie": "film", "series": "series", "episode": "episode of a series"}[type]
    try:
        found = await _ask(context, params, lambda answer: (values.required(answer, "Search"), _total(answer)))
    except RequestFailed as error:
        return await _by_web(context, f"{asked} {year} {kind} imdb".replace("  ", " "), error)
    if found == _TOO_MANY:
        raise ToolError(
            f"OMDb found too many titles for {asked!r}. Give more of the title, or use get_movie_details with the "
            "full title."
        )
    if found is None:
        return ToolResult(content=f"OMDb has no {kind} {asked!r}. Change the title, or use web_search.")
    hits = values.objects(found[0])
    links = [Link(url=_page(one), text=given(one, "Title")) for one in hits if _page(one)]
    return listed(map(_in_short, hits), f"[For details, use get_movie_details.] {source_line([OMDB])}", links, found[1])


@tool(access=["net"], labels=["OMDb", *LABELS], probe={"title": "Metropolis"})
async def get_movie_details(
    title: Annotated[str, "The title"] = "",
    imdb_id: Annotated[str, "The IMDb id instead of the title, such as tt0133093"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Show details of a film or series: plot, people, ratings."""
    number = _IMDB.search(imdb_id)
    if imdb_id and number is None:
        raise ToolError(f"{imdb_id[:40]!r} is not an IMDb id. Give one such as tt0133093, or the title.")
    asked = number[0] if number else checked(title, "title", _QUERY, _TITLE)
    params = {"i" if number else "t": asked, "plot": "full"}
    try:
        found = await _ask(context, params, details_in)
    except RequestFailed as error:
        return await _by_web(context, f"{asked} film imdb plot ratings", error)
    if found is None or found == _TOO_MANY:
        raise ToolError(f"OMDb does not have {asked!r}. Find it with search_movies.")
    text, page, name = found
    return ToolResult(content=f"{text}\n{source_line([OMDB])}", show=[Link(url=page, text=name)] if page else [])


async def _ask(context: ToolContext, params: Mapping[str, str | None], read: Any) -> Any:
    """OMDb's answer; None if it has no match, `_TOO_MANY` if it has too many to list.

    Raises:
        RequestFailed: there is no key, or no answer.
    """
    key = context.secret(_KEY, None)
    if key is None:
        raise RequestFailed(f"{OMDB.title} needs a key, which the user can get at omdbapi.com and set as {_KEY}.")

    def understood(answer: Any) -> Any:
        if values.text(answer, "Response") == "False":
            why = values.text(answer, "Error", limit=200)
            if _TOO_MANY in why.lower():
                return _TOO_MANY
            if any(sign in why.lower() for sign in _NOTHING):
                return None
            raise RequestFailed(f"it refused this: {why or 'it gave no reason'}. Try another source.")
        return read(answer)

    return await ServiceClient(context, OMDB).get_json("", understood, params={"apikey": key, "r": "json", **params})


async def _by_web(context: ToolContext, query: str, error: RequestFailed) -> ToolResult:
    """The results of a web search instead; the answer says why."""
    try:
        found: ToolResult = await web_search.function(query, _BY_WEB, "", context=context)
    except ToolError as other:
        raise ToolError(f"{error}\nA web search failed too: {other}") from other
    return found.replace(content=f"{found.content}\n[From a web search, because: {error}]")


def _total(answer: Any) -> int | None:
    return values.whole(answer, "totalResults")


def _page(one: Mapping[str, Any]) -> str:
    number = _IMDB.fullmatch(values.text(one, "imdbID"))
    return f"https://www.imdb.com/title/{number[0]}/" if number else ""


def _in_short(one: Mapping[str, Any]) -> str:
    facts = joined(f"{given(one, 'Title')} ({given(one, 'Year')})", given(one, "Type"), given(one, "imdbID"))
    return lines(facts, _page(one))


def details_in(answer: Any) -> tuple[str, str, str]:
    name = given(answer, "Title")
    if not name:
        raise ValueError("there is no title")
    ratings = [
        f"{values.text(one, 'Source', limit=60).replace('Internet Movie Database', 'IMDb')} {values.text(one, 'Value')}"
        for one in values.objects(answer, "Ratings")[:5]
    ]
    text = lines(
        f"{name} ({given(answer, 'Year')})",
        joined(given(answer, "Type"), given(answer, "Rated"), given(answer, "Runtime"), given(answer, "Genre")),
        labelled("Released", given(answer, "Released")),
        labelled("Seasons", given(answer, "totalSeasons")),
        labelled("Director", given(answer, "Director")),
        labelled("Writer", given(answer, "Writer")),
        labelled("Actors", given(answer, "Actors")),
        labelled("Ratings", joined(*ratings)),
        labelled("Awards", given(answer, "Awards")),
        labelled("Box office", given(answer, "BoxOffice")),
        labelled("Language", given(answer, "Language")),
        labelled("Country", given(answer, "Country")),
        labelled("Plot", given(answer, "Plot", 3_000)),
        _page(answer),
    )
    return text, _page(answer), name
