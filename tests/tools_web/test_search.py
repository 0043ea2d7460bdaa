"""Searching the web and the news: what services are asked, what their answers become, and how they fail."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core.testing import Answer, HttpReplay, ToolRunner, raw
from marvin_tools_web.search.results import Result, canonical, title_key, unwrapped, without_duplicates
from tests.tools_web.contracts import Operation, check, document

DUCKDUCKGO = "https://html.duckduckgo.com/html/"
MOJEEK = "https://www.mojeek.com/search"
BRAVE = "https://api.search.brave.com/res/v1/web/search"
SEARXNG = "https://searx.example/search"
BRAVE_KEY = {"BRAVE_API_KEY": "BSA0123456789-brave-key"}
NEWS_KEYS = {"GNEWS_API_KEY": "gnews-0123456789-key", "NEWSAPI_KEY": "newsapi-0123456789-key"}
GNEWS = "https://gnews.io/api/v4/search"
NEWSAPI = "https://newsapi.org/v2/everything"
DUCK_PAGE = "https://duckduckgo.com/"
DUCK_NEWS = "https://duckduckgo.com/news.js"


def _form(content: bytes) -> str:
    fields = parse_qs(content.decode(), keep_blank_values=True)
    unknown = fields.keys() - {"q", "b", "l", "df", "s", "kl"}
    return f"unknown fields {unknown}" if unknown or "q" not in fields else ""


# As its page for browsers without scripts sends it.
DUCK = Operation(
    method="POST",
    url=r"https://html\.duckduckgo\.com/html/?",
    headers={"user-agent": "Mozilla/5.0", "content-type": "application/x-www-form-urlencoded"},
    body=_form,
)
MOJEEK_PAGE = Operation(url=r"https://www\.mojeek\.com/search", required={"q": ".+"}, optional={"safe": "[01]"})
# Source: api-dashboard.search.brave.com/app/documentation/web-search/query
BRAVE_SEARCH = Operation(
    url=r"https://api\.search\.brave\.com/res/v1/web/search",
    required={"q": ".{1,400}"},
    optional={"count": r"[1-9]|1\d|20", "freshness": "pd|pw|pm|py"},
    headers={"x-subscription-token": "BSA", "accept": "application/json"},
)
# Source: docs.searxng.org/dev/search_api.html
SEARX = Operation(
    url=r"https://searx\.example/search",
    required={"q": ".+", "format": "json"},
    optional={"time_range": "day|week|month|year", "pageno": r"\d+"},
)
# Source: docs.gnews.io/endpoints/search-endpoint
GNEWS_SEARCH = Operation(
    url=r"https://gnews\.io/api/v4/search",
    required={"q": r"[\w\s\"]{1,200}"},
    optional={
        "max": r"[1-9]|10",
        "lang": "[a-z]{2}",
        "sortby": "publishedAt|relevance",
        "from": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    },
    headers={"x-api-key": "gnews-"},
)
# Source: newsapi.org/docs/endpoints/everything
NEWSAPI_SEARCH = Operation(
    url=r"https://newsapi\.org/v2/everything",
    required={"q": ".{1,500}"},
    optional={
        "pageSize": r"[1-9]\d?|100",
        "sortBy": "publishedAt|relevancy|popularity",
        "from": r"\d{4}-\d\d-\d\d.*",
        "language": "[a-z]{2}",
    },
    headers={"x-api-key": "newsapi-"},
)
DUCK_TOKEN = Operation(url=r"https://duckduckgo\.com/?", required={"q": ".+"}, headers={"user-agent": "Mozilla/5.0"})
DUCK_STORIES = Operation(
    url=r"https://duckduckgo\.com/news\.js",
    required={"q": ".+", "vqd": r"[\d-]+", "o": "json"},
    optional={"l": "[a-z-]+", "noamp": "1", "p": "-?[12]", "df": "[dwm]", "s": r"\d+"},
    headers={"user-agent": "Mozilla/5.0"},
)


def duck_result(title: str, target: str, snippet: str) -> str:

    link = f"//duckduckgo.com/l/?uddg={quote(target, safe='')}&amp;rut=0123456789abcdef"
    return f"""
