"""Places of OpenStreetMap around a point: by their names, by their types, by what words say of them."""

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
"""Places that Overpass is asked for. It sends the oldest first, and of these the nearest are shown."""
_NEAR = (500.0, 2_000.0)
"""Metres around a point that are looked at first: in a town, all of a large radius would be more than `_MORE`."""
_IN = re.compile(r"\s(?:in|near|around|at|close to|next to|by)\s|,\s", re.IGNORECASE)
_WHY = 300
_MENTIONED = 3
"""Characters that a word has at least which is looked for in names."""
_EMPTY = frozenset("a an the some any best good great nice cheap popular top nearby place places".split())
"""Words that names do not have."""
_CORNER = 1.5
"""By how much farther away than its radius a corner of a square is, about."""


async def named(context: ToolContext, query: str, most: int, near: Point | None, radius: float) -> list[FoundPlace]:
    """What Nominatim finds by a name or an address, around a point where one is given."""
    if near is None:
        return await search(context, query, most)
    area = box(near, radius)
    is_band = area[2] - area[0] >= 360
    found = await search(context, query, 40 if is_band else most, area)
    there = [one for one in found if one.at is not None and metres(near, one.at) <= _CORNER * radius]
    return (there if is_band else found)[:most]


def filters(tags: Sequence[str]) -> str:
    """Tags as Overpass QL has them: all of them are meant. Kitchens are several in one value."""
    pairs = [tag.partition("=")[::2] for tag in tags]
    return "".join(f'["{key}"~"{value}"]' if key == "cuisine" else f'["{key}"="{value}"]' for key, value in pairs)


async def nearest(context: ToolContext, at: Point, sought: Sequence[str], radius: float, most: int) -> list[FoundPlace]:
    """The places nearest to a point that fit one of some filters. OpenStreetMap knows nothing of popularity."""
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
    """What the map has of what words describe, as in `ramen in Kyoto`; `before` where they do not say where."""
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
    """What is looked for, and where."""
    found = _IN.search(query)
    return (query[: found.start()], query[found.end() :]) if found else (query, "")


def wanted(what: str) -> list[str]:
    """Filters for words: those of a type that they name, else all whose name or kitchen has them."""
    # Nothing of a query stays but letters and digits: what is between them may be anything on the map.
    words = [word for word in re.findall(r"\w+", what.replace("_", " ")) if word.lower() not in _EMPTY]
    tags = kinds.known(" ".join(words))
    if tags:
        return [filters(tags)]
    if not any(len(word) >= _MENTIONED or not word.isascii() for word in words):
        return []
    expression = ".".join(words)
    return [f'["name"~"{expression}",i]', f'["cuisine"~"{expression}",i]']
