"""Points on the map: coordinates, or names that are geocoded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from marvin_core import Record, ToolContext, ToolError

from ..services import values
from ..services.backends import Backend, first_answer
from ..services.catalog import NOMINATIM, OPEN_METEO_PLACES
from ..services.client import Params, ServiceClient
from ..services.queries import checked

_LONGEST = 300
_COORDINATES = re.compile(r"\s*\(?\s*([+-]?\d{1,3}(?:\.\d{1,15})?)\s*[,;\s]\s*([+-]?\d{1,3}(?:\.\d{1,15})?)\s*\)?\s*")
_MINUS = str.maketrans(dict.fromkeys("\u2212\u2010\u2011\u2013\ufe63\uff0d", "-"))
"""Characters that people write for a minus sign."""
_HOW = "Give a place as a name or as 'latitude,longitude', such as 52.52,13.405."


class Point(Record):
    """A point in degrees; `name` is empty if only its coordinates are known."""

    latitude: float
    longitude: float
    name: str = ""

    @property
    def coordinates(self) -> str:
        """Latitude and longitude, rounded to a metre."""
        # Removes the sign of a rounded zero.
        latitude, longitude = (round(degrees, 5) + 0.0 for degrees in (self.latitude, self.longitude))
        return f"{latitude:.5f},{longitude:.5f}"

    @property
    def shown(self) -> str:
        """The point's name in answers."""
        return f"{self.name} ({self.coordinates})" if self.name else self.coordinates

    @property
    def map_link(self) -> str:
        """The URL of a map at the point."""
        latitude, longitude = self.coordinates.split(",")
        return f"https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}#map=16/{latitude}/{longitude}"


def point(latitude: float, longitude: float, name: str = "") -> Point:
    """A point with valid coordinates.

    Raises:
        ToolError: they are not valid; the text says how points are given.
    """
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        swapped = -90 <= longitude <= 90 and -180 <= latitude <= 180
        hint = " Latitude comes first; they seem to be swapped." if swapped else ""
        raise ToolError(
            f"{latitude},{longitude} is not a valid point: latitudes are from -90 to 90, longitudes from -180 to "
            f"180.{hint}"
        )
    return Point(latitude=float(latitude), longitude=float(longitude), name=name)


def coordinates_in(text: str) -> Point | None:
    """The point of a text with coordinates; None if it is a name."""
    found = _COORDINATES.fullmatch(text[:_LONGEST].translate(_MINUS))
    return point(float(found[1]), float(found[2])) if found else None


async def point_of(
    context: ToolContext, latitude: float | None, longitude: float | None, name: str, what: str
) -> tuple[Point, Sequence[str]]:
    """The point that the arguments of a call describe, and the services that failed before one found it.

    Args:
        what: the parameters' names, for the error where none is given.

    Raises:
        ToolError: they mean no point.
    """
    if latitude is not None and longitude is not None:
        return point(latitude, longitude, name.strip()[:_LONGEST] if coordinates_in(name) is None else ""), ()
    if (latitude is None) != (longitude is None) and not name.strip():
        raise ToolError(f"Only one of latitude and longitude was given. Give both, or a name: {what}.")
    if not name.strip():
        raise ToolError(f"No place was given. Give {what}.")
    return await located(context, name)


async def located(context: ToolContext, name: str) -> tuple[Point, Sequence[str]]:
    """The point of a name or of coordinates, and the services that failed before one knew it.

    Raises:
        ToolError: there is no such place, or no service answered.
    """
    asked = checked(name, "A place", _LONGEST, _HOW)
    given = coordinates_in(asked)
    if given is not None:
        return given, ()
    answered = await first_answer(
        context.origin,
        [
            Backend(NOMINATIM, lambda: _by_nominatim(context, asked)),
            Backend(OPEN_METEO_PLACES, lambda: _by_open_meteo(context, asked)),
        ],
        "Ask the user for the coordinates.",
    )
    if answered.value is None:
        raise ToolError(f"The map has no place {asked!r}. Write it differently, with its town. {_HOW}")
    return answered.value, answered.failures


async def _by_nominatim(context: ToolContext, name: str) -> Point | None:
    client = ServiceClient(context, NOMINATIM)
    params: Params = {"q": name, "format": "jsonv2", "limit": 1}
    return await client.get_json(
        "search", lambda answer: _first(values.required(answer), "lat", "lon", ("display_name",)), params=params
    )


async def _by_open_meteo(context: ToolContext, name: str) -> Point | None:
    client = ServiceClient(context, OPEN_METEO_PLACES)
    params: Params = {"name": name, "count": 1, "language": "en", "format": "json"}

    def read(answer: Any) -> Point | None:
        if "results" not in answer and "generationtime_ms" in answer:
            return None  # without results there is no list
        return _first(values.required(answer, "results"), "latitude", "longitude", ("name", "admin1", "country"))

    return await client.get_json("search", read, params=params)


def _first(found: list[object], latitude: str, longitude: str, names: Sequence[str]) -> Point | None:
    if not found:
        return None
    at = values.number(found[0], latitude), values.number(found[0], longitude)
    if at[0] is None or at[1] is None or not (-90 <= at[0] <= 90 and -180 <= at[1] <= 180):
        raise ValueError("a place without coordinates")
    name = ", ".join(filter(None, (values.text(found[0], key) for key in names)))
    return Point(latitude=at[0], longitude=at[1], name=name)
