"""Spotify: search, and playlists of the user.

Source: developer.spotify.com/documentation/web-api, .../tutorials/february-2026-migration-guide
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from marvin_core import Field, Link, RequestFailed, ToolContext, ToolError, ToolResult, one_line, tool

from ..services import values
from ..services.asked import checked
from ..services.backends import source_line
from ..services.catalog import SPOTIFY
from ..services.client import Params, ServiceClient
from . import spotify_login
from .facts import given, joined, lines, listed, names

_QUERY = 200
_NAME = 100
_ABOUT = 300
_MOST_TRACKS = 100
_ID = re.compile(r"[A-Za-z0-9]{22}")
_UNAUTHORIZED = 401
_SETTINGS = [spotify_login.CLIENT_ID]


@tool(access=["net", "write"], labels=["Spotify"], settings=_SETTINGS)
async def spotify_auth(
    auth_code: Annotated[str, "What the browser ended at, where it could not reach Marvin"] = "",
    *,
    context: ToolContext,
) -> ToolResult:
    """Log in to Spotify: gives the address that the user opens. Afterwards the other tools work by themselves."""
    if auth_code.strip():
        await spotify_login.finish(context, auth_code)
        return ToolResult(content="The user is logged in to Spotify.")
    if await spotify_login.answered(context):
        return ToolResult(content="The user is logged in to Spotify.")
    url = await spotify_login.begin(context)
    return ToolResult(
        content=(
            f"Have the user open this address and log in:\n{url}\nThen use the other tools of Spotify. "
            "Where the browser is on another machine, its last page cannot be shown: call spotify_auth with the "
            "address of that page."
        ),
        show=[Link(url=url, text="Log in to Spotify")],
    )


@tool(access=["net"], labels=["Spotify"], settings=_SETTINGS, probe={"query": "Bach", "max_results": 1})
async def spotify_search(
    query: Annotated[str, "Words, or as in artist:Muse year:2003"],
    search_type: Annotated[Literal["track", "artist", "album", "playlist"], "What to find"] = "track",
    max_results: Annotated[int, Field(ge=1, le=20), "Most results"] = 10,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find tracks, artists, albums or playlists on Spotify."""
    hits, total = await _search(context, query, search_type, max_results)
    if not hits:
        return ToolResult(content=f"Spotify has no {search_type} {one_line(query, _QUERY)!r}. Use other words.")
    links = [Link(url=_page(one), text=given(one, "name")) for one in hits if _page(one)]
    return listed(map(_in_short, hits), source_line([SPOTIFY]), links, total)


@tool(access=["net", "write"], labels=["Spotify"], settings=_SETTINGS)
async def spotify_create_playlist(
    name: Annotated[str, "Its name"],
    description: Annotated[str, "What it is"] = "",
    public: Annotated[bool, "Whether others see it"] = False,
    *,
    context: ToolContext,
) -> ToolResult:
    """Make a playlist for the user on Spotify."""
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

    number, page = await _Spotify(context).post("me/playlists", body, read)
    text = lines(f"The playlist {title!r} was made, id {number}.", page, "[Fill it by spotify_add_tracks.]")
    return ToolResult(content=text, details={"id": number}, show=[Link(url=page, text=title)] if page else [])


@tool(access=["net", "write"], labels=["Spotify"], settings=_SETTINGS)
async def spotify_add_tracks(
    playlist_id: Annotated[str, "From spotify_create_playlist or spotify_search"],
    track_queries: Annotated[list[str], "A search for each track, as in 'Hysteria Muse'"],
    *,
    context: ToolContext,
) -> ToolResult:
    """Add tracks to a playlist of the user: for each search the first that Spotify finds."""
    found = _ID.search(playlist_id.split("?")[0].rpartition("/")[2].rpartition(":")[2])
    if found is None:
        raise ToolError(f"{playlist_id[:60]!r} is no playlist of Spotify. Give its id, or its address.")
    if not 1 <= len(track_queries) <= _MOST_TRACKS:
        raise ToolError(f"{len(track_queries)} tracks were given. Give 1 to {_MOST_TRACKS} at a time.")
    tracks: list[tuple[str, str]] = []
    missing: list[str] = []
    for number, query in enumerate(track_queries):
        context.progress(f"Looking for {one_line(query, _NAME)}", number, len(track_queries))
        hits, _ = await _search(context, query, "track", 1)
        uri = values.text(hits[0], "uri", limit=80) if hits else ""
        if uri.startswith("spotify:track:"):
            tracks.append((uri, _in_short(hits[0]).partition("\n")[0]))
        else:
            missing.append(one_line(query, _NAME))
    if tracks:
        # A track that is found twice was asked for twice.
        body = {"uris": [uri for uri, _ in tracks]}
        await _Spotify(context).post(
            f"playlists/{found[0]}/items", body, lambda answer: values.text(answer, "snapshot_id")
        )
    added = [f"- {title}" for _, title in tracks]
    lost = f"Not found: {'; '.join(missing)}. Search for them with spotify_search." if missing else ""
    head = f"{len(tracks)} of {len(track_queries)} tracks were added:" if tracks else "No track was added."
    if not tracks:
        raise ToolError(f"{head} {lost}")
    return ToolResult(content=lines(head, *added, lost, source_line([SPOTIFY])))


class _Spotify:
    """Requests in the name of the user; a token that no longer holds is renewed once."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._client = ServiceClient(context, SPOTIFY)

    async def get(self, path: str, read: Any, params: Mapping[str, str | float | None]) -> Any:
        """What `read` makes of the answer to a GET."""
        token = await spotify_login.access_token(self._context)
        try:
            return await self._client.get_json(path, read, params=params, headers=_bearer(token))
        except RequestFailed as error:
            if error.status != _UNAUTHORIZED:
                raise
        token = await spotify_login.renewed(self._context)
        return await self._client.get_json(path, read, params=params, headers=_bearer(token))

    async def post(self, path: str, body: Mapping[str, Any], read: Any) -> Any:
        """What `read` makes of the answer to a POST. What was refused for its token is repeated."""
        token = await spotify_login.access_token(self._context)
        try:
            return await self._client.post_json(path, body, read, headers=_bearer(token))
        except RequestFailed as error:
            if error.status != _UNAUTHORIZED:
                raise
        token = await spotify_login.renewed(self._context)
        return await self._client.post_json(path, body, read, headers=_bearer(token))


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def _search(context: ToolContext, query: str, kind: str, most: int) -> tuple[list[Mapping[str, Any]], int | None]:
    asked = checked(query, "A search", _QUERY)

    def read(answer: Any) -> tuple[list[Mapping[str, Any]], int | None]:
        # Playlists that may not be shown are null.
        found = values.objects(values.required(answer, f"{kind}s", "items"))
        return found[:most], values.whole(answer, f"{kind}s", "total")

    # At most ten a request are allowed to applications in development.
    params: Params = {"q": asked, "type": kind, "limit": min(most, 10)}
    found: tuple[list[Mapping[str, Any]], int | None] = await _Spotify(context).get("search", read, params)
    hits, total = found
    if len(hits) == 10 < most and (total or 0) > 10:
        more, _ = await _Spotify(context).get("search", read, {**params, "limit": most - 10, "offset": 10})
        hits = [*hits, *more][:most]
    return hits, total


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
