"""The tools osm_search and overpass_query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from marvin_core import Fetched, Field, Record, RequestFailed, ToolContext, ToolError, ToolResult, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import NOMINATIM, OVERPASS
from ..services.client import Params, ServiceClient
from ..services.queries import checked
from .found import FoundPlace, listed, place, shown_tags

_LONGEST = 1_000
_QUERY = 20_000
_ELEMENTS = 100_000
"""Elements that are counted at most."""
_FACTS = 8
"""Tags of an element that are shown in addition to the common ones."""
_TIME = 25
"""Seconds that Overpass gets for a query without a timeout of its own."""
_SETTINGS = re.compile(r"\s*\[(?:out|timeout|maxsize|bbox|date|diff|adiff)\b")
_OTHER_FORM = re.compile(r"\[out:(?!json\b)\w+(?:\([^()]{0,500}\))?")
_HELP = (
    "An example of Overpass QL: node[amenity=cafe](around:500,52.52,13.405);out center; with "
    "around:METRES,LATITUDE,LONGITUDE."
)


@tool(access=["net"], labels=["Nominatim"], probe={"query": "Berlin", "max_results": 1})
async def osm_search(
    query: Annotated[str, "A place's name or address"],
    max_results: Annotated[int, Field(ge=1, le=20), "Maximum results"] = 5,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find places and addresses on OpenStreetMap."""
    found = await search(context, query, max_results)
    if not found:
        return ToolResult(
            content=f"The map has no place called {query[:100]!r}. Use fewer words, or another spelling.\n"
            + source_line([NOMINATIM])
        )
    return listed(found, source_line([NOMINATIM]))


async def search(
    context: ToolContext, query: str, most: int, area: tuple[float, float, float, float] | None = None
) -> list[FoundPlace]:
    """Nominatim's results, within an area (west, north, east, south) if one is given.

    Source: nominatim.org/release-docs/latest/api/Search

    Raises:
        ToolError: the query is invalid, or there is no answer.
    """
    asked = checked(query, "query", _LONGEST, "Give the name of a place, and its town.")
    params: Params = {
        "q": asked,
        "format": "jsonv2",
        "limit": most,
        "extratags": 1,
        "viewbox": ",".join(f"{degrees:.6f}" for degrees in area) if area else None,
        "bounded": 1 if area else None,
    }
    client = ServiceClient(context, NOMINATIM)
    return await client.get_json("search", lambda answer: read_nominatim(answer, most), params=params)


def read_nominatim(answer: Any, most: int) -> list[FoundPlace]:
    """The places in an answer of Nominatim.

    Raises:
        ValueError: it is not a valid answer.
    """
    given = values.required(answer)
    found = [one for one in map(_of_nominatim, given[:most]) if one is not None]
    if given and not found:
        raise ValueError("there is no place with coordinates")
    return found


def _of_nominatim(item: Any) -> FoundPlace | None:
    full = values.text(item, "display_name")
    name = values.text(item, "name") or full.partition(",")[0]
    kind = values.text(item, "addresstype") or values.text(item, "type")
    tags = values.inner(item, "extratags")
    return place(
        name=name,
        address=full,
        kind=kind.replace("_", " "),
        at=(values.number(item, "lat"), values.number(item, "lon")),
        url=_osm_url(values.text(item, "osm_type"), values.whole(item, "osm_id")),
        facts=shown_tags(tags) if isinstance(tags, Mapping) else (),
    )


@tool(
    access=["net"],
    labels=["Overpass"],
    aliases={"query": ["ql", "overpass_ql"]},
    probe={"query": "node(240109189);out;", "max_results": 1},
)
async def overpass_query(
    query: Annotated[str, "Overpass QL, e.g. node[shop=bakery](around:800,48.1,11.5);out;"],
    max_results: Annotated[int, Field(ge=1, le=100), "Maximum results"] = 20,
    *,
    context: ToolContext,
) -> ToolResult:
    """Query the map data of OpenStreetMap with Overpass QL."""
    if "{{" in query:
        raise ToolError(
            "{{...}} works only in Overpass Turbo. Instead of {{bbox}}, write the area as south,west,north,east, "
            f"or search around a point. {_HELP}"
        )
    found = await interpret(context, query, max_results, facts=_FACTS)
    source = f"{found.remark}{source_line([OVERPASS])}"
    if not found.places:
        return ToolResult(content=f"Nothing matches the query. Check the tags, and widen the area. {_HELP}\n{source}")
    return listed(found.places, source, total=found.total)


