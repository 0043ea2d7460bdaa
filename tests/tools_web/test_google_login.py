"""Google Places without a key: the login of gcloud, and a login by an application of the user's own."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from marvin_core.testing import HttpReplay, ToolRunner
from tests.tools_web.contracts import Operation, check
from tests.tools_web.test_location import install
from tests.tools_web.test_location import programs as programs
from tests.tools_web.test_places import FOUND, GOOGLE_NEAR, GOOGLE_TEXT, KEY, NOMINATIM, PLACES, SEARCH, google_body

# As gcloud answers. Source: cloud.google.com/sdk/gcloud/reference
GCLOUD = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
case "$1 $2" in
    "auth list") echo "{account}" ;;
    "config get-value") echo "{project}" ;;
    "services enable") {enable} ;;
    "info --format=value(config.paths.global_config_dir)") dirname "$0" ;;
    "auth application-default") echo "Quota project set." >&2 ;;
    *) echo "ERROR: (gcloud) Invalid choice: '$1'." >&2; exit 2 ;;
esac
"""
# Source: cloud.google.com/docs/authentication/application-default-credentials
CREDENTIALS = {
    "account": "",
    "client_id": "764086051850-x.apps.googleusercontent.com",
    "client_secret": "gcloud-client-secret",
    "quota_project_id": "my-project-1",
    "refresh_token": "1//gcloud-refresh-token",
    "type": "authorized_user",
    "universe_domain": "googleapis.com",
}
TOKENS_URL = "https://oauth2.googleapis.com/token"
TOKENS = {"access_token": "ya29." + "a" * 40, "expires_in": 3599, "scope": "x", "token_type": "Bearer"}
# Source: developers.google.com/identity/protocols/oauth2/native-app
TOKEN = Operation(
    method="POST",
    url=re.escape(TOKENS_URL),
    headers={"content-type": "application/x-www-form-urlencoded"},
)
# Source: developers.google.com/maps/documentation/places/web-service/oauth-token
BY_TOKEN = Operation(
    method="POST",
    url=r"https://places\.googleapis\.com/v1/places:search(Text|Nearby)",
    headers={
        "content-type": "application/json",
        "authorization": "Bearer ya29",
        "x-goog-fieldmask": r"(places\.[a-zA-Z.]+)(,places\.[a-zA-Z.]+)*$",
    },
    body=google_body,
)
APPLICATION = {"GOOGLE_CLIENT_ID": "1234-abc.apps.googleusercontent.com", "GOOGLE_CLIENT_SECRET": "desktop-secret"}


def gcloud(
    folder: Path,
    account: str = "ada@example.org",
    project: str = "my-project-1",
    enable: str = ":",
    credentials: object = CREDENTIALS,
) -> Mapping[str, str]:
    script = GCLOUD.replace("{account}", account).replace("{project}", project).replace("{enable}", enable)
    if credentials is not None:
        (folder / "application_default_credentials.json").write_text(json.dumps(credentials))
    return install(folder, "gcloud", script)


def form(content: bytes) -> dict[str, str]:
    return {name: found[0] for name, found in parse_qs(content.decode()).items()}


def tokens_file(tools: ToolRunner) -> Path:
    return next((tools.home / ".config/marvin/profiles").rglob("tokens.json"))


def test_gcloud_is_set_up(marvin_tools: ToolRunner, programs: Path) -> None:
    outcome = marvin_tools.session(env=gcloud(programs), answers=["yes"]).call("setup_google_auth")
    assert not outcome.is_error, outcome.text
    assert outcome.text.splitlines() == [
        "Login: ada@example.org",
        "Project: my-project-1",
        "places.googleapis.com is enabled, and my-project-1 pays for the quota.",
        "The places tools use Google Places with the login of gcloud.",
    ]
    assert (programs / "calls").read_text().splitlines() == [
        "auth list --filter=status:ACTIVE --format=value(account)",
        "config get-value project",
        "services enable places.googleapis.com --project=my-project-1 --quiet",
        "info --format=value(config.paths.global_config_dir)",
        "auth application-default set-quota-project my-project-1 --quiet",
    ]


def test_places_are_found_by_the_login_of_gcloud(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, programs: Path
) -> None:
    session = marvin_tools.session(env=gcloud(programs), answers=["yes"])
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    assert "Source: Nominatim" in session.call("places_text_search", text_query="ramen").text
    session.call("setup_google_auth")
    marvin_http.on("POST", TOKENS_URL, json=TOKENS)
    marvin_http.on("POST", GOOGLE_TEXT, json=PLACES)
    marvin_http.on("POST", GOOGLE_NEAR, json=PLACES)
    assert "[Source: Google Places.]" in session.call("places_text_search", text_query="ramen").text
    nearby = {"near": "35.0,135.76", "included_types": ["restaurants"]}
    assert "[Source: Google Places.]" in session.call("places_nearby_search", **nearby).text
    check(marvin_http, SEARCH, TOKEN, BY_TOKEN)
    asked = [request for request in marvin_http.requests if request.url == TOKENS_URL]
    assert [form(request.content) for request in asked] == [
        {
            "grant_type": "refresh_token",
            "client_id": CREDENTIALS["client_id"],
            "client_secret": CREDENTIALS["client_secret"],
            "refresh_token": CREDENTIALS["refresh_token"],
        }
    ]
    assert marvin_http.requests[-1].headers["x-goog-user-project"] == "my-project-1"
    assert marvin_http.requests[-1].json["includedTypes"] == ["restaurant"]
    kept = tokens_file(session)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert CREDENTIALS["refresh_token"] not in kept.read_text()


