"""Formats places: numbered text for the model, a table and links for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from marvin_core import Link, Record, Table, ToolResult, numbered, one_line

from ..services import values
from .points import Point

_CHARACTERS = 12_000
_FACT = 120
_LINKS = 5
_TAGS = ("opening_hours", "phone", "contact:phone", "website", "contact:website", "cuisine", "wheelchair", "email")
_SAID_ELSEWHERE = ("name", "amenity", "shop", "tourism", "leisure", "building", "source")
_NO_FACTS = ("addr:", "name:", "contact:", "source:", "note", "fixme", "created_by", "wikidata", "ref:", "check_date")
_OTHER = 60
_METRES = 6_371_000.0
"""The radius of the earth."""


class FoundPlace(Record):
    """A place: `facts` are further facts, each as a short text; `url` is its page. `at` may be unknown."""

    name: str
    address: str
    kind: str
    at: Point | None
    url: str
    facts: tuple[str, ...] = ()


def place(
    *,
    name: str,
    address: str,
    kind: str,
    at: tuple[float | None, float | None],
    url: str,
    facts: Sequence[str] = (),
    is_anywhere: bool = False,
) -> FoundPlace | None:
    """A place from a service's answer; None if it has no coordinates, unless `is_anywhere`."""
    latitude, longitude = at
    where = None
    if latitude is not None and longitude is not None and abs(latitude) <= 90 and abs(longitude) <= 180:
        where = Point(latitude=latitude, longitude=longitude, name=name)
    elif not is_anywhere:
        return None
    return FoundPlace(name=name, address=address, kind=kind, at=where, url=url, facts=tuple(facts))


def shown_tags(tags: Mapping[str, Any], *, others: int = 0) -> tuple[str, ...]:
    """The OpenStreetMap tags that are always shown, and as many of the others."""
    found: dict[str, str] = {}
    for tag in _TAGS:
        text = values.text(tags, tag, limit=_FACT)
        if text:
            found.setdefault(tag.removeprefix("contact:").replace("_", " "), text)
    known = {*_TAGS, *_SAID_ELSEWHERE}
    more = [name for name in tags if name not in known and not name.startswith(_NO_FACTS)][:others]
    found |= {name: text for name in more if (text := values.text(tags, name, limit=_OTHER))}
    return tuple(f"{one_line(name, _OTHER)}: {text}" for name, text in found.items())


def metres(one: Point, other: Point) -> float:
    """The distance of two points in a straight line."""
    latitudes = math.radians(one.latitude), math.radians(other.latitude)
    across = math.sin((latitudes[1] - latitudes[0]) / 2) ** 2
    along = math.cos(latitudes[0]) * math.cos(latitudes[1])
    along *= math.sin(math.radians(other.longitude - one.longitude) / 2) ** 2
    return 2 * _METRES * math.asin(min(1.0, math.sqrt(across + along)))


def box(at: Point, radius: float) -> tuple[float, float, float, float]:
    """West, north, east and south of an area around a point; `radius` in metres.

    An area that contains a pole or crosses the antimeridian has all longitudes: searches cannot cross it.
    """
    high = math.degrees(radius / _METRES)
    north, south = min(90.0, at.latitude + high), max(-90.0, at.latitude - high)
    # At the circle's edge that is nearer to the pole, the parallel is shorter than at its centre.
    wide = high / max(1e-9, math.cos(math.radians(min(90.0, abs(at.latitude) + high))))
    west, east = at.longitude - wide, at.longitude + wide
    if west < -180 or east > 180:
        west, east = -180.0, 180.0
    return west, north, east, south


def listed(
    found: Sequence[FoundPlace], source: str, *, total: int | None = None, near: Point | None = None
) -> ToolResult:
    """The places as a result; with `near`, also the distance of each."""
    texts = [_text(one, near) for one in found]
    content = numbered(texts, _CHARACTERS, total=total, advice="Narrow the search, or raise max_results.")
    rows = [(one.name, one.kind, one.address, one.at.coordinates if one.at else "") for one in found]
    links = [Link(url=one.at.map_link, text=f"{one.name} on a map") for one in found[:_LINKS] if one.at]
    return ToolResult(
        content=f"{content}\n{source}",
        show=[Table(columns=("place", "kind", "address", "coordinates"), rows=rows), *links],
    )


def _text(one: FoundPlace, near: Point | None) -> str:
    kind = f" ({one.kind})" if one.kind and one.kind != one.name else ""
    away = f", {_away(metres(near, one.at))} away" if near is not None and one.at is not None else ""
    lines = [f"{one.name or 'without a name'}{kind}{away}"]
    if one.address and one.address != one.name:
        lines.append(one.address)
    lines += [" ".join(filter(None, (one.at.coordinates if one.at else "", one.url)))]
    lines += ["; ".join(one.facts)] if one.facts else []
    return "\n".join(filter(None, lines))


def _away(distance: float) -> str:
    return f"{distance:.0f} m" if distance < 1_000 else f"{distance / 1_000:.1f} km"
