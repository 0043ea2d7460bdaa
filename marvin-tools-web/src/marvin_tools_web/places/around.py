"""Places of OpenStreetMap around a point: by name, by type, or by a description."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from marvin_core import ToolContext, ToolError, one_line

from ..services.backends import Answered
from ..services.catalog import NOMINATIM, OVERPASS
from . import kinds
from .found import FoundPlace, box, metres
from .osm import interpret, search
from .points import Point, located

_MORE = 1_000
"""Places that Overpass is asked for. It sends the oldest first, and the nearest of them are shown."""
_NEAR = (500.0, 2_000.0)
"""Radii in metres that are searched first: in a town, a large radius would contain more than `_MORE` places."""
_IN = re.compile(r"\s(?:in|near|around|at|close to|next to|by)\s|,\s", re.IGNORECASE)
_WHY = 300
_MENTIONED = 3
"""Characters of a word, at least, that is searched for in names."""
_EMPTY = frozenset("a an the some any best good great nice cheap popular top nearby place places".split())
"""Words that do not occur in names."""
_CORNER = 1.5
"""How many times farther than the radius the corner of a square is, about."""


async def named(context: ToolContext, query: str, most: int, near: Point | None, radius: float) -> list[FoundPlace]:
    """Nominatim's results for a name or an address, around a point if one is given."""
    if near is None:
        return await search(context, query, most)
    area = box(near, radius)
    is_band = area[2] - area[0] >= 360
    found = await search(context, query, 40 if is_band else most, area)
    there = [one for one in found if one.at is not None and metres(near, one.at) <= _CORNER * radius]
    return (there if is_band else found)[:most]


def filters(tags: Sequence[str]) -> str:
    """Tags as an Overpass QL filter that requires all of them. A cuisine tag may have several values."""
    pairs = [tag.partition("=")[::2] for tag in tags]
    return "".join(f'["{key}"~"{value}"]' if key == "cuisine" else f'["{key}"="{value}"]' for key, value in pairs)


async def nearest(context: ToolContext, at: Point, sought: Sequence[str], radius: float, most: int) -> list[FoundPlace]:
    """The places nearest to a point that match at least one filter. OpenStreetMap has no popularity."""
    found: list[FoundPlace] = []
    for size in [*(near for near in _NEAR if near < radius / 2), radius]:
        area = f"(around:{size:.0f},{at.latitude:.6f},{at.longitude:.6f})"
        parts = "".join(f"nwr{one}{area};" for one in dict.fromkeys(sought))
        answer = await interpret(context, f"[out:json][timeout:25];({parts});out center {_MORE};", _MORE)
        found = [one for one in answer.places if one.at is not None]
        if len(found) >= most:
            break
    return sorted(found, key=lambda one: metres(at, one.at) if one.at else math.inf)[:most]


async def described(
    context: ToolContext,
    query: str,
    most: int,
    near: Point | None,
    radius: float,
    before: Answered[list[FoundPlace]],
) -> Answered[list[FoundPlace]]:
    """The places that a description means, as in `ramen in Kyoto`; `before` if it names no place."""
    what, where = _parted(query)
    sought = wanted(what)
    if not sought or (near is None and not where):
        return before
    failures = list(before.failures)
    try:
        at = near
        if at is None:
            at, failed = await located(context, where)
            failures += failed
        return Answered(await nearest(context, at, sought, radius, most), OVERPASS, failures)
    except ToolError as error:
        return Answered([], NOMINATIM, [*failures, one_line(str(error), _WHY)])


def _parted(query: str) -> tuple[str, str]:
    """What is searched for, and where."""
    found = _IN.search(query)
    return (query[: found.start()], query[found.end() :]) if found else (query, "")


def wanted(what: str) -> list[str]:
    """Filters for a description: of the type that it names, else of all places with its words in name or cuisine."""
    # Only letters and digits of a query are kept: other characters in names may be anything.
    words = [word for word in re.findall(r"\w+", what.replace("_", " ")) if word.lower() not in _EMPTY]
    tags = kinds.known(" ".join(words))
    if tags:
        return [filters(tags)]
    if not any(len(word) >= _MENTIONED or not word.isascii() for word in words):
        return []
    expression = ".".join(words)
    return [f'["name"~"{expression}",i]', f'["cuisine"~"{expression}",i]']
