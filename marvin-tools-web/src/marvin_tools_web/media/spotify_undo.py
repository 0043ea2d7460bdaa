"""Undo of changes on Spotify, unless somebody changed the same thing since.

Source: developer.spotify.com/documentation/web-api/tutorials/february-2026-migration-guide
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from marvin_core import ToolContext, ToolError

from ..services import values
from ..services.client import Params
from .spotify_login import Spotify

_PAGE = 50
_FIELDS = "total,items(track(uri),item(uri))"
"""Tracks are called items since February 2026."""
_MOST = 1_000
"""Tracks of a playlist that are compared at most."""


def check(context: ToolContext) -> None:
    """Refuse a parameter that only /undo may use."""
    if context.origin != "undo":
        raise ToolError("taken_back is for /undo only. Leave it out.")


async def remove_playlist(context: ToolContext, playlist: str, name: str) -> str:
    """Remove a playlist from the user's library, which is how Spotify deletes one.

    Raises:
        ToolError: it has tracks by now.
    """
    spotify = Spotify(context)
    _, total = await spotify.get(f"playlists/{playlist}/items", items_in, {"limit": 1, "fields": _FIELDS})
    if total:
        there = "a track" if total == 1 else f"{total} tracks"
        raise ToolError(f"The playlist {name!r} has {there} now. Undo that first, or remove it by hand.")
    await spotify.delete("me/library", None, {"uris": f"spotify:playlist:{playlist}"})
    return f"The playlist {name!r} was removed."


async def remove_tracks(context: ToolContext, playlist: str, uris: Sequence[str]) -> str:
    """Remove tracks from the end of a playlist.

    Spotify removes all occurrences of a track at once. Occurrences elsewhere in the playlist are added
    again.

    Raises:
        ToolError: the playlist no longer ends with these tracks.
    """
    spotify = Spotify(context)
    there = await _all(spotify, playlist)
    if there[len(there) - len(uris) :] != list(uris):
        raise ToolError(
            "The playlist was changed since then: the tracks are no longer at its end. Remove them by hand."
        )
    before = there[: len(there) - len(uris)]
    added = list(dict.fromkeys(uris))
    body = {"items": [{"uri": uri} for uri in added]}
    await spotify.delete(f"playlists/{playlist}/items", body, {})
    # From the start on, so that each index is valid when it is used.
    for place, uri in enumerate(before):
        if uri in added:
            again = {"uris": [uri], "position": place}
            await spotify.post(f"playlists/{playlist}/items", again, lambda answer: None)
    return f"{len(uris)} track{'' if len(uris) == 1 else 's'} removed from the playlist."


def items_in(answer: Any) -> tuple[list[str], int]:
    """The URIs of the tracks on a page of a playlist, and the total number."""
    found = values.required(answer, "items")
    uris = [values.text(one, "item", "uri") or values.text(one, "track", "uri") for one in found]
    total = values.whole(answer, "total")
    if total is None:
        raise ValueError("there is no total")
    return uris, total


async def _all(spotify: Spotify, playlist: str) -> list[str]:
    """The URIs of all tracks of a playlist, in order.

    Raises:
        ToolError: there are too many tracks.
    """
    found: list[str] = []
    while True:
        params: Params = {"limit": _PAGE, "offset": len(found) or None, "fields": _FIELDS}
        more, total = await spotify.get(f"playlists/{playlist}/items", items_in, params)
        found += more
        if total > _MOST:
            raise ToolError(f"The playlist has {total:,} tracks, too many to compare. Remove them by hand.")
        if not more or len(found) >= total:
            return found
