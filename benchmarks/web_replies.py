"""Replies of services: how long reading one takes, and how much of that is the parsing of JSON."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.table import Row
from benchmarks.web_services import found_places, story
from marvin_core import Fetched
from marvin_tools_web.places.osm import read_nominatim
from marvin_tools_web.search.news import read_articles, read_duckduckgo
from marvin_tools_web.search.web import read_brave
from marvin_tools_web.travel.forecasts import read as read_forecast
from marvin_tools_web.travel.osrm import read as read_route

_GOAL = 10.0
"""Milliseconds. Most of it goes into cleaning what a reply says of markup and control characters, piece by piece."""
_STEP = {"distance": 9.5, "duration": 2.0, "name": "Weg", "maneuver": {"type": "turn", "modifier": "left"}}
_DAYS = {name: [1] * 7 for name in ("time", "weather_code", "temperature_2m_max", "precipitation_sum")}
_ARTICLE = {
    "title": "Something happened &amp; was told",
    "description": "What it was. " * 20,
    "url": "https://a.example/1",
    "publishedAt": "2026-11-23T10:00:00Z",
    "source": {"name": "A paper"},
}
_PAGE = {"title": "A <b>title</b>", "url": "https://a.example", "description": "Some <b>words</b> " * 15}
REPLIES: Mapping[str, tuple[Callable[[Any], Any], Any]] = {
    "Nominatim": (lambda answer: read_nominatim(answer, 20), found_places(20)),
    "OSRM": (
        read_route,
        {"code": "Ok", "routes": [{"distance": 1.0, "duration": 1.0, "legs": [{"steps": [_STEP] * 100}]}]},
    ),
    "Open-Meteo": (
        lambda answer: read_forecast(answer, 7),
        {"current": {"temperature_2m": 3.4, "weather_code": 61, "time": "2026-11-23T14:15"}, "daily": _DAYS},
    ),
    "NewsAPI": (read_articles, {"articles": [_ARTICLE] * 50}),
    "DuckDuckGo News": (read_duckduckgo, {"results": [story(number) for number in range(30)]}),
    "Brave": (read_brave, {"type": "search", "web": {"results": [_PAGE] * 20}}),
}
"""What reads a reply, and one as large as it usually is."""


def rows(count: int) -> Iterator[Row]:
    """The slowest of all, each read `count` times by turns with the bare parser."""
    taken = {name: _measured(read, reply, count) for name, (read, reply) in REPLIES.items()}
    worst = max(taken, key=lambda name: taken[name][0])
    reading, parsing = taken[worst]
    how = f"{worst}, the slowest of {len(taken)} services; json.loads alone {parsing:.2f} ms, median of {count}"
    yield Row("reading a reply of a service", reading, _GOAL, "ms", how)


def _measured(read: Callable[[Any], Any], reply: Any, count: int) -> tuple[float, float]:
    """Milliseconds for reading a reply, and for the parsing of its JSON alone."""
    content = json.dumps(reply).encode()
    headers = {"content-type": "application/json"}
    fetched = Fetched(url="https://a.example", status=200, kind="application/json", headers=headers, content=content)
    pairs = [(_taken(lambda: read(fetched.json())), _taken(lambda: json.loads(content))) for _ in range(count)]
    reading, parsing = (statistics.median(column) for column in zip(*pairs, strict=True))
    return reading * 1_000, parsing * 1_000


def _taken(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
