"""The requests to Google Places, and its answers.

Source: developers.google.com/maps/documentation/places/web-service, "Text Search (New)" and "Nearby Search (New)"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marvin_core import ToolContext

from ..services import values
from ..services.catalog import GOOGLE_PLACES
from ..services.client import ServiceClient
from .found import FoundPlace, place
from .google_access import Access
from .points import Point

_FIELDS = (
    "displayName",
    "formattedAddress",
    "location",
    "primaryTypeDisplayName",
    "rating",
    "userRatingCount",
    "priceLevel",
    "currentOpeningHours.openNow",
    "nationalPhoneNumber",
    "websiteUri",
    "googleMapsUri",
)
"""Google charges by fields, so only those that are shown are requested."""
_FACT = 120


async def text_search(
    context: ToolContext, access: Access, query: str, most: int, *, near: Point | None, radius: float, open_now: bool
) -> list[FoundPlace]:
    """The places that a text describes, those near a point first."""
    body: dict[str, Any] = {"textQuery": query, "pageSize": most}
    if open_now:
        body["openNow"] = True
    if near is not None:
        body["locationBias"] = {"circle": _circle(near, radius)}
    return await _ask(context, access, "places:searchText", body, most)


async def nearby_search(
    context: ToolContext,
    access: Access,
    near: Point,
    types: Sequence[str],
    most: int,
    *,
    radius: float,
    rank_by: str,
) -> list[FoundPlace]:
    """The places of some types around a point."""
    body = {
        "includedTypes": list(types),
        "maxResultCount": most,
        "rankPreference": rank_by,
        "locationRestriction": {"circle": _circle(near, radius)},
    }
    return await _ask(context, access, "places:searchNearby", body, most)


async def _ask(context: ToolContext, access: Access, path: str, body: Mapping[str, Any], most: int) -> list[FoundPlace]:
    client = ServiceClient(context, GOOGLE_PLACES)
    mask = {"x-goog-fieldmask": ",".join(f"places.{field}" for field in _FIELDS)}
    return await access.use(
        lambda headers: client.post_json(path, body, lambda answer: read(answer, most), headers={**mask, **headers})
    )


def _circle(at: Point, radius: float) -> dict[str, Any]:
    return {"center": {"latitude": at.latitude, "longitude": at.longitude}, "radius": float(radius)}


def read(answer: Any, most: int) -> list[FoundPlace]:
    """The places of an answer; an empty object means none.

    Raises:
        ValueError: it is not a valid answer.
    """
    if answer == {}:
        return []
    given = values.required(answer, "places")
    found = [one for one in map(_place, given[:most]) if one is not None]
    if given and not found:
        raise ValueError("there is no place with coordinates")
    return found


def _place(item: Any) -> FoundPlace | None:
    return place(
        name=values.text(item, "displayName", "text"),
        address=values.text(item, "formattedAddress"),
        kind=values.text(item, "primaryTypeDisplayName", "text"),
        at=(values.number(item, "location", "latitude"), values.number(item, "location", "longitude")),
        url=values.address(item, "googleMapsUri"),
        facts=[*filter(None, _facts(item))],
    )


def _facts(item: Any) -> Sequence[str]:
    rating, count = values.number(item, "rating"), values.whole(item, "userRatingCount")
    is_open = values.inner(item, "currentOpeningHours", "openNow")
    price = values.text(item, "priceLevel").removeprefix("PRICE_LEVEL_").replace("_", " ").lower()
    phone, site = values.text(item, "nationalPhoneNumber", limit=_FACT), values.address(item, "websiteUri")
    return (
        "" if rating is None else f"{rating:g} of 5{f' by {count:,} people' if count else ''}",
        "" if not isinstance(is_open, bool) else ("open now" if is_open else "closed now"),
        price,
        f"phone: {phone}" if phone else "",
        f"website: {site}" if site else "",
    )
