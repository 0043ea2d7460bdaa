"""Music by MusicBrainz: artists, releases, recordings.

Source: musicbrainz.org/doc/MusicBrainz_API, musicbrainz.org/doc/MusicBrainz_API/Search
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from marvin_core import Field, Link, RequestFailed, ToolContext, ToolError, ToolResult, head_and_tail, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import MUSICBRAINZ
from ..services.client import Params, ServiceClient
from ..services.queries import checked
from .facts import given, joined, labelled, lines, listed, names

Entity: TypeAlias = Literal["artist", "release", "recording"]

_QUERY = 200
_MBID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_FIELD = re.compile(
    r"\b(?:alias|arid|area|artist|artistname|asin|barcode|begin|comment|country|creditname|date|dur|end"
    r"|firstreleasedate|format|gender|isrc|label|lang|mbid|name|primarytype|recording|reid|release|rgid|rid"
    r"|secondarytype|sortname|status|tag|tid|tnum|tracks|type):(?=[\w\"(\[])"
)
"""Fields that a query may name. Source: musicbrainz.org/doc/MusicBrainz_API/Search"""
_SIGNS = re.compile(r'[+\-&|!(){}\[\]^"~*?:\\/]')
_JOINING = frozenset({"AND", "OR", "NOT"})
_BROWSED = 100
"""Albums of one request."""
_MOST = 60
_MEDIA = 10
_SHOWN = 7_000
_NOT_FOUND = 404
_INCLUDED = {
    "artist": "tags",
    "release": "recordings+artist-credits+labels",
    "recording": "releases+artist-credits",
}


@tool(access=["net"], labels=["MusicBrainz"], probe={"query": "Bach", "max_results": 1})
async def music_search(
    query: Annotated[str, "A name or title, or a query such as artist:Muse AND country:GB"],
    entity: Annotated[Entity, "What to search for"] = "artist",
    max_results: Annotated[int, Field(ge=1, le=25), "Maximum results"] = 10,
    *,
    context: ToolContext,
) -> ToolResult:
    """Find artists, albums or songs."""
    asked = checked(query, "query", _QUERY, "Give a name or a title.")

    def read(answer: Any) -> tuple[list[Mapping[str, Any]], int | None]:
        return values.objects(values.required(answer, f"{entity}s")), values.whole(answer, "count")

    params: dict[str, str | float | None] = {"query": expression(asked), "limit": max_results, "fmt": "json"}
    hits, total = await ServiceClient(context, MUSICBRAINZ).get_json(entity, read, params=params)
    if not hits:
        return ToolResult(content=f"MusicBrainz has no {entity} {asked!r}. Change the query, or try another entity.")
    shown = hits[:max_results]
    links = [Link(url=_page(entity, one), text=_title(one)) for one in shown if _page(entity, one)]
    source = f"[For more, use music_lookup.] {source_line([MUSICBRAINZ])}"
    return listed((lines(_IN_SHORT[entity](one), _page(entity, one)) for one in shown), source, links, total)


def expression(asked: str) -> str:
    """A query for MusicBrainz, with operators in names escaped, as in AC/DC, P!nk and What?.

    Source: lucene.apache.org/core/9_12_0/queryparser, "Escaping Special Characters"
    """
    if _FIELD.search(asked):
        return asked
    words = [word.lower() if word in _JOINING else word for word in asked.split()]
    return _SIGNS.sub(r"\\\g<0>", " ".join(words))


@tool(access=["net"], labels=["MusicBrainz"], probe={"mbid": "24f1766e-9635-4d58-a4d4-9413f9f98a4c"})
async def music_lookup(
    mbid: Annotated[str, "The id from music_search"],
    entity: Annotated[Entity, "What the id stands for"] = "artist",
    *,
    context: ToolContext,
) -> ToolResult:
    """Show details of an artist and their albums, an album and its tracks, or a song and where it appears."""
    found = _MBID.search(mbid[:200])
    if found is None:
        raise ToolError(f"{mbid[:60]!r} is not a MusicBrainz id. Find one with music_search.")
    number = found[0].lower()
    params = {"inc": _INCLUDED[entity].replace("+", " "), "fmt": "json"}
    client = ServiceClient(context, MUSICBRAINZ)
    try:
        told, page, name = await client.get_json(
            f"{entity}/{number}", lambda answer: whole_in(entity, answer), params=params
        )
    except RequestFailed as error:
        if error.status == _NOT_FOUND:
            raise ToolError(f"There is no {entity} {found[0]}. Check the entity, or use music_search.") from error
        raise
    if entity == "artist":
        told += await _albums(client, number)
    text = "\n".join(filter(None, [*told, page]))
    links = [Link(url=page, text=name)] if page else []
    return ToolResult(content=f"{head_and_tail(text, _SHOWN)}\n{source_line([MUSICBRAINZ])}", show=links)


def _title(one: Mapping[str, Any]) -> str:
    return given(one, "name", 200) or given(one, "title", 200) or "(no name)"


def _page(entity: str, one: Mapping[str, Any]) -> str:
    number = _MBID.fullmatch(values.text(one, "id"))
    return f"https://musicbrainz.org/{entity}/{number[0]}" if number else ""


def _credit(one: Mapping[str, Any]) -> str:
    parts = values.objects(one, "artist-credit")[:10]
    return "".join(f"{values.text(part, 'name', limit=80)}{_joining(part)}" for part in parts)[:200].strip()


def _joining(part: Mapping[str, Any]) -> str:
    phrase = part.get("joinphrase")
    return phrase[:20] if isinstance(phrase, str) else ""


def _length(one: Mapping[str, Any]) -> str:
    milliseconds = values.number(one, "length")
    if not milliseconds or not 0 < milliseconds < 1e9:
        return ""
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes}:{seconds:02}"


def _years(one: Mapping[str, Any]) -> str:
    begin, end = values.text(one, "life-span", "begin"), values.text(one, "life-span", "end")
    return f"{begin or '?'} to {end}" if end else (f"since {begin}" if begin else "")


def _artist(one: Mapping[str, Any]) -> str:
    about = given(one, "disambiguation")
    where = values.text(one, "area", "name", limit=60) or given(one, "country", 8)
    return lines(
        f"{_title(one)}{f' ({about})' if about else ''}",
        joined(given(one, "type", 40), where, _years(one), names(one, "tags", most=5)),
        f"id {values.text(one, 'id', limit=40)}",
    )


def _release(one: Mapping[str, Any]) -> str:
    tracks = values.whole(one, "track-count")
    facts = joined(
        labelled("by", _credit(one)),
        given(one, "date", 12),
        given(one, "country", 8),
        values.text(one, "release-group", "primary-type", limit=40),
        f"{tracks} tracks" if tracks else "",
    )
    return lines(_title(one), facts, f"id {values.text(one, 'id', limit=40)}")


def _recording(one: Mapping[str, Any]) -> str:
    albums = list(dict.fromkeys(values.text(each, "title", limit=80) for each in values.objects(one, "releases")))
    facts = joined(
        labelled("by", _credit(one)),
        _length(one),
        given(one, "first-release-date", 12),
        labelled("on", ", ".join(filter(None, albums[:3]))),
    )
    return lines(_title(one), facts, f"id {values.text(one, 'id', limit=40)}")


_IN_SHORT: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "artist": _artist,
    "release": _release,
    "recording": _recording,
}


def whole_in(entity: str, answer: Any) -> tuple[list[str], str, str]:
    """The facts of an artist, a release or a recording, one a line; its page; its name."""
    if not values.text(answer, "id") or _title(answer) == "(no name)":
        raise ValueError("there is no name")
    below = {"artist": iter(()), "release": _tracks(answer), "recording": _appearances(answer)}[entity]
    return [_IN_SHORT[entity](answer), *below], _page(entity, answer), _title(answer)


async def _albums(client: ServiceClient, artist: str) -> list[str]:
    """The albums of an artist, one a line. The answer for the artist itself has no more than 25 of them."""
    params: Params = {"artist": artist, "limit": _BROWSED, "fmt": "json"}
    try:
        return await client.get_json("release-group", albums_in, params=params)
    except RequestFailed as error:
        return [f"[The albums are not available: {error}]"]


def _shown(there: int) -> str:
    """How many of a list are shown, if not all."""
    return f"{there:,}, {_MOST} of them are listed here" if there > _MOST else f"{there:,}"


def albums_in(answer: Any) -> list[str]:
    """The albums of an artist, the oldest first."""
    groups = values.objects(values.required(answer, "release-groups"))
    there = max(values.whole(answer, "release-group-count") or 0, len(groups))
    ordered = sorted(groups, key=lambda one: given(one, "first-release-date", 12) or "9999")[:_MOST]
    return [
        f"Albums and others ({_shown(there)}):",
        *(
            f"- {joined(given(one, 'first-release-date', 12)[:4], _title(one), given(one, 'primary-type', 40))}"
            for one in ordered
        ),
    ]


def _tracks(answer: Mapping[str, Any]) -> Iterator[str]:
    media = values.objects(answer, "media")
    for medium in media[:_MEDIA]:
        if len(media) > 1:
            yield joined(f"{given(medium, 'format', 40) or 'Medium'} {values.whole(medium, 'position') or ''}".strip())
        tracks = values.objects(medium, "tracks")
        for track in tracks[:_MOST]:
            yield f"{values.whole(track, 'position') or '-'}. {joined(_title(track), _length(track))}"
        if len(tracks) > _MOST:
            yield f"[{len(tracks) - _MOST} more]"
    if len(media) > _MEDIA:
        yield f"[{len(media) - _MEDIA} more media]"


def _appearances(answer: Mapping[str, Any]) -> Iterator[str]:
    releases = values.objects(answer, "releases")
    yield f"Appears on ({_shown(len(releases))}):"
    for one in releases[:_MOST]:
        yield f"- {joined(_title(one), given(one, 'date', 12), given(one, 'country', 8))}"
