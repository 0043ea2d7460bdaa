"""The services that the tools use, each with its URL and its rules for programs."""

from __future__ import annotations

from marvin_core import Record


class Service(Record):
    """A web service.

    Attributes:
        name: its key below `services` of the pack's settings; MARVIN_URL_NAME, in capitals, sets it as well.
        title: its name in answers.
        url: its default URL; empty if the user has to configure one.
        interval: seconds between the starts of two requests, by all Marvins of a user together.
        cached: seconds for which an answer is cached.
        browser: whether it refuses programs without the user agent of a browser.
        credit: the attribution that its terms require beside its name.
    """

    name: str
    title: str
    url: str
    interval: float = 0.0
    cached: float = 0.0
    browser: bool = False
    credit: str = ""

    @property
    def source(self) -> str:
        """The name and attribution of the source, for answers."""
        return f"{self.title} ({self.credit})" if self.credit else self.title

    @property
    def variable(self) -> str:
        """The environment variable that overrides its URL."""
        return f"MARVIN_URL_{self.name.upper()}"


_MINUTE = 60.0
_HOUR = 3600.0
_DAY = 24 * _HOUR
_OSM = "© OpenStreetMap contributors"

BRAVE = Service(name="brave", title="Brave Search", url="https://api.search.brave.com/res/v1", interval=1.0)
"""One request a second without a paid plan. Source: api-dashboard.search.brave.com/app/documentation"""
SEARXNG = Service(name="searxng", title="SearXNG", url="")
"""Public instances refuse programs, so the user needs an own one. Source: docs.searxng.org/dev/search_api.html"""
DUCKDUCKGO = Service(
    name="duckduckgo", title="DuckDuckGo", url="https://html.duckduckgo.com", interval=1.0, browser=True
)
DUCKDUCKGO_NEWS = Service(
    name="duckduckgo_news", title="DuckDuckGo News", url="https://duckduckgo.com", interval=0.5, browser=True
)
MOJEEK = Service(name="mojeek", title="Mojeek", url="https://www.mojeek.com", interval=1.0, browser=True)
GNEWS = Service(name="gnews", title="GNews", url="https://gnews.io/api/v4", interval=1.0)
"""Source: docs.gnews.io"""
NEWSAPI = Service(name="newsapi", title="NewsAPI", url="https://newsapi.org/v2")
"""Source: newsapi.org/docs/endpoints/everything"""

GOOGLE_PLACES = Service(name="google_places", title="Google Places", url="https://places.googleapis.com/v1")
"""Its terms forbid caching. Source: developers.google.com/maps/documentation/places/web-service"""
GOOGLE_ACCOUNTS = Service(name="google_accounts", title="Google", url="https://accounts.google.com")
GOOGLE_TOKENS = Service(name="google_tokens", title="Google", url="https://oauth2.googleapis.com")
"""Source: developers.google.com/identity/protocols/oauth2/native-app"""
NOMINATIM = Service(
    name="nominatim",
    title="Nominatim",
    url="https://nominatim.openstreetmap.org",
    interval=1.0,
    cached=_DAY,
    credit=_OSM,
)
"""Source: operations.osmfoundation.org/policies/nominatim"""
OVERPASS = Service(
    name="overpass", title="Overpass", url="https://overpass-api.de/api/interpreter", interval=1.0, credit=_OSM
)
"""Source: dev.overpass-api.de/overpass-doc/en/preface/commons.html"""
IPWHO = Service(name="ipwho", title="ipwho.is", url="https://ipwho.is", cached=_HOUR)
"""Source: ipwhois.io/documentation"""
IPAPI = Service(name="ipapi", title="ipapi.co", url="https://ipapi.co", interval=1.0, cached=_HOUR)
"""Source: ipapi.co/api"""

