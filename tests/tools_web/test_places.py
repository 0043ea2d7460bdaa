"""Places: what services are asked, what their answers become, and every way in which they fail."""

from __future__ import annotations

import json
import math
import re
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ToolError
from marvin_core.testing import HttpReplay, ToolRunner, raw
from marvin_tools_web.places import around, kinds
from marvin_tools_web.places.adapters import place_text, places_text
from marvin_tools_web.places.found import box, metres
from marvin_tools_web.places.osm import prepared
from marvin_tools_web.places.points import Point, coordinates_in
from tests.tools_web.contracts import Operation, check

KEY = {"GOOGLE_PLACES_API_KEY": "AIzaSy-0123456789-abcdefghij-0123456789"}
NOMINATIM = "https://nominatim.openstreetmap.org/search"
OVERPASS = "https://overpass-api.de/api/interpreter"
AT_ONCE = {"MARVIN_URL_NOMINATIM": "https://nominatim.openstreetmap.org", "MARVIN_URL_OVERPASS": OVERPASS}
"""Servers of the user's own are asked without turns, and each time."""
OPEN_METEO = "https://geocoding-api.open-meteo.com/v1/search"
GOOGLE_TEXT = "https://places.googleapis.com/v1/places:searchText"
GOOGLE_NEAR = "https://places.googleapis.com/v1/places:searchNearby"

# Source: nominatim.org/release-docs/latest/api/Search
SEARCH = Operation(
    url=r"https://nominatim\.openstreetmap\.org/search",
    required={"q": ".+"},
    optional={
        "format": "jsonv2",
        "limit": r"[1-9]|[1-3]\d|40",
        "extratags": "[01]",
        "addressdetails": "[01]",
        "viewbox": r"-?[\d.]+(,-?[\d.]+){3}",
        "bounded": "[01]",
    },
    headers={"accept-language": "."},
)
# Source: open-meteo.com/en/docs/geocoding-api
NAMES = Operation(
    url=r"https://geocoding-api\.open-meteo\.com/v1/search",
    required={"name": ".+"},
    optional={"count": r"\d+", "language": "[a-z]{2}", "format": "json"},
)


def _overpass_body(content: bytes) -> str:
    return "" if content.startswith(b"data=%5Bout%3Ajson%5D") else f"no query for JSON: {content!r}"


# Source: wiki.openstreetmap.org/wiki/Overpass_API
INTERPRETER = Operation(
    method="POST",
    url=r"https://overpass-api\.de/api/interpreter",
    headers={"content-type": "application/x-www-form-urlencoded"},
    body=_overpass_body,
)


def google_body(content: bytes) -> str:
    known = {"textQuery", "pageSize", "openNow", "locationBias"}
    known |= {"includedTypes", "maxResultCount", "rankPreference", "locationRestriction"}
    try:
        return ", ".join(f"{name} is not a field" for name in json.loads(content).keys() - known)
    except ValueError:
        return "the body is not valid JSON"


# Source: developers.google.com/maps/documentation/places/web-service/text-search and nearby-search
GOOGLE = Operation(
    method="POST",
    url=r"https://places\.googleapis\.com/v1/places:search(Text|Nearby)",
    headers={
        "content-type": "application/json",
        "x-goog-api-key": "AIza",
        "x-goog-fieldmask": r"(places\.[a-zA-Z.]+)(,places\.[a-zA-Z.]+)*$",
    },
    body=google_body,
)

