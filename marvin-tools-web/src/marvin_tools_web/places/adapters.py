"""Converts places that models send as objects, pairs of numbers or lists to texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

_LATITUDE = ("lat", "latitude")
_LONGITUDE = ("lng", "lon", "long", "longitude")
_NAMES = ("name", "address", "formatted_address", "display_name", "label", "city", "query", "place")
_INSIDE = ("location", "coordinates", "position", "center", "point")


def place_text(given: Any) -> Any:
    """A place as text, such as `52.52,13.405` or `Berlin`; anything else is left to the validation.

    A pair of numbers is latitude, then longitude.
    """
    if isinstance(given, (list, tuple)) and len(given) == 2 and all(_is_number(one) for one in given):
        return f"{given[0]},{given[1]}"
    if not isinstance(given, Mapping):
        return given
    latitude, longitude = (_first(given, names) for names in (_LATITUDE, _LONGITUDE))
    if _is_number(latitude) and _is_number(longitude):
        return f"{latitude},{longitude}"
    inside = _first(given, _INSIDE)
    if isinstance(inside, Mapping):
        return place_text(inside)
    name = _first(given, _NAMES)
    return name if isinstance(name, str) else given


def places_text(given: Any) -> Any:
    """Several places as one text, with `;` between them."""
    if isinstance(given, (list, tuple)) and not (len(given) == 2 and all(map(_is_number, given))):
        texts = [place_text(one) for one in given]
        return ";".join(texts) if all(isinstance(one, str) for one in texts) else given
    return place_text(given)


def adapting(places: Iterable[str], lists: Iterable[str] = ()) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    """The argument adapter that converts the places of a tool to texts, for `@tool(adapt=...)`.

    Args:
        places: the parameters that are places.
        lists: those that take several places.
    """
    kinds = {**dict.fromkeys(places, place_text), **dict.fromkeys(lists, places_text)}
    return lambda given: {name: kinds[name](value) if name in kinds else value for name, value in given.items()}


def _first(given: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        digits = value.strip().removeprefix("-").replace(".", "", 1)
        return digits.isascii() and digits.isdecimal()
    return isinstance(value, (int, float)) and not isinstance(value, bool)