<div class="result results_links results_links_deep web-result "><div class="links_main links_deep result__body">
<h2 class="result__title"><a rel="nofollow" class="result__a" href="{link}">{title}</a></h2>
<div class="result__extras"><div class="result__extras__url"><a class="result__url" href="{link}">x</a></div></div>
<a class="result__snippet" href="{link}">{snippet}</a><div class="clear"></div></div></div>"""


def page(body: str, kind: str = "text/html; charset=UTF-8") -> Answer:
    whole = f'<!DOCTYPE html><html><head><title>x</title></head><body><div class="serp">{body}</div></body></html>'
    return raw(whole.encode(), {"content-type": kind})


DUCK_REPLY = page(
    duck_result(
        "Welcome to <b>Python</b>.org", "https://www.python.org/?a=1&b=2", "The home of <b>Python</b> &amp; more"
    )
    + duck_result("An ad", "https://duckduckgo.com/y.js?ad_provider=x", "Buy")
    + duck_result("Python again", "http://python.org/?b=2&a=1&utm_source=x", "Longer: the home of Python and much more")
    + duck_result("Über Schlangen", "https://de.example/%C3%BCber", "Käse")
)
EMPTY_PAGE = page('<div class="no-results">No results found for <b>xqzk</b>.</div>')
CHALLENGE = page('<form id="challenge-form" action="//duckduckgo.com/anomaly.js?sv=html">Select the ducks</form>')
MOJEEK_REPLY = page(
    '<ul class="results-standard results"><li class="r1"><a class="ob" href="https://m.example/"></a>'
    '<h2><a class="title" href="https://m.example/">Mojeek found this</a></h2><p class="s">A snippet</p></li></ul>'
)
BRAVE_REPLY: dict[str, Any] = {
    "type": "search",
    "query": {"original": "python"},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Python",
                "url": "https://www.python.org/",
                "description": "<strong>Home</strong> of it",
                "age": "",
            },
            {"title": "Docs", "url": "https://docs.python.org/", "description": "Text &amp; more"},
        ],
    },
}


def test_duckduckgo_is_asked_where_there_is_no_key(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", DUCKDUCKGO, answer=DUCK_REPLY)
    outcome = marvin_tools.call("web_search", query="python home", time_filter="m")
    assert outcome.text.splitlines() == [
        "1. Welcome to Python.org",
        "   https://www.python.org/?a=1&b=2",
        "   Longer: the home of Python and much more",
        "",
        "2. Über Schlangen",
        "   https://de.example/%C3%BCber",
        "   Käse",
        "[Source: DuckDuckGo.]",
    ]
    assert parse_qs(marvin_http.requests[0].content.decode())["df"] == ["m"]
    check(marvin_http, DUCK)


def test_a_page_for_people_is_no_answer(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", DUCKDUCKGO, answer=CHALLENGE)
    marvin_http.on("GET", MOJEEK, answer=MOJEEK_REPLY)
    outcome = marvin_tools.call("web_search", query="python")
    assert outcome.text.splitlines()[:3] == ["1. Mojeek found this", "   https://m.example/", "   A snippet"]
    assert "[Source: Mojeek. Failed: DuckDuckGo: it sent a page without results" in outcome.text
    check(marvin_http, DUCK, MOJEEK_PAGE)


def test_nothing_found_is_no_failure(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("POST", DUCKDUCKGO, answer=EMPTY_PAGE)
    outcome = marvin_tools.call("web_search", query="xqzk")
    assert not outcome.is_error
    assert outcome.text == "Nothing was found for 'xqzk'. Use other or fewer words.\n[Source: DuckDuckGo.]"


def test_a_key_and_a_server_of_the_users_come_first(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SEARXNG, status=403)
    marvin_http.on("GET", BRAVE, json=BRAVE_REPLY)
    env = {**BRAVE_KEY, "MARVIN_URL_SEARXNG": "https://searx.example"}
    outcome = marvin_tools.session(env=env).call("web_search", query="python", max_results=1, time_filter="w")
    assert outcome.text.splitlines()[:3] == ["1. Python", "   https://www.python.org/", "   Home of it"]
    assert "[Source: Brave Search. Failed: SearXNG: " in outcome.text
    assert "formats: [html, json]" in outcome.text
    check(marvin_http, SEARX, BRAVE_SEARCH)
    marvin_http.on("GET", "https://searx2.example/search", json={"results": [], "number_of_results": 0})
    env = {"MARVIN_URL_SEARXNG": "https://searx2.example"}
    assert "[Source: SearXNG.]" in marvin_tools.session(env=env).call("web_search", query="python").text


def test_a_server_whose_engines_are_silent_has_not_found_nothing(
    marvin_tools: ToolRunner, marvin_http: HttpReplay
) -> None:
    """Source: docs.searxng.org/dev/search_api.html; each silent engine is a name and a reason."""
    silent = [["google", "CAPTCHA"], ["bing", "timeout"], "qwant", None, ["brave"], {"odd": 1}]
    empty = {"results": [], "number_of_results": 0, "unresponsive_engines": silent}
    marvin_http.on("GET", SEARXNG, json=empty)
    marvin_http.on("GET", BRAVE, json=BRAVE_REPLY)
    env = {**BRAVE_KEY, "MARVIN_URL_SEARXNG": "https://searx.example"}
    text = marvin_tools.session(env=env).call("web_search", query="python").text
    assert "Failed: SearXNG: its engines do not answer (google, bing, qwant, brave). " in text
    assert text.startswith("1. Python\n")


def test_pages_of_one_title_are_all_shown(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """Papers take a story from each other; of other pages many have the same title, and say something else."""
    pages = [{"title": "How to boil an egg", "url": f"https://{name}.example/egg"} for name in ("ada", "bob")]
    marvin_http.on("GET", BRAVE, json={"type": "search", "web": {"results": pages}})
    text = marvin_tools.session(env=BRAVE_KEY).call("web_search", query="egg").text
    assert "https://ada.example/egg" in text
    assert "https://bob.example/egg" in text
    assert len(without_duplicates([Result(title=page["title"], url=page["url"]) for page in pages])) == 1


@pytest.mark.parametrize("begin", ["https://duckduckgo.com", "//duckduckgo.com", ""])
def test_a_link_is_unwrapped_however_it_is_given(begin: str) -> None:
    link = f"{begin}/l/?kh=-1&uddg=https%3A%2F%2Fa.example%2F%3Fa%3D1%26b%3D2"
    assert unwrapped(link) == "https://a.example/?a=1&b=2"
    assert unwrapped(f"{begin}/l/?uddg=https://a.example/?a=1&b=2&rut=0123") == "https://a.example/?a=1&b=2"


@pytest.mark.parametrize("query", ["", "   ", "x" * 501])
def test_what_cannot_be_searched_is_refused(marvin_tools: ToolRunner, query: str) -> None:
    for name in ("web_search", "search_news"):
        outcome = marvin_tools.call(name, query=query)
        assert outcome.is_error
        assert "Give a few words." in outcome.text


# News

NOW = datetime.now(UTC).replace(microsecond=0)


def _ago(**spans: float) -> datetime:
    return NOW - timedelta(**spans)


def article(title: str, url: str, when: datetime, source: str) -> dict[str, Any]:
    return {
        "title": title,
        "description": f"About {title}",
        "content": "...",
        "url": url,
        "image": "https://img.example/x.jpg",
        "publishedAt": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "source": {"id": None, "name": source, "url": "https://x.example"},
    }


GNEWS_REPLY: dict[str, Any] = {
    "totalArticles": 2,
    "articles": [
        article("Snake escapes from the city zoo", "https://a.example/snake?utm_medium=rss", _ago(hours=3), "A News"),
        article("Only in GNews", "https://a.example/only", _ago(hours=1), "A News"),
    ],
}
NEWSAPI_REPLY: dict[str, Any] = {
    "status": "ok",
    "totalResults": 3,
    "articles": [
        article("[Removed]", "https://removed.com", _ago(hours=2), "[Removed]"),
        article("Snake escapes from the city zoo - B Paper", "https://b.example/1", _ago(hours=2), "B Paper"),
        article("Same page", "https://www.a.example/only/", _ago(hours=1), "C"),
    ],
}
DUCK_NEWS_REPLY: dict[str, Any] = {
    "query": "snake",
    "results": [
        {
            "date": int(_ago(minutes=10).timestamp()),
            "title": "The newest <b>snake</b>",
            "excerpt": "It is <b>long</b>",
            "url": "https://d.example/new",
            "source": "D",
            "relative_time": "10 minutes ago",
        },
        {"date": int(_ago(days=3).timestamp()), "title": "Old one", "excerpt": "", "url": "https://d.example/old"},
    ],
}
TOKEN_PAGE = raw(b'<script>DDG.deep.initialize("/d.js?q=snake&vqd=4-12345678901234567890&p=1")</script>')


def news_routes() -> list[tuple[str, str, Answer]]:
    return [
        ("GET", GNEWS, document(GNEWS_REPLY)),
        ("GET", NEWSAPI, document(NEWSAPI_REPLY)),
        ("GET", DUCK_PAGE, TOKEN_PAGE),
        ("GET", DUCK_NEWS, document(DUCK_NEWS_REPLY)),
    ]


def test_the_news_of_all_services_come_once_and_newest_first(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    for method, url, answer in news_routes():
        marvin_http.on(method, url, answer=answer)
    outcome = marvin_tools.session(env=NEWS_KEYS).call("search_news", query='snake "city zoo" (2026)', time_filter="d")
    heads = [line for line in outcome.text.splitlines() if line[:1].isdigit()]
    stamp = "%Y-%m-%d %H:%M"
    assert heads == [
        f"1. The newest snake (D, {_ago(minutes=10).strftime(stamp)})",
        f"2. Only in GNews (A News, {_ago(hours=1).strftime(stamp)})",
        f"3. Snake escapes from the city zoo - B Paper (B Paper, {_ago(hours=2).strftime(stamp)})",
    ]
    assert outcome.text.endswith("[Source: GNews, NewsAPI, DuckDuckGo News.]")
    check(marvin_http, GNEWS_SEARCH, NEWSAPI_SEARCH, DUCK_TOKEN, DUCK_STORIES)


def _bad_key() -> dict[str, str]:
    said = f"Bad key. {NEWS_KEYS['NEWSAPI_KEY']} is none."
    return {"status": "error", "code": "apiKeyInvalid", "message": said}


def test_one_service_is_enough_for_news(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", NEWSAPI, status=401, json=_bad_key())
    marvin_http.on("GET", GNEWS, json={"totalArticles": 0, "articles": []})
    marvin_http.on("GET", DUCK_PAGE, text="<html>no token</html>")
    outcome = marvin_tools.session(env=NEWS_KEYS).call("search_news", query="snake")
    assert not outcome.is_error
    assert outcome.text.startswith("There is no news about 'snake'. Use other words")
    assert "[Source: GNews. Failed: NewsAPI: " in outcome.text
    assert "Bad key. *** is none." in outcome.text
    _nothing_kept(marvin_tools)
    assert "Failed: DuckDuckGo News: its answer has an unexpected form" in outcome.text


def _nothing_kept(tools: ToolRunner) -> None:
    """I24: a key is written nowhere."""
    kept = b"".join(path.read_bytes() for path in tools.home.rglob("*") if path.is_file())
    assert not any(key.encode() in kept for key in NEWS_KEYS.values())


@pytest.mark.parametrize(
    "other",
    [
        "http://www.a.example/story",
        "https://a.example/story/",
        "https://m.a.example/story?utm_source=x&fbclid=1",
        "https://a.example:443/story#part",
        "https://A.example/story/amp",
    ],
)
def test_one_page_has_many_addresses(other: str) -> None:
    assert canonical(other) == canonical("https://a.example/story")


def test_other_pages_are_others() -> None:
    addresses = [
        *("https://a.example/x", "https://a.example/x?id=1", "https://a.example/x?id=2", "https://b.example/x"),
        # Some sites have nothing but a name in the query, and some are one page to a server.
        *("https://a.example/x?4711", "https://a.example/x?4712", "https://a.example/x?id="),
        *("https://a.example/#!/x", "https://a.example/#!/y", "https://a.example/#/x"),
    ]
    assert len({canonical(address) for address in addresses}) == len(addresses)
    assert title_key("Short one") == "", "two pages may have a short title both"


@given(st.lists(st.builds(Result, title=st.text(max_size=30), url=st.text(max_size=30)), max_size=20))
def test_duplicates_are_left_out_once_and_for_all(results: list[Result]) -> None:
    once = without_duplicates(results)
    assert len(once) <= len(results)
    assert without_duplicates(once) == once
    assert {canonical(result.url) for result in once} <= {canonical(result.url) for result in results}


@given(st.text(max_size=100) | st.text(max_size=60).map("//duckduckgo.com/l/?uddg=".__add__))
def test_any_link_can_be_unwrapped(url: str) -> None:
    assert isinstance(unwrapped(url), str)
    assert isinstance(canonical(url), str)


# Pages that are made to hurt

HOSTILE = [
    "<div class=body>" * 20_000,
    "<a href='" * 50_000,
    "<" * 300_000,
    "&amp" * 100_000,
    "\x00" * 100_000,
    "<p>" * 90_000,
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_a_page_made_to_hurt(marvin_tools: ToolRunner, marvin_http: HttpReplay, body: str) -> None:
    marvin_http.on("POST", DUCKDUCKGO, answer=page(body))
    marvin_http.on("GET", MOJEEK, answer=MOJEEK_REPLY)
    outcome = marvin_tools.call("web_search", query="python")
    assert outcome.elapsed < 30
    assert not outcome.is_error
