"""The tools estimate_travel_time, estimate_traffic_adjusted_time and get_directions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

from marvin_core import Link, Record, RequestFailed, ToolContext, ToolError, ToolResult, numbered, tool

from ..places.adapters import adapting
from ..places.points import Point, coordinates_in, point_of
from ..services.backends import source_line
from ..services.catalog import OPEN_METEO, Service
from . import osrm
from .forecasts import forecast
from .multipliers import Multiplier, time_of_day, weather
from .osrm import Leg

_WAYPOINTS = 20
_CHARACTERS = 12_000
_NEAR = 500.0
"""Metres from a point to a road that are not worth mentioning."""
_SHORTEST = 20.0
"""Metres of a step without a turn below which it is left out."""
_ENGINES = {"driving": "fossgis_osrm_car", "cycling": "fossgis_osrm_bike", "foot": "fossgis_osrm_foot"}
_BY = {"driving": "by car", "cycling": "by bicycle", "foot": "on foot"}
_NOTE = "The multipliers are rules of thumb; the current traffic is unknown."

Latitude: TypeAlias = Annotated[float | None, "Degrees"]
Longitude: TypeAlias = Annotated[float | None, "Degrees"]
Place: TypeAlias = Annotated[str, "Name, or 'lat,lng'"]
_PROBE = {"origin": "52.517,13.389", "destination": "52.523,13.413"}
_NAMES = {
    "origin": ["from", "start"],
    "destination": ["to", "dest", "end"],
    "origin_lat": ["origin_latitude", "start_lat", "from_lat"],
    "origin_lng": ["origin_lon", "origin_longitude", "start_lng", "start_lon", "from_lng", "from_lon"],
    "dest_lat": ["destination_lat", "destination_latitude", "dest_latitude", "end_lat", "to_lat"],
    "dest_lng": ["dest_lon", "destination_lng", "destination_lon", "destination_longitude", "end_lng", "end_lon"],
}
_PLACES = ("origin", "destination")
_ADAPT = adapting(_PLACES)
_SEPARATORS = re.compile(r"[;|\n]")


class _Ends(Record):
    origin: Point
    destination: Point
    failures: tuple[str, ...]


@tool(access=["net"], labels=["OSRM"], aliases=_NAMES, adapt=_ADAPT, probe=_PROBE)
async def estimate_travel_time(
    origin_lat: Latitude = None,
    origin_lng: Longitude = None,
    dest_lat: Latitude = None,
    dest_lng: Longitude = None,
    mode: Annotated[osrm.Mode, "How"] = "driving",
    origin: Place = "",
    destination: Place = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Estimate how far it is and how long it takes, on empty roads."""
    ends = await _ends(context, (origin_lat, origin_lng, origin), (dest_lat, dest_lng, destination))
    found = await osrm.route(context, [ends.origin, ends.destination], mode)
    lines = [
        _head(ends, mode),
        f"Distance: {distance(found.distance)}",
        f"Time without traffic: {duration(found.duration)}",
        *_off_road(found, [ends.origin, ends.destination]),
        source_line([found.service], ends.failures),
    ]
    return ToolResult(content="\n".join(lines), show=[_link([ends.origin, ends.destination], mode)])