def test_a_token_that_google_refuses_is_renewed(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, programs: Path
) -> None:
    session = marvin_tools.session(env=gcloud(programs), answers=["yes"])
    session.call("setup_google_auth")
    marvin_http.on("POST", TOKENS_URL, json=TOKENS, times=1)
    marvin_http.on("POST", TOKENS_URL, json={**TOKENS, "access_token": "ya29.second-token"})
    marvin_http.on("POST", GOOGLE_TEXT, status=401, json={"error": {"message": "invalid credentials"}}, times=1)
    marvin_http.on("POST", GOOGLE_TEXT, json=PLACES)
    assert "Ramen Sen" in session.call("places_text_search", text_query="ramen").text
    assert marvin_http.requests[-1].headers["authorization"] == "Bearer ya29.second-token"


def test_a_login_of_gcloud_that_ended_is_told(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, programs: Path
) -> None:
    session = marvin_tools.session(env=gcloud(programs), answers=["yes"])
    session.call("setup_google_auth")
    marvin_http.on("POST", TOKENS_URL, status=400, json={"error": "invalid_grant"})
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    text = session.call("places_text_search", text_query="cafe").text
    assert (
        "Failed: The login of gcloud has expired. Ask the user to run `gcloud auth application-default login`" in text
    )
    (programs / "application_default_credentials.json").unlink()
    text = session.call("places_text_search", text_query="cafes").text
    assert "Failed: gcloud has no application default credentials at " in text


def test_the_login_of_gcloud_is_taken_back(marvin_tools: ToolRunner, marvin_http: HttpReplay, programs: Path) -> None:
    session = marvin_tools.session(env=gcloud(programs), answers=["yes"] * 2)
    session.call("setup_google_auth")
    assert [line.partition(":")[0] for line in session.take_back(1)] == ["setup_google_auth"]
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    assert "Source: Nominatim" in session.call("places_text_search", text_query="ramen").text
    assert "for /undo only" in session.call("setup_google_auth", taken_back=True).text


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"account": ""}, "gcloud auth login"),
        ({"project": "(unset)"}, "gcloud config set project"),
        ({"project": "--flag"}, "gcloud config set project"),
        ({"enable": "echo 'PERMISSION_DENIED: billing' >&2; exit 1"}, "failed: PERMISSION_DENIED: billing. Tell"),
        ({"credentials": None}, "gcloud auth application-default login"),
        ({"credentials": {"type": "service_account", "private_key": "x"}}, "contains no login of a person"),
        ({"credentials": [1, None]}, "contains no login of a person"),
    ],
)
def test_what_keeps_google_from_being_set_up(
    marvin_tools: ToolRunner, programs: Path, broken: dict[str, Any], says: str
) -> None:
    """I27: what gcloud says is never taken for an option of it."""
    outcome = marvin_tools.session(env=gcloud(programs, **broken), answers=["yes"]).call("setup_google_auth")
    assert outcome.is_error
    assert says in outcome.text


def test_with_a_key_no_login_is_needed(marvin_tools: ToolRunner, programs: Path) -> None:
    env = {**gcloud(programs, credentials=None), **KEY}
    outcome = marvin_tools.session(env=env, answers=["yes"]).call("setup_google_auth")
    assert "GOOGLE_PLACES_API_KEY is set: the places tools use Google Places." in outcome.text
    assert outcome.undo is None


def test_without_gcloud(marvin_tools: ToolRunner) -> None:
    outcome = marvin_tools.session(env={"PATH": "/nowhere"}, answers=["yes"]).call("setup_google_auth")
    assert outcome.is_error
    assert "gcloud is not installed. Ask the user to install it from" in outcome.text


def test_an_application_of_the_users_own(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """The same login as that to Spotify: PKCE, the loopback, tokens in the profile."""
    session = marvin_tools.session(env=APPLICATION, answers=["yes"] * 3)
    url = session.call("setup_google_auth").text.splitlines()[1]
    fields = form(urlsplit(url).query.encode())
    assert url.startswith("https://accounts.google.com/o/oauth2/v2/auth?")
    assert fields["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert (fields["access_type"], fields["code_challenge_method"]) == ("offline", "S256")
    assert "desktop-secret" not in url
    marvin_http.on("POST", TOKENS_URL, json={**TOKENS, "refresh_token": "1//refresh-token"})
    marvin_http.on("POST", GOOGLE_TEXT, json=PLACES)
    answer = f"{fields['redirect_uri']}?code=4/0{'c' * 40}&state={fields['state']}"
    assert "The user is logged in to Google." in session.call("setup_google_auth", auth_code=answer).text
    assert "Ramen Sen" in session.call("places_text_search", text_query="ramen").text
    check(marvin_http, TOKEN, BY_TOKEN)
    sent = form(marvin_http.requests[0].content)
    assert sent["client_secret"] == "desktop-secret"
    assert sent["code"] == f"4/0{'c' * 40}"
    assert "x-goog-user-project" not in marvin_http.requests[-1].headers
    session.take_back(1)
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    assert "Source: Nominatim" in session.call("places_text_search", text_query="ramen").text


def test_a_login_that_was_not_finished_is_no_reason_to_fail(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    session = marvin_tools.session(env=APPLICATION, answers=["yes"])
    session.call("setup_google_auth")
    marvin_http.on("GET", NOMINATIM, json=FOUND)
    assert not session.call("places_text_search", text_query="ramen").is_error
