"""The tools places_text_search and places_nearby_search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from marvin_core import Field, ToolContext, ToolError, ToolResult, tool

from ..services.asked import checked
from ..services.backends import Answered, Backend, first_answer
from ..services.catalog import GOOGLE_PLACES, NOMINATIM, OVERPASS
from . import google, kinds
from .found import FoundPlace, box, listed, metres
from .osm import interpret, search
from .points import Point, point, point_of

_LARGEST = 50_000
_QUERY = 500
_TYPES = 20
_MORE = 100
"""Places that Overpass is asked for, of which the best are shown."""


@tool(
    access=["net"],
    labels=["Google Places", "Nominatim"],
    aliases={"text_query": ["query"], "latitude": ["lat"], "longitude": ["lng"]},
    probe={"text_query": "museum in Berlin", "max_results": 1},
)
async def places_text_search(
    text_query: Annotated[str, "As in 'ramen in Kyoto'"],
    latitude: Annotated[float | None, "Around this point"] = None,
    longitude: Annotated[float | None, "Degrees"] = None,
    radius: Annotated[float, "Metres"] = 5000,
    max_results: Annotated[int, Field(ge=1, le=20), "Most results"] = 5,
    open_now: Annotated[bool, "Only what is open"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find shops, restaurants and other places by what is said of them."""
    query = checked(text_query, "text_query", _QUERY, "Say what to look for and where, as in 'ramen in Kyoto'.")
    near = _near(latitude, longitude)
    size = _radius(radius)
    backends: list[Backend[list[FoundPlace]]] = []
    key = context.secret(google.KEY, None)
    if key:

        async def by_google() -> list[FoundPlace]:
            return await google.text_search(context, key, query, max_results, near=near, radius=size, open_now=open_now)

        backends.append(Backend(GOOGLE_PLACES, by_google))
    area = box(near, size) if near is not None else None
    backends.append(Backend(NOMINATIM, lambda: search(context, query, max_results, area)))
    answered = await first_answer(context.origin, backends, "Use web_search.")
    return _result(answered, f"No place fits {query!r}. Use other words, or overpass_query with tags.", near, open_now)


@tool(
    access=["net"],
    labels=["Google Places", "Overpass"],
    aliases={"included_types": ["types"], "latitude": ["lat"], "longitude": ["lng"]},
    probe={"near": "52.52,13.405", "included_types": ["museum"], "radius": 500, "max_results": 1},
)
async def places_nearby_search(
    latitude: Annotated[float | None, "With longitude, instead of near"] = None,
    longitude: Annotated[float | None, "Degrees"] = None,
    near: Annotated[str, "A place's name"] = "",
    *,
    included_types: Annotated[list[str], "As in restaurant, cafe, pharmacy, gas_station"],
    radius: Annotated[float, Field(le=_LARGEST), "Metres"] = 5000,
    max_results: Annotated[int, Field(ge=1, le=20), "Most results"] = 5,
    rank_by: Annotated[Literal["POPULARITY", "DISTANCE"], "What comes first"] = "POPULARITY",
    context: ToolContext,
) -> ToolResult:
    """Find places of given types around a point."""
    types = [kinds.normal(kind) for kind in included_types if kind.strip()]
    tags = [kinds.tag(kind) for kind in types]
    if not types or len(types) > _TYPES or not all(tags):
        wrong = next((kind for kind, tag in zip(types, tags, strict=True) if not tag), "")
        what = f"has {wrong[:60]!r}, which is no type" if wrong else f"has {len(types)} types"
        raise ToolError(f"included_types {what}. Give 1 to {_TYPES} types, as in restaurant, cafe, pharmacy, museum.")
    size = _radius(radius)
    at, failures = await point_of(context, latitude, longitude, near, "near, or latitude and longitude")
    backends: list[Backend[list[FoundPlace]]] = []
    key = context.secret(google.KEY, None)
    if key:

        async def by_google() -> list[FoundPlace]:
            return await google.nearby_search(context, key, at, types, max_results, radius=size, rank_by=rank_by)

        backends.append(Backend(GOOGLE_PLACES, by_google))
    backends.append(Backend(OVERPASS, lambda: _by_overpass(context, at, tags, size, max_results)))
    answered = await first_answer(context.origin, backends, "Use web_search.")
    answered = Answered(answered.value, answered.service, [*failures, *answered.failures])
    return _result(answered, f"No {', '.join(types)} within {size:.0f} m of {at.shown}. Try a larger radius.", at)


async def _by_overpass(
    context: ToolContext, at: Point, tags: Sequence[str], radius: float, most: int
) -> list[FoundPlace]:
    around = f"(around:{radius:.0f},{at.latitude:.6f},{at.longitude:.6f})"
    parts = "".join(f'nwr["{tag.partition("=")[0]}"="{tag.partition("=")[2]}"]{around};' for tag in dict.fromkeys(tags))
    found, _ = await interpret(context, f"[out:json][timeout:25];({parts});out center {_MORE};", _MORE)
    # OpenStreetMap knows nothing of popularity: what is near comes first.
    named = [one for one in found if one.at is not None]
    return sorted(named, key=lambda one: metres(at, one.at) if one.at else math.inf)[:most]


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
        source = f"OpenStreetMap does not tell what is open now; look at opening_hours.\n{source}"
    return listed(answered.value, source, near=near) if answered.value else ToolResult(content=f"{nothing}\n{source}")
