"""Routes: what OSRM is asked, what its answers become, the multipliers, and every way in which services fail."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.testing import HttpReplay, ToolRunner
from marvin_tools_web.travel import wmo
from marvin_tools_web.travel.multipliers import time_of_day, weather
from marvin_tools_web.travel.osrm import Mode, instruction
from marvin_tools_web.travel.routes import distance, duration
from tests.tools_web.contracts import Operation, check
from tests.tools_web.test_weather import OPERATION as FORECAST
from tests.tools_web.test_weather import REPLY as WEATHER
from tests.tools_web.test_weather import URL as WEATHER_URL

BERLIN = {"origin_lat": 52.517, "origin_lng": 13.3889, "dest_lat": 52.5233, "dest_lng": 13.4127}
PATH = "/route/v1/driving/13.388900,52.517000;13.412700,52.523300"
URL = f"https://router.project-osrm.org{PATH}"
COORDINATES = r"-?\d+\.\d+,-?\d+\.\d+(;-?\d+\.\d+,-?\d+\.\d+)+"
# Source: project-osrm.org/docs, "Route service"
OPERATION = Operation(
    url=r"https?://[^/]+(/routed-\w+)?/route/v1/(driving|cycling|foot)/" + COORDINATES,
    optional={
        "overview": "false|simplified|full",
        "steps": "true|false",
        "alternatives": r"true|false|\d",
        "annotations": "true|false",
        "geometries": r"polyline6?|geojson",
    },
)


def step(kind: str, side: str = "", name: str = "", metres: float = 100.0, **others: Any) -> dict[str, Any]:
    maneuver = {"type": kind, "location": [13.38, 52.51], "bearing_before": 0, "bearing_after": 84, **others}
    if side:
        maneuver["modifier"] = side
    return {
        "distance": metres,
        "duration": metres / 10,
        "name": name,
        "mode": "driving",
        "weight": 1,
        "maneuver": maneuver,
        "intersections": [{"location": [13.38, 52.51], "bearings": [84], "entry": [True], "out": 0}],
        "geometry": "mfp_I__vpA",
        "driving_side": "right",
    }


STEPS = [
    step("depart", name="Friedrichstraße", metres=248.3),
    step("turn", "left", "Unter den Linden", 1204.0),
    step("roundabout", "right", "Karl-Liebknecht-Straße", 60.0, exit=2),
    step("new name", "straight", "", 9.0),
    step("end of road", "sharp right", "Torstraße", 340.0),
    step("arrive", "left", metres=0.0),
]
REPLY: dict[str, Any] = {
    "code": "Ok",
    "routes": [
        {
            "distance": 1886.8,
            "duration": 260.3,
            "weight": 260.3,
            "weight_name": "routability",
            "legs": [{"distance": 1886.8, "duration": 260.3, "weight": 260.3, "summary": "", "steps": STEPS}],
        }
    ],
    "waypoints": [{"hint": "x", "distance": 4.2, "name": "Friedrichstraße", "location": [13.388798, 52.517033]}] * 2,
}


def test_the_time_between_points(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    outcome = marvin_tools.call("estimate_travel_time", **BERLIN)
    assert outcome.text.splitlines() == [
        "From 52.51700,13.38890 to 52.52330,13.41270 by car",
        "Distance: 1.9 km",
        "Time without traffic: 4 min",
        "[Source: OSRM (© OpenStreetMap contributors).]",
    ]
    check(marvin_http, OPERATION)


@pytest.mark.parametrize(("mode", "server"), [("cycling", "routed-bike"), ("foot", "routed-foot")])
def test_each_mode_has_its_server(marvin_tools: ToolRunner, marvin_http: HttpReplay, mode: str, server: str) -> None:
    """The public server of OSRM knows roads for cars only, and answers for other modes as if they were cars."""
    path = PATH.replace("driving", mode)
    marvin_http.on("GET", f"https://routing.openstreetmap.de/{server}{path}", json=REPLY)
    assert not marvin_tools.call("estimate_travel_time", **BERLIN, mode=mode).is_error
    marvin_http.on("GET", f"https://mine.example{path}", json=REPLY)
    own = marvin_tools.session(env={"MARVIN_URL_OSRM": "https://mine.example"})
    assert not own.call("estimate_travel_time", **BERLIN, mode=mode).is_error
    check(marvin_http, OPERATION)


def test_directions(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    outcome = marvin_tools.call("get_directions", **BERLIN)
    assert outcome.text.splitlines() == [
        "From 52.51700,13.38890 to 52.52330,13.41270 by car: 1.9 km, 4 min without traffic",
        "1. Start on Friedrichstraße, heading east, 250 m",
        "2. Turn left onto Unter den Linden, 1.2 km",
        "3. At the roundabout take exit 2 onto Karl-Liebknecht-Straße, 60 m",
        "4. At the end of the road turn sharp right onto Torstraße, 340 m",
        "5. Arrive, the destination is on the left",
        "[Source: OSRM (© OpenStreetMap contributors).]",
    ]
    assert marvin_http.requests[0].params["steps"] == "true"
    check(marvin_http, OPERATION)


@pytest.mark.parametrize("tool", ["estimate_travel_time", "get_directions"])
def test_points_far_from_a_road_are_told(marvin_tools: ToolRunner, marvin_http: HttpReplay, tool: str) -> None:
    """OSRM takes the nearest road for a point, wherever that is: a way to another continent has no length."""
    near, lake, sea = ({**REPLY["waypoints"][0], "distance": metres} for metres in (3.0, 2_345.0, 9_000_000.0))
    marvin_http.on("GET", URL, json={**REPLY, "waypoints": [near, lake]}, times=1)
    marvin_http.on("GET", URL, json={**REPLY, "waypoints": [near, sea]})
    env = {"MARVIN_URL_OSRM": "https://router.project-osrm.org"}  # asked each time
    session = marvin_tools.session(env=env)
    text = session.call(tool, **BERLIN).text
    assert "No road leads to 52.52330,13.41270: the route goes to the nearest road, 2.3 km away." in text
    outcome = session.call(tool, **BERLIN)
    assert outcome.is_error
    assert "knows no road near 52.52330,13.41270: the nearest one is 9,000 km away. Check" in outcome.text


def test_waypoints_come_in_their_order(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    leg = REPLY["routes"][0]["legs"][0]
    url = "https://router.project-osrm.org/route/v1/driving/13.400000,52.000000;9.500000,51.250000;11.000000,49.000000"
    marvin_http.on("GET", url, json={**REPLY, "routes": [{**REPLY["routes"][0], "legs": [leg, leg]}]})
    outcome = marvin_tools.call("get_directions", origin="52, 13.4", destination="(49 11)", waypoints=" 51.25,9.5 ; ")
    assert not outcome.is_error, outcome.text
    assert "Arrive at waypoint 1\n" in outcome.text
    assert "route=52.00000,13.40000;51.25000,9.50000;49.00000,11.00000" in str(outcome.show)


@pytest.mark.parametrize(
    "waypoints",
    ["51.25,9.5", "51.25,9.5\n", "|51.25,9.5|", [[51.25, 9.5]], [{"lat": 51.25, "lng": 9.5}], [51.25, 9.5]],
)
def test_places_and_waypoints_may_be_objects(marvin_tools: ToolRunner, marvin_http: HttpReplay, waypoints: Any) -> None:
    leg = REPLY["routes"][0]["legs"][0]
    url = "https://router.project-osrm.org/route/v1/driving/13.400000,52.000000;9.500000,51.250000;11.000000,49.000000"
    marvin_http.on("GET", url, json={**REPLY, "routes": [{**REPLY["routes"][0], "legs": [leg, leg]}]})
    ends = {"origin": {"lat": 52, "lng": 13.4}, "to": ["49", "11.0"]}
    outcome = marvin_tools.call("get_directions", **ends, waypoints=waypoints)
    assert not outcome.is_error, outcome.text
    check(marvin_http, OPERATION)


def test_twenty_waypoints_are_allowed(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    points = [f"{latitude},10" for latitude in range(40, 62)]
    path = ";".join(f"10.000000,{latitude}.000000" for latitude in range(40, 62))
    legs = [REPLY["routes"][0]["legs"][0]] * 21
    reply = {**REPLY, "routes": [{**REPLY["routes"][0], "legs": legs}]}
    marvin_http.on("GET", f"https://router.project-osrm.org/route/v1/driving/{path}", json=reply)
    outcome = marvin_tools.call(
        "get_directions", origin=points[0], destination=points[-1], waypoints=";".join(points[1:-1])
    )
    assert "Arrive at waypoint 20\n" in outcome.text
    assert len(outcome.text) < 14_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"origin_lat": 13.4, "origin_lng": 152.5, "dest_lat": 95.0, "dest_lng": 13.0}, "seem to be swapped"),
        ({"origin_lat": 1e999, "origin_lng": 0, "dest_lat": 1, "dest_lng": 1}, "origin_lat"),
        ({"origin_lat": 1, "destination": "2,2"}, "Only one of latitude and longitude"),
        ({"destination": "2,2"}, "Give origin, or origin_lat and origin_lng"),
        ({"origin": "1,1", "destination": "2,2", "waypoints": "Berlin"}, "'Berlin' is not of the form 'lat,lng'"),
        (
            {"origin": "1,1", "destination": "2,2", "waypoints": "1,2;" * 30},
            "30 waypoints are too many; 20 are allowed",
        ),
        ({"origin": "1,1", "destination": "2,2", "waypoints": [{"lat": 1}]}, "waypoints"),
        ({"origin": {"x": 1}, "destination": "2,2"}, "origin"),
    ],
)
def test_what_is_no_point_is_refused(marvin_tools: ToolRunner, arguments: dict[str, Any], says: str) -> None:
    outcome = marvin_tools.call("get_directions", **arguments)
    assert outcome.is_error
    assert says in outcome.text


@pytest.mark.parametrize(
    ("code", "says"),
    [("NoRoute", "There is no route"), ("NoSegment", "is not near a road"), ("InvalidOptions", "no road")],
)
def test_why_there_is_no_route(marvin_tools: ToolRunner, marvin_http: HttpReplay, code: str, says: str) -> None:
    marvin_http.on("GET", URL, status=400, json={"code": code, "message": f"{code}: impossible"})
    outcome = marvin_tools.call("estimate_travel_time", **BERLIN)
    assert outcome.is_error
    assert says in outcome.text


def test_the_hour_and_the_weather_count(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    rush = {**WEATHER, "current": {**WEATHER["current"], "time": "2026-11-23T17:30", "weather_code": 63}}
    marvin_http.on("GET", WEATHER_URL, json=rush)
    outcome = marvin_tools.call("estimate_traffic_adjusted_time", **BERLIN)
    assert outcome.text.splitlines() == [
        "From 52.51700,13.38890 to 52.52330,13.41270 by car",
        "Distance: 1.9 km",
        "Time without traffic: 4 min",
        "Hour: x1.4 (Monday 17:30, evening rush)",
        "Weather: x1.1 (rain)",
        "Estimated time now: 7 min",
        "The multipliers are rules of thumb; the current traffic is unknown.",
        "[Source: OSRM (© OpenStreetMap contributors), Open-Meteo (CC BY 4.0).]",
    ]
    check(marvin_http, OPERATION, FORECAST)


def test_a_time_that_is_none_is_not_taken_for_that_of_the_place(
    marvin_tools: ToolRunner, marvin_http: HttpReplay
) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    marvin_http.on("GET", WEATHER_URL, json={**WEATHER, "current": {**WEATHER["current"], "time": "soon"}})
    text = marvin_tools.call("estimate_traffic_adjusted_time", **BERLIN).text
    assert "by the clock of this machine" in text


def test_a_code_of_the_weather_that_nobody_knows(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    marvin_http.on("GET", WEATHER_URL, json={**WEATHER, "current": {**WEATHER["current"], "weather_code": 123}})
    assert "Weather: x1 (weather code 123)" in marvin_tools.call("estimate_traffic_adjusted_time", **BERLIN).text


def test_without_the_weather_there_is_still_a_time(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", URL, json=REPLY)
    marvin_http.on("GET", WEATHER_URL, status=500)
    outcome = marvin_tools.call("estimate_traffic_adjusted_time", **BERLIN)
    assert not outcome.is_error
    assert "Weather: x1 (weather unknown)" in outcome.text
    assert "by the clock of this machine" in outcome.text
    assert "Failed: Open-Meteo: " in outcome.text


MODES: tuple[Mode, ...] = ("driving", "cycling", "foot")


@given(st.sampled_from(MODES), st.integers(0, 6), st.integers(0, 23), st.integers(-5, 120), st.floats(0, 300))
def test_nothing_makes_a_way_shorter(mode: Mode, weekday: int, hour: int, code: int, wind: float) -> None:
    factors = [time_of_day(mode, weekday, hour, 0), weather(mode, code, wind), weather(mode, None, None)]
    assert all(1.0 <= one.factor <= 3.0 for one in factors)
    assert all(one.reason for one in factors)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KINDS = ["depart", "arrive", "turn", "roundabout", "exit rotary", "fork", "merge", "on ramp", "new", ""]


@given(
    st.sampled_from(KINDS) | JSON,
    st.sampled_from(["left", "sharp left", "slight right", "uturn", "straight", ""]) | JSON,
    JSON,
)
def test_any_step_has_a_text(kind: Any, side: Any, name: Any) -> None:
    text = instruction({"maneuver": {"type": kind, "modifier": side, "exit": name}, "name": name, "ref": name})
    assert text.strip()
    assert "  " not in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("side", "says"),
    [
        ("slight left", "Turn slightly left onto A"),
        ("sharp left", "Turn sharp left onto A"),
        ("uturn", "Make a U-turn onto A"),
        ("straight", "Continue straight onto A"),
        ("right", "Turn right onto A"),
    ],
)
def test_sides_are_said_as_people_do(side: str, says: str) -> None:
    assert instruction({"maneuver": {"type": "turn", "modifier": side}, "name": "A"}) == says


def test_lengths_are_said_as_people_do() -> None:
    assert [distance(metres) for metres in (3, 14, 949, 950, 12_345, 123_456)] == [
        "3 m",
        "10 m",
        "950 m",
        "0.9 km",
        "12.3 km",
        "123 km",
    ]
    assert [duration(seconds) for seconds in (20, 90, 3_600, 100_000)] == ["20 s", "2 min", "1 h 00 min", "27 h 47 min"]
    assert wmo.words(3) == "overcast"
    assert wmo.words(17) == "weather code 17"
