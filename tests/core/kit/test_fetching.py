"""Requests of packs: bounded, followed where that is safe, and explained where they fail."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from marvin_core import (
    Fetched,
    RequestFailed,
    ToolError,
    delete,
    fetch,
    fetch_json,
    open_url,
    post,
    post_json,
    web_address,
)
from marvin_core.api.errors import AddressRefused
from marvin_core.api.timeouts import Timeouts
from marvin_core.config.load import load
from marvin_core.http.addresses import AddressGuard
from marvin_core.http.client import HttpSettings, TlsContext, make_client
from marvin_core.http.clients import Clients
from marvin_core.testing import Answer, HttpReplay, ModelServer, cut_after, drop, error, hang, hang_after, paced, raw
from tests.support.certificates import self_signed

T = TypeVar("T")
URL = "https://service.example/things"


def ask(replay: HttpReplay, work: Callable[[httpx.AsyncClient], Awaitable[T]]) -> T:
    """What the work gives, with a client whose requests all go to the replay."""

    async def run() -> T:
        async with replay.client() as client:
            return await work(client)

    return asyncio.run(run())


def got(replay: HttpReplay, url: str = URL, **options: Any) -> Fetched:
    return ask(replay, lambda http: fetch(http, url, **options))


def failure(replay: HttpReplay, url: str = URL, **options: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as raised:
        got(replay, url, **options)
    assert str(raised.value).rstrip().endswith((".", "?", "slow down")), "it ends with a sentence"
    assert len(str(raised.value)) < 1_000
    return raised.value


@pytest.fixture
def replay(marvin_http: HttpReplay) -> HttpReplay:
    return marvin_http


# What comes back


def test_an_answer_is_given_whole(replay: HttpReplay) -> None:
    headers = {"content-type": "text/HTML; charset=UTF-8", "X-More": "1"}
    replay.on("GET", f"{URL}?q=1", body="ä€".encode(), headers=headers)
    page = got(replay, f"{URL}?q=1")
    assert (page.text, page.kind, page.status, page.url) == ("ä€", "text/html", 200, f"{URL}?q=1")
    assert page.headers["x-more"] == "1"


def test_the_query_and_the_headers_are_sent(replay: HttpReplay) -> None:
    replay.on("GET", URL, json={})
    got(replay, f"{URL}?a=1", params={"b": "ü&", "c": 2, "d": None, "half": "\ud800"}, headers={"x-key": "k"})
    assert replay.requests[0].params == {"a": "1", "b": "ü&", "c": "2", "half": "?"}
    assert replay.requests[0].headers["x-key"] == "k"


def test_an_address_without_a_scheme_is_one_of_https(replay: HttpReplay) -> None:
    replay.on("GET", "https://service.example/", text="x")
    assert got(replay, " service.example ").url == "https://service.example"


@pytest.mark.parametrize(
    "text",
    ["", "mailto:me@a.example", "javascript:alert(1)",
     "ftp://a.example/x", "file:///etc/passwd", "no address", "http://[broken", "http://a.example:99999/", "//",
     "http://\ud800.example", "http://" + "a" * 70_000, "https://xn--\u0378.example/", "http://a%00b/"],
)  # fmt: skip
def test_what_is_no_address_is_told(text: str) -> None:
    with pytest.raises(ToolError, match=r"as in https://example\.org/page") as raised:
        web_address(text)
    assert len(str(raised.value)) < 1_000


# JSON


@pytest.mark.parametrize(
    "body",
    [
        '{"a": "ä"}'.encode(),
        b'\xef\xbb\xbf{"a": "\xc3\xa4"}',
        '{"a": "ä"}'.encode("utf-16"),
        '{"a": "ä"}'.encode("latin-1"),
    ],
)
def test_json_is_read_in_any_encoding(replay: HttpReplay, body: bytes) -> None:
    replay.on("GET", URL, body=body, headers={"content-type": "text/plain"})
    assert ask(replay, lambda http: fetch_json(http, URL)) == {"a": "ä"}
    assert replay.requests[0].headers["accept"] == "application/json"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"text": "<html>Hello"}, "not valid JSON"),
        ({"body": b"<!DOCTYPE html><p>Log in", "headers": {"content-type": "text/html"}}, "sent a web page"),
        ({"body": b""}, "sent an empty answer instead of JSON. Try another source"),
        ({"text": "[" * 100_000}, "nested"),
        ({"text": '{"a": 1'}, "not valid JSON"),
    ],
)
def test_what_is_no_json_is_told_with_its_beginning(replay: HttpReplay, answer: dict[str, Any], says: str) -> None:
    replay.on("GET", URL, **answer)
    with pytest.raises(RequestFailed, match=says) as raised:
        ask(replay, lambda http: fetch_json(http, URL))
    assert len(str(raised.value)) < 600


# Failures, each in words


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "answered 400 Bad Request. Check the request"),
        (401, "It requires a login, or a different key. Use another source"),
        (403, "It refuses programs, or refuses this key. Use another source"),
        (404, "There is nothing at that address. Check it, or search for the page"),
        (410, "It was removed permanently. Search for another source"),
        (418, "answered 418 I'm a Teapot. Check the address"),
        (429, "It gets too many requests. Wait, or use another source"),
        (500, "It has a problem. Try again later"),
        (503, "It has a problem. Try again later"),
        (304, "answered 304 Not Modified"),
    ],
)
def test_a_status_is_told_with_what_to_do(replay: HttpReplay, status: int, says: str) -> None:
    """I10: the error says what happened and what to do."""
    replay.on("GET", URL, status=status)
    raised = failure(replay)
    assert says in str(raised)
    assert raised.status == status
    assert len(replay.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"error": "slow down"},
        {"error": {"code": 7, "message": "slow down"}},
        {"errors": [{"detail": "slow down"}]},
        {"title": "Bad", "detail": "slow down"},
        [{"message": "slow\n\x1b[31m down"}],
        {"type": "x", "reason": "slow down"},
    ],
)
def test_what_the_service_says_about_an_error_is_told(replay: HttpReplay, body: object) -> None:
    replay.on("GET", URL, status=400, json=body)
    assert str(failure(replay)).endswith("It says: slow down")


def test_a_web_page_and_a_flood_say_nothing_about_an_error(replay: HttpReplay) -> None:
    replay.on("GET", URL, status=400, body=b"<html>" * 100_000, headers={"content-type": "text/html"}, times=1)
    replay.on("GET", URL, status=400, text="no such thing. " * 100_000)
    assert "It says" not in str(failure(replay))
    with pytest.raises(RequestFailed, match=r"It says: no such thing\. no such") as raised:
        got(replay)
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (hang(), "did not answer in time"),
        (hang_after(3, raw(b"12345678", {"content-type": "text/plain"})), "did not answer in time"),
        (paced(0.15, raw(b"", {"content-type": "text/plain"}).replace(steps=(b"a",) * 40)), "did not answer in time"),
        (cut_after(3, raw(b"12345678", {"content-type": "text/plain"})), "The connection to"),
        (drop(), "The connection to"),
    ],
    ids=["silent", "silent in the middle", "a drop at a time", "cut", "closed"],
)
def test_an_answer_that_does_not_come_is_told(replay: HttpReplay, answer: Answer, says: str) -> None:
    replay.on("GET", URL, answer=answer)
    assert says in str(failure(replay, timeout=0.5))


def test_a_host_that_does_not_exist_is_told() -> None:
    with pytest.raises(
        RequestFailed,
        match=r"The host no-such-host\.invalid does not exist, or its address cannot be looked up",
    ):
        asyncio.run(real("http://no-such-host.invalid/x"))


def test_a_server_that_refuses_connections_is_told() -> None:
    with ModelServer() as server:
        port = server.port
    with pytest.raises(RequestFailed, match=r"cannot be reached: .*(refused|Connect)"):
        asyncio.run(real(f"http://127.0.0.1:{port}/"))


async def real(url: str, tls: str = "", **settings: Any) -> Fetched:
    """What is at a real address."""
    source = TlsContext(tls).get
    client = make_client(HttpSettings(timeouts=Timeouts(http=50), **settings), timeout_read=50, tls=source)
    async with client:
        return await fetch(client, url)


def test_a_certificate_that_nobody_vouches_for_is_told(tmp_path: Path) -> None:
    pem = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    says = r"127\.0\.0\.1 has an invalid certificate \(.*self.signed.*may not be the real 127\.0\.0\.1"
    with ModelServer(tls=context) as server:
        url = f"https://127.0.0.1:{server.port}/v1/models"
        for transport in ("direct", "stock"):
            with pytest.raises(RequestFailed, match=says):
                asyncio.run(real(url, transport=transport))
        assert server.requests == []
        assert "scripted" in asyncio.run(real(url, str(pem))).text


def test_a_server_without_tls_is_told() -> None:
    with ModelServer() as server, pytest.raises(RequestFailed, match=r"No secure connection to 127\.0\.0\.1"):
        asyncio.run(real(f"https://127.0.0.1:{server.port}/v1/models"))


def test_a_proxy_that_refuses_is_told() -> None:
    with ModelServer() as proxy, pytest.raises(RequestFailed, match=r"The proxy refuses connections to a\.example"):
        asyncio.run(real("https://a.example/", https_proxy=f"http://127.0.0.1:{proxy.port}"))


def test_a_password_in_an_address_is_not_told(replay: HttpReplay) -> None:
    replay.on("GET", "https://me:hunter2@service.example/x", status=404)
    raised = failure(replay, "https://me:hunter2@service.example/x")
    assert "https://service.example/x answered" in str(raised)
    assert "hunter2" not in str(raised)


def test_of_a_long_address_no_part_of_its_query_is_told(replay: HttpReplay) -> None:
    url = f"https://service.example/x?a={'b' * 260}&key=hunter2-hunter2-hunter2"
    replay.on("GET", url, status=404)
    raised = failure(replay, url)
    assert "https://service.example/x?… answered" in str(raised)
    assert "hunter" not in str(raised)


# Services that ask to come back later


def test_what_a_service_asks_to_wait_is_waited(replay: HttpReplay) -> None:
    for after in ("0", "0.01"):
        replay.on("GET", URL, status=429, headers={"retry-after": after}, times=1)
    replay.on("GET", URL, text="there")
    assert got(replay).text == "there"
    assert len(replay.requests) == 3


def test_some_services_say_so_with_another_status(replay: HttpReplay) -> None:
    used_up = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "600"}
    replay.on("GET", URL, status=403, headers={"retry-after": "0"}, times=1)
    replay.on("GET", URL, status=403, headers=used_up, times=1)
    replay.on("GET", URL, status=404, headers=used_up)
    assert "(it asks to wait 600 s)" in str(failure(replay))
    assert "to wait" not in str(failure(replay))


def test_it_is_waited_twice_at_most(replay: HttpReplay) -> None:
    replay.on("GET", URL, status=429, headers={"retry-after": "0"})
    assert failure(replay).status == 429
    assert len(replay.requests) == 3


@pytest.mark.parametrize(("after", "options"), [("3600", {}), ("1", {"patience": 0}), ("20", {"patience": 10})])
def test_more_than_there_is_patience_for_is_told_at_once(
    replay: HttpReplay, after: str, options: dict[str, Any]
) -> None:
    replay.on("GET", URL, status=429, headers={"retry-after": after})
    raised = failure(replay, **options)
    assert f"(it asks to wait {int(after):,} s)" in str(raised)
    assert raised.retry_after == int(after)
    assert len(replay.requests) == 1


@pytest.mark.parametrize("after", ["soon", "-5", "9" * 40_000, "nan", "1e400", formatdate(2e9, usegmt=True)])
def test_a_wait_that_means_nothing_is_no_wait(replay: HttpReplay, after: str) -> None:
    replay.on("GET", URL, status=429, headers={"retry-after": after})
    failure(replay)
    assert len(replay.requests) == 1


def test_a_date_in_the_past_means_now(replay: HttpReplay) -> None:
    replay.on("GET", URL, status=503, headers={"retry-after": formatdate(0, usegmt=True)}, times=1)
    replay.on("GET", URL, text="there")
    assert got(replay).text == "there"


def test_a_post_is_repeated_only_where_it_was_not_taken(replay: HttpReplay) -> None:
    replay.on("POST", f"{URL}/busy", status=429, headers={"retry-after": "0"}, times=1)
    replay.on("POST", f"{URL}/busy", json={"ok": True})
    replay.on("POST", f"{URL}/ill", status=503, headers={"retry-after": "0"})
    assert ask(replay, lambda http: post_json(http, f"{URL}/busy", {"a": 1})) == {"ok": True}
    assert [request.json for request in replay.requests] == [{"a": 1}] * 2
    with pytest.raises(RequestFailed):
        ask(replay, lambda http: post_json(http, f"{URL}/ill", {}))
    assert len(replay.requests) == 3


def test_a_deletion_is_sent_with_what_it_means(replay: HttpReplay) -> None:
    replay.on("DELETE", f"{URL}/a", status=204)
    replay.on("DELETE", f"{URL}/busy", status=429, headers={"retry-after": "0"}, times=1)
    replay.on("DELETE", f"{URL}/busy", text="gone")
    assert ask(replay, lambda http: delete(http, f"{URL}/a", params={"uris": "x:y"})).status == 204
    assert ask(replay, lambda http: delete(http, f"{URL}/busy", json={"items": [1]})).text == "gone"
    assert [(request.content, request.headers.get("content-type")) for request in replay.requests] == [
        (b"", None),
        (b'{"items": [1]}', "application/json"),
        (b'{"items": [1]}', "application/json"),
    ]
    assert replay.requests[0].params == {"uris": "x:y"}


@pytest.mark.parametrize("url", [f"{URL}/moved", f"{URL}/ill"])
def test_a_deletion_is_never_repeated_elsewhere(replay: HttpReplay, url: str) -> None:
    replay.on("DELETE", f"{URL}/moved", status=307, headers={"location": "https://evil.example/x"})
    replay.on("DELETE", f"{URL}/ill", status=503, headers={"retry-after": "0"})
    with pytest.raises(RequestFailed):
        ask(replay, lambda http: delete(http, url))
    assert len(replay.requests) == 1


# Kinds and sizes


@pytest.mark.parametrize("kind", ["image/png", "application/json", "application/ld+json", ""])
def test_the_kinds_that_are_of_use(replay: HttpReplay, kind: str) -> None:
    replay.on("GET", URL, body=b"x", headers={"content-type": f"{kind}; q=1"} if kind else {})
    assert got(replay, kinds=("application/json", "image/*")).kind == kind


def test_another_kind_is_named(replay: HttpReplay) -> None:
    replay.on("GET", URL, body=b"x", headers={"content-type": "video/mp4"})
    assert "is video/mp4, not text/html or image/*" in str(failure(replay, kinds=("text/html", "image/*")))


def test_what_is_too_large_is_told_and_not_read_to_its_end(replay: HttpReplay) -> None:
    endless = threading.Event()
    answer = raw(b"", {"content-type": "text/plain"}).replace(steps=(b"x" * 5_000, endless))
    replay.on("GET", URL, answer=answer)
    assert "is larger than 4,000 bytes" in str(failure(replay, largest=4_000))
    replay.on("GET", f"{URL}/fits", body=b"x" * 4_000)
    assert len(got(replay, f"{URL}/fits", largest=4_000).content) == 4_000


def test_a_long_address_is_given_whole_and_shown_short(replay: HttpReplay) -> None:
    long = f"{URL}?q={'x' * 2_000}"
    replay.on("GET", long, text="[")
    page = got(replay, long)
    assert page.url == long
    assert page.short_url == f"{URL}?…"
    with pytest.raises(RequestFailed) as failed:
        page.json()
    assert "xxx" not in str(failed.value)


# Redirects


def test_redirects_are_followed_and_the_last_address_is_told(replay: HttpReplay) -> None:
    replay.on("GET", URL, status=301, headers={"location": "/other"})
    replay.on("GET", "https://service.example/other", status=302, headers={"location": "https://else.example/x"})
    replay.on("GET", "https://else.example/x", text="there")
    assert got(replay).url == "https://else.example/x"


def test_another_server_gets_no_key(replay: HttpReplay) -> None:
    """I24: what is sent to one service is not sent to the one that it names."""
    keys = {"authorization": "Bearer k", "X-Api-Key": "k", "Cookie": "k=1", "accept": "a/b", "x-token": "k"}
    replay.on("GET", URL, status=302, headers={"location": "/again"})
    replay.on("GET", "https://service.example/again", status=302, headers={"location": "https://evil.example/x"})
    replay.on("GET", "https://evil.example/x", text="there")
    got(replay, headers=keys)
    first, again, evil = (request.headers for request in replay.requests)
    assert first["x-api-key"] == again["x-api-key"] == again["authorization"].removeprefix("Bearer ") == "k"
    assert evil["accept"] == "a/b"
    assert not {"authorization", "x-api-key", "cookie", "x-token"} & evil.keys()
    assert "k" not in evil.values()


def test_cookies_live_as_long_as_the_redirects(replay: HttpReplay) -> None:
    """Some servers send whoever has no cookie around in a circle; what a call was given, later ones do not show."""
    given = {"location": "/again", "set-cookie": "seen=1; Path=/; Max-Age=9999"}
    replay.on("GET", URL, status=302, headers=given)
    elsewhere = {"location": "https://evil.example/x", "set-cookie": "seen=2; Path=/; Domain=evil.example"}
    replay.on("GET", "https://service.example/again", status=302, headers=elsewhere)
    replay.on("GET", "https://evil.example/x", text="there", headers={"set-cookie": "evil=1; Max-Age=9999"})

    async def twice() -> None:
        settings, transport = HttpSettings(), replay.transport()
        async with make_client(settings, timeout_read=30, tls=None, guard=AddressGuard(), transport=transport) as http:
            for _ in range(2):
                await fetch(http, URL)

    asyncio.run(twice())
    sent = [request.headers.get("cookie") for request in replay.requests]
    assert sent == [None, "seen=1", None] * 2


def test_a_server_that_goes_over_to_https_still_gets_the_key(replay: HttpReplay) -> None:
    replay.on("GET", "http://service.example/x", status=301, headers={"location": "https://service.example/x"})
    replay.on("GET", "https://service.example/x", status=301, headers={"location": "http://service.example/y"})
    replay.on("GET", "http://service.example/y", text="back")
    got(replay, "http://service.example/x", headers={"x-api-key": "k"})
    assert ["x-api-key" in request.headers for request in replay.requests] == [True, True, False]


@pytest.mark.parametrize(("status", "method"), [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
def test_a_redirected_post(replay: HttpReplay, status: int, method: str) -> None:
    replay.on("POST", URL, status=status, headers={"location": "/done"})
    replay.on(method, "https://service.example/done", text="done")
    assert ask(replay, lambda http: post(http, URL, form={"a": "ü b"})).text == "done"
    assert replay.requests[1].content == (b"a=%C3%BC+b" if method == "POST" else b"")


def test_what_is_posted_goes_to_no_other_server(replay: HttpReplay) -> None:
    replay.on("POST", URL, status=307, headers={"location": "https://evil.example/x"})
    with pytest.raises(RequestFailed, match=r"redirects the request to another server, https://evil\.example/x"):
        ask(replay, lambda http: post(http, URL, json={"secret": 1}))
    assert len(replay.requests) == 1


@pytest.mark.parametrize(
    ("location", "says"),
    [
        (URL, "redirects in a circle"),
        ("file:///etc/passwd", "leads to an address that is not a web address. Use another source"),
        ("https://a.example:port/", "redirects to something that is not an address"),
        ("javascript:alert(1)", "not a web address"),
    ],
)
def test_redirects_that_lead_nowhere(replay: HttpReplay, location: str, says: str) -> None:
    replay.on("GET", URL, status=302, headers={"location": location})
    assert says in str(failure(replay))
    assert len(replay.requests) <= 11


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("http://exa mple/", "The host exa%20mple does not exist, or its address cannot be looked up ("),
        ("http://exa mple:x/", "service.example/x redirects to something that is not an address."),
        (
            "http://no.such.host.invalid/",
            "The host no.such.host.invalid does not exist, or its address cannot be looked up (",
        ),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1/ cannot be reached"),
    ],
)
def test_what_a_redirect_leads_to_is_named_and_not_who_redirects(location: str, says: str) -> None:
    with HttpRedirect(location) as server:

        async def run() -> None:
            async with httpx.AsyncClient(trust_env=False) as http:
                await fetch(http, f"http://127.0.0.1:{server.port}/x")

        with pytest.raises(RequestFailed) as raised:
            asyncio.run(run())
    assert says.replace("service.example", f"127.0.0.1:{server.port}") in str(raised.value)


def test_a_redirect_to_this_machine_is_not_followed(tmp_path: Path) -> None:
    """The address guard of the tools' client holds for the kit as well."""

    async def run(url: str) -> None:
        (tmp_path / "config.yaml").write_text("allow_addresses: [localhost]\n")
        config, _ = load([], {"HOME": str(tmp_path), "MARVIN_HOME": str(tmp_path)}, cwd=tmp_path)
        clients = Clients(config)
        try:
            await fetch(clients.for_tools(), url)
        finally:
            await clients.close()

    with ModelServer() as inner:
        with HttpRedirect(f"http://127.0.0.1:{inner.port}/v1/models") as server, pytest.raises(AddressRefused):
            asyncio.run(run(f"http://localhost:{server.port}/"))
        assert inner.requests == []


