"""Whatever goes wrong with a service, each tool says in words what happened and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from marvin_core.testing import Answer, HttpReplay, ToolRunner, raw
from marvin_core.testing.tool_runner import installed_tools
from tests.tools_web import (
    test_browsing,
    test_feeds,
    test_google_login,
    test_knowledge,
    test_location,
    test_media,
    test_places,
    test_search,
    test_spotify,
    test_travel,
    test_weather,
)
from tests.tools_web.contracts import document
from tests.tools_web.failures import FAILURES, Case, fails_well

PAGE = raw(test_browsing.STORY.encode(), {"content-type": "text/html; charset=utf-8"})
FEED = raw(test_feeds.rss(), {"content-type": "application/rss+xml"})
ANY = frozenset(name for name, failure in FAILURES.items() if failure.read or name == "half a bomb")
"""What a page, a file may be."""
NO_PROGRAMS = {"PATH": "/nowhere"}


def case(arguments: Mapping[str, Any], *routes: tuple[str, str, Any], **others: Any) -> Case:
    """A case whose good answers are given as JSON, or as they are."""
    good = ((method, url, one if isinstance(one, Answer) else document(one)) for method, url, one in routes)
    return Case(arguments=arguments, routes=tuple(good), **others)


def media(arguments: Mapping[str, Any], url: str, good: Any) -> Case:
    return case(arguments, ("GET", url, good), env=test_media.KEYS)


def spotify(arguments: Mapping[str, Any], *routes: tuple[str, str, Any]) -> Case:
    renewal = ("POST", f"{test_spotify.ACCOUNTS}/api/token", document(test_spotify.TOKENS))
    return case(arguments, *routes, others=(renewal,), env={"SPOTIFY_CLIENT_ID": "client"})


def browsed(tool: str, code: str) -> Callable[[ToolRunner], Mapping[str, Any]]:
    """Has a login begun, and gives what the browser ended at."""

    def begun(tools: ToolRunner) -> Mapping[str, Any]:
        fields = parse_qs(urlsplit(tools.call(tool).text.splitlines()[1]).query)
        return {"auth_code": f"{fields['redirect_uri'][0]}?code={code}&state={fields['state'][0]}"}

    return begun


_PLAYER = {"steam_id": "76561197960435530"}
_STORE, _MEALS, _BRAINZ = test_media.STORE, test_media.MEALS, test_media.BRAINZ
_SPOTIFY, _ID = test_spotify.API, test_spotify.ID
_WEB = (
    ("GET", test_search.BRAVE, test_search.BRAVE_REPLY),
    ("POST", test_search.DUCKDUCKGO, test_search.DUCK_REPLY),
    ("GET", test_search.MOJEEK, test_search.MOJEEK_REPLY),
)
_OSRM = ("GET", test_travel.URL, test_travel.REPLY)
_NOMINATIM = ("GET", test_places.NOMINATIM, test_places.FOUND)

TABLE: Mapping[str, Case] = {
    "web_search": case({"query": "python"}, *_WEB, env=test_search.BRAVE_KEY, programs=True),
    "search_news": case({"query": "snake"}, *test_search.news_routes(), env=test_search.NEWS_KEYS),
    "browse_web": case({"url": test_browsing.URL}, ("GET", test_browsing.URL, PAGE), programs=True, reads=ANY),
    "read_rss": case({"url": test_feeds.URL}, ("GET", test_feeds.URL, FEED), programs=True),
    "download_file": case(
        {"url": "https://files.example/a"},
        ("GET", "https://files.example/a", {"short": 1}),  # it is waited for as long as something comes
        reads=ANY | {"slow drip", "compressed twice", "not compressed", "a bomb"},
    ),
    "wiki_search": case({"query": "bridge"}, ("GET", test_knowledge.WIKI, test_knowledge.HITS)),
    "wiki_summary": case({"title": "Tower Bridge"}, ("GET", test_knowledge.WIKI, test_knowledge.PAGE)),
    "wiki_full": case({"title": "Tower Bridge"}, ("GET", test_knowledge.WIKI, test_knowledge.PAGE)),
    "stack_search": case(
        {"query": "await"}, ("GET", f"{test_knowledge.STACK}/search/advanced", test_knowledge.QUESTIONS)
    ),
    "stack_answers": case(
        {"question_id": 11},
        ("GET", f"{test_knowledge.STACK}/questions/11", test_knowledge.QUESTIONS),
        ("GET", f"{test_knowledge.STACK}/questions/11/answers", test_knowledge.ANSWERS),
    ),
    "search_papers": case(
        {"query": "attention"},
        ("GET", test_knowledge.SCHOLAR, test_knowledge.PAPERS),
        ("GET", test_knowledge.ARXIV, test_knowledge.ATOM),
        env={"SEMANTIC_SCHOLAR_API_KEY": "scholar-0123456789"},
        programs=True,
    ),
    "search_arxiv": case({"query": "attention"}, ("GET", test_knowledge.ARXIV, test_knowledge.ATOM), programs=True),
    "dictionary_lookup": case(
        {"word": "happy"}, ("GET", test_knowledge.DICTIONARY + "happy", test_knowledge.WORD), env=NO_PROGRAMS
    ),
    "translate_text": case(
        {"text": "x", "target_language": "de"},
        ("GET", test_knowledge.MYMEMORY, test_knowledge.TRANSLATION),
        env={"MYMEMORY_KEY": "mymemory-0123456789"},
    ),
    "get_my_location": case(
        {},
        ("GET", test_location.IPWHO, test_location.IPWHO_REPLY),
        ("GET", test_location.IPAPI, test_location.IPAPI_REPLY),
        env=NO_PROGRAMS,
    ),
    "places_text_search": case(
        {"text_query": "a"}, ("POST", test_places.GOOGLE_TEXT, test_places.PLACES), _NOMINATIM, env=test_places.KEY
    ),
    "places_nearby_search": case(
        {"near": "London", "included_types": ["cafe"]},
        _NOMINATIM,
        ("GET", test_places.OPEN_METEO, {"results": [], "generationtime_ms": 1}),
        ("POST", test_places.OVERPASS, test_places.ELEMENTS),
    ),
    "osm_search": case({"query": "a"}, _NOMINATIM),
    "overpass_query": case({"query": "node(1);out;"}, ("POST", test_places.OVERPASS, test_places.ELEMENTS)),
    "estimate_travel_time": case(test_travel.BERLIN, _OSRM),
    "get_directions": case(test_travel.BERLIN, _OSRM),
    "estimate_traffic_adjusted_time": case(test_travel.BERLIN, _OSRM, ("GET", test_weather.URL, test_weather.REPLY)),
    "weather_forecast": case({"location": "52.5, 13.4"}, ("GET", test_weather.URL, test_weather.REPLY)),
    "search_movies": case(
        {"query": "matrix"},
        ("GET", test_media.OMDB, test_media.FILM_HITS),
        *_WEB[1:],
        env=test_media.KEYS,
        programs=True,
    ),
    "get_movie_details": case(
        {"title": "The Matrix"},
        ("GET", test_media.OMDB, test_media.FILM),
        *_WEB[1:],
        env=test_media.KEYS,
        programs=True,
    ),
    "search_games": case(
        {"query": "portal"},
        ("GET", test_media.RAWG, {"count": 5, "next": None, "results": [test_media.GAME]}),
        *_WEB[1:],
        env=test_media.KEYS,
        programs=True,
    ),
    "get_game_details": media({"game_id": 4200}, f"{test_media.RAWG}/4200", test_media.GAME),
    "steam_search": media({"query": "x"}, f"{_STORE}/storesearch/", test_media.SOLD),
    "steam_app_details": media({"app_id": 620}, f"{_STORE}/appdetails", test_media.APP),
    "steam_featured": media({}, f"{_STORE}/featuredcategories", test_media.FEATURED),
    "steam_player_stats": case(
        {"app_id": 620},
        ("GET", test_media.COUNTING, test_media.COUNT),
        ("GET", f"{test_media.STEAM}/ISteamUserStats/GetGlobalAchievementPercentagesForApp/v2/", test_media.SHARES),
        ("GET", f"{test_media.STEAM}/ISteamUserStats/GetSchemaForGame/v2/", test_media.SCHEMA),
        env=test_media.KEYS,
    ),
    "steam_user_games": media(_PLAYER, test_media.OWNING, test_media.OWNED),
    "steam_user_summary": media(_PLAYER, test_media.SUMMARY, test_media.PLAYER),
    "recipe_search": media({"query": "x"}, f"{_MEALS}/search.php", test_media.FOUND),
    "recipe_lookup": media({"meal_id": "52772"}, f"{_MEALS}/lookup.php", test_media.FOUND),
    "music_search": media({"query": "x"}, f"{_BRAINZ}/artist", test_media.ARTISTS),
    "music_lookup": case(
        {"mbid": test_media.MBID},
        ("GET", f"{_BRAINZ}/artist/{test_media.MBID}", test_media.ARTIST),
        ("GET", f"{_BRAINZ}/release-group", test_media.ALBUMS),
        env=test_media.KEYS,
    ),
    "spotify_search": spotify({"query": "x"}, ("GET", f"{_SPOTIFY}/search", test_spotify.TRACKS)),
    "spotify_create_playlist": spotify({"name": "x"}, ("POST", f"{_SPOTIFY}/me/playlists", test_spotify.PLAYLIST)),
    "spotify_add_tracks": spotify(
        {"playlist_id": _ID, "track_queries": ["x"]},
        ("GET", f"{_SPOTIFY}/search", test_spotify.TRACKS),
        ("POST", f"{_SPOTIFY}/playlists/{_ID}/items", {"snapshot_id": "x"}),
    ),
    "spotify_auth": case(
        {},
        ("POST", f"{test_spotify.ACCOUNTS}/api/token", test_spotify.TOKENS),
        env={"SPOTIFY_CLIENT_ID": "client"},
        begun=browsed("spotify_auth", "c" * 40),
    ),
    "setup_google_auth": case(
        {},
        ("POST", test_google_login.TOKENS_URL, {**test_google_login.TOKENS, "refresh_token": "1//refresh-token"}),
        env=test_google_login.APPLICATION,
        begun=browsed("setup_google_auth", f"4/0{'c' * 40}"),
        asks=True,
    ),
}
ELSEWHERE = {"scrape_page", "yt_dlp_download"}
"""Those that have programs of others ask: test_failures_of_programs.py."""


def test_each_tool_that_asks_services_is_in_the_table() -> None:
    ours = [spec for spec in installed_tools() if spec.source == "marvin-tools-web" and "net" in spec.access]
    assert {spec.name for spec in ours} - ELSEWHERE == TABLE.keys()


def tried(tools: ToolRunner, http: HttpReplay, tool: str, *, read: bool) -> None:
    described = TABLE[tool]
    if tool.startswith("spotify_") and described.begun is None:
        test_spotify.logged_in(tools.session(env=described.env), http)
    names = [name for name, failure in FAILURES.items() if not described.programs or failure.read is read]
    fails_well(tools, http, tool, described, names)


@pytest.mark.slow
@pytest.mark.parametrize("tool", TABLE)
def test_it_fails_in_words(marvin_tools: ToolRunner, marvin_http: HttpReplay, tool: str) -> None:
    """I10: each error says what happened and what to do."""
    tried(marvin_tools, marvin_http, tool, read=False)


@pytest.mark.slow
@pytest.mark.parametrize("tool", [tool for tool, described in TABLE.items() if described.programs])
def test_it_fails_in_words_where_a_program_reads(marvin_tools: ToolRunner, marvin_http: HttpReplay, tool: str) -> None:
    """I10: the same for what is read in processes of their own."""
    tried(marvin_tools, marvin_http, tool, read=True)