FOUND: list[dict[str, Any]] = [
    {
        "place_id": 100149,
        "licence": "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright",
        "osm_type": "node",
        "osm_id": 107775,
        "lat": "51.5074456",
        "lon": "-0.1277653",
        "category": "amenity",
        "type": "cafe",
        "place_rank": 30,
        "importance": 0.89,
        "addresstype": "amenity",
        "name": "Café Ünïcode",
        "display_name": "Café Ünïcode, Strand, London, WC2N, United Kingdom",
        "boundingbox": ["51.34", "51.66", "-0.28", "0.03"],
        "extratags": {"opening_hours": "Mo-Fr 08:00-18:00", "contact:phone": "+44 20 1", "wikidata": "Q84"},
    },
    {"osm_type": "way", "osm_id": 7, "lat": 51.0, "lon": 0, "display_name": "Somewhere", "type": "road", "name": None},
]
ELEMENTS: dict[str, Any] = {
    "version": 0.6,
    "generator": "Overpass API 0.7.62.5",
    "osm3s": {"timestamp_osm_base": "2026-11-23T10:00:00Z", "copyright": "..."},
    "elements": [
        {
            "type": "way",
            "id": 25,
            "center": {"lat": 48.2, "lon": 11.6},
            "nodes": [1, 2],
            "tags": {
                "amenity": "cafe",
                "name": "Far",
                "addr:street": "Weg",
                "addr:housenumber": "3",
                "addr:postcode": "80331",
                "addr:city": "München",
            },
        },
        {"type": "node", "id": 24, "lat": 48.1005, "lon": 11.5, "tags": {"amenity": "cafe", "opening_hours": "24/7"}},
        {"type": "node", "id": 26, "lat": 48.1, "lon": 11.5},
    ],
}
PLACES: dict[str, Any] = {
    "places": [
        {
            "displayName": {"text": "Ramen Sen", "languageCode": "en"},
            "formattedAddress": "1 Kiyamachi, Kyoto, Japan",
            "location": {"latitude": 35.0, "longitude": 135.77},
            "primaryTypeDisplayName": {"text": "Ramen restaurant", "languageCode": "en"},
            "rating": 4.6,
            "userRatingCount": 1234,
            "priceLevel": "PRICE_LEVEL_VERY_EXPENSIVE",
            "currentOpeningHours": {"openNow": True},
            "nationalPhoneNumber": "075-123-4567",
            "websiteUri": "https://ramen.example/",
            "googleMapsUri": "https://maps.google.com/?cid=1",
        }
    ]
}


