"""The tools places_text_search and places_nearby_search."""

from __future__ import annotations

from typing import Annotated, Literal

from marvin_core import Field, ToolContext, ToolError, ToolResult, tool

from ..services.backends import Answered, Backend, first_answer
from ..services.catalog import GOOGLE_PLACES, NOMINATIM, OVERPASS
from ..services.queries import checked
from . import around, google, kinds
from .adapters import adapting
from .found import FoundPlace, listed
from .google_access import CLIENT_ID, access
from .points import Point, point, point_of

_LARGEST = 50_000
_QUERY = 500
_TYPES = 20
_LONGITUDE = ["lng", "lon", "long"]
_SETTINGS = [CLIENT_ID]


@tool(
    access=["net"],
    labels=["Google Places", "Nominatim", "Overpass"],
    settings=_SETTINGS,
    aliases={"text_query": ["query"], "latitude": ["lat"], "longitude": _LONGITUDE},
    probe={"text_query": "museum in Berlin", "max_results": 1},
)
async def places_text_search(
    text_query: Annotated[str, "A query such as 'ramen in Kyoto'"],
    latitude: Annotated[float | None, "Search around this point"] = None,
    longitude: Annotated[float | None, "Degrees"] = None,
    radius: Annotated[float, "Metres"] = 5000,
    max_results: Annotated[int, Field(ge=1, le=20), "Maximum results"] = 5,
    open_now: Annotated[bool, "Only places that are open"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find shops, restaurants and other places by a text query."""
    query = checked(text_query, "text_query", _QUERY, "Give what to search for and where, such as 'ramen in Kyoto'.")
    near = _near(latitude, longitude)
    size = _radius(radius)
    backends: list[Backend[list[FoundPlace]]] = []
    google_by = await access(context)
    if google_by is not None:

        async def by_google() -> list[FoundPlace]:
            return await google.text_search(
                context, google_by, query, max_results, near=near, radius=size, open_now=open_now
            )

        backends.append(Backend(GOOGLE_PLACES, by_google))
    backends.append(Backend(NOMINATIM, lambda: around.named(context, query, max_results, near, size)))
    answered = await first_answer(context.origin, backends, "Use web_search.")
    if not answered.value and answered.service is NOMINATIM:
        # It searches names and addresses. Types of places have to be searched in the map data.
        answered = await around.described(context, query, max_results, near, size, answered)
    return _result(
        answered, f"No place matches {query!r}. Use other words, or overpass_query with tags.", near, open_now
    )


@tool(
    access=["net"],
    labels=["Google Places", "Overpass"],
    settings=_SETTINGS,
    aliases={
        "included_types": ["types", "type", "included_type"],
        "near": ["location", "place"],
        "latitude": ["lat"],
        "longitude": _LONGITUDE,
    },
    adapt=adapting(["near"]),
    probe={"near": "52.52,13.405", "included_types": ["museum"], "radius": 500, "max_results": 1},
)
async def places_nearby_search(
    latitude: Annotated[float | None, "With longitude, instead of near"] = None,
    longitude: Annotated[float | None, "Degrees"] = None,
    near: Annotated[str, "A place's name"] = "",
    *,
    included_types: Annotated[list[str], "Types such as restaurant, cafe, pharmacy, gas_station"],
    radius: Annotated[float, Field(le=_LARGEST), "Metres"] = 5000,
    max_results: Annotated[int, Field(ge=1, le=20), "Maximum results"] = 5,
    rank_by: Annotated[Literal["POPULARITY", "DISTANCE"], "The order of the results"] = "POPULARITY",
    context: ToolContext,
) -> ToolResult:
    """Find places of given types around a point."""
    types = [kinds.normal(kind) for kind in included_types if kind.strip()]
    tags = [kinds.tags(kind) for kind in types]
    if not types or len(types) > _TYPES or not all(tags):
        wrong = next((kind for kind, found in zip(types, tags, strict=True) if not found), "")
        what = f"has {wrong[:60]!r}, which is not a type" if wrong else f"has {len(types)} types"
        raise ToolError(f"included_types {what}. Give 1 to {_TYPES} types, such as restaurant, cafe, pharmacy, museum.")
    size = _radius(radius)
    at, failures = await point_of(context, latitude, longitude, near, "near, or latitude and longitude")
    backends: list[Backend[list[FoundPlace]]] = []
    # Google does not know OpenStreetMap tags.
    google_by = None if any("=" in kind for kind in types) else await access(context)
    if google_by is not None:

        async def by_google() -> list[FoundPlace]:
            return await google.nearby_search(context, google_by, at, types, max_results, radius=size, rank_by=rank_by)

        backends.append(Backend(GOOGLE_PLACES, by_google))
    filters = [around.filters(found) for found in tags]
    backends.append(Backend(OVERPASS, lambda: around.nearest(context, at, filters, size, max_results)))
    answered = await first_answer(context.origin, backends, "Use web_search.")
    answered = Answered(answered.value, answered.service, [*failures, *answered.failures])
    return _result(answered, f"No {', '.join(types)} within {size:.0f} m of {at.shown}. Try a larger radius.", at)


def _near(latitude: float | None, longitude: float | None) -> Point | None:
    if latitude is None and longitude is None:
        return None
    if latitude is None or longitude is None:
        raise ToolError("Only one of latitude and longitude was given. Give both, or neither.")
    return point(latitude, longitude)


def _radius(radius: float) -> float:
    if not 0 < radius <= _LARGEST:
        raise ToolError(f"A radius of {radius:g} m is not possible. Give 1 to {_LARGEST:,} metres.")
    return float(radius)


def _result(
    answered: Answered[list[FoundPlace]], nothing: str, near: Point | None, open_now: bool = False
) -> ToolResult:
    source = answered.source
    if open_now and answered.service is not GOOGLE_PLACES:
        source = f"OpenStreetMap cannot filter by what is open now; check opening_hours.\n{source}"
    return listed(answered.value, source, near=near) if answered.value else ToolResult(content=f"{nothing}\n{source}")
