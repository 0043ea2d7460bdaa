"""The calls of web tools for the benchmark of stalls, and the pages and services that answer them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from marvin_core.testing import HttpReplay

_SITE = "https://pages.example/{}"
_WORDS = "The river rose by two metres in one night, and the old bridge held. "
_WIKI = "https://en.wikipedia.org/w/api.php"
_STACK = "https://api.stackexchange.com/2.3"
_ARXIV = "https://export.arxiv.org/api/query"
_SCHOLAR = "https://api.semanticscholar.org/graph/v1/paper/search"
_STORE = "https://store.steampowered.com/api"
_MEALS = "https://www.themealdb.com/api/json/v1/1"
_BRAINZ = "https://musicbrainz.org/ws/2/artist"
_MBID = "9c9f1380-2516-4fc9-a3e6-f9f61941d090"
_HTML = {"content-type": "text/html; charset=utf-8"}

WebCall = tuple[str, Mapping[str, Any]]

ORDINARY: tuple[WebCall, ...] = (
    ("browse_web", {"url": _SITE.format("plain")}),
    ("browse_web", {"url": _SITE.format("plain"), "offset": 4000}),
    ("scrape_page", {"url": _SITE.format("plain")}),
    ("yt_dlp_download", {"url": _SITE.format("plain")}),
    ("wiki_search", {"query": "bridge"}),
    ("wiki_summary", {"title": "Bridge"}),
    ("wiki_full", {"title": "Bridge"}),
    ("wiki_grep", {"title": "Bridge", "pattern": "river"}),
    ("stack_search", {"query": "await"}),
    ("stack_answers", {"question_id": 11}),
    ("search_papers", {"query": "bridges"}),
    ("search_arxiv", {"query": "bridges"}),
    ("dictionary_lookup", {"word": "bridge"}),
    ("translate_text", {"text": "Good morning", "target_language": "de"}),
    ("search_movies", {"query": "bridge"}),
    ("get_movie_details", {"title": "bridge"}),
    ("search_games", {"query": "bridge"}),
    ("get_game_details", {"game_id": 1}),
    ("steam_search", {"query": "bridge"}),
    ("steam_app_details", {"app_id": 1}),
    ("steam_featured", {}),
    ("steam_player_stats", {"app_id": 1}),
    ("steam_user_games", {"steam_id": "76561197960435530"}),
    ("steam_user_summary", {"steam_id": "76561197960435530"}),
    ("recipe_search", {"query": "soup"}),
    ("recipe_lookup", {"meal_id": "1"}),
    ("music_search", {"query": "bridge"}),
    ("music_lookup", {"mbid": _MBID}),
    ("spotify_auth", {}),
    ("spotify_search", {"query": "bridge"}),
    ("spotify_create_playlist", {"name": "Bridges"}),
    ("spotify_add_tracks", {"playlist_id": "3n3Ppam7vgaVa1iaRUc9Lp", "track_queries": ["bridge"]}),
)
HOSTILE: tuple[WebCall, ...] = (
    ("browse_web", {"url": _SITE.format("nested")}),
    ("browse_web", {"url": _SITE.format("tables")}),
    ("browse_web", {"url": "x" * 100_000}),
    ("wiki_grep", {"title": "Bridge", "pattern": "(r+)+$"}),
    ("wiki_search", {"query": "w " * 100_000}),
    ("stack_search", {"query": "w" * 100_000, "tagged": ";" * 100_000}),
    ("search_arxiv", {"query": '"' * 100_000}),
    ("dictionary_lookup", {"word": "w" * 100_000}),
    ("steam_app_details", {"app_id": 2}),
    ("recipe_search", {"query": "x" * 100_000}),
    ("music_lookup", {"mbid": "-" * 100_000}),
    ("translate_text", {"text": "." * 6_000, "target_language": "x" * 100_000}),
)


def serve(replay: HttpReplay) -> None:
    """Have pages and services answer the calls with as much as they usually send, and with what they could send."""
    story = "".join(f"<p>{number}: {_WORDS * 4}</p><a href='/{number}'>more</a>" for number in range(400))
    pages = {"plain": story, "nested": "<div>" * 200_000, "tables": "<table><tr><td>x" * 60_000}
    for name, body in pages.items():
        replay.on("GET", _SITE.format(name), text=f"<html><title>{name}</title><body>{body}", headers=_HTML)
    hits = [{"title": f"Bridge {n}", "snippet": _WORDS * 3, "wordcount": n} for n in range(10)]
    article = {"title": "Bridge", "fullurl": "https://en.wikipedia.org/wiki/Bridge", "extract": _WORDS * 5_000}
    replay.on("GET", _WIKI, json={"query": {"search": hits, "pages": [article]}})
    body = f"<p>{_WORDS * 20}</p><pre>{_WORDS * 20}</pre>"
    items = [{"title": "Why", "question_id": 11, "link": "https://stackoverflow.com/q/11", "body": body}] * 10
    for path in ("search/advanced", "questions/11", "questions/11/answers"):
        replay.on("GET", f"{_STACK}/{path}", json={"items": items, "has_more": True, "quota_remaining": 200})
    papers = [{"title": "Bridges", "abstract": _WORDS * 30, "year": 2026, "authors": [{"name": "A. B."}] * 40}] * 20
    replay.on("GET", _SCHOLAR, json={"total": 20, "data": papers})
    entry = f"<entry><id>http://arxiv.org/abs/1</id><title>T</title><summary>{_WORDS * 30}</summary></entry>"
    feed = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title>{entry * 20}</feed>'
    replay.on("GET", _ARXIV, body=feed.encode(), headers={"content-type": "application/atom+xml"})
    meaning = {"partOfSpeech": "noun", "definitions": [{"definition": _WORDS}] * 30}
    replay.on(
        "GET",
        "https://api.dictionaryapi.dev/api/v2/entries/en/bridge",
        json=[{"word": "bridge", "meanings": [meaning]}],
    )
    translated = {"responseData": {"translatedText": json.dumps("Guten Morgen")}, "responseStatus": 200}
    replay.on("GET", "https://api.mymemory.translated.net/get", json=translated)
    _serve_media(replay)


def _serve_media(replay: HttpReplay) -> None:
    offers = [{"id": n, "name": f"Bridge {n}", "price": {"currency": "USD", "final": 99}} for n in range(25)]
    replay.on("GET", f"{_STORE}/storesearch/", json={"total": 25, "items": offers})
    replay.on("GET", f"{_STORE}/featuredcategories", json={"specials": {"items": offers}})
    page = {"name": "Bridge", "short_description": _WORDS * 20, "categories": [{"description": "x"}] * 500}
    replay.on("GET", f"{_STORE}/appdetails?appids=1&l=english&cc=US", json={"1": {"success": True, "data": page}})
    replay.on("GET", f"{_STORE}/appdetails?appids=2&l=english&cc=US", body=b"[" * 1_000_000, headers=_HTML)
    count = "https://api.steampowered.com/ISteamUserStats/GetNumberOfCurrentPlayers/v1/"
    replay.on("GET", count, json={"response": {"player_count": 1, "result": 1}})
    meal = {"idMeal": "1", "strMeal": "Soup", "strInstructions": _WORDS * 60}
    for path in ("search", "lookup"):
        replay.on("GET", f"{_MEALS}/{path}.php", json={"meals": [meal] * 25})
    artist = {"id": _MBID, "name": "Bridge", "release-groups": [{"title": "Album"}] * 100}
    replay.on("GET", _BRAINZ, json={"count": 25, "artists": [artist] * 25})
    replay.on("GET", f"{_BRAINZ}/{_MBID}", json=artist)
