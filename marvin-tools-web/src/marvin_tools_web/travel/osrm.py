"""The requests to OSRM, and its answers.

Source: project-osrm.org/docs, "OSRM HTTP server"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from marvin_core import Record, RequestFailed, ToolContext, ToolError

from ..places.points import Point
from ..services import values
from ..services.catalog import OSRM, OSRM_CYCLING, OSRM_FOOT, Service
from ..services.client import ServiceClient
from ..settings import WebSettings

Mode: TypeAlias = Literal["driving", "cycling", "foot"]

_SERVICES: Mapping[Mode, Service] = {"driving": OSRM, "cycling": OSRM_CYCLING, "foot": OSRM_FOOT}
_LEGS = 25
_STEPS = 2_000
"""Steps of a route that are read at most."""
_TOO_FAR = 50_000.0
"""Metres from a point to the nearest road: OSRM uses any road, however far away, instead."""
_REFUSALS = {
    "NoRoute": "There is no route between these points with this mode. Try another mode, or points nearer to roads.",
    "NoSegment": "One of these points is not near a road. Give a point nearer to a road.",
    "TooBig": "These are too many points for the service. Ask for parts of the route.",
    "InvalidQuery": "The service does not accept these points. Check the coordinates.",
    "InvalidValue": "The service does not accept these points. Check the coordinates.",
}
"""The meaning of error codes for the caller."""


class Step(Record):
    """One step: an instruction, its metres and its seconds."""

    text: str
    distance: float
    duration: float


class Leg(Record):
    """The route from one point to the next, in metres and seconds."""

    distance: float
    duration: float
    steps: tuple[Step, ...]


class Route(Record):
    """A route through all points, in metres and seconds, and the service that computed it.

    `off_road` are the metres from each point to the road that the route uses instead.
    """

    distance: float
    duration: float
    legs: tuple[Leg, ...]
    service: Service
    off_road: tuple[float, ...] = ()


async def route(context: ToolContext, points: Sequence[Point], mode: Mode, *, steps: bool = False) -> Route:
    """The fastest route through the points in their order, without traffic.

    Raises:
        RequestFailed: there is no valid answer.
        ToolError: there is no such route.
    """
    service = _service(context, mode)
    # OSRM takes longitude before latitude.
    places = ";".join(f"{point.longitude:.6f},{point.latitude:.6f}" for point in points)
    params = {"overview": "false", "steps": "true" if steps else "false"}
    try:
        found = await ServiceClient(context, service).get_json(
            f"route/v1/{mode}/{places}", lambda answer: read(answer, service), params=params
        )
    except RequestFailed as error:
        reason = next((text for code, text in _REFUSALS.items() if code in str(error)), "")
        raise ToolError(f"{error} {reason}") if reason else _refused(error) from error
    for point, metres in zip(points, found.off_road, strict=False):
        if metres > _TOO_FAR:
            raise ToolError(
                f"{service.title} knows no road near {point.shown}: the nearest one is {metres / 1000:,.0f} km away. "
                "Check the coordinates (latitude first), or tell the user that the service has no map of that place."
            )
    return found


def _service(context: ToolContext, mode: Mode) -> Service:
    """The server for a mode; one that the user configured serves all modes without one of their own."""
    addresses, service = context.settings(WebSettings).services, _SERVICES[mode]
    return OSRM if addresses.osrm and not getattr(addresses, service.name) else service


def _refused(error: RequestFailed) -> ToolError:
    """The reason that the service gives with status 400 for having no route."""
    if error.status != 400:
        return error
    return ToolError(f"{error} There may be no road between the points. Try another mode, or points nearer to roads.")


def read(answer: Any, service: Service = OSRM) -> Route:
    """The route in an answer.

    Raises:
        ValueError: it is not a valid answer.
    """
    if values.text(answer, "code") != "Ok":
        raise ValueError("the code is not Ok")
    distance, duration = (values.number(answer, "routes", 0, name) for name in ("distance", "duration"))
    if distance is None or duration is None or distance < 0 or duration < 0:
        raise ValueError("there is no distance and duration")
    places = values.objects(answer, "waypoints", most=_LEGS + 1)
    off_road = tuple(values.number(place, "distance") or 0.0 for place in places)
    legs = tuple(map(_leg, values.objects(answer, "routes", 0, "legs", most=_LEGS)))
    return Route(distance=distance, duration=duration, legs=legs, service=service, off_road=off_road)


def _leg(leg: Mapping[str, Any]) -> Leg:
    return Leg(
        distance=values.number(leg, "distance") or 0.0,
        duration=values.number(leg, "duration") or 0.0,
        steps=tuple(map(_step, values.objects(leg, "steps", most=_STEPS))),
    )


def _step(step: Mapping[str, Any]) -> Step:
    return Step(
        text=instruction(step),
        distance=values.number(step, "distance") or 0.0,
        duration=values.number(step, "duration") or 0.0,
    )


def instruction(step: Mapping[str, Any]) -> str:
    """The instruction of a step."""
    kind, side = values.text(step, "maneuver", "type"), values.text(step, "maneuver", "modifier")
    road = " ".join(filter(None, (values.text(step, "name"), _in_brackets(values.text(step, "ref")))))
    onto = f" onto {road}" if road else ""
    exit_number = values.whole(step, "maneuver", "exit")
    match kind:
        case "depart":
            return f"Start{f' on {road}' if road else ''}{_heading(step)}"
        case "arrive":
            return f"Arrive{f', {_on_side(side)}' if side in ('left', 'right') else ''}"
        case "roundabout" | "rotary":
            taken = f"take exit {exit_number}" if exit_number else "leave"
            circle = values.text(step, "rotary_name")
            return f"At the roundabout{f' {circle}' if circle else ''} {taken}{onto}"
        case "exit roundabout" | "exit rotary":
            return f"Leave the roundabout{onto}"
        case "roundabout turn":
            return f"At the small roundabout {_turn(side)}{onto}"
        case "merge":
            return f"Merge {side}{onto}".replace("  ", " ")
        case "on ramp" | "off ramp":
            return f"Take the ramp {side}{onto}".replace("  ", " ").replace("ramp straight", "ramp straight on")
        case "fork":
            return f"Keep {side.removeprefix('slight ') or 'straight'} at the fork{onto}"
        case "end of road":
            return f"At the end of the road {_turn(side)}{onto}"
        case _:
            turn = _turn(side)
            return f"{turn[0].upper()}{turn[1:]}{onto}"


def _turn(side: str) -> str:
    if side == "uturn":
        return "make a U-turn"
    if side in ("", "straight"):
        return "continue straight"
    return f"turn {side.replace('slight ', 'slightly ')}"


def _on_side(side: str) -> str:
    return f"the destination is on the {side}"


def _in_brackets(text: str) -> str:
    return f"({text})" if text else ""


def _heading(step: Mapping[str, Any]) -> str:
    bearing = values.number(step, "maneuver", "bearing_after")
    names = ("north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west")
    return "" if bearing is None else f", heading {names[round((bearing % 360) / 45) % 8]}"