class HttpRedirect(ModelServer):
    """A server that redirects each request."""

    def __init__(self, target: str) -> None:
        self._target = target
        super().__init__()

    def answer_to(self, request: Any) -> Answer:
        return error(302, headers={"location": self._target})


# What is sent


def test_what_json_cannot_hold_is_not_sent(replay: HttpReplay) -> None:
    for value in ({"a": float("nan")}, {"a": object()}):
        with pytest.raises(ToolError, match="cannot be written as JSON"):
            ask(replay, lambda http, value=value: post_json(http, URL, value))  # type: ignore[misc]
    assert replay.requests == []


def test_headers_of_the_pack_win_however_they_are_spelled(replay: HttpReplay) -> None:
    replay.on("POST", URL, json={})
    ask(replay, lambda http: post_json(http, URL, None, headers={"Content-Type": "a/b", "ACCEPT": "c/d"}))
    ask(replay, lambda http: post_json(http, URL, {"a": 1}))
    ask(replay, lambda http: post(http, URL, content=b"raw"))
    sent = [(r.headers.get("content-type"), r.headers["accept"], r.content) for r in replay.requests]
    assert sent == [
        ("a/b", "c/d", b"null"),
        ("application/json", "application/json", b'{"a": 1}'),
        (None, "*/*", b"raw"),
    ]


