"""github_search with the real gh: what it asks, how results look, and what is said where it fails."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.github import TOKEN, GitHub, needs_gh
from tests.tools_coding.support_github import Desk, program

FLASK = {
    "full_name": "pallets/flask",
    "stargazers_count": 70_000,
    "language": "Python",
    "pushed_at": "2026-01-02T03:04:05Z",
    "description": "A framework\nwith two lines",
    "license": {"spdx_id": "BSD-3-Clause"},
}
ISSUE = {
    "repository_url": "https://api.github.com/repos/pallets/flask",
    "number": 12,
    "title": "Ünïcode breaks",
    "state": "open",
    "user": {"login": "ada"},
    "comments": 3,
    "updated_at": "2026-02-03T00:00:00Z",
    "labels": [{"name": "bug"}, {"name": "help wanted"}],
}
COMMIT = {
    "sha": "0123456789abcdef0123",
    "repository": {"full_name": "pallets/flask"},
    "commit": {"message": "Mend it\n\nAt length.", "author": {"name": "Ada", "date": "2026-03-04T05:06:07Z"}},
}
CODE = {
    "path": "src/app.py",
    "repository": {"full_name": "pallets/flask"},
    "text_matches": [{"fragment": "def run():\n    return 1\n"}, {"fragment": "run()"}, {"fragment": "third"}],
}
SHOWN: dict[str, tuple[dict[str, Any], str]] = {
    "repositories": (
        FLASK,
        "pallets/flask (70,000 stars, Python, BSD-3-Clause, pushed 2026-01-02)\n    A framework with two lines",
    ),
    "code": (CODE, "pallets/flask: src/app.py\n    def run():\n        return 1\n    run()"),
    "issues": (
        ISSUE,
        "pallets/flask#12: Ünïcode breaks\n    open issue; by ada; 3 comments; updated 2026-02-03; bug, help wanted",
    ),
    "commits": (COMMIT, "pallets/flask 0123456789ab 2026-03-04 Ada: Mend it"),
    "users": (
        {"login": "pallets", "type": "Organization", "html_url": "https://github.com/pallets"},
        "pallets (organization) https://github.com/pallets",
    ),
}

pytestmark = needs_gh


@pytest.mark.parametrize("kind", SHOWN)
def test_each_kind_of_result_is_shown_with_its_fields(desk: Desk, kind: str) -> None:
    item, expected = SHOWN[kind]
    desk.hub.found(kind, item)
    assert desk.text("github_search", query="ünï wörds", search_type=kind) == expected
    asked = desk.hub.asked[-1]
    assert asked.path == f"/search/{kind}"
    assert asked.query == {"q": "ünï wörds", "per_page": "10"}
    assert asked.headers["authorization"] == f"token {TOKEN}"


def test_a_pull_request_is_told_from_an_issue(desk: Desk) -> None:
    desk.hub.found("issues", {**ISSUE, "pull_request": {}})
    assert "open pull request" in desk.text("github_search", query="x", search_type="issues")


def test_archived_and_private_repositories_and_forks_are_marked(desk: Desk) -> None:
    desk.hub.found("repositories", {**FLASK, "archived": True, "fork": True, "private": True, "license": None})
    assert "pushed 2026-01-02, archived, fork, private)" in desk.text("github_search", query="x")


def test_fewer_than_there_are_says_so_and_how_to_narrow(desk: Desk) -> None:
    desk.hub.found("repositories", FLASK, FLASK, FLASK, total=1_234)
    text = desk.text("github_search", query="x", max_results=2)
    assert text.endswith(
        "[2 of 1,234 repositories. Narrow the query with language:python, stars:>100, topic:cli, user:NAME, "
        "archived:false.]"
    )
    assert desk.hub.asked[-1].query["per_page"] == "2"


def test_what_github_gave_up_on_is_not_shown_as_all(desk: Desk) -> None:
    desk.hub.found("code", CODE, partly=True)
    assert "GitHub stopped before it had searched everything" in desk.text(
        "github_search", query="x", search_type="code"
    )


def test_nothing_found_names_what_to_try(desk: Desk) -> None:
    desk.hub.found("users")
    text = desk.text("github_search", query="zzz", search_type="users")
    assert text == "No users fit 'zzz'. Use fewer words, or qualifiers: type:org, location:Berlin, language:rust."


@pytest.mark.slow
def test_no_query_is_read_as_anything_else(desk: Desk) -> None:
    """I27."""
    desk.hub.found("repositories", FLASK)
    queries = [
        "--paginate",
        "-F q=@/etc/passwd",
        "@/etc/passwd",
        "{owner}",
        "a&per_page=100",
        "a\nb",
        "x" * 2_000,
        "!1",
    ]
    for query in queries:
        desk.text("github_search", query=query)
        assert desk.hub.asked[-1].query == {"q": query, "per_page": "10"}
    assert len(desk.hub.asked) == len(queries)


def test_what_is_no_query_is_refused(desk: Desk) -> None:
    for query in ("", "  ", "a\0b", "x" * 2_001):
        assert "Use words, and qualifiers such as" in desk.error("github_search", query=query)
    assert desk.hub.asked == []


@pytest.mark.parametrize("kind", SHOWN)
def test_an_odd_answer_is_no_error(desk: Desk, kind: str) -> None:
    for item in ({}, {"full_name": 7}, {"labels": 3, "user": [], "commit": None, "text_matches": [1]}):
        desk.hub.found(kind, item)
        desk.text("github_search", query="x", search_type=kind)


def test_an_answer_that_is_none_is_told(desk: Desk) -> None:
    for content in (b"", b"<html>", b"[]", b'{"items": 3}', b"[" * 100_000):
        desk.hub.answers_with("/search/repositories", content)
        assert "cannot be understood" in desk.error("github_search", query="x")


@pytest.mark.slow
def test_a_huge_answer_is_bounded(desk: Desk) -> None:
    desk.hub.answers_with("/search/issues", json.dumps({"items": ["x" * 1_000_000] * 25}).encode())
    assert "too large" in desk.error("github_search", query="x", search_type="issues")


def test_lines_of_strangers_stay_on_one_line_and_are_cut(desk: Desk) -> None:
    desk.hub.found("repositories", {**FLASK, "description": "\x1b[31mred\r\n\u202e" + "x" * 5_000})
    lines = desk.text("github_search", query="x").split("\n")
    assert len(lines) == 2
    assert len(lines[1]) < 400
    assert lines[1].isprintable()


REFUSALS: list[tuple[int, Any, dict[str, str], str]] = [
    (401, {"message": "Bad credentials"}, {}, "GitHub does not accept gh's login: Bad credentials"),
    (403, {"message": "Resource not accessible by token"}, {}, "GitHub refuses this to the account of gh"),
    (403, {"message": "SAML"}, {"X_GitHub_SSO": "required; url=x"}, "gh auth refresh"),
    (403, {"message": "You have exceeded a secondary rate limit"}, {"Retry_After": "77"}, "try again in 77 s"),
    (403, {"message": "You have exceeded a secondary rate limit"}, {}, "try again in 60 s"),
    (429, {"message": "slow down"}, {"Retry_After": "600"}, "try again in 10 minutes"),
    (422, {"message": "Validation Failed", "errors": [{"message": "No word"}, "odd", 3]}, {}, "Validation Failed; No"),
    (451, {"message": "DMCA"}, {}, "legal reasons"),
    (500, {}, {}, "GitHub has trouble (HTTP 500)"),
    (503, {"message": "Down"}, {}, "Try again later"),
    (418, {"message": "tea"}, {}, "GitHub answers with HTTP 418: tea."),
]


@pytest.mark.slow
def test_a_refusal_says_what_happened_and_what_to_do(desk: Desk) -> None:
    for status, content, headers, expected in REFUSALS:
        desk.hub.answers_with("/search/repositories", content, status, **headers)
        assert expected in desk.error("github_search", query="x")


def test_a_spent_rate_limit_says_when_it_is_over(desk: Desk) -> None:
    desk.hub.answers_with(
        "/search/repositories",
        {"message": "API rate limit exceeded for user ID 1."},
        403,
        X_RateLimit_Remaining="0",
        X_RateLimit_Reset="9999999999",
    )
    text = desk.error("github_search", query="x")
    assert "the limit of requests per hour or minute is reached" in text
    assert " minutes." in text


def test_without_a_login_it_says_how_to_get_one(desk: Desk) -> None:
    (desk.home / ".config/gh/hosts.yml").unlink()
    text = desk.error("github_search", query="x")
    assert "gh is not logged in to github.com. Ask the user to run: gh auth login" in text


def test_a_token_of_the_environment_is_handed_over_by_name(desk: Desk) -> None:
    """I24: gh alone gets it."""
    desk.hub.found("repositories", FLASK)
    for name in ("GH_TOKEN", "GITHUB_TOKEN"):
        other = desk.runner.session(env={name: "ghp_of_the_environment"}, answers=["yes"])
        assert not other.call("github_search", query="x").is_error
        assert desk.hub.asked[-1].headers["authorization"] == "token ghp_of_the_environment"
        shown = other.call("run_command", command=f"echo got ${name}").text
        assert "got\n" in f"{shown}\n"
        assert "ghp_of" not in shown
        other.close()


def test_a_wrong_token_is_named(desk: Desk) -> None:
    desk.hub.answers_with("/search/repositories", {"message": "Bad credentials"}, 401)
    other = desk.runner.session(env={"GH_TOKEN": "ghp_wrong_wrong"})
    assert "GitHub does not accept GH_TOKEN: Bad credentials" in other.call("github_search", query="x").text


def test_where_gh_is_missing_it_says_where_to_get_it(desk: Desk) -> None:
    folder = desk.home / "programs"
    folder.mkdir()
    other = desk.runner.session(env={"PATH": str(folder)})
    text = other.call("github_search", query="x").text
    assert "The GitHub CLI (gh) is not installed, or not in PATH" in text
    assert "https://cli.github.com/" in text


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'unknown flag: --include' >&2; exit 1", "gh is too old for this"),
        ('echo \'unknown command "api" for "gh"\' >&2; exit 1', "gh is too old for this"),
        ("echo 'error connecting to api.github.com' >&2; exit 1", "GitHub cannot be reached: error connecting to"),
        ("exit 1", "GitHub cannot be reached: gh says nothing"),
        ("kill -9 $$", "GitHub cannot be reached: gh says nothing"),
    ],
)
def test_another_gh_is_understood_by_what_it_says(desk: Desk, script: str, expected: str) -> None:
    folder = desk.home / "programs"
    folder.mkdir()
    program(folder, "gh", script)
    other = desk.runner.session(env={"PATH": f"{folder}:/usr/bin:/bin"})
    assert expected in other.call("github_search", query="x").text


def test_where_nothing_answers_it_says_so(desk: Desk) -> None:
    (desk.home / ".config/gh/config.yml").write_text(f"http_unix_socket: {desk.home / 'nobody'}\n")
    text = desk.error("github_search", query="x")
    assert "GitHub cannot be reached" in text
    assert "Try again later; if this continues, ask the user whether this machine can reach api.github.com" in text


def test_a_silent_github_is_not_waited_for_long(hub: GitHub, desk: Desk) -> None:
    import threading

    hub.held["/search/repositories"] = threading.Event()
    other = desk.runner.session(timeouts={"http": 0.5})
    assert "did not answer within 0.5 s" in other.call("github_search", query="x").text


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ({"query": "x", "search_type": "prs"}, {"q": "x is:pr"}),
        ({"q": "x", "type": "Repository", "language": "rust"}, {"q": "x language:rust"}),
        ({"query": "x", "search_type": "code", "owner": "pallets", "repo": "flask"}, {"q": "x repo:pallets/flask"}),
        ({"query": "x", "sort": "stars", "order": "asc", "perPage": 3}, {"q": "x", "sort": "stars", "order": "asc"}),
        ({"query": "x", "limit": 500}, {"q": "x", "per_page": "30"}),
    ],
)
def test_calls_in_the_habits_of_others_work(desk: Desk, given: dict[str, Any], query: dict[str, str]) -> None:
    for kind in SHOWN:
        desk.hub.found(kind)
    desk.text("github_search", **given)
    assert query.items() <= desk.hub.asked[-1].query.items()


def test_another_host_is_asked_where_the_user_set_one(desk: Desk, hub: GitHub) -> None:
    hosts = desk.home / ".config/gh/hosts.yml"
    hosts.write_text(f"{hosts.read_text()}git.example.org:\n    user: t\n    oauth_token: other_token\n")
    hub.answers_with("/api/v3/search/users", {"total_count": 0, "items": []})
    other = desk.runner.session(env={"GH_HOST": "git.example.org"})
    assert not other.call("github_search", query="x", search_type="users").is_error
    assert hub.asked[-1].headers["host"] == "git.example.org"
