"""Steam's players: player counts, achievements, owned games.

Source: partner.steamgames.com/doc/webapi, developer.valvesoftware.com/wiki/Steam_Web_API
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

from marvin_core import Link, RequestFailed, ToolContext, ToolError, ToolResult, one_line, tool

from ..services import values
from ..services.backends import source_line
from ..services.catalog import STEAM
from ..services.client import ServiceClient
from .facts import given, joined, labelled, lines, listed

_KEY = "STEAM_API_KEY"
_NUMBER = re.compile(r"\d{17}", re.ASCII)
_ADDRESS = re.compile(r"/(?:id|profiles)/([^/?#\s]+)")
_NAME = re.compile(r"[A-Za-z0-9_-]{2,64}")
_GAMES = 30
_ACHIEVEMENTS = 10
_NOT_FOUND = 404
_STATES = ("offline", "online", "busy", "away", "snoozing", "wants to trade", "wants to play")
_PUBLIC = 3
_NEEDS = [f"env:{_KEY}"]


@tool(access=["net"], labels=["Steam"], probe={"app_id": 620})
async def steam_player_stats(app_id: Annotated[int, "From steam_search"], *, context: ToolContext) -> ToolResult:
    """Tell how many play a game on Steam now, and which achievements players have."""
    if app_id < 1:
        raise ToolError(f"The app {app_id} does not exist. Find one with steam_search.")
    client = ServiceClient(context, STEAM)
    try:
        count = await client.get_json(
            "ISteamUserStats/GetNumberOfCurrentPlayers/v1/", count_in, params={"appid": app_id, "format": "json"}
        )
    except RequestFailed as error:
        if error.status == _NOT_FOUND:
            raise ToolError(f"Steam has no player count for app {app_id}. Find the game with steam_search.") from error
        raise
    if count is None:
        raise ToolError(f"Steam has no player count for app {app_id}. Find the game with steam_search.")
    achievements = await _achievements(client, app_id, context.secret(_KEY, None))
    return ToolResult(
        content=lines(f"{count:,} people are playing app {app_id} now.", achievements, source_line([STEAM]))
    )


@tool(access=["net"], labels=["Steam"], requires=_NEEDS, secrets=[_KEY], probe={"steam_id": "76561197960435530"})
async def steam_user_games(
    steam_id: Annotated[str, "17 digits, or the profile's name or address"],
    *,
    context: ToolContext,
) -> ToolResult:
    """List the games that somebody owns on Steam, the most played first."""
    client, key = ServiceClient(context, STEAM), context.secret(_KEY)
    number = await _number(client, steam_id, key)
    params: dict[str, str | float | None] = {
        "key": key,
        "steamid": number,
        "include_appinfo": 1,
        "include_played_free_games": 1,
        "format": "json",
    }
    found = await client.get_json("IPlayerService/GetOwnedGames/v1/", games_in, params=params)
    if found is None:
        raise ToolError(f"The games of {one_line(steam_id, 80)!r} are private, or the profile has none. Ask the user.")
    games = sorted(found, key=lambda one: -(values.number(one, "playtime_forever") or 0))
    links = [Link(url=_shop(one), text=given(one, "name")) for one in games[:_GAMES]]
    return listed(map(_game, games[:_GAMES]), source_line([STEAM]), links, len(games))


@tool(access=["net"], labels=["Steam"], requires=_NEEDS, secrets=[_KEY], probe={"steam_id": "76561197960435530"})
async def steam_user_summary(
    steam_id: Annotated[str, "17 digits, or the profile's name or address"],
    *,
    context: ToolContext,
) -> ToolResult:
    """Show somebody's Steam profile."""
    client, key = ServiceClient(context, STEAM), context.secret(_KEY)
    number = await _number(client, steam_id, key)
    params: dict[str, str | float | None] = {"key": key, "steamids": number, "format": "json"}
    found = await client.get_json("ISteamUser/GetPlayerSummaries/v2/", summary_in, params=params)
    if found is None:
        raise ToolError(
            f"Steam has no profile {one_line(steam_id, 80)!r}. Ask the user for the address of the profile."
        )
    text, page, name = found
    return ToolResult(content=f"{text}\n{source_line([STEAM])}", show=[Link(url=page, text=name)] if page else [])


def count_in(answer: Any) -> int | None:
    response = answer["response"]
    if values.whole(response, "result") not in (1, None):
        return None
    count = values.whole(response, "player_count")
    if count is None:
        raise ValueError("there is no count")
    return count


