"""Taking back what was changed on Spotify, as far as nobody changed it since.

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
"""What was called a track is called an item since February 2026."""
_MOST = 1_000
"""Tracks of a playlist that are compared."""


def check(context: ToolContext) -> None:
    """Refuse what is for /undo alone to everybody else."""
    if context.origin != "undo":
        raise ToolError("taken_back is for /undo only. Leave it out.")


async def remove_playlist(context: ToolContext, playlist: str, name: str) -> str:
    """Take a playlist out of the user's library, which is how Spotify deletes one.

    Raises:
        ToolError: there is something in it by now.
    """
    spotify = Spotify(context)
    _, total = await spotify.get(f"playlists/{playlist}/items", items_in, {"limit": 1, "fields": _FIELDS})
    if total:
        there = "a track" if total == 1 else f"{total} tracks"
        raise ToolError(f"The playlist {name!r} has {there} now. Undo that first, or remove it by hand.")
    await spotify.delete("me/library", None, {"uris": f"spotify:playlist:{playlist}"})
    return f"The playlist {name!r} was removed."


async def remove_tracks(context: ToolContext, playlist: str, uris: Sequence[str]) -> str:
    """Take tracks out of a playlist that were put at its end.

    Spotify removes a track from all its places at once. Where one stands in another place as well, that one is put
    there again.

    Raises:
        ToolError: the tracks are not at the end of the playlist any more.
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
    # From the front on, so that each place is that of before.
    for place, uri in enumerate(before):
        if uri in added:
            again = {"uris": [uri], "position": place}
            await spotify.post(f"playlists/{playlist}/items", again, lambda answer: None)
    return f"{len(uris)} track{'' if len(uris) == 1 else 's'} removed from the playlist."


def items_in(answer: Any) -> tuple[list[str], int]:
    """The addresses of the tracks on a page of a playlist, and how many there are in all."""
    found = values.required(answer, "items")
    uris = [values.text(one, "item", "uri") or values.text(one, "track", "uri") for one in found]
    total = values.whole(answer, "total")
    if total is None:
        raise ValueError("there is no total")
    return uris, total


async def _all(spotify: Spotify, playlist: str) -> list[str]:
    """The addresses of all tracks of a playlist, in their order.

    Raises:
        ToolError: there are too many.
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
