"""Spotify: the login with PKCE, tokens that are kept and renewed, search and playlists."""

from __future__ import annotations

import json
import re
import stat
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import Fetched, MarvinError, RequestFailed, ToolError, tool
from marvin_core.testing import HttpReplay, ToolRunner, paced, raw
from marvin_tools_web.media import spotify_undo
from marvin_tools_web.services import oauth
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
NAMES = ["access_token", "refresh_token", "expires_in", "expires_at", "verifier", "state", "redirect", "begun", "items"]
NAMES += ["total", "item", "uri"]
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
    assert oauth.challenge(sent["code_verifier"]) == fields["code_challenge"]
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
        "[1 of 7 are shown. Use more specific words for other results.]",
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
    assert f"The playlist 'Loud' was created, id {ID}." in made.text
    assert json.loads(marvin_http.requests[-1].content) == {"name": "Loud", "description": "", "public": False}
    added = user.call("spotify_add_tracks", playlist_id=f"spotify:playlist:{ID}", track_queries=["hysteria", "nothing"])
    assert "1 of 2 tracks were added:\n1. Hysteria by Muse\nNot found: nothing." in added.text
    assert json.loads(marvin_http.requests[-1].content) == {"uris": [f"spotify:track:{ID}"]}
    check(marvin_http, SEARCH, MADE)


@pytest.mark.slow
def test_a_hundred_tracks_are_told_in_short(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http)
    loud = {**TRACK, "name": "n" * 1_000, "artists": [{"name": "a" * 1_000}] * 50}
    marvin_http.on("POST", f"{API}/playlists/{ID}/items", json={"snapshot_id": "x"}, status=201)
    marvin_http.on("GET", f"{API}/search", json={"tracks": {"items": [loud], "total": 1}})
    outcome = user.call("spotify_add_tracks", playlist_id=ID, track_queries=["x"] * 100)
    assert outcome.text.startswith("100 of 100 tracks were added:")
    assert len(outcome.text) < 8_000
    assert f"https://open.spotify.com/playlist/{ID}" in outcome.text
    assert "Give 1 to 100" in user.call("spotify_add_tracks", playlist_id=ID, track_queries=["x"] * 101).text
    assert "0 tracks were given" in user.call("spotify_add_tracks", playlist_id=ID, track_queries=[" "]).text


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
    assert "and ask the user to log in again" in outcome.text
    assert "r" * 40 not in outcome.text


def test_who_is_not_logged_in_is_told_how(marvin_tools: ToolRunner, user: ToolRunner) -> None:
    assert "Call spotify_auth" in user.call("spotify_search", query="x").text
    assert "set its client id as SPOTIFY_CLIENT_ID" in marvin_tools.call("spotify_auth").text
    assert "No login to Spotify was started" in user.call("spotify_auth", auth_code="c" * 40).text


def test_an_answer_to_another_login_is_refused(user: ToolRunner, marvin_http: HttpReplay) -> None:
    user.call("spotify_auth")
    for answer, says in (
        (f"http://127.0.0.1:1/callback?code={'c' * 40}&state=other", "the answer to a different login"),
        ("http://127.0.0.1:1/callback?error=access_denied&state=x", "login to Spotify was refused"),
        ("hello there", "is not a login code of Spotify"),
    ):
        outcome = user.call("spotify_auth", auth_code=answer)
        assert outcome.is_error
        assert says in outcome.text
    assert not marvin_http.requests


def fields_of(url: str) -> dict[str, str]:
    return {name: found[0] for name, found in parse_qs(urlsplit(url).query).items()}


def begun(tools: ToolRunner) -> dict[str, str]:
    """The fields of the address of a login that is begun."""
    return fields_of(tools.call("spotify_auth").text.splitlines()[1])


def tokens_file(tools: ToolRunner) -> Path:
    return next((tools.home / ".config/marvin/profiles").rglob("tokens.json"))