@tool(access=["net"], labels=["OSRM", "Open-Meteo"], aliases=_NAMES, adapt=_ADAPT, probe=_PROBE)
async def estimate_traffic_adjusted_time(
    origin_lat: Latitude = None,
    origin_lng: Longitude = None,
    dest_lat: Latitude = None,
    dest_lng: Longitude = None,
    mode: Annotated[osrm.Mode, "How"] = "driving",
    origin: Place = "",
    destination: Place = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Estimate how long it takes now, with what the hour and the weather add."""
    ends = await _ends(context, (origin_lat, origin_lng, origin), (dest_lat, dest_lng, destination))
    found = await osrm.route(context, [ends.origin, ends.destination], mode)
    factors, sources, failures = await _factors(context, ends.origin, mode)
    adjusted = found.duration
    for _, factor in factors:
        adjusted *= factor.factor
    lines = [
        _head(ends, mode),
        f"Distance: {distance(found.distance)}",
        f"Time without traffic: {duration(found.duration)}",
        *(f"{name}: x{factor.factor:g} ({factor.reason})" for name, factor in factors),
        f"Estimated time now: {duration(adjusted)}",
        *_off_road(found, [ends.origin, ends.destination]),
        _NOTE,
        source_line([found.service, *sources], [*ends.failures, *failures]),
    ]
    return ToolResult(content="\n".join(lines), show=[_link([ends.origin, ends.destination], mode)])


@tool(access=["net"], labels=["OSRM"], aliases=_NAMES, adapt=adapting(_PLACES, ["waypoints"]), probe=_PROBE)
async def get_directions(
    origin_lat: Latitude = None,
    origin_lng: Longitude = None,
    dest_lat: Latitude = None,
    dest_lng: Longitude = None,
    mode: Annotated[osrm.Mode, "How"] = "driving",
    waypoints: Annotated[str, "Points on the way: 'lat,lng;lat,lng'"] = "",
    origin: Place = "",
    destination: Place = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Give a route turn by turn."""
    between = _between(waypoints)
    ends = await _ends(context, (origin_lat, origin_lng, origin), (dest_lat, dest_lng, destination))
    points = [ends.origin, *between, ends.destination]
    found = await osrm.route(context, points, mode, steps=True)
    steps = [text for number, leg in enumerate(found.legs, 1) for text in _steps(leg, number, len(found.legs))]
    if not steps:
        raise ToolError(f"{found.service.title} sent a route without steps. Use estimate_travel_time for its length.")
    total = f"{distance(found.distance)}, {duration(found.duration)} without traffic"
    lines = [
        f"{_head(ends, mode)}: {total}",
        numbered(steps, _CHARACTERS, advice="Ask for a part of the route."),
        *_off_road(found, points),
        source_line([found.service], ends.failures),
    ]
    return ToolResult(content="\n".join(lines), show=[_link(points, mode)])


async def _ends(
    context: ToolContext,
    origin: tuple[float | None, float | None, str],
    destination: tuple[float | None, float | None, str],
) -> _Ends:
    begin, failures = await point_of(context, *origin, "origin, or origin_lat and origin_lng")
    end, more = await point_of(context, *destination, "destination, or dest_lat and dest_lng")
    return _Ends(origin=begin, destination=end, failures=(*failures, *more))


async def _factors(
    context: ToolContext, at: Point, mode: osrm.Mode
) -> tuple[Sequence[tuple[str, Multiplier]], Sequence[Service], Sequence[str]]:
    """The factors of the hour and of the weather at a point, where they come from, and errors."""
    try:
        found = await forecast(context, at, 1)
    except RequestFailed as error:
        unknown = Multiplier(factor=1.0, reason="weather unknown")
        return [("Hour", _hour_here(context, mode)), ("Weather", unknown)], [], [str(error)]
    try:
        hour = _hour(mode, datetime.fromisoformat(found.now.time))
    except ValueError:
        hour = _hour_here(context, mode)
    return [("Hour", hour), ("Weather", weather(mode, found.now.code, found.now.wind))], [OPEN_METEO], []


def _hour(mode: osrm.Mode, local: datetime) -> Multiplier:
    return time_of_day(mode, local.weekday(), local.hour, local.minute)


def _hour_here(context: ToolContext, mode: osrm.Mode) -> Multiplier:
    """The same by this machine's clock, in its time zone."""
    hour = _hour(mode, datetime.fromtimestamp(context.clock.now(), UTC).astimezone())
    return hour.replace(reason=f"{hour.reason}, by the clock of this machine")


def _between(waypoints: str) -> list[Point]:
    given = [part for part in _SEPARATORS.split(waypoints) if part.strip()]
    if len(given) > _WAYPOINTS:
        raise ToolError(f"{len(given)} waypoints are too many; {_WAYPOINTS} are allowed. Ask for parts of the route.")
    points = [coordinates_in(part) for part in given]
    wrong = next((part for part, found in zip(given, points, strict=True) if found is None), "")
    if wrong:
        raise ToolError(
            f"The waypoint {wrong[:100]!r} is not of the form 'lat,lng'. Give waypoints as '52.52,13.40;52.40,13.06'."
        )
    return [found for found in points if found is not None]


def _steps(leg: Leg, number: int, legs: int) -> Iterator[str]:
    for index, step in enumerate(leg.steps):
        is_last = index == len(leg.steps) - 1
        if step.distance < _SHORTEST and not is_last and index and step.text.startswith("Continue straight"):
            continue
        text = step.text
        if is_last and number < legs:
            text = f"Arrive at waypoint {number}"
        yield text if is_last else f"{text}, {distance(step.distance)}"


def _off_road(found: osrm.Route, points: Sequence[Point]) -> Iterator[str]:
    """A note about points far from any road."""
    for point, metres in zip(points, found.off_road, strict=False):
        if metres >= _NEAR:
            yield f"No road leads to {point.shown}: the route goes to the nearest road, {distance(metres)} away."


def _head(ends: _Ends, mode: osrm.Mode) -> str:
    return f"From {ends.origin.shown} to {ends.destination.shown} {_BY[mode]}"


def _link(points: Sequence[Point], mode: osrm.Mode) -> Link:
    route = ";".join(point.coordinates for point in points)
    url = f"https://www.openstreetmap.org/directions?engine={_ENGINES[mode]}&route={route}"
    return Link(url=url, text="The route on a map")


def distance(metres: float) -> str:
    """A distance, for people."""
    if metres < 950:
        return f"{round(metres, -1):.0f} m" if metres >= 10 else f"{metres:.0f} m"
    return f"{metres / 1000:.1f} km" if metres < 99_500 else f"{metres / 1000:,.0f} km"


def duration(seconds: float) -> str:
    """A duration, for people."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"