def test_a_search_on_the_map(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    outcome = marvin_tools.call("osm_search", query=" cafe  ünïcode, London ")
    assert outcome.text.splitlines() == [
        "1. Café Ünïcode (amenity)",
        "   Café Ünïcode, Strand, London, WC2N, United Kingdom",
        "   51.50745,-0.12777 https://www.openstreetmap.org/node/107775",
        "   opening hours: Mo-Fr 08:00-18:00; phone: +44 20 1",
        "",
        "2. Somewhere (road)",
        "   51.00000,0.00000 https://www.openstreetmap.org/way/7",
        "[Source: Nominatim (© OpenStreetMap contributors).]",
    ]
    assert marvin_http.requests[0].params["q"] == "cafe ünïcode, London"
    check(marvin_http, SEARCH)


def test_nothing_on_the_map(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", NOMINATIM, json=[])
    outcome = marvin_tools.call("osm_search", query="xqzk")
    assert not outcome.is_error
    assert outcome.text.startswith("The map has no place called 'xqzk'. Use fewer words")


def test_a_query_of_the_map(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", OVERPASS, json=ELEMENTS)
    outcome = marvin_tools.call("overpass_query", query="node[amenity=cafe](around:500,48.1,11.5);out", max_results=1)
    assert outcome.text.splitlines() == [
        "1. Far (amenity cafe)",
        "   Weg 3, 80331 München",
        "   48.20000,11.60000 https://www.openstreetmap.org/way/25",
        "",
        "[1 of 2 are shown. Narrow the search, or raise max_results.]",
        "[Source: Overpass (© OpenStreetMap contributors).]",
    ]
    check(marvin_http, INTERPRETER)


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("node(1);out;", "[out:json][timeout:25];node(1);out;"),
        ("node(1)", "[out:json][timeout:25];node(1);out center;"),
        ("[timeout:90];node(1);out;", "[out:json][timeout:90];node(1);out;"),
        ("[out:xml][timeout:90];node(1);out;", "[out:json][timeout:90];node(1);out;"),
        ('[out:csv(::id;true;"|")];node(1);out;', "[out:json];node(1);out;"),
        ("[out:json];node(1);out geom;", "[out:json];node(1);out geom;"),
    ],
)
def test_queries_ask_for_json(query: str, sent: str) -> None:
    assert prepared(query) == sent


def test_what_came_before_overpass_gave_up_is_shown(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    remark = 'runtime error: Query timed out in "query" at line 1 after 26 seconds.'
    marvin_http.on("POST", OVERPASS, json={**ELEMENTS, "remark": remark})
    outcome = marvin_tools.call("overpass_query", query="node(1);out;")
    assert not outcome.is_error
    assert "[The result is incomplete: runtime error: Query timed out" in outcome.text


def test_counts_and_other_tags_are_shown(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    count = {"type": "count", "id": 0, "tags": {"nodes": "5", "ways": "2", "relations": "0", "total": "7"}}
    peak = {"type": "node", "id": 3, "lat": 47.4, "lon": 10.9, "tags": {"natural": "peak", "name": "Z", "ele": "2962"}}
    way = {"type": "way", "id": 4, "bounds": {"minlat": 1, "maxlat": 3, "minlon": 4, "maxlon": 6}, "tags": {"a": "b"}}
    marvin_http.on("POST", OVERPASS, json={**ELEMENTS, "elements": [count, peak, way]})
    text = marvin_tools.call("overpass_query", query="node(1);out count;").text
    assert "nodes: 5; ways: 2; relations: 0; total: 7" in text
    assert "ele: 2962" in text
    assert "2.00000,5.00000 https://www.openstreetmap.org/way/4" in text


def test_a_placeholder_of_overpass_turbo_is_explained(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    outcome = marvin_tools.call("overpass_query", query="node[amenity=cafe]({{bbox}});out;")
    assert outcome.is_error
    assert "Instead of {{bbox}}, write the area as south,west,north,east" in outcome.text
    assert not marvin_http.requests


def test_overpass_gives_up(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """It answers 200 then, with a remark."""
    remark = 'runtime error: Query timed out in "query" at line 1 after 26 seconds.'
    marvin_http.on("POST", OVERPASS, json={**ELEMENTS, "elements": [], "remark": remark})
    outcome = marvin_tools.call("overpass_query", query="node(1);out;")
    assert outcome.is_error
    assert "it stopped: runtime error: Query timed out" in outcome.text
    assert "Use a smaller area" in outcome.text


def test_a_wrong_query_is_explained(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    page = '<p><strong>Error</strong>: line 1: parse error: Unknown type "nod" </p>'
    marvin_http.on("POST", OVERPASS, status=400, text=page, headers={"content-type": "text/html"})
    outcome = marvin_tools.call("overpass_query", query="nod(1);out;")
    assert outcome.is_error
    assert "The query is not valid. An example of Overpass QL: node[amenity=cafe]" in outcome.text


def test_google_is_asked_where_there_is_a_key(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", GOOGLE_TEXT, json=PLACES)
    arguments = {"text_query": "ramen", "latitude": 35.0, "longitude": 135.76, "open_now": True, "max_results": 3}
    outcome = marvin_tools.session(env=KEY).call("places_text_search", **arguments)
    assert outcome.text.splitlines() == [
        "1. Ramen Sen (Ramen restaurant), 911 m away",
        "   1 Kiyamachi, Kyoto, Japan",
        "   35.00000,135.77000 https://maps.google.com/?cid=1",
        ("   4.6 of 5 by 1,234 people; open now; very expensive; phone: 075-123-4567; website: https://ramen.example/"),
        "[Source: Google Places.]",
    ]
    assert marvin_http.requests[0].json == {
        "textQuery": "ramen",
        "pageSize": 3,
        "openNow": True,
        "locationBias": {"circle": {"center": {"latitude": 35.0, "longitude": 135.76}, "radius": 5000.0}},
    }
    check(marvin_http, GOOGLE)


def test_the_map_is_asked_where_google_fails(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", GOOGLE_TEXT, status=403, json={"error": {"code": 403, "message": "API key not valid"}})
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    outcome = marvin_tools.session(env=KEY).call("places_text_search", text_query="cafe in London", open_now=True)
    assert not outcome.is_error
    assert "OpenStreetMap cannot filter by what is open now; check opening_hours" in outcome.text
    assert "[Source: Nominatim (© OpenStreetMap contributors). Failed: Google Places: " in outcome.text
    assert "API key not valid" in outcome.text
    assert KEY["GOOGLE_PLACES_API_KEY"] not in outcome.text
    check(marvin_http, GOOGLE, SEARCH)


def test_places_around_a_point_come_by_their_distance(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", OVERPASS, json=ELEMENTS)
    arguments = {"latitude": 48.1, "longitude": 11.5, "included_types": ["Coffee shops", "restaurant"], "radius": 900}
    outcome = marvin_tools.call("places_nearby_search", **arguments)
    assert outcome.text.splitlines()[0] == "1. amenity cafe, 56 m away"
    assert "\n2. Far (amenity cafe), 13.4 km away\n" in outcome.text
    sent = marvin_http.requests[0].content.decode()
    assert "amenity%22%3D%22cafe%22%5D%28around%3A900%2C48.100000%2C11.500000%29" in sent
    assert len(marvin_http.requests) == 1
    check(marvin_http, INTERPRETER)


def test_what_is_near_is_asked_for_first(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """Overpass sends the oldest places of an area first: of a whole town the nearest might not be among them."""
    marvin_http.on("POST", OVERPASS, json={**ELEMENTS, "elements": []}, times=1)
    marvin_http.on("POST", OVERPASS, json=ELEMENTS)
    arguments = {"latitude": 48.1, "longitude": 11.5, "included_types": ["cafe"], "max_results": 2}
    own = marvin_tools.session(env=AT_ONCE)
    assert own.call("places_nearby_search", **arguments).text.startswith("1. amenity cafe, 56 m away")
    sizes = [re.search(r"around%3A(\d+)", request.content.decode()) for request in marvin_http.requests]
    assert [found and found[1] for found in sizes] == ["500", "2000"]


def test_words_are_looked_for_on_the_map(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """Nominatim knows names and addresses only, and ramen in Kyoto is neither."""
    place = {"lat": "48.1", "lon": "11.5", "display_name": "Kyoto, Japan"}
    marvin_http.on("GET", NOMINATIM, json=[], times=1)
    marvin_http.on("GET", NOMINATIM, json=[place])
    marvin_http.on("POST", OVERPASS, json=ELEMENTS)
    own = marvin_tools.session(env=AT_ONCE)
    outcome = own.call("places_text_search", text_query='good "ramen" in Kyoto', max_results=2)
    assert outcome.text.startswith("1. amenity cafe")
    assert "[Source: Overpass (© OpenStreetMap contributors).]" in outcome.text
    assert [request.params["q"] for request in marvin_http.requests[:2]] == ['good "ramen" in Kyoto', "Kyoto"]
    sent = parse_qs(marvin_http.requests[2].content.decode())["data"][0]
    assert 'nwr["name"~"ramen",i](around:500,48.100000,11.500000);' in sent
    assert 'nwr["cuisine"~"ramen",i]' in sent
    check(marvin_http, SEARCH, INTERPRETER)


def test_words_that_say_no_place_find_nothing(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", NOMINATIM, json=[])
    own = marvin_tools.session(env=AT_ONCE)
    outcome = own.call("places_text_search", text_query="xqzk")
    assert not outcome.is_error
    assert "No place matches 'xqzk'" in outcome.text
    assert "No place matches 'ramen in Xqzk'" in own.call("places_text_search", text_query="ramen in Xqzk").text


@pytest.mark.parametrize(
    ("at", "radius"),
    [((90.0, 0.0), 5_000.0), ((-89.99, 17.0), 5_000.0), ((0.0, 179.99), 5_000.0), ((-16.5, -180.0), 50_000.0)],
)
def test_areas_at_the_poles_and_the_line_of_dates(at: tuple[float, float], radius: float) -> None:
    west, north, east, south = box(Point(latitude=at[0], longitude=at[1]), radius)
    assert (west, east) == (-180.0, 180.0)
    assert -90 <= south < north <= 90


@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(1, 50_000), st.floats(0, 360))
def test_an_area_has_all_that_is_within_its_radius(latitude: float, longitude: float, radius: float, to: float) -> None:
    here = Point(latitude=latitude, longitude=longitude)
    west, north, east, south = box(here, radius)
    assert -180 <= west <= east <= 180
    assert -90 <= south <= north <= 90
    angle, turned = radius * 0.999 / 6_371_000, math.radians(to)
    up = math.sin(math.radians(latitude)) * math.cos(angle)
    up += math.cos(math.radians(latitude)) * math.sin(angle) * math.cos(turned)
    there = math.degrees(math.asin(max(-1.0, min(1.0, up))))
    along = math.atan2(
        math.sin(turned) * math.sin(angle) * math.cos(math.radians(latitude)),
        math.cos(angle) - math.sin(math.radians(latitude)) * up,
    )
    other = (longitude + math.degrees(along) + 540) % 360 - 180
    assert south - 1e-6 <= there <= north + 1e-6
    assert west - 1e-6 <= other <= east + 1e-6 or abs(other) > 179.999999


def test_names_near_the_line_of_dates_are_told_by_their_distance(
    marvin_tools: ToolRunner, marvin_http: HttpReplay
) -> None:
    """No search takes an area across the line, so that all longitudes are asked for."""
    far = {**FOUND[0], "lat": "-16.5", "lon": "10.0", "name": "Far"}
    near = {**FOUND[0], "lat": "-16.5", "lon": "-179.99", "name": "Near"}
    marvin_http.on("GET", NOMINATIM, json=[far, near])
    outcome = marvin_tools.call("places_text_search", text_query="cafe", latitude=-16.5, longitude=179.99)
    assert outcome.text.startswith("1. Near (amenity), 2.1 km away")
    assert "Far" not in outcome.text
    assert metres(Point(latitude=0, longitude=179.9), Point(latitude=0, longitude=-179.9)) < 25_000
    check(marvin_http, SEARCH)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"lat": 52.5, "lng": 13.4}, "52.5,13.4"),
        ({"latitude": "52.5", "longitude": "-13.4"}, "52.5,-13.4"),
        ({"location": {"lat": 0, "lon": 0}}, "0,0"),
        ([52.5, 13.4], "52.5,13.4"),
        ({"name": "東京駅"}, "東京駅"),
        ({"address": "شارع التحرير، القاهرة"}, "شارع التحرير، القاهرة"),
        ("Berlin", "Berlin"),
        ({"lat": True, "lng": 1}, {"lat": True, "lng": 1}),
        ({}, {}),
    ],
)
def test_places_may_be_objects(given: object, text: object) -> None:
    assert place_text(given) == text


def test_several_places_may_be_a_list() -> None:
    assert places_text([{"lat": 1, "lng": 2}, [3, 4], "5,6"]) == "1,2;3,4;5,6"
    assert places_text([1.5, 2]) == "1.5,2"
    assert places_text([{"lat": 1, "lng": 2}, None]) == [{"lat": 1, "lng": 2}, None]


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["lat", "lng", "location", "name"]), inner),
    )
)
def test_anything_may_be_given_as_a_place(given: object) -> None:
    places_text(given)


def test_the_world_speaks_other_scripts(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    own = marvin_tools.session(env=AT_ONCE)
    for name in ("東京都千代田区丸の内1丁目", "شارع التحرير، القاهرة", "Straße des 17. Juni 135, Berlin"):
        own.call("osm_search", query=name)
        assert marvin_http.requests[-1].params["q"] == name


@pytest.mark.parametrize("written", ["−33.86, 151.2", "–33.86 151.2", "(-33.86; 151.2)", "-33.86,+151.2"])
def test_a_minus_may_be_written_in_many_ways(written: str) -> None:
    found = coordinates_in(written)
    assert found is not None
    assert found.coordinates == "-33.86000,151.20000"


def test_nothing_has_a_sign() -> None:
    assert Point(latitude=-0.000001, longitude=-0.0).coordinates == "0.00000,0.00000"


def test_places_around_a_name(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """Nominatim is down, so another service says where the name is, and the answer says so."""
    marvin_http.on("GET", NOMINATIM, status=500)
    place = {"id": 1, "name": "Munich", "latitude": 48.1, "longitude": 11.5, "country": "Germany", "admin1": "Bavaria"}
    marvin_http.on("GET", OPEN_METEO, json={"results": [place], "generationtime_ms": 1.2})
    marvin_http.on("POST", GOOGLE_NEAR, json={})
    outcome = marvin_tools.session(env=KEY).call("places_nearby_search", near="Munich", included_types=["cafe"])
    assert not outcome.is_error, outcome.text
    assert outcome.text.startswith("No cafe within 5000 m of Munich, Bavaria, Germany (48.10000,11.50000).")
    assert "Failed: Nominatim: " in outcome.text
    assert marvin_http.requests[-1].json["rankPreference"] == "POPULARITY"
    check(marvin_http, SEARCH, NAMES, GOOGLE)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"near": "48,11", "included_types": []}, "Give 1 to 20 types"),
        ({"near": "48,11", "included_types": ['cafe"];out;']}, "which is not a type"),
        ({"near": "48,11", "included_types": ["cafe"], "radius": 0}, "A radius of 0 m is not possible"),
        ({"included_types": ["cafe"]}, "Give near, or latitude and longitude"),
        ({"near": "x" * 1_000, "included_types": ["cafe"]}, "longer than 300 characters"),
    ],
)
def test_what_cannot_be_asked_is_refused(marvin_tools: ToolRunner, arguments: dict[str, Any], says: str) -> None:
    outcome = marvin_tools.call("places_nearby_search", **arguments)
    assert outcome.is_error
    assert says in outcome.text


def test_a_name_that_nobody_knows(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", NOMINATIM, json=[])
    outcome = marvin_tools.call("weather_forecast", location="Xqzk")
    assert outcome.is_error
    assert "The map has no place 'Xqzk'. Write it differently" in outcome.text


@given(st.text(max_size=30))
def test_no_type_leaves_its_place_in_a_query(kind: str) -> None:
    for tag in kinds.tags(kind):
        assert not set(tag) & set('"[](){};\\\n ')
        assert tag.count("=") == 1


QUOTED = re.compile(r'(?:\["[a-z:_0-9]+"[=~]"[^"\\\[\](){};]*"(?:,i)?\])+')


@given(st.text(max_size=40) | st.text(alphabet='"\\];()[.*+?|^$ ab京ع', max_size=20))
def test_no_words_leave_their_place_in_a_query(words: str) -> None:
    """Overpass QL ends a text at a quote, and reads expressions in it."""
    for one in around.wanted(words):
        assert QUOTED.fullmatch(one), one
        assert not re.search(r"[*+?|^$]", one)


@pytest.mark.parametrize(
    ("kind", "tags"),
    [
        ("Coffee shops", ("amenity=cafe",)),
        ("pharmacies", ("amenity=pharmacy",)),
        ("churches", ("amenity=place_of_worship", "religion=christian")),
        ("places_of_worship", ("amenity=place_of_worship",)),
        ("universities", ("amenity=university",)),
        ("bus stops", ("highway=bus_stop",)),
        ("bus_station", ("amenity=bus_station",)),
        ("ramen_restaurant", ("amenity=restaurant", "cuisine=ramen")),
        ("fast food restaurants", ("amenity=fast_food",)),
        ("natural=peak", ("natural=peak",)),
        ("", ()),
        ("café", ()),
    ],
)
def test_types_are_tags(kind: str, tags: tuple[str, ...]) -> None:
    assert kinds.tags(kind) == tags


@given(st.text(max_size=60) | st.from_regex(r"\(?-?\d{1,4}(\.\d+)?[ ,;]+-?\d{1,4}(\.\d+)?\)?", fullmatch=True))
def test_coordinates_are_on_the_earth_or_refused(text: str) -> None:
    try:
        found = coordinates_in(text)
    except ToolError:
        return
    assert found is None or (abs(found.latitude) <= 90 and abs(found.longitude) <= 180)


def test_an_answer_of_strange_things(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """What a place is called may be anything; a terminal and a model are shown text on one line."""
    strange = {
        **FOUND[0],
        "name": "\x1b[2Jevil\u202e\nname" + "x" * 10_000,
        "extratags": {"phone": ["a"], "website": 7},
    }
    marvin_http.on("GET", NOMINATIM, answer=raw(json.dumps([strange, 7, None, {}, []]).encode()))
    outcome = marvin_tools.call("osm_search", query="evil")
    assert not outcome.is_error
    assert "\x1b" not in outcome.text
    assert len(outcome.text) < 2_000