class Elements(Record):
    """An answer of Overpass: places, their total number, and a warning about the answer, or ""."""

    places: tuple[FoundPlace, ...]
    total: int
    remark: str = ""


async def interpret(context: ToolContext, query: str, most: int, *, facts: int = 0) -> Elements:
    """Overpass's answer to a query, with up to this many less common tags of each place.

    Source: wiki.openstreetmap.org/wiki/Overpass_API/Overpass_QL

    Raises:
        ToolError: the query is invalid, or there is no answer.
    """
    if not query.strip() or len(query) > _QUERY:
        raise ToolError(f"query is {'empty' if not query.strip() else 'too long'}. {_HELP}")
    try:
        return await ServiceClient(context, OVERPASS).post_form(
            "", {"data": prepared(query)}, lambda answer: read_overpass(answer, most, facts)
        )
    except RequestFailed as error:
        if error.status == 400:
            raise ToolError(f"{error} The query is not valid. {_HELP}") from error
        if error.status in (429, 504):
            raise ToolError(f"{error} The server is busy. Use a smaller area, or try again later.") from error
        raise


def prepared(query: str) -> str:
    """A query that requests JSON and sets the timeout."""
    asked = _OTHER_FORM.sub("[out:json", query.strip())
    if "[out:json" in asked:
        return asked
    if _SETTINGS.match(asked):
        return f"[out:json]{asked}"
    asked = asked if asked.endswith(";") else f"{asked};"
    if not re.search(r"\bout\b", asked):
        asked += "out center;"
    return f"[out:json][timeout:{_TIME}];{asked}"


def read_overpass(answer: Fetched, most: int, facts: int = 0) -> Elements:
    """The elements of an answer of Overpass.

    Raises:
        ValueError: it is not a valid answer.
        RequestFailed: Overpass gave up.
    """
    data = answer.json()
    elements = values.required(data, "elements", most=_ELEMENTS)
    remark = values.text(data, "remark")
    is_cut = "error" in remark.lower()
    if is_cut and not elements:
        raise RequestFailed(f"it stopped: {remark} Use a smaller area, or ask for less.")
    tagged = [one for one in elements if values.inner(one, "tags")] or elements
    found = [one for one in (_of_overpass(element, facts) for element in tagged[:most]) if one is not None]
    said = f"[The result is incomplete: {remark} Use a smaller area.]\n" if is_cut else ""
    return Elements(places=tuple(found), total=len(tagged), remark=said)


def _of_overpass(element: Any, facts: int) -> FoundPlace | None:
    tags = values.inner(element, "tags")
    tags = tags if isinstance(tags, Mapping) else {}
    number, sort = values.whole(element, "id"), values.text(element, "type")
    parts = (" ".join(filter(None, (values.text(tags, "addr:street"), values.text(tags, "addr:housenumber")))),)
    town = " ".join(filter(None, (values.text(tags, "addr:postcode"), values.text(tags, "addr:city"))))
    kinds = ("amenity", "shop", "tourism", "leisure", "highway", "building", "natural", "railway", "office", "craft")
    kind = next((f"{key} {values.text(tags, key)}" for key in kinds if values.text(tags, key)), "")
    return place(
        name=values.text(tags, "name") or kind or f"{sort} {number}",
        address=", ".join(filter(None, (*parts, town))),
        kind=kind.replace("_", " "),
        at=_middle(element),
        url=_osm_url(sort, number),
        facts=shown_tags(tags, others=facts),
        is_anywhere=True,
    )


def _middle(element: Any) -> tuple[float | None, float | None]:
    """The position of an element: its own, its centre, or the middle of its bounds, whichever the query requested."""
    for at in (values.inner(element, "center"), element):
        latitude, longitude = values.number(at, "lat"), values.number(at, "lon")
        if latitude is not None and longitude is not None:
            return latitude, longitude
    edges = [values.number(element, "bounds", name) for name in ("minlat", "maxlat", "minlon", "maxlon")]
    south, north, west, east = edges
    if south is None or north is None or west is None or east is None or west > east:
        return None, None
    return (south + north) / 2, (west + east) / 2


def _osm_url(sort: str, number: int | None) -> str:
    known = sort in ("node", "way", "relation") and number is not None
    return f"https://www.openstreetmap.org/{sort}/{number}" if known else ""
