"""Steam's store: search, pages of games, offers. The store API needs no key and has no official documentation.

Source: wiki.teamfortress.com/wiki/User:RJackson/StorefrontAPI
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from marvin_core import Field, Link, ToolContext, ToolError, ToolResult, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import STEAM_STORE
from ..services.client import Params, ServiceClient
from ..services.queries import checked
from .facts import given, joined, labelled, lines, listed, names

_QUERY = 200
_ABOUT = 1_500
_OFFERED = 8
_SHOP: Params = {"l": "english", "cc": "US"}
_SECTIONS = (("specials", "Specials"), ("top_sellers", "Top sellers"), ("new_releases", "New releases"))


@tool(access=["net"], labels=["Steam"], probe={"query": "Portal", "max_results": 1})
async def steam_search(
    query: Annotated[str, "The title, or a part of it"],
    max_results: Annotated[int, Field(ge=1, le=25), "Maximum games"] = 10,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find games in Steam's shop, with prices."""
    asked = checked(query, "query", _QUERY, "Give the title of a game.")

    def read(answer: Any) -> tuple[list[Mapping[str, Any]], int | None]:
        return values.objects(values.required(answer, "items")), values.whole(answer, "total")

    client = ServiceClient(context, STEAM_STORE)
    hits, total = await client.get_json("api/storesearch/", read, params={"term": asked, **_SHOP})
    if not hits:
        return ToolResult(content=f"The Steam store has no game {asked!r}. Change the title, or use search_games.")
    shown = hits[:max_results]
    links = [Link(url=_page(one), text=given(one, "name")) for one in shown]
    return listed(map(_in_short, shown), source_line([STEAM_STORE]), links, total)


@tool(access=["net"], labels=["Steam"], probe={"app_id": 620})
async def steam_app_details(app_id: Annotated[int, "From steam_search"], *, context: ToolContext) -> ToolResult:
    """Tell about a game in Steam's shop: what it is, price, who made it."""
    if app_id < 1:
        raise ToolError(f"The app {app_id} does not exist. Find one with steam_search.")

    def read(answer: Any) -> str | None:
        entry = answer[str(app_id)]
        return details_in(entry["data"], app_id) if entry["success"] else None

    client = ServiceClient(context, STEAM_STORE)
    text = await client.get_json("api/appdetails", read, params={"appids": app_id, **_SHOP})
    if text is None:
        raise ToolError(
            f"The Steam store has no app {app_id}, or not in the United States. Find one with steam_search."
        )
    page = f"https://store.steampowered.com/app/{app_id}"
    return ToolResult(
        content=f"{text}\n{page}\n{source_line([STEAM_STORE])}", show=[Link(url=page, text=text.partition("\n")[0])]
    )


@tool(access=["net"], labels=["Steam"], probe={})
async def steam_featured(*, context: ToolContext) -> ToolResult:
    """Tell what Steam features now: specials, top sellers, new games."""
    client = ServiceClient(context, STEAM_STORE)
    text, links = await client.get_json("api/featuredcategories", featured_in, params=_SHOP)
    return ToolResult(content=f"{text}\n{source_line([STEAM_STORE])}", show=links)


def featured_in(answer: Any) -> tuple[str, list[Link]]:
    """The featured games, numbered, and links to them."""
    parts: list[str] = []
    links: list[Link] = []
    for key, title in _SECTIONS:
        games = {values.whole(one, "id"): one for one in values.objects(answer, key, "items")}
        shown = list(games.values())[:_OFFERED]
        entries = [f"{number}. {_offer(one)}" for number, one in enumerate(shown, len(links) + 1)]
        links += [Link(url=_page(one), text=given(one, "name")) for one in shown]
        if entries:
            parts.append("\n".join([f"{title}:", *entries]))
    if not parts:
        raise ValueError("nothing is featured")
    return "\n\n".join(parts), links


def _page(one: Mapping[str, Any]) -> str:
    return f"https://store.steampowered.com/app/{values.whole(one, 'id') or 0}"


def _money(cents: float | None, currency: str) -> str:
    return f"{cents / 100:,.2f} {currency}".strip() if cents is not None else ""


def _price(initial: float | None, final: float | None, currency: str) -> str:
    if final is None:
        return ""
    off = f" (-{100 - final / initial * 100:.0f} %)" if initial and final < initial else ""
    return f"{_money(final, currency)}{off}" if final else "free"


def _in_short(one: Mapping[str, Any]) -> str:
    price = _price(
        values.number(one, "price", "initial"),
        values.number(one, "price", "final"),
        values.text(one, "price", "currency"),
    )
    systems = ", ".join(name for name in ("windows", "mac", "linux") if values.inner(one, "platforms", name) is True)
    score = values.whole(one, "metascore")
    facts = joined(f"app {values.whole(one, 'id') or 0}", price, f"Metacritic {score}" if score else "", systems)
    return lines(given(one, "name") or "(no name)", facts, _page(one))


def _offer(one: Mapping[str, Any]) -> str:
    price = _price(
        values.number(one, "original_price"), values.number(one, "final_price"), values.text(one, "currency", limit=8)
    )
    return joined(given(one, "name", 120) or "(no name)", price, _page(one))


def details_in(data: Any, app_id: int) -> str:
    name = given(data, "name")
    if not name:
        raise ValueError("there is no name")
    free = data.get("is_free") is True
    price = "free" if free else values.text(data, "price_overview", "final_formatted", limit=40)
    off = values.whole(data, "price_overview", "discount_percent")
    votes = values.whole(data, "recommendations", "total")
    critics = values.whole(data, "metacritic", "score")
    return lines(
        name,
        joined(
            f"app {app_id}",
            given(data, "type"),
            f"{price}{f' (-{off} %)' if off else ''}" if price else "no price",
            labelled("released", values.text(data, "release_date", "date", limit=40)),
        ),
        joined(f"Metacritic {critics}" if critics else "", f"recommended {votes:,} times" if votes else ""),
        labelled("Developers", ", ".join(_texts(data, "developers"))),
        labelled("Publishers", ", ".join(_texts(data, "publishers"))),
        labelled("Genres", names(data, "genres", key="description")),
        labelled(
            "Systems",
            ", ".join(key for key in ("windows", "mac", "linux") if values.inner(data, "platforms", key) is True),
        ),
        labelled("Features", names(data, "categories", key="description")),
        labelled("Languages", values.plain(data, "supported_languages", limit=300)),
        values.plain(data, "short_description", limit=_ABOUT),
    )


def _texts(data: Any, key: str) -> Iterator[str]:
    found = values.inner(data, key)
    for one in found[:8] if isinstance(found, list) else ():
        if text := values.text(one, limit=80):
            yield text
