"""Calls of the tools that ask services of the web, and large replies of these services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from marvin_core.testing import HttpReplay

_POINTS = {"origin": "52.5,13.4", "destination": "52.6,13.5"}
_AT = {"latitude": 48.1, "longitude": 11.5}


class Call(NamedTuple):
    """A tool and its arguments."""

    tool: str
    arguments: dict[str, Any]


ORDINARY = (
    Call("web_search", {"query": "python"}),
    Call("search_news", {"query": "python"}),
    Call("osm_search", {"query": "cafe"}),
    Call("overpass_query", {"query": "node[amenity=cafe](around:500,48.1,11.5);out;"}),
    Call("places_text_search", {"text_query": "cafe"}),
    Call("places_nearby_search", {**_AT, "included_types": ["cafe"]}),
    Call("get_my_location", {}),
    Call("setup_google_auth", {}),
    Call("estimate_travel_time", _POINTS),
    Call("estimate_traffic_adjusted_time", _POINTS),
    Call("get_directions", _POINTS),
    Call("weather_forecast", {"location": "52.5,13.4"}),
)
HOSTILE = (
    Call("web_search", {"query": "q" * 100_000}),
    Call("search_news", {"query": "q" * 100_000}),
    Call("osm_search", {"query": "many"}),
    Call("overpass_query", {"query": "(" * 20_000}),
    Call("places_text_search", {"text_query": "t" * 100_000}),
    Call("places_nearby_search", {**_AT, "included_types": ["x" * 10_000] * 20}),
    Call("estimate_travel_time", {"origin": "1" * 100_000, "destination": "2,2"}),
    Call("get_directions", {"origin": "1,1", "destination": "2,2", "waypoints": ";" * 200_000}),
    Call("weather_forecast", {"location": "(" * 100_000}),
)


def serve(http: HttpReplay) -> None:
    """Have the services answer, with some hundred entries each; one that is asked for many sends thousands."""
    search = "https://nominatim.openstreetmap.org/search"
    http.on("GET", f"{search}?q=many&format=jsonv2&limit=5&extratags=1", json=found_places(9_000))
    http.on("GET", search, json=found_places(300))
    elements = [
        {"type": "node", "id": 1, "lat": 48.1, "lon": 11.5, "tags": one["extratags"]} for one in found_places(300)
    ]
    http.on("POST", "https://overpass-api.de/api/interpreter", json={"elements": elements})
    http.on("GET", "https://ipwho.is", json={"success": True, "latitude": 48.1, "longitude": 11.5, "city": "Munich"})
    step = {"distance": 9.5, "duration": 2.0, "name": "Weg", "maneuver": {"type": "turn", "modifier": "left"}}
    near, far = ([{"distance": 1e5, "duration": 9e3, "steps": [step] * count}] for count in (300, 20_000))
    ways = {"13.400000,52.500000;13.500000,52.600000": near, "1.000000,1.000000;2.000000,2.000000": far}
    for points, legs in ways.items():
        route = {"code": "Ok", "routes": [{"distance": 1e5, "duration": 9e3, "legs": legs}]}
        http.on("GET", f"https://router.project-osrm.org/route/v1/driving/{points}", json=route)
    now = {"time": "2026-11-23T14:15", "temperature_2m": 3.4, "weather_code": 61}
    weather = {"current": now, "daily": {"time": ["2026-11-23"] * 7}}
    http.on("GET", "https://api.open-meteo.com/v1/forecast", json=weather)
    entry = '<div class="body"><h2>A title</h2><a href="https://a.example/{}">text</a></div>'
    page = "".join(entry.format(number) for number in range(300))
    http.on("POST", "https://html.duckduckgo.com/html/", text=page, headers={"content-type": "text/html"})
    http.on("GET", "https://duckduckgo.com/", text="vqd=4-123")
    http.on("GET", "https://duckduckgo.com/news.js", json={"results": [story(number) for number in range(300)]})


def story(number: int) -> dict[str, Any]:
    """An article as DuckDuckGo's news have it."""
    title = f"Story number {number} of many"
    return {"date": 1_700_000_000 + number, "title": title, "url": f"https://n.example/{number}", "excerpt": "It is"}


def found_places(count: int) -> list[dict[str, Any]]:
    """So many places as Nominatim has them."""
    return [*_places(count)]


def _places(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "osm_type": "node",
            "osm_id": number,
            "lat": "48.1",
            "lon": "11.5",
            "name": f"Place {number}",
            "display_name": f"Place {number}, Street, Town, Country",
            "type": "cafe",
            "extratags": {"amenity": "cafe", "name": f"Place {number}", "opening_hours": "Mo-Fr 08:00-18:00"},
        }
