"""What services send may be anything: each parser makes something of it, or says that it cannot."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Fetched, RequestFailed
from marvin_tools_web.knowledge import dictionary, mediawiki, papers, stack_exchange, translation
from marvin_tools_web.places import google, location, osm
from marvin_tools_web.search import news, web
from marvin_tools_web.services import values
from marvin_tools_web.travel import forecasts, osrm
from tests.tools_web import (
    test_knowledge,
    test_location,
    test_media,
    test_places,
    test_search,
    test_travel,
    test_weather,
)

ROOT = Path(__file__).parents[2]
READABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, RequestFailed)
"""What `ServiceClient` takes for an answer that cannot be understood."""


def overpass(answer: Any) -> Any:
    content = json.dumps(answer).encode()
    kind = "application/json"
    return osm.read_overpass(Fetched(url="https://o.example", status=200, kind=kind, headers={}, content=content), 20)


PARSERS: Mapping[str, tuple[Callable[[Any], Any], Any]] = {
    "Open-Meteo": (lambda answer: forecasts.read(answer, 7), test_weather.REPLY),
    "OSRM": (osrm.read, test_travel.REPLY),
    "Nominatim": (lambda answer: osm.read_nominatim(answer, 20), test_places.FOUND),
    "Overpass": (overpass, test_places.ELEMENTS),
    "Google Places": (lambda answer: google.read(answer, 20), test_places.PLACES),
    "ipwho.is": (location.read, test_location.IPWHO_REPLY),
    "ipapi.co": (location.read, test_location.IPAPI_REPLY),
    "Brave": (web.read_brave, test_search.BRAVE_REPLY),
    "SearXNG": (web.read_searxng, {"results": test_search.BRAVE_REPLY["web"]["results"]}),
    "GNews": (news.read_articles, test_search.GNEWS_REPLY),
    "NewsAPI": (news.read_articles, test_search.NEWSAPI_REPLY),
    "DuckDuckGo News": (news.read_duckduckgo, test_search.DUCK_NEWS_REPLY),
    "Wikipedia: a search": (lambda answer: mediawiki.hits_in(answer, test_knowledge.WIKI), test_knowledge.HITS),
    "Wikipedia: an article": (lambda answer: mediawiki.article_in(answer, test_knowledge.WIKI), test_knowledge.PAGE),
    "Stack Exchange": (stack_exchange.page_in, test_knowledge.QUESTIONS),
    "Semantic Scholar": (papers.scholar_papers, test_knowledge.PAPERS),
    "Free Dictionary": (lambda answer: dictionary.entries_in(answer, True), test_knowledge.WORD),
    "MyMemory": (translation.part_in, test_knowledge.TRANSLATION),
    **{f"media {number}": (read, good) for number, (good, read) in enumerate(test_media.READERS, 1)},
}
"""Each parser, and a good reply for it."""

SCALARS = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a reply."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places_in(one, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    """A reply with another value at a path."""
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


@pytest.mark.parametrize("name", PARSERS)
def test_a_good_reply_is_understood(name: str) -> None:
    read, good = PARSERS[name]
    assert read(good)


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_a_reply_with_anything_in_it(name: str, data: st.DataObject) -> None:
    """Any one value of a good reply may be any other."""
    read, good = PARSERS[name]
    reply = changed(good, data.draw(st.sampled_from(places_in(good))), data.draw(JSON))
    try:
        read(reply)
    except READABLE:
        pass


@pytest.mark.parametrize("name", PARSERS)
def test_a_large_reply_takes_a_time_that_grows_with_its_size(name: str) -> None:
    """Lists of a reply may have a hundred thousand entries, and texts a million characters."""
    read, good = PARSERS[name]
    for path in places_in(good):
        there: Any = values.inner(good, *path)
        large: Any = None
        if isinstance(there, str):
            large = "<a href='&amp;" * 70_000
        elif isinstance(there, list):
            large = there * (100_000 // max(1, len(there)))
        if large is None or len(path) > 4:
            continue
        began = time.process_time()
        try:
            read(changed(good, path, large))
        except READABLE:
            pass
        assert time.process_time() - began < 5, path


@given(JSON, st.lists(st.text(max_size=5) | st.integers(-3, 3), max_size=4))
def test_values_are_what_they_are_asked_for(value: Any, path: list[str | int]) -> None:
    assert isinstance(values.text(value, *path), str)
    assert isinstance(values.plain(value, *path), str)
    assert values.address(value, *path).startswith(("http://", "https://", "")) is True
    found = values.number(value, *path)
    assert found is None or abs(found) < float("inf")
    assert all(isinstance(one, Mapping) for one in values.objects(value, *path))
    assert "\n" not in values.text(value, *path)
    assert not {"\x1b", "\x00"} & set(values.text(value, *path))


@pytest.mark.slow
def test_no_parser_takes_more_than_a_second_and_a_hundred_megabytes() -> None:
    """Of what was made to hurt it, up to a megabyte. Each is tried in a process of its own."""
    command = [sys.executable, "-P", "-m", "tests.tools_web.bounded"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True)
    taken = json.loads(done.stdout)
    assert taken.keys() >= PARSERS.keys()
    assert not {name: found for name, found in taken.items() if not _is_bounded(**found)}


def _is_bounded(megabytes: float = math.inf, seconds: float = math.inf, **others: float) -> bool:
    return megabytes <= 100 and seconds <= 1 and not others
