"""Spotify: search, and playlists of the user.

Source: developer.spotify.com/documentation/web-api, .../tutorials/february-2026-migration-guide
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from marvin_core import Field, Link, ToolContext, ToolError, ToolResult, call_of, numbered, one_line, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import SPOTIFY
from ..services.client import Params
from ..services.oauth import Login
from ..services.queries import checked
from . import spotify_undo
from .facts import given, joined, lines, listed, names
from .spotify_login import CLIENT_ID, LOGIN, Spotify

_QUERY = 200
_NAME = 100
_ABOUT = 300
_MOST_TRACKS = 100
_SHOWN = 6_000
_MISSING = 1_500
_PAGE = 10
"""Results of a request: the maximum for applications in development."""
_ID = re.compile(r"[A-Za-z0-9]{22}")
_TRACK = re.compile(r"(?:spotify:track:|https?://open\.spotify\.com/(?:intl-\w+/)?track/)([A-Za-z0-9]{22})(?:\?.*)?")
_SETTINGS = [CLIENT_ID]
_LOGGED_IN = "The user is logged in to Spotify."


@tool(access=["net", "write"], labels=["Spotify"], settings=_SETTINGS, unlisted=["taken_back"])
async def spotify_auth(
    auth_code: Annotated[str, "The browser's last address, if it could not reach Marvin"] = "",
    taken_back: Annotated[bool, "For /undo"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Log in to Spotify: gives the address that the user opens. Afterwards the other tools work by themselves."""
    login = Login(context, LOGIN)
    if taken_back:
        spotify_undo.check(context)
        await login.forget()
        return ToolResult(content="The user is logged out of Spotify.")
    undo = call_of(spotify_auth, taken_back=True)
    if auth_code.strip():
        await login.finish(auth_code)
        return ToolResult(content=_LOGGED_IN, undo=undo)
    if await login.answered():
        return ToolResult(content=_LOGGED_IN, undo=undo)
    url = await login.begin()
    return ToolResult(
        content=(
            f"Ask the user to open this address and log in:\n{url}\nThen use the other Spotify tools. If the browser "
            "is on another machine, it shows an error on the last page: call spotify_auth with the address of that "
            "page."
        ),
        show=[Link(url=url, text="Log in to Spotify")],
        undo=undo,
    )