async def _achievements(client: ServiceClient, app_id: int, key: str | None) -> str:
    """The achievements of players, the commonest first; a sentence if they are not available."""
    if key is None:
        return f"[Achievements need a key: steamcommunity.com/dev/apikey, set as {_KEY}.]"
    try:
        shares = await client.get_json(
            "ISteamUserStats/GetGlobalAchievementPercentagesForApp/v2/",
            lambda answer: values.objects(values.required(answer, "achievementpercentages", "achievements")),
            params={"gameid": app_id, "format": "json"},
        )
        known = await client.get_json(
            "ISteamUserStats/GetSchemaForGame/v2/",
            lambda answer: values.objects(answer["game"], "availableGameStats", "achievements"),
            params={"key": key, "appid": app_id, "l": "english", "format": "json"},
        )
    except RequestFailed as error:
        return f"[The achievements are not available: {error}]"
    titles = {values.text(one, "name"): one for one in known}
    ranked = sorted(shares, key=lambda one: -(values.number(one, "percent") or 0))
    entries = [_achievement(one, titles.get(values.text(one, "name"), {})) for one in ranked[:_ACHIEVEMENTS]]
    if not entries:
        return "[The game has no achievements.]"
    return "\n".join([f"The most common of {len(ranked)} achievements:", *(f"- {entry}" for entry in entries)])


def _achievement(share: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    title = given(known, "displayName", 120) or values.text(share, "name", limit=120)
    about = given(known, "description", 160)
    return f"{values.number(share, 'percent') or 0:.1f} %: {title}{f' ({about})' if about else ''}"


async def _number(client: ServiceClient, steam_id: str, key: str) -> str:
    """The id of a profile, from its id, its name or its URL.

    Raises:
        ToolError: it is none of these, or there is no such profile.
    """
    named = _ADDRESS.search(steam_id)
    given_id = named[1] if named else steam_id.strip().rstrip("/").rpartition("/")[2]
    if _NUMBER.fullmatch(given_id):
        return given_id
    if not _NAME.fullmatch(given_id):
        raise ToolError(
            f"{one_line(steam_id, 80)!r} is not a Steam profile. Give its 17 digits, its name or its address."
        )

    def read(answer: Any) -> str:
        return values.text(answer["response"], "steamid") if values.whole(answer["response"], "success") == 1 else ""

    params: dict[str, str | float | None] = {"key": key, "vanityurl": given_id, "format": "json"}
    number = await client.get_json("ISteamUser/ResolveVanityURL/v1/", read, params=params)
    if not _NUMBER.fullmatch(number):
        raise ToolError(f"Steam has no profile {given_id!r}. Ask the user for the 17 digits, or the profile's address.")
    return number


def games_in(answer: Any) -> list[Mapping[str, Any]] | None:
    response = answer["response"]
    if not isinstance(response, Mapping):
        raise ValueError("no response")
    return values.objects(values.required(response, "games")) if response else None


def _shop(one: Mapping[str, Any]) -> str:
    return f"https://store.steampowered.com/app/{values.whole(one, 'appid') or 0}"


def _game(one: Mapping[str, Any]) -> str:
    hours, lately = (values.number(one, key) for key in ("playtime_forever", "playtime_2weeks"))
    return joined(
        given(one, "name") or "(no name)",
        _shop(one),
        f"{(hours or 0) / 60:,.1f} h played",
        f"{lately / 60:.1f} h in two weeks" if lately else "",
    )


def summary_in(answer: Any) -> tuple[str, str, str] | None:
    players = values.objects(values.required(answer["response"], "players"))
    if not players:
        return None
    one = players[0]
    name = given(one, "personaname", 80) or "(no name)"
    state = values.whole(one, "personastate") or 0
    is_public = values.whole(one, "communityvisibilitystate") == _PUBLIC
    page = values.address(one, "profileurl")
    text = lines(
        name,
        joined(
            _STATES[state] if 0 <= state < len(_STATES) else "",
            labelled("plays", given(one, "gameextrainfo", 120)),
            "public profile" if is_public else "private profile",
        ),
        joined(labelled("Name", given(one, "realname", 80)), labelled("Country", given(one, "loccountrycode", 8))),
        joined(labelled("Member since", _day(one, "timecreated")), labelled("Last seen", _day(one, "lastlogoff"))),
        f"SteamID {values.text(one, 'steamid', limit=20)}",
        page,
    )
    return text, page, name


def _day(one: Mapping[str, Any], key: str) -> str:
    seconds = values.number(one, key)
    return time.strftime("%Y-%m-%d", time.gmtime(seconds)) if seconds and 0 < seconds < 1e11 else ""
