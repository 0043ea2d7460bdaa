"""Video games: RAWG with a key, else a web search.

Source: api.rawg.io/docs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from marvin_core import Field, Link, RequestFailed, ToolContext, ToolError, ToolResult, tool

from ..search.web import LABELS, web_search
from ..services import values
from ..services.backends import source_line
from ..services.catalog import RAWG
from ..services.client import ServiceClient
from ..services.queries import checked
from .facts import given, joined, labelled, lines, listed, names

T = TypeVar("T")

_KEY = "RAWG_API_KEY"
_QUERY = 200
_ABOUT = 2_500
_NOT_FOUND = 404


@tool(access=["net"], labels=["RAWG", *LABELS], probe={"query": "Portal", "max_results": 1})
async def search_games(
    query: Annotated[str, "The title, or a part of it"],
    max_results: Annotated[int, Field(ge=1, le=10), "Maximum games"] = 5,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find video games by their titles, with release, ratings and platforms."""
    asked = checked(query, "query", _QUERY, "Give the title of a game.")

    def read(answer: Any) -> tuple[list[Mapping[str, Any]], int | None]:
        return values.objects(values.required(answer, "results")), values.whole(answer, "count")

    try:
        hits, total = await _ask(context, "games", read, {"search": asked, "page_size": max_results})
    except RequestFailed as error:
        try:
            found: ToolResult = await web_search.function(f"{asked} video game", max_results, "", context=context)
        except ToolError as other:
            raise ToolError(f"{error}\nA web search failed too: {other}") from other
        return found.replace(content=f"{found.content}\n[From a web search, because: {error}]")
    if not hits:
        return ToolResult(content=f"RAWG has no game {asked!r}. Change the title, or try steam_search.")
    links = [Link(url=_page(one), text=given(one, "name")) for one in hits[:max_results] if _page(one)]
    source = f"[For details, use get_game_details.] {source_line([RAWG])}"
    return listed(map(_in_short, hits[:max_results]), source, links, total)


@tool(access=["net"], labels=["RAWG"], probe={"game_id": 4200})
async def get_game_details(
    game_id: Annotated[int, "From search_games"],
    *,
    context: ToolContext,
) -> ToolResult:
    """Show details of a video game: what it is, who made it, ratings."""
    if game_id < 1:
        raise ToolError(f"The game {game_id} does not exist. Find one with search_games.")
    try:
        text, page, name = await _ask(context, f"games/{game_id}", details_in, {})
    except RequestFailed as error:
        if error.status == _NOT_FOUND:
            raise ToolError(f"RAWG has no game {game_id}. Find one with search_games.") from error
        raise
    return ToolResult(content=f"{text}\n{source_line([RAWG])}", show=[Link(url=page, text=name)] if page else [])


async def _ask(
    context: ToolContext, path: str, read: Callable[[Any], T], params: Mapping[str, str | float | None]
) -> T:
    key = context.secret(_KEY, None)
    if key is None:
        raise RequestFailed(
            f"{RAWG.title} needs a key, which the user can get at rawg.io/apidocs and set as {_KEY}. "
            "Without it use steam_search or web_search."
        )
    return await ServiceClient(context, RAWG).get_json(path, read, params={"key": key, **params})


def _page(one: Mapping[str, Any]) -> str:
    slug = given(one, "slug", 200)
    return f"https://rawg.io/games/{slug}" if slug.replace("-", "").isalnum() else ""


def _platforms(one: Mapping[str, Any]) -> str:
    found = (values.text(each, "platform", "name", limit=60) for each in values.objects(one, "platforms")[:10])
    return ", ".join(filter(None, found))


def _scores(one: Mapping[str, Any]) -> str:
    rating, critics = values.number(one, "rating"), values.whole(one, "metacritic")
    return joined(f"rated {rating:g} of 5" if rating else "", f"Metacritic {critics}" if critics else "")


def _in_short(one: Mapping[str, Any]) -> str:
    year = given(one, "released")[:10]
    return lines(
        f"{given(one, 'name') or '(no name)'}{f' ({year})' if year else ''}",
        joined(f"game {values.whole(one, 'id')}", _scores(one), names(one, "genres"), _platforms(one)),
        _page(one),
    )


def details_in(answer: Any) -> tuple[str, str, str]:
    name = given(answer, "name")
    if not name:
        raise ValueError("there is no name")
    hours = values.whole(answer, "playtime")
    about = values.plain(answer, "description_raw", limit=_ABOUT) or values.plain(answer, "description", limit=_ABOUT)
    text = lines(
        name,
        joined(labelled("released", given(answer, "released")), _scores(answer), names(answer, "genres")),
        labelled("Platforms", _platforms(answer)),
        labelled("Developers", names(answer, "developers")),
        labelled("Publishers", names(answer, "publishers")),
        labelled("For", values.text(answer, "esrb_rating", "name")),
        f"Usual playing time: {hours} h" if hours else "",
        labelled("Site", values.address(answer, "website")),
        about,
        _page(answer),
    )
    return text, _page(answer), name