def test_half_a_surrogate_pair_can_be_sent(replay: HttpReplay) -> None:
    replay.on("POST", URL, json={})
    ask(replay, lambda http: post_json(http, URL, {"a": "\ud800"}))
    ask(replay, lambda http: post(http, URL, form={"a": "\ud800"}))
    assert json.loads(replay.requests[0].content) == {"a": "\ud800"}
    assert replay.requests[1].content == b"a=%3F"


@pytest.mark.parametrize("value", ["ü", "a\r\nx-other: 1", "\0"])
def test_a_header_that_cannot_be_sent_is_told(replay: HttpReplay, value: str) -> None:
    replay.on("GET", URL, text="x")
    with pytest.raises(ToolError, match=r"header"):
        got(replay, headers={"x-title": value})
    assert replay.requests == []


# Large answers, piece by piece


def test_an_answer_can_be_read_in_pieces(replay: HttpReplay) -> None:
    replay.on("GET", URL, body=b"x" * 300_000, chunked=True)
    replay.on("GET", f"{URL}/cut", answer=cut_after(5, raw(b"123456", {"content-type": "text/plain"})))

    async def read(http: httpx.AsyncClient, url: str) -> int:
        async with open_url(http, url, raw=True) as response:
            return sum([len(piece) async for piece in response.aiter_raw()])

    assert ask(replay, lambda http: read(http, URL)) == 300_000
    with pytest.raises(RequestFailed, match=r"The connection to .* failed"):
        ask(replay, lambda http: read(http, f"{URL}/cut"))