@tool(access=["net"], labels=["Spotify"], settings=_SETTINGS, probe={"query": "Bach", "max_results": 1})
async def spotify_search(
    query: Annotated[str, "Words, or a query such as artist:Muse year:2003"],
    search_type: Annotated[Literal["track", "artist", "album", "playlist"], "What to search for"] = "track",
    max_results: Annotated[int, Field(ge=1, le=20), "Maximum results"] = 10,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find tracks, artists, albums or playlists on Spotify."""
    hits, total = await _search(context, query, search_type, max_results)
    if not hits:
        return ToolResult(content=f"Spotify has no {search_type} {one_line(query, _QUERY)!r}. Use other words.")
    links = [Link(url=_page(one), text=given(one, "name")) for one in hits if _page(one)]
    return listed(map(_in_short, hits), source_line([SPOTIFY]), links, total)


@tool(access=["net", "write"], labels=["Spotify"], settings=_SETTINGS, unlisted=["taken_back"])
async def spotify_create_playlist(
    name: Annotated[str, "Its name"],
    description: Annotated[str, "The description"] = "",
    public: Annotated[bool, "Whether others can see it"] = False,
    taken_back: Annotated[str, "For /undo"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Make a playlist for the user on Spotify."""
    if taken_back:
        spotify_undo.check(context)
        return ToolResult(content=await spotify_undo.remove_playlist(context, _playlist(taken_back), name))
    title = " ".join(name.split())
    if not title or len(title) > _NAME or len(description) > _ABOUT:
        raise ToolError(
            f"The name has {len(title)} characters and the description {len(description)}. Give a name of 1 to {_NAME} "
            f"and a description of at most {_ABOUT} characters."
        )
    body = {"name": title, "description": " ".join(description.split()), "public": public}

    def read(answer: Any) -> tuple[str, str]:
        number = values.text(answer, "id", limit=60)
        if not _ID.fullmatch(number):
            raise ValueError("there is no id")
        return number, _page(answer)

    number, page = await Spotify(context).post("me/playlists", body, read)
    text = lines(f"The playlist {title!r} was created, id {number}.", page, "[Add tracks with spotify_add_tracks.]")
    return ToolResult(
        content=f"{text}\n{source_line([SPOTIFY])}",
        details={"id": number},
        show=[Link(url=page, text=title)] if page else [],
        undo=call_of(spotify_create_playlist, name=title, taken_back=number),
    )


def _time(arguments: Mapping[str, Any]) -> float:
    """Timeout of a call in seconds: one request for each track, or two if the token has to be renewed."""
    queries = arguments.get("track_queries")
    return 60.0 + 5.0 * (len(queries) if isinstance(queries, list) else 0)


@tool(access=["net", "write"], labels=["Spotify"], settings=_SETTINGS, timeout=_time, unlisted=["taken_back"])
async def spotify_add_tracks(
    playlist_id: Annotated[str, "From spotify_create_playlist or spotify_search"],
    track_queries: Annotated[list[str], "A search for each track, such as 'Hysteria Muse'"],
    taken_back: Annotated[bool, "For /undo"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Add tracks to a playlist of the user: for each search the first that Spotify finds."""
    playlist = _playlist(playlist_id)
    if taken_back:
        spotify_undo.check(context)
        return ToolResult(content=await spotify_undo.remove_tracks(context, playlist, track_queries))
    queries = [query for query in track_queries if query.strip()]
    if not 1 <= len(queries) <= _MOST_TRACKS:
        raise ToolError(f"{len(queries)} tracks were given. Give 1 to {_MOST_TRACKS} at a time.")
    tracks, missing = await _found_tracks(context, queries)
    lost = (
        f"Not found: {one_line('; '.join(missing), _MISSING)}. Search for them with spotify_search." if missing else ""
    )
    if not tracks:
        raise ToolError(f"No track was added. {lost}")
    # A track that was found for two queries is added once.
    uris = [uri for uri, _ in tracks]
    await Spotify(context).post(
        f"playlists/{playlist}/items", {"uris": uris}, lambda answer: values.text(answer, "snapshot_id")
    )
    head = f"{len(tracks)} of {len(queries)} tracks were added:"
    page = f"https://open.spotify.com/playlist/{playlist}"
    added = numbered((title for _, title in tracks), _SHOWN)
    return ToolResult(
        content=lines(head, added, lost, page, source_line([SPOTIFY])),
        show=[Link(url=page, text="The playlist")],
        undo=call_of(spotify_add_tracks, playlist_id=playlist, track_queries=uris, taken_back=True),
    )


async def _found_tracks(context: ToolContext, queries: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The tracks, each as its Spotify URI and as text, and the queries without a result."""
    tracks: list[tuple[str, str]] = []
    missing: list[str] = []
    for number, query in enumerate(queries):
        context.progress(f"Searching for {one_line(query, _NAME)}", number, len(queries))
        named = _TRACK.fullmatch(query.strip())
        if named:
            tracks.append((f"spotify:track:{named[1]}", f"https://open.spotify.com/track/{named[1]}"))
            continue
        hits, _ = await _search(context, query, "track", 1)
        uri = values.text(hits[0], "uri", limit=80) if hits else ""
        if uri.startswith("spotify:track:"):
            tracks.append((uri, _in_short(hits[0]).partition("\n")[0]))
        else:
            missing.append(one_line(query, _NAME))
    return tracks, missing


def _playlist(given_id: str) -> str:
    """The id of a playlist, from the id or its URL."""
    last = given_id.strip().partition("?")[0].rstrip("/").rpartition("/")[2].rpartition(":")[2]
    if not _ID.fullmatch(last):
        raise ToolError(f"{given_id[:60]!r} is not a Spotify playlist. Give its id or its address.")
    return last


async def _search(context: ToolContext, query: str, kind: str, most: int) -> tuple[list[Mapping[str, Any]], int | None]:
    asked = checked(query, "A search", _QUERY)

    def read(answer: Any) -> tuple[list[Mapping[str, Any]], int | None]:
        # Playlists that are not available are null.
        found = values.objects(values.required(answer, f"{kind}s", "items"))
        return found[:_PAGE], values.whole(answer, f"{kind}s", "total")

    hits: list[Mapping[str, Any]] = []
    total: int | None = None
    for offset in range(0, most, _PAGE):
        params: Params = {"q": asked, "type": kind, "limit": min(most - offset, _PAGE), "offset": offset or None}
        more, total = await Spotify(context).get("search", read, params)
        hits += more
        if (total or 0) <= offset + _PAGE:
            break
    return hits[:most], total


def _page(one: Mapping[str, Any]) -> str:
    return values.address(one, "external_urls", "spotify")


def _in_short(one: Mapping[str, Any]) -> str:
    milliseconds = values.number(one, "duration_ms")
    minutes, seconds = divmod(round((milliseconds or 0) / 1000), 60)
    by = names(one, "artists") or values.text(one, "owner", "display_name", limit=80)
    genres = values.inner(one, "genres")
    facts = joined(
        values.text(one, "album", "name", limit=120),
        (values.text(one, "album", "release_date") or given(one, "release_date"))[:4],
        f"{minutes}:{seconds:02}" if milliseconds and 0 < milliseconds < 1e9 else "",
        ", ".join(one_line(str(genre), 40) for genre in genres[:4]) if isinstance(genres, list) else "",
        f"id {values.text(one, 'id', limit=40)}",
    )
    return lines(f"{given(one, 'name', 160) or '(no name)'}{f' by {by}' if by else ''}", facts, _page(one))