def test_pages_in_the_browser_cannot_answer_a_login(user: ToolRunner, marvin_http: HttpReplay) -> None:
    """Any page can have a browser ask an address of this machine; none of them knows the state of the login."""
    fields = begun(user)
    redirect = fields["redirect_uri"]
    right = f"{redirect}?code={'c' * 40}&state={fields['state']}"
    for wrong in (
        f"{redirect}?code={'e' * 40}",
        f"{redirect}?code={'e' * 40}&state=other",
        f"{redirect}?code={'e' * 40}&state=",
        f"{redirect}?error=access_denied",
        f"{redirect}?state={fields['state']}",
        right.replace("/callback", "/elsewhere"),
    ):
        assert user.call(visit, url=wrong).text in ("400", "404"), wrong
    assert "You can close this page" in user.call(visit, url=right).text
    # Nor is the right answer replaced by one that comes after it.
    user.call(visit, url=right.replace("c" * 40, "e" * 40))
    marvin_http.on("POST", f"{ACCOUNTS}/api/token", json=TOKENS)
    assert user.call("spotify_auth").text == "The user is logged in to Spotify."
    assert [fields_of("?" + request.content.decode())["code"] for request in marvin_http.requests] == ["c" * 40]


def test_two_logins_at_once(user: ToolRunner, marvin_http: HttpReplay) -> None:
    """Two sessions begin a login each; the first one can still be finished."""
    other = user.session(env={"SPOTIFY_CLIENT_ID": "client"})
    first, second = begun(user), begun(other)
    assert first["state"] != second["state"]
    user.call(visit, url=f"{first['redirect_uri']}?code={'1' * 40}&state={first['state']}")
    marvin_http.on("POST", f"{ACCOUNTS}/api/token", json=TOKENS)
    assert user.call("spotify_auth").text == "The user is logged in to Spotify."
    sent = fields_of("?" + marvin_http.requests[-1].content.decode())
    assert sent["redirect_uri"] == first["redirect_uri"]
    assert oauth.challenge(sent["code_verifier"]) == first["code_challenge"]
    answer = f"{second['redirect_uri']}?code={'2' * 40}&state={second['state']}"
    assert not other.call("spotify_auth", auth_code=answer).is_error
    assert set(json.loads(tokens_file(user).read_text())) == {"spotify"}


def test_a_login_of_yesterday_cannot_be_finished(user: ToolRunner, marvin_http: HttpReplay) -> None:
    fields = begun(user)
    kept = tokens_file(user)
    old = json.loads(kept.read_text())
    old["spotify_login"][0]["begun"] -= 86_400
    kept.write_text(json.dumps(old))
    answer = f"{fields['redirect_uri']}?code={'c' * 40}&state={fields['state']}"
    assert "No login to Spotify was started" in user.call("spotify_auth", auth_code=answer).text
    assert not marvin_http.requests


def test_tokens_are_closed_to_others(user: ToolRunner, marvin_http: HttpReplay) -> None:
    """Also where the file was there before, and open."""
    begun(user)
    kept = tokens_file(user)
    kept.write_text("{}")
    kept.chmod(0o644)
    logged_in(user, marvin_http)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["{", "[]", "\x00", '{"spotify": [1]}', '{"spotify": {"refresh_token": 7}}'])
def test_tokens_that_are_damaged(user: ToolRunner, marvin_http: HttpReplay, content: str) -> None:
    logged_in(user, marvin_http)
    tokens_file(user).write_text(content)
    outcome = user.call("spotify_search", query="x")
    assert outcome.is_error
    assert "is damaged" in outcome.text or "Call spotify_auth" in outcome.text
    assert "Call spotify_auth" in user.call("spotify_search", query="x").text
    assert not marvin_http.requests


def test_a_token_that_another_process_renewed_is_used(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http, expires_in=1)
    fresh = {"access_token": "n" * 40, "refresh_token": "s" * 40, "expires_at": 1e11}
    kept = tokens_file(user)

    @tool(access=["write"])
    def by_another() -> str:
        """Renew the token as another process does."""
        kept.write_text(json.dumps({"spotify": fresh}))
        return ""

    marvin_http.on("GET", f"{API}/search", json=TRACKS)
    user.call(by_another)
    assert "Hysteria" in user.call("spotify_search", query="x").text
    assert [request.headers["authorization"] for request in marvin_http.requests] == [f"Bearer {'n' * 40}"]


