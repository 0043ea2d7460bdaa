"""Notices by ntfy: what is sent, and what is told where that fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from marvin_core import NtfyServer, Push, RequestFailed, ToolError, publish
from marvin_core.testing import HttpReplay, drop, hang

TOPIC = "my_topic-1"


def sent(replay: HttpReplay, push: Push, server: NtfyServer | None = None, silence: float = 50) -> str:
    async def run() -> str:
        async with replay.client() as client:
            client.timeout = silence
            return await publish(client, push, server)

    return asyncio.run(run())


def test_a_notice_has_title_priority_tags_and_an_address(marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", "https://ntfy.sh/", json={"id": "abc", "topic": TOPIC})
    push = Push(topic=TOPIC, text="Fertig – ja", title="Büro\n", priority="high", tags=("tada",), click="example.org/x")
    assert sent(marvin_http, push) == "abc"
    (request,) = marvin_http.requests
    assert request.json == {
        "topic": TOPIC,
        "message": "Fertig – ja",
        "title": "Büro",
        "priority": 4,
        "tags": ["tada"],
        "click": "https://example.org/x",
    }
    assert "authorization" not in request.headers


@pytest.mark.parametrize(
    ("server", "header"),
    [
        (NtfyServer(address="https://push.example", token="tk_1"), "Bearer tk_1"),
        (NtfyServer(address="https://push.example", user="mé", password="p:w"), "Basic bcOpOnA6dw=="),
    ],
)
def test_a_server_of_ones_own_is_told_who_publishes(marvin_http: HttpReplay, server: NtfyServer, header: str) -> None:
    marvin_http.on("POST", "https://push.example/", json={"id": "x", "topic": TOPIC})
    sent(marvin_http, Push(topic=TOPIC, text="x"), server)
    assert marvin_http.requests[0].headers["authorization"] == header


def test_a_long_text_is_cut_where_characters_end(marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", "https://ntfy.sh/", json={"id": "x", "topic": TOPIC})
    sent(marvin_http, Push(topic=TOPIC, text="€" * 4_000))
    message = marvin_http.requests[0].json["message"]
    assert len(message.encode()) <= 4_096
    assert message == "€" * (len(message) - 1) + "…"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            {"status": 401, "json": {"code": 40101, "error": "unauthorized"}},
            r"does not know this user or token.*It says: unauthor",
        ),
        ({"status": 403, "json": {"error": "forbidden"}}, "Use another topic, or ask the user for a token"),
        ({"status": 429, "json": {"error": "limit reached: daily message quota reached"}}, "Send fewer, or wait"),
        ({"status": 413}, "Send a shorter one"),
        ({"status": 404}, "That is not an ntfy server"),
        ({"status": 500}, "It has a problem"),
        ({"text": "<html>Hello"}, "not valid JSON"),
        ({"json": {"hello": "world"}}, "did not confirm that the notification was published. Is it an ntfy server?"),
        ({"json": ["x"]}, "did not confirm that the notification was published. Is it an ntfy server?"),
        ({"answer": drop()}, "The connection to"),
        ({"answer": hang()}, "did not answer in time"),
    ],
)
def test_a_notice_that_was_not_published_is_told(marvin_http: HttpReplay, answer: dict[str, Any], says: str) -> None:
    """I10: the error says what to do."""
    marvin_http.on("POST", "https://ntfy.sh/", **answer)
    with pytest.raises(RequestFailed, match=says) as raised:
        sent(marvin_http, Push(topic=TOPIC, text="x"), silence=0.5 if "time" in says else 50)
    assert len(str(raised.value)) < 800


@pytest.mark.parametrize(
    ("push", "says"),
    [
        (Push(topic="a b", text="x"), "is not a valid topic"),
        (Push(topic="../v1", text="x"), "is not a valid topic"),
        (Push(topic="", text="x"), "is not a valid topic"),
        (Push(topic="x" * 65, text="x"), "is not a valid topic"),
        (Push(topic=TOPIC, text=" \n"), "has no text"),
        (Push(topic=TOPIC, text="x", priority="loud"), "is not a priority"),  # type: ignore[arg-type]
        (Push(topic=TOPIC, text="x", click="file:///etc/passwd"), "is not a web address. Give a full one, as in"),
    ],
)
def test_what_cannot_be_published_is_not_sent(marvin_http: HttpReplay, push: Push, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        sent(marvin_http, push)
    assert marvin_http.requests == []


def test_a_token_stays_with_its_server(marvin_http: HttpReplay) -> None:
    """I24: a redirect does not carry it away."""
    marvin_http.on("POST", "https://push.example/", status=307, headers={"location": "https://evil.example/"})
    with pytest.raises(RequestFailed, match="another server"):
        sent(marvin_http, Push(topic=TOPIC, text="x"), NtfyServer(address="https://push.example", token="tk_1"))
    assert len(marvin_http.requests) == 1
