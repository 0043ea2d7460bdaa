"""The entry point that Marvin loads: the groups of web tools, their modules imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from marvin_core import PackSettings, ToolGroup, ToolSet, hookimpl

_SERVICES = """
brave searxng duckduckgo duckduckgo_news mojeek gnews newsapi google_places google_accounts google_tokens nominatim
overpass ipwho ipapi osrm osrm_cycling osrm_foot open_meteo open_meteo_places wikipedia stackexchange semantic_scholar
arxiv dictionary mymemory omdb rawg steam_store steam musicbrainz themealdb spotify spotify_accounts
"""
"""The names of `services.catalog`, which is not imported to list the tools."""


@hookimpl
def marvin_register_settings() -> PackSettings:
    """The section `web` of the configuration: addresses and keys of services."""
    return PackSettings(
        model=".settings:WebSettings",
        variables={f"services.{name}": f"MARVIN_URL_{name.upper()}" for name in _SERVICES.split()},
        secrets={
            "BRAVE_API_KEY": "the key of Brave Search, from api-dashboard.search.brave.com",
            "GNEWS_API_KEY": "the key of GNews, from gnews.io",
            "NEWSAPI_KEY": "the key of NewsAPI, from newsapi.org",
            "GOOGLE_PLACES_API_KEY": "the key of Google Places, from console.cloud.google.com",
            "GOOGLE_CLIENT_SECRET": "the secret of your own desktop application at Google, together with "
            "GOOGLE_CLIENT_ID",
            "OMDB_API_KEY": "the key of OMDb, from omdbapi.com/apikey.aspx",
            "RAWG_API_KEY": "the key of RAWG, from rawg.io/apidocs",
            "STEAM_API_KEY": "the key of Steam, from steamcommunity.com/dev/apikey",
            "STACKEXCHANGE_KEY": "a key of Stack Exchange for a larger quota, from stackapps.com",
            "SEMANTIC_SCHOLAR_API_KEY": "the key of Semantic Scholar, from semanticscholar.org/product/api",
            "MYMEMORY_KEY": "the key of MyMemory, from mymemory.translated.net/doc/keygen.php",
        },
    )


_GROUPS: tuple[tuple[str, str, str, tuple[ToolSet, ...]], ...] = (
    ("search", "search.web", "web_search", ("coding", "surf")),
    ("search", "search.news", "search_news", ("surf",)),
    ("places", "places.osm", "osm_search overpass_query", ("surf",)),
    ("places", "places.finding", "places_text_search places_nearby_search", ("surf",)),
    ("places", "places.location", "get_my_location", ("surf",)),
    ("places", "places.google_login", "setup_google_auth", ("surf",)),
    (
        "travel",
        "travel.routes",
        "estimate_travel_time estimate_traffic_adjusted_time get_directions",
        ("surf",),
    ),
    ("travel", "travel.weather", "weather_forecast", ("surf",)),
    ("pages", "pages.browsing", "browse_web", ("surf",)),
    ("pages", "pages.scraping", "scrape_page", ("surf",)),
    ("pages", "pages.feeds", "read_rss", ("surf",)),
    ("downloads", "downloads.files", "download_file", ("lockin",)),
    ("downloads", "downloads.videos", "yt_dlp_download", ("lockin",)),
    ("knowledge", "knowledge.wikipedia", "wiki_search wiki_summary wiki_full wiki_grep", ("coding", "surf")),
    ("knowledge", "knowledge.stack_exchange", "stack_search stack_answers", ("coding", "surf")),
    ("knowledge", "knowledge.papers", "search_papers search_arxiv", ("surf", "lockin")),
    ("knowledge", "knowledge.dictionary", "dictionary_lookup", ("surf", "lockin")),
    ("knowledge", "knowledge.translation", "translate_text", ("surf", "lockin")),
    ("media", "media.movies", "search_movies get_movie_details", ("surf",)),
    ("media", "media.games", "search_games get_game_details", ("surf",)),
    ("media", "media.steam_store", "steam_search steam_app_details steam_featured", ("surf",)),
    ("media", "media.steam_players", "steam_player_stats steam_user_games steam_user_summary", ("surf",)),
    ("media", "media.recipes", "recipe_search recipe_lookup", ("surf",)),
    ("media", "media.music", "music_search music_lookup", ("surf",)),
    (
        "media",
        "media.spotify",
        "spotify_auth spotify_search spotify_create_playlist spotify_add_tracks",
        ("surf",),
    ),
)
"""Each group with a module, its tools, and the sets that they join."""
_IN_CHAT = ("web_search", "browse_web", "weather_forecast", "wiki_summary", "places_text_search", "get_directions")
"""Offered directly in a chat in which most tools are deferred."""


@hookimpl
def marvin_register_tools() -> Iterable[ToolGroup]:
    """The groups search, places, travel, pages, downloads, knowledge and media."""
    for name, module, tools, sets in _GROUPS:
        yield ToolGroup(
            name=name,
            module=f".{module}",
            tools=tuple(tools.split()),
            sets=sets,
            in_code=("web_search",),
            in_chat=_IN_CHAT,
        )
