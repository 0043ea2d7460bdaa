"""Spotify: the login with PKCE, tokens that are kept and renewed, search and playlists."""

from __future__ import annotations

import json
import re
import stat
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ToolError, tool
from marvin_core.testing import HttpReplay, ToolRunner
from marvin_tools_web.media import spotify_login
from tests.tools_web.contracts import Operation, check

# Source: developer.spotify.com/documentation/web-api/reference
API = "https://api.spotify.com/v1"
ACCOUNTS = "https://accounts.spotify.com"
SEARCH = Operation(
    url=re.escape(API) + "/search",
    required={"q": ".+", "type": "track|artist|album|playlist"},
    optional={"limit": r"[1-9]|10", "offset": r"\d+"},
    headers={"authorization": "Bearer .+"},
)
MADE = Operation(
    method="POST",
    url=re.escape(API) + r"/(me/playlists|playlists/\w{22}/items)",
    headers={"authorization": "Bearer .+", "content-type": "application/json"},
)
TOKEN = Operation(
    method="POST",
    url=re.escape(ACCOUNTS) + "/api/token",
    headers={"content-type": "application/x-www-form-urlencoded"},
)
TOKENS = {"access_token": "a" * 40, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r" * 40, "scope": "x"}
ID = "3n3Ppam7vgaVa1iaRUc9Lp"
TRACK: dict[str, Any] = {
    "id": ID,
    "uri": f"spotify:track:{ID}",
    "name": "Hysteria",
    "duration_ms": 227_000,
    "artists": [{"name": "Muse"}],
    "album": {"name": "Absolution", "release_date": "2003-09-15"},
    "external_urls": {"spotify": f"https://open.spotify.com/track/{ID}"},
}
TRACKS: dict[str, Any] = {"tracks": {"href": "x", "items": [TRACK, None], "limit": 10, "total": 7}}
PLAYLIST = {"id": ID, "external_urls": {"spotify": f"https://open.spotify.com/playlist/{ID}"}}


@pytest.fixture
def user(marvin_tools: ToolRunner) -> ToolRunner:
    """A session of somebody who has an application at Spotify."""
    return marvin_tools.session(env={"SPOTIFY_CLIENT_ID": "client"})


def logged_in(tools: ToolRunner, http: HttpReplay, **change: Any) -> ToolRunner:
    """The session after a login."""
    http.on("POST", f"{ACCOUNTS}/api/token", json={**TOKENS, **change}, times=1)
    url = tools.call("spotify_auth").text.splitlines()[1]
    state = parse_qs(urlsplit(url).query)["state"][0]
    outcome = tools.call("spotify_auth", auth_code=f"http://127.0.0.1:9/callback?code={'c' * 40}&state={state}")
    assert outcome.text == "The user is logged in to Spotify."
    http.requests.clear()
    return tools


def test_a_login_is_answered_on_the_loopback(user: ToolRunner, marvin_http: HttpReplay) -> None:
    url = user.call("spotify_auth").text.splitlines()[1]
    fields = {name: found[0] for name, found in parse_qs(urlsplit(url).query).items()}
    assert url.startswith(f"{ACCOUNTS}/authorize?")
    assert fields["code_challenge_method"] == "S256"
    redirect = fields["redirect_uri"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", redirect)
    assert "client_secret" not in fields

    marvin_http.on("POST", f"{ACCOUNTS}/api/token", json=TOKENS)
    marvin_http.on("GET", f"{API}/search", json=TRACKS)
    answer = f"{redirect}?code={'c' * 40}&state={fields['state']}"
    session = user.session(env={"SPOTIFY_CLIENT_ID": "client"})
    text = session.call("spotify_auth", auth_code=answer).text
    assert text == "The user is logged in to Spotify."
    check(marvin_http, TOKEN)
    sent = {name: found[0] for name, found in parse_qs(marvin_http.requests[0].content.decode()).items()}
    assert sent["redirect_uri"] == redirect
    assert spotify_login.challenge(sent["code_verifier"]) == fields["code_challenge"]
    kept = next((user.home / ".config/marvin/profiles").rglob("tokens.json"))
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert set(json.loads(kept.read_text())) == {"spotify"}


@tool(access=["net"])
def visit(url: str) -> str:
    """Open an address as a browser on this machine does."""
    return opened(url)


def test_the_browser_brings_the_answer(user: ToolRunner, marvin_http: HttpReplay) -> None:
    url = user.call("spotify_auth").text.splitlines()[1]
    fields = {name: found[0] for name, found in parse_qs(urlsplit(url).query).items()}
    redirect = fields["redirect_uri"]
    assert user.call(visit, url=redirect.replace("/callback", "/favicon.ico")).text.startswith("404")
    said = user.call(visit, url=f"{redirect}?code={'c' * 40}&state={fields['state']}").text
    assert "You can close this page" in said
    marvin_http.on("POST", f"{ACCOUNTS}/api/token", json=TOKENS)
    marvin_http.on("GET", f"{API}/search", json=TRACKS)
    assert "Hysteria by Muse" in user.call("spotify_search", query="hysteria").text


def opened(url: str) -> str:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=20) as answer:
            return f"{answer.status} {answer.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code}"


def test_tracks_are_found(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http)
    marvin_http.on("GET", f"{API}/search", json=TRACKS)
    assert user.call("spotify_search", query="hysteria").text.splitlines() == [
        "1. Hysteria by Muse",
        f"   Absolution; 2003; 3:47; id {ID}",
        f"   https://open.spotify.com/track/{ID}",
        "",
        "[1 of 7 are shown. Use narrower words for others.]",
        "[Source: Spotify.]",
    ]
    check(marvin_http, SEARCH)


def test_a_playlist_is_made_and_filled(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http)
    marvin_http.on("POST", f"{API}/me/playlists", json=PLAYLIST, status=201)
    marvin_http.on("POST", f"{API}/playlists/{ID}/items", json={"snapshot_id": "x"}, status=201)
    marvin_http.on("GET", f"{API}/search?q=hysteria&type=track&limit=1", json=TRACKS)
    marvin_http.on("GET", f"{API}/search?q=nothing&type=track&limit=1", json={"tracks": {"items": [], "total": 0}})
    made = user.call("spotify_create_playlist", name="Loud")
    assert f"The playlist 'Loud' was made, id {ID}." in made.text
    assert json.loads(marvin_http.requests[-1].content) == {"name": "Loud", "description": "", "public": False}
    added = user.call("spotify_add_tracks", playlist_id=f"spotify:playlist:{ID}", track_queries=["hysteria", "nothing"])
    assert "1 of 2 tracks were added:\n- Hysteria by Muse\nNot found: nothing." in added.text
    assert json.loads(marvin_http.requests[-1].content) == {"uris": [f"spotify:track:{ID}"]}
    check(marvin_http, SEARCH, MADE)


def test_a_token_that_ended_is_renewed(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http, expires_in=1)
    marvin_http.on("POST", f"{ACCOUNTS}/api/token", json={**TOKENS, "access_token": "b" * 40, "refresh_token": None})
    marvin_http.on("GET", f"{API}/search", status=401, json={"error": {"status": 401, "message": "expired"}}, times=1)
    marvin_http.on("GET", f"{API}/search", json=TRACKS)
    assert "Hysteria" in user.call("spotify_search", query="hysteria").text
    sent = [parse_qs(request.content.decode()) for request in marvin_http.requests if request.method == "POST"]
    assert [fields["grant_type"] for fields in sent] == [["refresh_token"]] * 2
    assert all(fields["refresh_token"] == ["r" * 40] for fields in sent)


def test_a_login_that_ended_is_told(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http, expires_in=1)
    marvin_http.on("POST", f"{ACCOUNTS}/api/token", json={"error": "invalid_grant"}, status=400)
    outcome = user.call("spotify_search", query="x")
    assert outcome.is_error
    assert "have the user log in again" in outcome.text
    assert "r" * 40 not in outcome.text


def test_who_is_not_logged_in_is_told_how(marvin_tools: ToolRunner, user: ToolRunner) -> None:
    assert "Call spotify_auth" in user.call("spotify_search", query="x").text
    assert "set its client id as SPOTIFY_CLIENT_ID" in marvin_tools.call("spotify_auth").text
    assert "No login to Spotify was begun" in user.call("spotify_auth", auth_code="c" * 40).text


def test_an_answer_to_another_login_is_refused(user: ToolRunner, marvin_http: HttpReplay) -> None:
    user.call("spotify_auth")
    for answer, says in (
        (f"http://127.0.0.1:1/callback?code={'c' * 40}&state=other", "the answer to another login"),
        ("http://127.0.0.1:1/callback?error=access_denied&state=x", "did not let Marvin in"),
        ("hello there", "is no code of Spotify"),
    ):
        outcome = user.call("spotify_auth", auth_code=answer)
        assert outcome.is_error
        assert says in outcome.text
    assert not marvin_http.requests


@given(st.text(max_size=80))
def test_any_text_is_a_code_or_none(text: str) -> None:
    with suppress(ToolError):
        assert re.fullmatch(r"[\w.~+/=-]{16,2000}", spotify_login.code_in(text, "state"))