OSRM = Service(
    name="osrm", title="OSRM", url="https://router.project-osrm.org", interval=1.0, cached=_HOUR, credit=_OSM
)
"""The public server has cars only. Source: github.com/Project-OSRM/osrm-backend/wiki/Api-usage-policy"""
OSRM_CYCLING = Service(
    name="osrm_cycling",
    title="OSRM",
    url="https://routing.openstreetmap.de/routed-bike",
    interval=1.0,
    cached=_HOUR,
    credit=_OSM,
)
OSRM_FOOT = Service(
    name="osrm_foot",
    title="OSRM",
    url="https://routing.openstreetmap.de/routed-foot",
    interval=1.0,
    cached=_HOUR,
    credit=_OSM,
)
"""FOSSGIS runs both. Source: routing.openstreetmap.de/about.html"""
OPEN_METEO = Service(
    name="open_meteo", title="Open-Meteo", url="https://api.open-meteo.com/v1", cached=10 * _MINUTE, credit="CC BY 4.0"
)
"""Source: open-meteo.com/en/docs"""
OPEN_METEO_PLACES = Service(
    name="open_meteo_places",
    title="Open-Meteo's place names",
    url="https://geocoding-api.open-meteo.com/v1",
    cached=_DAY,
)
"""Source: open-meteo.com/en/docs/geocoding-api"""

WIKIPEDIA = Service(name="wikipedia", title="Wikipedia", url="https://en.wikipedia.org/w/api.php", cached=_HOUR)
"""Source: mediawiki.org/wiki/API:Etiquette"""
STACKEXCHANGE = Service(
    name="stackexchange",
    title="Stack Exchange",
    url="https://api.stackexchange.com/2.3",
    interval=0.1,
    cached=10 * _MINUTE,
)
"""At most one identical request a minute is allowed. Source: api.stackexchange.com/docs/throttle"""
SEMANTIC_SCHOLAR = Service(
    name="semantic_scholar", title="Semantic Scholar", url="https://api.semanticscholar.org/graph/v1", interval=1.0
)
"""Source: api.semanticscholar.org/api-docs/graph"""
ARXIV = Service(name="arxiv", title="arXiv", url="https://export.arxiv.org/api", interval=3.0, cached=_HOUR)
"""One request in three seconds is allowed. Source: info.arxiv.org/help/api/tou.html"""
DICTIONARY = Service(
    name="dictionary", title="Free Dictionary", url="https://api.dictionaryapi.dev/api/v2", cached=_DAY
)
"""Source: dictionaryapi.dev"""
MYMEMORY = Service(name="mymemory", title="MyMemory", url="https://api.mymemory.translated.net", cached=_HOUR)
"""Source: mymemory.translated.net/doc/spec.php"""

OMDB = Service(name="omdb", title="OMDb", url="https://www.omdbapi.com", cached=_HOUR)
"""Source: omdbapi.com"""
RAWG = Service(name="rawg", title="RAWG", url="https://api.rawg.io/api", cached=_HOUR)
"""Source: api.rawg.io/docs"""
STEAM_STORE = Service(name="steam_store", title="Steam", url="https://store.steampowered.com", cached=10 * _MINUTE)
STEAM = Service(name="steam", title="Steam", url="https://api.steampowered.com", cached=_MINUTE)
"""Source: partner.steamgames.com/doc/webapi"""
MUSICBRAINZ = Service(
    name="musicbrainz", title="MusicBrainz", url="https://musicbrainz.org/ws/2", interval=1.0, cached=_HOUR
)
"""Source: musicbrainz.org/doc/MusicBrainz_API/Rate_Limiting"""
THEMEALDB = Service(name="themealdb", title="TheMealDB", url="https://www.themealdb.com/api/json/v1/1", cached=_HOUR)
"""Source: themealdb.com/api.php"""
SPOTIFY = Service(name="spotify", title="Spotify", url="https://api.spotify.com/v1")
SPOTIFY_ACCOUNTS = Service(name="spotify_accounts", title="Spotify", url="https://accounts.spotify.com")
"""Source: developer.spotify.com/documentation/web-api"""

SERVICES: tuple[Service, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Service))