def test_of_two_who_renew_at_once_both_go_on(user: ToolRunner, marvin_http: HttpReplay) -> None:
    """The other one was faster: this one's refresh token is used up when it arrives."""
    logged_in(user, marvin_http, expires_in=1)
    fresh = {"access_token": "n" * 40, "refresh_token": "s" * 40, "expires_at": 1e11}
    refusal = raw(b'{"error": "invalid_grant"}', {"content-type": "application/json"}, status=400)
    marvin_http.on("POST", f"{ACCOUNTS}/api/token", answer=paced(0.5, refusal))
    marvin_http.on("GET", f"{API}/search", json=TRACKS)

    def renew() -> None:
        while not marvin_http.requests:
            time.sleep(0.01)
        tokens_file(user).write_text(json.dumps({"spotify": fresh}))

    other = Thread(target=renew)
    other.start()
    assert "Hysteria" in user.call("spotify_search", query="x").text
    other.join()
    assert marvin_http.requests[-1].headers["authorization"] == f"Bearer {'n' * 40}"


def test_what_spotify_repeats_of_a_token_is_not_shown(user: ToolRunner, marvin_http: HttpReplay) -> None:
    """I24"""
    logged_in(user, marvin_http, expires_in=1)
    refusal = {"error": "server_error", "error_description": f"refresh token {'r' * 40} is odd"}
    marvin_http.on("POST", f"{ACCOUNTS}/api/token", json=refusal, status=500)
    outcome = user.call("spotify_search", query="x")
    assert outcome.is_error
    assert "is odd" in outcome.text
    assert "r" * 40 not in outcome.text


ITEMS = re.escape(API) + r"/playlists/\w{22}/items"
REMOVING = Operation(method="DELETE", url=ITEMS, headers={"content-type": "application/json"})
FORGETTING = Operation(
    method="DELETE", url=re.escape(API) + "/me/library", required={"uris": r"spotify:playlist:\w{22}"}
)
LOOKING = Operation(url=ITEMS, required={"fields": ".+"}, optional={"limit": r"[1-9]|[1-4]\d|50", "offset": r"\d+"})


def items(*uris: str, total: int | None = None) -> dict[str, Any]:
    return {"items": [{"item": {"uri": uri}} for uri in uris], "total": len(uris) if total is None else total}


def test_a_playlist_is_taken_back(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http)
    uri = f"spotify:track:{ID}"
    marvin_http.on("POST", f"{API}/me/playlists", json=PLAYLIST, status=201)
    marvin_http.on("POST", f"{API}/playlists/{ID}/items", json={"snapshot_id": "x"}, status=201)
    marvin_http.on("GET", f"{API}/search", json=TRACKS)
    user.call("spotify_create_playlist", name="Loud")
    user.call("spotify_add_tracks", playlist_id=ID, track_queries=["hysteria"])
    marvin_http.on("GET", f"{API}/playlists/{ID}/items", json=items("spotify:track:before", uri), times=1)
    marvin_http.on("DELETE", f"{API}/playlists/{ID}/items", json={"snapshot_id": "y"})
    marvin_http.on("GET", f"{API}/playlists/{ID}/items", json=items("spotify:track:before"), times=1)
    assert [line.partition(":")[0] for line in user.take_back(1)] == ["spotify_add_tracks"]
    assert marvin_http.requests[-1].json == {"items": [{"uri": uri}]}
    with pytest.raises(MarvinError, match="The playlist 'Loud' has a track now"):
        user.take_back(1)
    marvin_http.on("GET", f"{API}/playlists/{ID}/items", json=items())
    marvin_http.on("DELETE", f"{API}/me/library", status=200)
    assert [line.partition(":")[0] for line in user.take_back(1)] == ["spotify_create_playlist"]
    check(marvin_http, SEARCH, MADE, REMOVING, FORGETTING, LOOKING)


def test_a_track_that_was_there_before_stays(user: ToolRunner, marvin_http: HttpReplay) -> None:
    """Spotify removes all places of a track at once."""
    logged_in(user, marvin_http)
    uri, other = f"spotify:track:{ID}", "spotify:track:other"
    marvin_http.on("POST", f"{API}/playlists/{ID}/items", json={"snapshot_id": "x"}, status=201)
    user.call("spotify_add_tracks", playlist_id=ID, track_queries=[uri, f"https://open.spotify.com/track/{ID}?si=1"])
    assert marvin_http.requests[-1].json == {"uris": [uri, uri]}
    marvin_http.on("GET", f"{API}/playlists/{ID}/items", json=items(other, uri, uri, uri))
    marvin_http.on("DELETE", f"{API}/playlists/{ID}/items", json={"snapshot_id": "y"})
    user.take_back(1)
    assert marvin_http.requests[-1].json == {"uris": [uri], "position": 1}


