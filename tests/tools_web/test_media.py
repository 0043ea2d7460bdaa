"""Films, games, Steam, recipes, music: what is asked of the services, what is answered, what fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.testing import HttpReplay, ToolRunner
from marvin_tools_web.media import games, movies, music, recipes, steam_players, steam_store
from tests.tools_web.contracts import Operation, check
from tests.tools_web.spoilt import read_or_refused

# --- films. Source: omdbapi.com -------------------------------------------------------------------------------------

OMDB = "https://www.omdbapi.com"
FILMS = Operation(
    url=re.escape(OMDB) + "/?",
    required={"apikey": "omdb-key"},
    optional={
        "s": ".+",
        "t": ".+",
        "i": r"tt\d+",
        "y": r"\d{4}",
        "type": "movie|series|episode",
        "plot": "short|full",
        "r": "json",
    },
)
FILM_HITS: dict[str, Any] = {
    "Search": [
        {
            "Title": "The Matrix",
            "Year": "1999",
            "imdbID": "tt0133093",
            "Type": "movie",
            "Poster": "https://m.example/1.jpg",
        },
        {"Title": "Matrix", "Year": "1993–", "imdbID": "tt0106062", "Type": "series", "Poster": "N/A"},
    ],
    "totalResults": "137",
    "Response": "True",
}
FILM: dict[str, Any] = {
    "Title": "The Matrix",
    "Year": "1999",
    "Rated": "R",
    "Released": "31 Mar 1999",
    "Runtime": "136 min",
    "Genre": "Action, Sci-Fi",
    "Director": "Lana Wachowski, Lilly Wachowski",
    "Writer": "N/A",
    "Actors": "Keanu Reeves",
    "Plot": "A hacker learns the truth.",
    "Ratings": [
        {"Source": "Internet Movie Database", "Value": "8.7/10"},
        {"Source": "Rotten Tomatoes", "Value": "83%"},
    ],
    "imdbID": "tt0133093",
    "Type": "movie",
    "Response": "True",
}
KEYS = {"OMDB_API_KEY": "omdb-key", "RAWG_API_KEY": "rawg-key", "STEAM_API_KEY": "steam-key"}


@pytest.fixture
def keyed(marvin_tools: ToolRunner) -> ToolRunner:
    """A session of somebody who has all keys."""
    return marvin_tools.session(env=KEYS)


def test_films_are_found(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", OMDB, json=FILM_HITS)
    outcome = keyed.call("search_movies", query="matrix", year="1999", type="movie")
    assert outcome.text.splitlines() == [
        "1. The Matrix (1999); movie; tt0133093",
        "   https://www.imdb.com/title/tt0133093/",
        "",
        "2. Matrix (1993–); series; tt0106062",
        "   https://www.imdb.com/title/tt0106062/",
        "",
        "[2 of 137 are shown. Use more specific words for other results.]",
        "[For details, use get_movie_details.] [Source: OMDb.]",
    ]
    check(marvin_http, FILMS)
    assert outcome.show[0].as_dict()["url"] == "https://www.imdb.com/title/tt0133093/"


@pytest.mark.parametrize("arguments", [{"title": "The Matrix"}, {"imdb_id": "https://www.imdb.com/title/tt0133093/"}])
def test_a_film_is_told_about(keyed: ToolRunner, marvin_http: HttpReplay, arguments: dict[str, str]) -> None:
    marvin_http.on("GET", OMDB, json=FILM)
    assert keyed.call("get_movie_details", **arguments).text.splitlines() == [
        "The Matrix (1999)",
        "movie; R; 136 min; Action, Sci-Fi",
        "Released: 31 Mar 1999",
        "Director: Lana Wachowski, Lilly Wachowski",
        "Actors: Keanu Reeves",
        "Ratings: IMDb 8.7/10; Rotten Tomatoes 83%",
        "Plot: A hacker learns the truth.",
        "https://www.imdb.com/title/tt0133093/",
        "[Source: OMDb.]",
    ]
    check(marvin_http, FILMS)


def test_without_a_key_the_web_is_searched(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    found = {"title": "The Matrix (1999)", "url": "https://a.example/m", "content": "A film."}
    marvin_http.on("GET", "https://searx.example/search", json={"results": [found]})
    keyless = marvin_tools.session(env={"MARVIN_URL_SEARXNG": "https://searx.example"})
    for tool, arguments in (
        ("search_movies", {"query": "matrix"}),
        ("get_movie_details", {"title": "matrix"}),
        ("search_games", {"query": "portal"}),
    ):
        text = keyless.call(tool, **arguments).text
        assert "https://a.example/m" in text
        assert "[From a web search, because: " in text
        assert "_API_KEY" in text


def test_a_film_that_is_not_there(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", OMDB, json={"Response": "False", "Error": "Movie not found!"})
    assert "OMDb has no film or series 'x'" in keyed.call("search_movies", query="x").text
    assert keyed.call("get_movie_details", title="x").is_error
    assert "is not a year" in keyed.call("search_movies", query="x", year="99").text
    assert "is not an IMDb id" in keyed.call("get_movie_details", imdb_id="x").text


def test_a_film_of_two_letters(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    """OMDb finds too many then, which is not nothing."""
    marvin_http.on("GET", OMDB, json={"Response": "False", "Error": "Too many results."})
    outcome = keyed.call("search_movies", query="Up")
    assert outcome.is_error
    assert "found too many titles for 'Up'. Give more of the title" in outcome.text


@pytest.mark.parametrize("name", ["search_movies", "get_movie_details", "search_games"])
def test_where_the_web_fails_as_well_both_are_told(keyed: ToolRunner, marvin_http: HttpReplay, name: str) -> None:
    for method, url in (
        ("GET", OMDB),
        ("GET", RAWG),
        ("POST", "https://html.duckduckgo.com/html/"),
        ("GET", "https://www.mojeek.com/search"),
    ):
        marvin_http.on(method, url, status=500)
    outcome = keyed.call(name, **{"title" if name == "get_movie_details" else "query": "portal"})
    assert outcome.is_error
    assert "A web search failed too: None of 2 services answered:" in outcome.text
    assert re.search(r"(OMDb|RAWG): .* answered 500", outcome.text)


def test_no_error_shows_a_key(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    """I24: nor does what is kept of how a service has been."""
    marvin_http.on("GET", "https://api.rawg.io/api/games/1", status=500)
    outcome = keyed.call("get_game_details", game_id=1)
    assert outcome.is_error
    assert "rawg-key" not in outcome.text
    kept = [path.read_bytes() for path in (keyed.home / ".local").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"rawg-key" in content for content in kept)


# --- games. Source: api.rawg.io/docs --------------------------------------------------------------------------------

RAWG = "https://api.rawg.io/api/games"
PLAYS = Operation(
    url=re.escape(RAWG) + r"(/\d+)?",
    required={"key": "rawg-key"},
    optional={"search": ".+", "page_size": r"\d+"},
)
GAME: dict[str, Any] = {
    "id": 4200,
    "slug": "portal-2",
    "name": "Portal 2",
    "released": "2011-04-18",
    "rating": 4.58,
    "metacritic": 95,
    "playtime": 11,
    "platforms": [{"platform": {"id": 4, "name": "PC"}}, {"platform": {"id": 5, "name": "macOS"}}],
    "genres": [{"id": 2, "name": "Shooter"}, {"id": 7, "name": "Puzzle"}],
    "developers": [{"name": "Valve Software"}],
    "publishers": [{"name": "Valve"}],
    "website": "https://www.thinkwithportals.com/",
    "description_raw": "Portal 2 is a first-person puzzle game.",
    "esrb_rating": {"name": "Everyone 10+"},
}


GAME_HITS: dict[str, Any] = {"count": 5, "next": None, "results": [GAME]}


def test_games_are_found_and_told_about(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", RAWG, json=GAME_HITS)
    marvin_http.on("GET", f"{RAWG}/4200", json=GAME)
    assert keyed.call("search_games", query="portal").text.splitlines() == [
        "1. Portal 2 (2011-04-18)",
        "   game 4200; rated 4.58 of 5; Metacritic 95; Shooter, Puzzle; PC, macOS",
        "   https://rawg.io/games/portal-2",
        "",
        "[1 of 5 are shown. Use more specific words for other results.]",
        "[For details, use get_game_details.] [Source: RAWG.]",
    ]
    text = keyed.call("get_game_details", game_id=4200).text
    assert "Developers: Valve Software" in text
    assert "Usual playing time: 11 h" in text
    check(marvin_http, PLAYS)


def test_a_game_that_is_not_there(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{RAWG}/9", json={"detail": "Not found."}, status=404)
    assert "RAWG has no game 9. Find one with search_games." in keyed.call("get_game_details", game_id=9).text


# --- Steam. Source: partner.steamgames.com/doc/webapi ---------------------------------------------------------------

STORE = "https://store.steampowered.com/api"
STEAM = "https://api.steampowered.com"
SHOP = Operation(
    url=re.escape(STORE) + r"/(storesearch/|appdetails|featuredcategories)",
    optional={"term": ".+", "appids": r"\d+", "l": "english", "cc": "US"},
)
PLAYERS = Operation(
    url=re.escape(STEAM) + r"/I[A-Za-z]+/[A-Za-z]+/v\d/",
    optional={
        "key": "steam-key",
        "format": "json",
        "l": "english",
        "appid": r"\d+",
        "gameid": r"\d+",
        "steamid": r"\d{17}",
        "steamids": r"\d{17}",
        "vanityurl": r"\w+",
        "include_appinfo": "1",
        "include_played_free_games": "1",
    },
)
SOLD: dict[str, Any] = {
    "total": 9,
    "items": [
        {
            "type": "app",
            "name": "Portal 2",
            "id": 620,
            "price": {"currency": "USD", "initial": 999, "final": 199},
            "metascore": "95",
            "platforms": {"windows": True, "mac": False, "linux": True},
        }
    ],
}
APP: dict[str, Any] = {
    "620": {
        "success": True,
        "data": {
            "type": "game",
            "name": "Portal 2",
            "steam_appid": 620,
            "is_free": False,
            "short_description": "The sequel &amp; more.",
            "supported_languages": "English<strong>*</strong>, German",
            "developers": ["Valve"],
            "publishers": ["Valve"],
            "price_overview": {"currency": "USD", "discount_percent": 80, "final_formatted": "$1.99"},
            "platforms": {"windows": True, "mac": False, "linux": True},
            "metacritic": {"score": 95},
            "categories": [{"id": 2, "description": "Single-player"}],
            "genres": [{"id": "1", "description": "Action"}],
            "recommendations": {"total": 300000},
            "release_date": {"coming_soon": False, "date": "Apr 18, 2011"},
        },
    }
}
OFFER = {
    "id": 620,
    "name": "Portal 2",
    "discount_percent": 80,
    "original_price": 999,
    "final_price": 199,
    "currency": "USD",
}
FEATURED: dict[str, Any] = {"0": {"id": "cat_spotlight"}, "specials": {"items": [OFFER, OFFER]}, "status": 1}
COUNT: dict[str, Any] = {"response": {"player_count": 1234, "result": 1}}
SHARES: dict[str, Any] = {"achievementpercentages": {"achievements": [{"name": "A_1", "percent": "12.5"}]}}
SCHEMA: dict[str, Any] = {
    "game": {
        "gameName": "Portal 2",
        "availableGameStats": {"achievements": [{"name": "A_1", "displayName": "Wake Up", "description": "Survive"}]},
    }
}
OWNED: dict[str, Any] = {
    "response": {
        "game_count": 2,
        "games": [
            {"appid": 400, "name": "Portal", "playtime_forever": 60},
            {"appid": 620, "name": "Portal 2", "playtime_forever": 600, "playtime_2weeks": 90},
        ],
    }
}
PLAYER: dict[str, Any] = {
    "response": {
        "players": [
            {
                "steamid": "76561197960435530",
                "communityvisibilitystate": 3,
                "personaname": "Robin",
                "profileurl": "https://steamcommunity.com/id/robinwalker/",
                "personastate": 1,
                "timecreated": 1063407589,
                "loccountrycode": "US",
            }
        ]
    }
}
VANITY: dict[str, Any] = {"response": {"steamid": "76561197960435530", "success": 1}}
COUNTING = f"{STEAM}/ISteamUserStats/GetNumberOfCurrentPlayers/v1/"
OWNING = f"{STEAM}/IPlayerService/GetOwnedGames/v1/"
SUMMARY = f"{STEAM}/ISteamUser/GetPlayerSummaries/v2/"


def test_the_shop_of_steam(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{STORE}/storesearch/", json=SOLD)
    marvin_http.on("GET", f"{STORE}/appdetails", json=APP)
    marvin_http.on("GET", f"{STORE}/featuredcategories", json=FEATURED)
    assert marvin_tools.call("steam_search", query="portal").text.splitlines() == [
        "1. Portal 2",
        "   app 620; 1.99 USD (-80 %); Metacritic 95; windows, linux",
        "   https://store.steampowered.com/app/620",
        "",
        "[1 of 9 are shown. Use more specific words for other results.]",
        "[Source: Steam.]",
    ]
    text = marvin_tools.call("steam_app_details", app_id=620).text
    assert "app 620; game; $1.99 (-80 %); released: Apr 18, 2011" in text
    assert "Languages: English*, German" in text
    assert "The sequel & more." in text
    assert marvin_tools.call("steam_featured").text == (
        "Specials:\n1. Portal 2; 1.99 USD (-80 %); https://store.steampowered.com/app/620\n[Source: Steam.]"
    )
    check(marvin_http, SHOP)


def test_the_players_of_steam(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", COUNTING, json=COUNT)
    marvin_http.on("GET", f"{STEAM}/ISteamUserStats/GetGlobalAchievementPercentagesForApp/v2/", json=SHARES)
    marvin_http.on("GET", f"{STEAM}/ISteamUserStats/GetSchemaForGame/v2/", json=SCHEMA)
    marvin_http.on("GET", f"{STEAM}/ISteamUser/ResolveVanityURL/v1/", json=VANITY)
    marvin_http.on("GET", OWNING, json=OWNED)
    marvin_http.on("GET", SUMMARY, json=PLAYER)
    assert keyed.call("steam_player_stats", app_id=620).text.splitlines() == [
        "1,234 people are playing app 620 now.",
        "The most common of 1 achievements:",
        "- 12.5 %: Wake Up (Survive)",
        "[Source: Steam.]",
    ]
    assert keyed.call("steam_user_games", steam_id="https://steamcommunity.com/id/robinwalker/").text.splitlines() == [
        "1. Portal 2; https://store.steampowered.com/app/620; 10.0 h played; 1.5 h in two weeks",
        "2. Portal; https://store.steampowered.com/app/400; 1.0 h played",
        "[Source: Steam.]",
    ]
    text = keyed.call("steam_user_summary", steam_id="76561197960435530").text
    assert text.startswith("Robin\nonline; public profile\nCountry: US\nMember since: 2003-09-12\n")
    check(marvin_http, PLAYERS)


def test_without_a_key_of_steam(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", COUNTING, json=COUNT)
    text = marvin_tools.call("steam_player_stats", app_id=620).text
    assert "1,234 people are playing" in text
    assert "set as STEAM_API_KEY" in text
    assert "needs the variable STEAM_API_KEY" in marvin_tools.call("steam_user_games", steam_id="x").text


def test_what_steam_does_not_have(keyed: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{STORE}/appdetails", json={"9": {"success": False}})
    marvin_http.on("GET", COUNTING, json={"response": {"result": 42}}, status=404)
    marvin_http.on("GET", OWNING, json={"response": {}})
    marvin_http.on("GET", f"{STEAM}/ISteamUser/ResolveVanityURL/v1/", json={"response": {"success": 42}})
    for tool, arguments, says in (
        ("steam_app_details", {"app_id": 9}, "has no app 9"),
        ("steam_player_stats", {"app_id": 9}, "Steam has no player count for app 9"),
        ("steam_user_games", {"steam_id": "76561197960435530"}, "are private"),
        ("steam_user_games", {"steam_id": "nobody"}, "no profile 'nobody'"),
        ("steam_user_summary", {"steam_id": "../x?y"}, "is not a Steam profile"),
    ):
        outcome = keyed.call(tool, **arguments)
        assert outcome.is_error
        assert says in outcome.text


# --- recipes. Source: themealdb.com/api.php -------------------------------------------------------------------------

MEALS = "https://www.themealdb.com/api/json/v1/1"
COOKING = Operation(url=re.escape(MEALS) + r"/(search|filter|lookup)\.php", optional={"s": ".+", "i": r"[\w-]+"})
MEAL: dict[str, Any] = {
    "idMeal": "52772",
    "strMeal": "Teriyaki Chicken Casserole",
    "strCategory": "Chicken",
    "strArea": "Japanese",
    "strInstructions": "Preheat oven.\r\n\r\nCombine soy sauce & water.",
    "strTags": "Meat,Casserole",
    "strYoutube": "https://www.youtube.com/watch?v=4aZr5hZXP_s",
    "strIngredient1": "soy sauce",
    "strMeasure1": "3/4 cup",
    "strIngredient2": "water",
    "strMeasure2": " ",
    "strIngredient3": "",
    "strMeasure3": "",
    "strIngredient4": None,
    "strMeasure4": None,
    "strSource": None,
}
FOUND: dict[str, Any] = {"meals": [MEAL]}


def test_recipes(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{MEALS}/search.php", json=FOUND)
    marvin_http.on("GET", f"{MEALS}/filter.php", json={"meals": None})
    marvin_http.on("GET", f"{MEALS}/lookup.php", json=FOUND)
    assert marvin_tools.call("recipe_search", query="teriyaki").text.splitlines()[0] == (
        "1. Teriyaki Chicken Casserole; Japanese; Chicken; id 52772"
    )
    nothing = marvin_tools.call("recipe_search", query="Chicken Breast", search_type="ingredient").text
    assert "No recipe has the ingredient 'Chicken Breast'" in nothing
    assert marvin_tools.call("recipe_lookup", meal_id="52772").text.splitlines()[2:9] == [
        "Ingredients:",
        "- 3/4 cup soy sauce",
        "- water",
        "Instructions:",
        "Preheat oven.",
        "Combine soy sauce & water.",
        "Video: https://www.youtube.com/watch?v=4aZr5hZXP_s",
    ]
    check(marvin_http, COOKING)
    assert marvin_http.requests[1].params == {"i": "chicken_breast"}
    assert "is not a recipe id" in marvin_tools.call("recipe_lookup", meal_id="../1").text


# --- music. Source: musicbrainz.org/doc/MusicBrainz_API -------------------------------------------------------------

BRAINZ = "https://musicbrainz.org/ws/2"
MBID = "9c9f1380-2516-4fc9-a3e6-f9f61941d090"
LISTENING = Operation(
    url=re.escape(BRAINZ) + r"/(artist|release|recording|release-group)(/[0-9a-f-]{36})?",
    required={"fmt": "json"},
    optional={"query": ".+", "limit": r"[1-9]\d?|100", "inc": r"[a-z-]+( [a-z-]+)*", "artist": "[0-9a-f-]{36}"},
    headers={"user-agent": r"Marvin/[\d.]+ \("},
)
ARTIST: dict[str, Any] = {
    "id": MBID,
    "type": "Group",
    "name": "Muse",
    "country": "GB",
    "disambiguation": "UK rock band",
    "area": {"name": "United Kingdom"},
    "life-span": {"begin": "1994", "ended": None},
    "tags": [{"count": 1, "name": "rock"}],
}
ALBUMS: dict[str, Any] = {
    "release-group-count": 2,
    "release-group-offset": 0,
    "release-groups": [
        {"id": MBID, "title": "Absolution", "first-release-date": "2003-09-15", "primary-type": "Album"},
        {"id": MBID, "title": "Showbiz", "first-release-date": "1999-09-28", "primary-type": "Album"},
    ],
}
RELEASE: dict[str, Any] = {
    "id": MBID,
    "title": "Absolution",
    "date": "2003",
    "artist-credit": [{"name": "Muse", "joinphrase": " & "}, {"name": "Friends"}],
    "media": [{"format": "CD", "position": 1, "tracks": [{"position": 1, "title": "Intro", "length": 22_600}]}],
}
RECORDING: dict[str, Any] = {
    "id": MBID,
    "title": "Hysteria",
    "length": 227_000,
    "artist-credit": [{"name": "Muse"}],
    "releases": [{"title": "Absolution", "date": "2003-09-15", "country": "GB"}],
}
ARTISTS: dict[str, Any] = {"created": "2026-11-23", "count": 99, "offset": 0, "artists": [ARTIST]}


def test_music_is_found(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{BRAINZ}/artist", json=ARTISTS)
    assert marvin_tools.call("music_search", query="muse").text.splitlines() == [
        "1. Muse (UK rock band)",
        "   Group; United Kingdom; since 1994; rock",
        f"   id {MBID}",
        f"   https://musicbrainz.org/artist/{MBID}",
        "",
        "[1 of 99 are shown. Use more specific words for other results.]",
        "[For more, use music_lookup.] [Source: MusicBrainz.]",
    ]
    check(marvin_http, LISTENING)


@pytest.mark.parametrize(
    ("entity", "reply", "says"),
    [
        ("artist", ARTIST, "Albums and others (2):\n- 1999; Showbiz; Album\n- 2003; Absolution; Album\n"),
        ("release", RELEASE, "by: Muse & Friends; 2003\n"),
        ("release", RELEASE, "1. Intro; 0:23\n"),
        ("recording", RECORDING, "by: Muse; 3:47; on: Absolution\n"),
        ("recording", RECORDING, "Appears on (1):\n- Absolution; 2003-09-15; GB\n"),
    ],
)
def test_music_is_told_about(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, entity: str, reply: dict[str, Any], says: str
) -> None:
    marvin_http.on("GET", f"{BRAINZ}/{entity}/{MBID}", json=reply)
    marvin_http.on("GET", f"{BRAINZ}/release-group", json=ALBUMS)
    link = f"https://musicbrainz.org/{entity}/{MBID}"
    assert says in marvin_tools.call("music_lookup", mbid=link, entity=entity).text
    check(marvin_http, LISTENING)


def test_an_artist_of_many_albums(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{BRAINZ}/artist/{MBID}", json=ARTIST)
    groups = [{"title": f"Album {number}", "first-release-date": f"{1900 + number}"} for number in range(100)]
    reply = {"release-group-count": 1_234, "release-groups": groups}
    marvin_http.on("GET", f"{BRAINZ}/release-group", json=reply, times=1)
    own = marvin_tools.session(env={"MARVIN_URL_MUSICBRAINZ": BRAINZ})  # asked at once
    text = own.call("music_lookup", mbid=MBID).text
    assert "Albums and others (1,234, 60 of them are listed here):" in text
    assert text.count("- 19") == 60
    marvin_http.on("GET", f"{BRAINZ}/release-group", status=503)
    text = own.call("music_lookup", mbid=MBID).text
    assert text.startswith("Muse (UK rock band)")
    assert "[The albums are not available: MusicBrainz: " in text


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("AC/DC", r"AC\/DC"),
        ("What?", r"What\?"),
        ('"Weird Al" Yankovic', r"\"Weird Al\" Yankovic"),
        ("*NSYNC", r"\*NSYNC"),
        ("P!nk", r"P\!nk"),
        ("Sigur Rós ( )", r"Sigur Rós \( \)"),
        ("this OR that AND NOT", "this or that and not"),
        ("artist:Muse AND country:GB", "artist:Muse AND country:GB"),
        ("M:I", r"M\:I"),
        ("椎名林檎", "椎名林檎"),
    ],
)
def test_names_hold_signs_of_the_search(query: str, sent: str) -> None:
    assert music.expression(query) == sent


@given(st.text(max_size=60))
def test_no_sign_of_the_search_is_left(text: str) -> None:
    found = music.expression(" ".join(text.split()))
    assert not re.search(r'(?<!\\)(?:\\\\)*[+\-&|!(){}\[\]^"~*?:/]', found) or re.search(r"\w:\S", text)


def test_music_that_is_not_there(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{BRAINZ}/artist/{MBID}", json={"error": "Not Found", "help": "..."}, status=404)
    assert f"There is no artist {MBID}" in marvin_tools.call("music_lookup", mbid=MBID).text
    assert "is not a MusicBrainz id" in marvin_tools.call("music_lookup", mbid="Muse").text


# --- what goes wrong ------------------------------------------------------------------------------------------------

READERS: list[tuple[Any, Callable[[Any], object]]] = [
    (FILM, movies.details_in),
    (GAME, games.details_in),
    (APP["620"]["data"], lambda answer: steam_store.details_in(answer, 620)),
    (FEATURED, steam_store.featured_in),
    (COUNT, steam_players.count_in),
    (OWNED, steam_players.games_in),
    (PLAYER, steam_players.summary_in),
    (FOUND, lambda answer: [recipes.recipe_in(meal) for meal in recipes.meals_in(answer)]),
    (ARTIST, lambda answer: music.whole_in("artist", answer)),
    (ALBUMS, music.albums_in),
    (RELEASE, lambda answer: music.whole_in("release", answer)),
    (RECORDING, lambda answer: music.whole_in("recording", answer)),
]


@given(st.data())
def test_replies_with_anything_in_them_are_read_or_refused(data: st.DataObject) -> None:
    """Whatever a service puts in the place of its values, nothing but what the client expects is raised."""
    read_or_refused(data, READERS)
