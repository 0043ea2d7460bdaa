"""Notices beside a run: it never waits for them, and never fails by them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from marvin_core import Notifier, Timeouts, is_topic
from marvin_core.testing import HttpReplay, drop, hang

TOPIC = "builds"
URL = "https://ntfy.sh/"
PUBLISHED = {"id": "abc", "topic": TOPIC}


def run(replay: HttpReplay, work: Callable[[Notifier], Awaitable[Any]], topic: str = TOPIC, **times: float) -> Any:
    async def begin() -> Any:
        async with replay.client() as client:
            return await work(Notifier(client, topic, timeouts=Timeouts(**times)))  # type: ignore[arg-type]

    return asyncio.run(begin())


def messages(replay: HttpReplay) -> list[str]:
    return [request.json["message"] for request in replay.requests]


def test_notices_are_published_in_their_order(marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", URL, json=PUBLISHED)

    async def work(notifier: Notifier) -> str:
        notifier.send("one", title="Build", priority="high", tags=("tada",))
        await asyncio.sleep(0)
        notifier.send("two")
        told = await notifier.close()
        assert (notifier.published, notifier.failed) == (2, 0)
        return told

    assert run(marvin_http, work) == ""
    assert messages(marvin_http) == ["one", "two"]
    first = marvin_http.requests[0].json
    assert (first["title"], first["priority"], first["tags"]) == ("Build", 4, ["tada"])


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            {"status": 401, "json": {"error": "unauthorized"}},
            "The server does not know this user or token. Ask the user to check it",
        ),
        ({"status": 500}, "It has a problem"),
        ({"text": "<html>"}, "not valid JSON"),
        ({"answer": drop()}, "The connection to"),
        ({"answer": hang()}, "did not answer in time"),
    ],
)
def test_what_fails_is_told_at_the_end(marvin_http: HttpReplay, answer: dict[str, Any], says: str) -> None:
    marvin_http.on("POST", URL, **answer)

    async def work(notifier: Notifier) -> str:
        notifier.send("one")
        return await notifier.close()

    told = run(marvin_http, work, notice=0.5 if "time" in says else 30.0, notice_end=30.0)
    assert told.startswith("1 notification was not published: ")
    assert says in told
    assert "\n" not in told


@pytest.mark.parametrize("topic", ["", "a b", "../v1", "x" * 65])
def test_what_cannot_be_a_topic_fails_without_a_request(marvin_http: HttpReplay, topic: str) -> None:
    async def work(notifier: Notifier) -> str:
        notifier.send("one")
        return await notifier.close()

    assert not is_topic(topic)
    assert "is not a valid topic" in run(marvin_http, work, topic)


def test_a_server_that_hangs_holds_up_neither_the_run_nor_its_end(marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", URL, answer=hang())

    async def work(notifier: Notifier) -> str:
        for number in range(200):
            notifier.send(str(number))
        return await notifier.close()

    told = run(marvin_http, work, notice=60.0, notice_end=0.1)
    assert told == "200 notifications were not published: the server did not accept them in time"
    assert len(marvin_http.requests) <= 1


def test_the_oldest_make_room_and_count(marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", URL, json=PUBLISHED)

    async def work(notifier: Notifier) -> str:
        for number in range(60):
            notifier.send(str(number))
        told = await notifier.close()
        assert (notifier.published, notifier.failed) == (50, 10)
        return told

    assert run(marvin_http, work, notice_end=60.0).endswith("more notifications were produced than the server accepted")
    assert messages(marvin_http) == [str(number) for number in range(10, 60)]


def test_a_notice_that_is_published_while_it_makes_room_counts_once(marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", URL, json=PUBLISHED)

    async def work(notifier: Notifier) -> None:
        notifier.send("first")
        await asyncio.sleep(0)  # the request has begun
        for number in range(50):
            notifier.send(str(number))
        await notifier.close()
        assert notifier.published + notifier.failed == 51

    run(marvin_http, work, notice_end=60.0)


def test_after_its_end_nothing_is_sent(marvin_http: HttpReplay) -> None:
    async def work(notifier: Notifier) -> tuple[str, str]:
        first = await notifier.close()
        notifier.send("late")
        return first, await notifier.close()

    assert run(marvin_http, work) == ("", "1 notification was not published: the run was over already")