@pytest.mark.parametrize("there", [[], ["spotify:track:other"], [f"spotify:track:{ID}", "spotify:track:new"]])
def test_what_somebody_changed_since_is_left(user: ToolRunner, marvin_http: HttpReplay, there: list[str]) -> None:
    logged_in(user, marvin_http)
    marvin_http.on("POST", f"{API}/playlists/{ID}/items", json={"snapshot_id": "x"}, status=201)
    user.call("spotify_add_tracks", playlist_id=ID, track_queries=[f"spotify:track:{ID}"])
    marvin_http.on("GET", f"{API}/playlists/{ID}/items", json=items(*there))
    with pytest.raises(MarvinError, match="The playlist was changed since then"):
        user.take_back(1)
    assert [request.method for request in marvin_http.requests] == ["POST", "GET"]


def test_a_login_is_taken_back(user: ToolRunner, marvin_http: HttpReplay) -> None:
    logged_in(user, marvin_http)
    user.take_back(1)
    assert "Call spotify_auth" in user.call("spotify_search", query="x").text
    assert "spotify" not in json.loads(tokens_file(user).read_text())


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("spotify_auth", {"taken_back": True}),
        ("spotify_create_playlist", {"name": "x", "taken_back": ID}),
        ("spotify_add_tracks", {"playlist_id": ID, "track_queries": ["x"], "taken_back": True}),
    ],
)
def test_nobody_but_undo_takes_back(
    user: ToolRunner, marvin_http: HttpReplay, name: str, arguments: dict[str, Any]
) -> None:
    logged_in(user, marvin_http)
    outcome = user.call(name, **arguments)
    assert outcome.is_error
    assert "for /undo only" in outcome.text
    assert not marvin_http.requests


@pytest.mark.parametrize("playlist", ["My favourite songs of all the years 2003", "x" * 23, "", "spotify:playlist:"])
def test_what_is_no_playlist_is_refused(user: ToolRunner, marvin_http: HttpReplay, playlist: str) -> None:
    logged_in(user, marvin_http)
    outcome = user.call("spotify_add_tracks", playlist_id=playlist, track_queries=["x"])
    assert "is not a Spotify playlist" in outcome.text
    assert not marvin_http.requests


def test_twenty_results_come_in_two_pages(user: ToolRunner, marvin_http: HttpReplay) -> None:
    """Playlists that may not be shown are null, and count all the same."""
    logged_in(user, marvin_http)
    page = {"playlists": {"items": [*[{"name": "A", "id": ID}] * 8, None, None], "total": 1_000}}
    marvin_http.on("GET", f"{API}/search", json=page)
    outcome = user.call("spotify_search", query="x", search_type="playlist", max_results=15)
    assert [request.params.get("offset", "0") for request in marvin_http.requests] == ["0", "10"]
    assert [request.params["limit"] for request in marvin_http.requests] == ["10", "5"]
    assert "of 1,000 are shown" in outcome.text


@given(st.text(max_size=80))
def test_any_text_is_a_code_or_none(text: str) -> None:
    with suppress(ToolError):
        assert re.fullmatch(r"[\w.~+/=-]{16,2000}", oauth.code_in(text, "state"))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=8), inner),
    max_leaves=12,
)


@given(JSON)
def test_anything_may_stand_where_tokens_are(kept: Any) -> None:
    """In the file of the tokens, and in what a service answers."""
    content = json.dumps(kept).encode()
    answer = Fetched(url=ACCOUNTS, status=200, kind="application/json", headers={}, content=content)
    assert all(one.state and one.verifier for one in oauth.pendings_in(kept, 1_000.0))
    for read in (lambda: oauth.given_tokens(answer), lambda: spotify_undo.items_in(answer.json())):
        with suppress(ValueError, LookupError, TypeError, AttributeError, OverflowError, RequestFailed):
            assert read()
    if isinstance(kept, dict):
        assert isinstance(oauth.token_in(kept), str)
        assert oauth.holds(kept, 0.0) in (True, False)
