"""Wikipedia, Stack Exchange, papers, the dictionary and translation: what is asked, what is answered, what fails."""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marvin_core import ToolError
from marvin_core.testing import HttpReplay, ToolRunner, raw
from marvin_tools_web.knowledge import article_search, papers, translation
from tests.tools_web.contracts import Operation, check
from tests.tools_web.spoilt import read_or_refused

# --- Wikipedia. Source: mediawiki.org/wiki/API:Search, API:Query, Extension:TextExtracts -----------------------------

WIKI = "https://en.wikipedia.org/w/api.php"
WIKI_ALWAYS = {"action": "query", "format": "json", "formatversion": "2"}
SEARCHING = Operation(
    url=re.escape(WIKI),
    required={**WIKI_ALWAYS, "list": "search", "srsearch": ".+", "srlimit": r"\d+"},
    optional={
        "utf8": "1",
        "srprop": r"[a-z|]+",
        "srinfo": r"[a-z|]+",
        "meta": "siteinfo",
        "siprop": "general",
    },
)
READING = Operation(
    url=re.escape(WIKI),
    required={**WIKI_ALWAYS, "prop": r"[a-z|]+", "titles": ".+"},
    optional={
        "utf8": "1",
        "redirects": "1",
        "inprop": "url",
        "ppprop": "disambiguation",
        "explaintext": "1",
        "exsectionformat": "wiki",
        "exintro": "1",
    },
)
HITS: dict[str, Any] = {
    "batchcomplete": True,
    "continue": {"sroffset": 2, "continue": "-||"},
    "query": {
        "searchinfo": {"totalhits": 4321, "suggestion": "tower bridge"},
        "general": {
            "server": "//en.wikipedia.org",
            "articlepath": "/wiki/$1",
            "base": "https://en.wikipedia.org/wiki/X",
        },
        "search": [
            {
                "ns": 0,
                "title": "Tower Bridge",
                "pageid": 31233,
                "wordcount": 6021,
                "snippet": '<span class="searchmatch">Tower</span> Bridge is a &quot;Grade I&quot; bridge',
            },
            {"ns": 0, "title": "AC/DC & Co: what?", "pageid": 3, "wordcount": 12, "snippet": ""},
        ],
    },
}
TEXT = (
    "Tower Bridge is a bridge in London.\n\n\n== History ==\nIt was built in 1886–1894.\n\n=== Design ===\nBy Jones.\n"
)
PAGE: dict[str, Any] = {
    "batchcomplete": True,
    "query": {
        "redirects": [{"from": "Towerbridge", "to": "Tower Bridge"}],
        "pages": [
            {
                "pageid": 31233,
                "ns": 0,
                "title": "Tower Bridge",
                "fullurl": "https://en.wikipedia.org/wiki/Tower_Bridge",
                "extract": TEXT,
            }
        ],
    },
}


def test_articles_are_found(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", WIKI, json=HITS)
    outcome = marvin_tools.call("wiki_search", query="tower  bridge", max_results=2)
    assert outcome.text.splitlines() == [
        "1. Tower Bridge (6,021 words)",
        "   https://en.wikipedia.org/wiki/Tower_Bridge",
        '   Tower Bridge is a "Grade I" bridge',
        "",
        "2. AC/DC & Co: what? (12 words)",
        "   https://en.wikipedia.org/wiki/AC/DC_%26_Co:_what%3F",
        "",
        "[2 of 4,321 are shown. For more results, use other words or a larger max_results.]",
        "[Source: Wikipedia.]",
    ]
    check(marvin_http, SEARCHING)


def test_an_article_is_read_saved_and_searched(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", WIKI, json=PAGE)
    summary = marvin_tools.call("wiki_summary", title="Towerbridge").text
    assert summary.startswith("Tower Bridge\nhttps://en.wikipedia.org/wiki/Tower_Bridge\n\nTower Bridge is a bridge")
    saved = marvin_tools.call("wiki_full", title="Towerbridge")
    assert "Sections: History; Design" in saved.text
    assert saved.details is not None
    path = Path(saved.details["path"])
    assert path.read_text().endswith(TEXT.strip() + "\n")
    assert str(path) in saved.text
    check(marvin_http, READING)
    for title in ("Tower Bridge", "towerbridge", "tower_bridge"):
        assert marvin_tools.call("wiki_grep", title=title, pattern=r"built in \d+").text == (
            "1. line 8, History: It was built in 1886–1894."
        )
    assert "Nothing in the article" in marvin_tools.call("wiki_grep", title="Tower Bridge", pattern="Paris").text


def page_of(title: str, text: str = TEXT, url: str = "") -> dict[str, Any]:
    address = url or f"https://en.wikipedia.org/wiki/{quote(title)}"
    page = {"pageid": 1, "ns": 0, "title": title, "fullurl": address, "extract": text}
    return {"batchcomplete": True, "query": {"pages": [page]}}


@pytest.mark.slow
def test_no_two_articles_share_a_file(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """Names of files have fewer characters than titles, and some file systems no capitals."""
    long = "ü" * 120
    titles = ["AC/DC", "AC_DC", "What?", "What", "PEZ", "Pez", f"{long}a", f"{long}b", "..", "index", "../../x", ".git"]
    saved = []
    for number, title in enumerate(titles):
        marvin_http.on("GET", WIKI, json=page_of(title, f"Text number {number}."), times=1)
        outcome = marvin_tools.call("wiki_full", title=title)
        assert outcome.details is not None, outcome.text
        saved.append(Path(outcome.details["path"]))
    assert len({str(path).casefold() for path in saved}) == len(titles)
    assert len({path.parent for path in saved}) == 1
    assert all(path.is_file() for path in saved)
    for number, title in enumerate(titles):
        if title != "AC_DC":  # which is "AC DC" to a wiki
            found = marvin_tools.call("wiki_grep", title=title, pattern="number").text
            assert found == f"1. line 4: Text number {number}.", title


def test_an_article_of_another_wiki_is_another_one(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    other = "https://wiki.example/api.php"
    marvin_http.on("GET", WIKI, json=page_of("Bridge", "Over water."))
    marvin_http.on("GET", other, json=page_of("Bridge", "Of teeth.", "https://wiki.example/wiki/Bridge"))
    first = marvin_tools.call("wiki_full", title="Bridge")
    second = marvin_tools.session(env={"MARVIN_URL_WIKIPEDIA": other}).call("wiki_full", title="Bridge")
    again = marvin_tools.call("wiki_full", title="Bridge")
    paths = [one.details["path"] for one in (first, second, again) if one.details]
    assert paths[0] == paths[2] != paths[1]


def test_a_saved_article_is_taken_back(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    own = marvin_tools.session(env={"MARVIN_URL_WIKIPEDIA": WIKI})  # asked each time
    marvin_http.on("GET", WIKI, json=page_of("Bridge", "As it was."), times=1)
    marvin_http.on("GET", WIKI, json=page_of("Bridge", "As it is."))
    own.call("wiki_full", title="Bridge")
    own.call("wiki_full", title="Bridge")
    assert "As it is" in own.call("wiki_grep", title="Bridge", pattern="as it").text
    own.take_back(1)
    assert "As it was" in own.call("wiki_grep", title="Bridge", pattern="as it").text
    own.take_back(1)
    outcome = own.call("wiki_grep", title="Bridge", pattern="as it")
    assert outcome.text == "Error: The article 'Bridge' is not saved. Save it with wiki_full first."


def test_a_link_in_the_place_of_an_article_leads_nowhere(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    marvin_http.on("GET", WIKI, json=page_of("Bridge"))
    outcome = marvin_tools.call("wiki_full", title="Bridge")
    assert outcome.details is not None
    path = Path(outcome.details["path"])
    path.unlink()
    path.symlink_to(secret)
    outcome = marvin_tools.call("wiki_grep", title="Bridge", pattern=".")
    assert outcome.is_error
    assert "the secret" not in outcome.text
    outcome = marvin_tools.call("wiki_full", title="Bridge")
    assert secret.read_text() == "the secret"
    assert outcome.is_error or not path.is_symlink()


@pytest.mark.slow
def test_sessions_that_save_at_once_lose_nothing(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """Each asks for the article by other titles, and all of these are known afterwards."""
    marvin_http.on("GET", WIKI, json=page_of("Bridge", "Over water."))
    titles = [[f"Bridge {session} {number}" for number in range(5)] for session in range(3)]
    sessions = [marvin_tools.session(env={"MARVIN_URL_WIKIPEDIA": WIKI}) for _ in titles]

    def save(session: ToolRunner, titles: list[str]) -> list[str]:
        return [
            outcome.text for outcome in (session.call("wiki_full", title=one) for one in titles) if outcome.is_error
        ]

    with ThreadPoolExecutor() as threads:
        failed = list(threads.map(save, sessions, titles))
    assert failed == [[]] * 3
    for title in (one for each in titles for one in each):
        assert marvin_tools.call("wiki_grep", title=title, pattern="over").text == "1. line 4: Over water."
    saved = next((marvin_tools.home / ".local/share/marvin").rglob("wikipedia"))
    assert sorted(path.name for path in saved.iterdir() if path.suffix == ".txt") == ["Bridge.txt"]


def test_a_damaged_index_is_set_aside(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", WIKI, json=page_of("Bridge"))
    outcome = marvin_tools.call("wiki_full", title="Bridge")
    assert outcome.details is not None
    index = Path(outcome.details["path"]).with_name("index.json")
    for content in ("{", '{"a.txt": 7}', '{"a.txt": {"title": 1, "url": ""}}'):
        index.write_text(content)
        assert "is damaged" in marvin_tools.call("wiki_grep", title="Bridge", pattern="x").text
        assert not marvin_tools.call("wiki_full", title="Bridge").is_error


@pytest.mark.parametrize(
    "title",
    [
        "https://en.wikipedia.org/wiki/Tower_Bridge",
        "https://en.m.wikipedia.org/wiki/Tower%20Bridge?action=raw#History",
        "https://en.wikipedia.org/w/index.php?title=Tower_Bridge",
    ],
)
def test_an_address_is_a_title(marvin_tools: ToolRunner, marvin_http: HttpReplay, title: str) -> None:
    marvin_http.on("GET", WIKI, json=PAGE)
    assert not marvin_tools.call("wiki_summary", title=title).is_error
    assert marvin_http.requests[0].params["titles"] == "Tower Bridge"


@pytest.mark.parametrize("title", ["Foo|Bar", "http://[::1", "de:Berlin", "Special:Random", "#"])
def test_titles_that_are_none(marvin_tools: ToolRunner, marvin_http: HttpReplay, title: str) -> None:
    """A bar parts several titles, and what is before a colon may be another wiki: one article is asked for."""
    elsewhere = {"batchcomplete": True, "query": {"interwiki": [{"title": "de:Berlin", "iw": "de"}]}}
    invalid = {"batchcomplete": True, "query": {"pages": [{"title": title, "invalid": True, "invalidreason": "x"}]}}
    empty = {"batchcomplete": True, "query": {"normalized": [{"fromencoded": False, "from": "#", "to": ""}]}}
    reply = {"de:Berlin": elsewhere, "#": empty}.get(title, invalid)
    marvin_http.on("GET", WIKI, json=reply, times=1)
    marvin_http.on("GET", WIKI, status=500)
    outcome = marvin_tools.call("wiki_summary", title=title)
    assert outcome.is_error
    assert "Wikipedia has no article" in outcome.text
    assert marvin_http.requests[0].params["titles"] == ("\x1fFoo|Bar" if "|" in title else title)


def test_what_cannot_be_searched_is_explained(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", WIKI, json=PAGE)
    assert "Save it with wiki_full first" in marvin_tools.call("wiki_grep", title="Paris", pattern="x").text
    marvin_tools.call("wiki_full", title="Tower Bridge")
    assert "is not a regular expression" in marvin_tools.call("wiki_grep", title="Tower Bridge", pattern="(").text
    slow = marvin_tools.session(timeouts={"search": 1.0})
    path = next((marvin_tools.home / ".local/share/marvin").rglob("Tower Bridge.txt"))
    path.write_text("a" * 5_000 + "!")
    assert "takes too long" in slow.call("wiki_grep", title="Tower Bridge", pattern="(a+)+$").text


def test_an_article_that_is_not_there_names_others(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    missing = {"batchcomplete": True, "query": {"pages": [{"ns": 0, "title": "Tower Brigde", "missing": True}]}}
    marvin_http.on("GET", WIKI, json=missing, times=1)
    marvin_http.on("GET", WIKI, json=HITS)
    outcome = marvin_tools.call("wiki_summary", title="Tower Brigde")
    assert outcome.is_error
    assert "no article 'Tower Brigde'. Similar titles: Tower Bridge; AC/DC & Co: what?" in outcome.text


def test_a_wiki_without_plain_texts(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    wiki = marvin_tools.session(env={"MARVIN_URL_WIKIPEDIA": "https://wiki.example/w/api.php"})
    page = {"batchcomplete": True, "query": {"pages": [{"pageid": 1, "ns": 0, "title": "Cheese"}]}}
    parsed = {"parse": {"title": "Cheese", "pageid": 1, "text": "<div><p>Cheese is <b>food</b>.</p></div>"}}
    marvin_http.on("GET", "https://wiki.example/w/api.php", json=page, times=1)
    marvin_http.on("GET", "https://wiki.example/w/api.php", json=parsed)
    text = wiki.call("wiki_summary", title="Cheese").text
    assert text.startswith("Cheese\nhttps://wiki.example/w/index.php?title=Cheese\n\nCheese is food.")


# --- Stack Exchange. Source: api.stackexchange.com/docs -------------------------------------------------------------

STACK = "https://api.stackexchange.com/2.3"
FINDING = Operation(
    url=re.escape(f"{STACK}/search/advanced"),
    required={"site": r"[a-z.]+", "order": "desc|asc", "sort": "relevance|votes|creation|activity"},
    optional={"q": ".+", "tagged": r"[^;]+(;[^;]+)*", "pagesize": r"\d+", "key": ".+"},
)
ANSWERING = Operation(
    url=re.escape(STACK) + r"/questions/\d+(/answers)?",
    required={"site": r"[a-z.]+"},
    optional={"filter": "withbody", "sort": "votes", "order": "desc", "pagesize": r"\d+"},
)
QUESTION: dict[str, Any] = {
    "tags": ["python", "asyncio"],
    "owner": {"display_name": "Ada &amp; Co", "user_id": 1},
    "is_answered": True,
    "view_count": 100,
    "accepted_answer_id": 12,
    "answer_count": 7,
    "score": 42,
    "creation_date": 1_700_000_000,
    "question_id": 11,
    "link": "https://stackoverflow.com/questions/11/why",
    "title": "Why is &quot;await&quot; needed?",
    "body": "<p>I wrote</p>\n<pre><code>x = f()\n  y()</code></pre>",
}
QUESTIONS: dict[str, Any] = {"items": [QUESTION], "has_more": False, "quota_max": 300, "quota_remaining": 12}
ANSWERS: dict[str, Any] = {
    "items": [
        {"answer_id": 13, "question_id": 11, "score": 90, "is_accepted": False, "body": "<p>Most liked.</p>"},
        {
            "answer_id": 12,
            "question_id": 11,
            "score": 5,
            "is_accepted": True,
            "body": "<p>The <em>accepted</em> one.</p>",
        },
    ],
    "has_more": True,
    "quota_max": 300,
    "quota_remaining": 280,
}


def test_questions_are_found(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{STACK}/search/advanced", json=QUESTIONS)
    outcome = marvin_tools.call("stack_search", query="await", tagged="python, asyncio", sort="votes")
    assert outcome.text.splitlines() == [
        '1. Why is "await" needed?',
        "   question 11; score 42; 7 answers, one accepted; 2023-11-14; python asyncio",
        "   https://stackoverflow.com/questions/11/why",
        "[Read the answers with stack_answers.]",
        "[Source: Stack Exchange.] 12 requests are left today.",
    ]
    check(marvin_http, FINDING)
    assert marvin_http.requests[0].params["tagged"] == "python;asyncio"


def test_answers_come_with_the_accepted_one_first(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{STACK}/questions/11", json=QUESTIONS)
    marvin_http.on("GET", f"{STACK}/questions/11/answers", json=ANSWERS)
    text = marvin_tools.call("stack_answers", question_id=11, site="https://stackoverflow.com/").text
    assert "x = f()\n  y()" in text
    assert text.index("ACCEPTED, score 5") < text.index("score 90")
    assert "[2 of 7 are shown. The other answers are on the page.]" in text
    check(marvin_http, ANSWERING)


def test_a_question_that_is_not_there(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{STACK}/questions/99", json={**QUESTIONS, "items": []})
    assert "no question 99 on unix" in marvin_tools.call("stack_answers", question_id=99, site="unix").text
    refused = {"error_id": 400, "error_name": "bad_parameter", "error_message": "No site found for name `nix`"}
    marvin_http.on("GET", f"{STACK}/search/advanced", json=refused, status=400)
    assert "No site found" in marvin_tools.call("stack_search", query="x", site="nix").text


def test_the_service_is_left_alone_for_as_long_as_it_asks(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", f"{STACK}/search/advanced", json={**QUESTIONS, "backoff": 3600})
    assert not marvin_tools.call("stack_search", query="one").is_error
    outcome = marvin_tools.session().call("stack_search", query="two")
    assert outcome.is_error
    assert "no further requests now" in outcome.text
    assert len(marvin_http.requests) == 1


def test_an_answer_that_was_kept_asks_for_no_pause(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """Only who asks the service is asked to wait."""
    marvin_http.on("GET", f"{STACK}/search/advanced", json={**QUESTIONS, "backoff": 5})
    marvin_tools.call("stack_search", query="one")
    turns = next(marvin_tools.home.rglob("turns.json"))
    turns.unlink()
    assert not marvin_tools.call("stack_search", query="one").is_error
    assert len(marvin_http.requests) == 1
    assert not turns.exists()


def test_who_asked_too_often_is_told_for_how_long(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    """The service says so in words, with status 400."""
    said = "too many requests from this IP, more requests available in 3600 seconds"
    refusal = {"error_id": 502, "error_name": "throttle_violation", "error_message": said}
    marvin_http.on("GET", f"{STACK}/search/advanced", json=refusal, status=400)
    assert "available in 3600 seconds" in marvin_tools.call("stack_search", query="one").text
    assert "no further requests now" in marvin_tools.call("stack_search", query="two").text
    assert len(marvin_http.requests) == 1


@pytest.mark.parametrize(
    ("site", "name"),
    [
        ("https://stackoverflow.com/questions/11/why", "stackoverflow"),
        ("Stack Overflow", "stackoverflow"),
        ("unix.stackexchange.com", "unix"),
        ("https://ru.stackoverflow.com", "ru.stackoverflow"),
        ("mathoverflow.net", "mathoverflow.net"),
    ],
)
def test_sites_have_several_names(marvin_tools: ToolRunner, marvin_http: HttpReplay, site: str, name: str) -> None:
    marvin_http.on("GET", f"{STACK}/search/advanced", json={**QUESTIONS, "has_more": True})
    text = marvin_tools.call("stack_search", query="x", site=site).text
    assert marvin_http.requests[0].params["site"] == name
    assert "[There are more." in text


@pytest.mark.parametrize("site", ["", "http://[", "a;b", "https://", "x" * 99])
def test_what_is_no_site_is_refused(marvin_tools: ToolRunner, marvin_http: HttpReplay, site: str) -> None:
    outcome = marvin_tools.call("stack_search", query="x", site=site)
    assert outcome.is_error
    assert "is not a Stack Exchange site" in outcome.text
    assert not marvin_http.requests


# --- papers. Source: api.semanticscholar.org/api-docs/graph, info.arxiv.org/help/api/user-manual.html ---------------

SCHOLAR = "https://api.semanticscholar.org/graph/v1/paper/search"
ARXIV = "https://export.arxiv.org/api/query"
RANKING = Operation(
    url=re.escape(SCHOLAR),
    required={"query": ".+"},
    optional={"limit": r"\d+", "fields": r"[\w,.]+", "year": r"\d{4}(-(\d{4})?)?|-\d{4}", "openAccessPdf": ""},
)
PREPRINTS = Operation(
    url=re.escape(ARXIV),
    required={"search_query": ".+"},
    optional={
        "start": r"\d+",
        "max_results": r"\d+",
        "sortBy": "relevance|lastUpdatedDate|submittedDate",
        "sortOrder": "ascending|descending",
    },
)
PAPERS: dict[str, Any] = {
    "total": 1234,
    "offset": 0,
    "next": 1,
    "data": [
        {
            "paperId": "204e3073870fae3d05bcbc2f6a8e263d9b72e776",
            "externalIds": {"DOI": "10.1/x", "ArXiv": "1706.03762"},
            "url": "https://www.semanticscholar.org/paper/204e",
            "title": "Attention is All you Need",
            "abstract": "The dominant models are based on recurrence.",
            "venue": "Neural Information Processing Systems",
            "year": 2017,
            "citationCount": 98765,
            "openAccessPdf": {"url": "https://arxiv.org/pdf/1706.03762", "status": "GREEN"},
            "tldr": None,
            "authors": [
                {"authorId": str(n), "name": name} for n, name in enumerate(["A. V", "N. S", "N. P", "J. U", "L. J"])
            ],
        }
    ],
}
FEED = """<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"
 xmlns="http://www.w3.org/2005/Atom"><id>https://arxiv.org/api/x</id>
<title>arXiv Query: search_query=all:attention</title>
<updated>2026-11-23T00:00:00Z</updated><link href="https://arxiv.org/api/query?x" type="application/atom+xml"/>
<opensearch:itemsPerPage>1</opensearch:itemsPerPage><opensearch:totalResults>321</opensearch:totalResults>
<entry><id>http://arxiv.org/abs/1706.03762v7</id><title>Attention Is All
 You Need</title><updated>2023-08-02T00:41:18Z</updated>
<link href="https://arxiv.org/abs/1706.03762v7" rel="alternate"/>
<link href="https://arxiv.org/pdf/1706.03762v7" rel="related" title="pdf"/>
<summary>The dominant models &lt; others.</summary>
<category term="cs.CL" scheme="http://arxiv.org/schemas/atom"/><published>2017-06-12T17:57:34Z</published>
<arxiv:primary_category term="cs.CL"/><author><name>Ashish Vaswani</name></author>
<author><name>Noam Shazeer</name></author>
</entry></feed>"""
ATOM = raw(FEED.encode(), {"content-type": "application/atom+xml; charset=utf-8"})


def test_papers_are_found(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SCHOLAR, json=PAPERS)
    outcome = marvin_tools.call("search_papers", query="attention", year_min=2017, open_access_only=True)
    assert outcome.text.splitlines() == [
        "1. Attention is All you Need (2017)",
        "   A. V, N. S, N. P, J. U and 1 others; Neural Information Processing Systems; cited 98,765 times; doi:10.1/x",
        "   https://www.semanticscholar.org/paper/204e",
        "   PDF: https://arxiv.org/pdf/1706.03762",
        "   The dominant models are based on recurrence.",
        "",
        "[1 of 1,234 are shown. For other results, use other words.]",
        "[Source: Semantic Scholar.]",
    ]
    check(marvin_http, RANKING)
    assert "openAccessPdf" in marvin_http.requests[0].url


def test_a_key_of_the_user_goes_to_its_service_alone(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SCHOLAR, status=429)
    marvin_http.on("GET", ARXIV, answer=ATOM)
    session = marvin_tools.session(env={"SEMANTIC_SCHOLAR_API_KEY": "the-key"})
    outcome = session.call("search_papers", query="attention")
    assert "Attention Is All You Need (2017-06-12)" in outcome.text
    assert "[Source: arXiv. Failed: Semantic Scholar: " in outcome.text
    assert [request.headers.get("x-api-key") for request in marvin_http.requests] == ["the-key", None]


def test_preprints_are_found(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", ARXIV, answer=ATOM)
    outcome = marvin_tools.call("search_arxiv", query="attention models", sort_by="submittedDate")
    assert outcome.text.splitlines() == [
        "1. Attention Is All You Need (2017-06-12)",
        "   Ashish Vaswani, Noam Shazeer; cs.CL",
        "   https://arxiv.org/abs/1706.03762v7",
        "   PDF: https://arxiv.org/pdf/1706.03762v7",
        "   The dominant models < others.",
        "",
        "[1 of 321 are shown. For other results, use other words.]",
        "[Source: arXiv.]",
    ]
    check(marvin_http, PREPRINTS)
    assert marvin_http.requests[0].params["search_query"] == "all:attention AND all:models"


def test_arxiv_tells_what_it_refuses(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    refusal = FEED.replace("1706.03762v7", "x").replace("https://arxiv.org/abs/x", "https://arxiv.org/api/errors#bad")
    marvin_http.on("GET", ARXIV, answer=raw(refusal.encode(), {"content-type": "application/atom+xml"}))
    outcome = marvin_tools.call("search_arxiv", query="au:x AND")
    assert outcome.is_error
    assert "the query was refused: The dominant models" in outcome.text


@given(
    st.text(max_size=300) | st.text(alphabet='"():*?^~[]{}+-!\\/& ab', max_size=40),
    st.integers(0, 3000),
    st.integers(0, 3000),
)
def test_any_words_make_an_expression_or_are_refused(words: str, since: int, until: int) -> None:
    """No sign of arXiv's language is left of what people write, but in phrases and where they name fields."""
    try:
        found = papers.arxiv_expression(" ".join(words.split()), since, until)
    except ToolError:
        return
    bare = re.sub(r'all:"[^"]*"', "", found.partition(" AND submittedDate:")[0])
    assert not re.search(r'[*?^~\[\]{}\\/&!+"]', bare) or papers.NAMES_FIELDS.search(words)


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        (
            "BERT: Pre-training of Deep Bidirectional Transformers?",
            "all:BERT AND all:Pre-training AND all:of AND all:Deep",
        ),
        ('"graph theory" (applied)', 'all:"graph theory" AND all:applied'),
        ("Attention is all: a study", "all:Attention AND all:is AND all:all AND all:a AND all:study"),
        ("au:hinton AND cat:cs.LG", "au:hinton AND cat:cs.LG"),
        ("量子コンピュータ", "all:量子コンピュータ"),
    ],
)
def test_words_become_an_expression(query: str, sent: str) -> None:
    assert papers.arxiv_expression(query, 0, 0).startswith(sent)


def test_titles_and_years_of_papers(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", SCHOLAR, json=PAPERS)
    marvin_tools.call("search_papers", query="pre-training of transformers", year_max=2_020)
    assert marvin_http.requests[0].params["query"] == "pre training of transformers"
    assert marvin_http.requests[0].params["year"] == "-2020"
    check(marvin_http, RANKING)
    assert "20 is not a year" in marvin_tools.call("search_papers", query="x", year_min=20).text
    assert "-1 is not a year" in marvin_tools.call("search_papers", query="x", year_max=-1).text
    assert "has no words to search for. Give a few words" in marvin_tools.call("search_arxiv", query="???").text


# --- the dictionary and translation. Source: dictionaryapi.dev, mymemory.translated.net/doc/spec.php ----------------

DICTIONARY = "https://api.dictionaryapi.dev/api/v2/entries/en/"
DEFINING = Operation(url=re.escape(DICTIONARY) + r"[^/]+")
WORD: list[dict[str, Any]] = [
    {
        "word": "happy",
        "phonetic": "/ˈhæpi/",
        "phonetics": [{"text": "/ˈhæpi/", "audio": "https://a.example/x.mp3"}, {"audio": ""}],
        "meanings": [
            {
                "partOfSpeech": "adjective",
                "definitions": [
                    {"definition": "Feeling joy.", "synonyms": ["glad"], "antonyms": [], "example": "a happy child"},
                    {"definition": "Lucky.", "synonyms": [], "antonyms": []},
                ],
                "synonyms": ["cheerful", "glad"],
                "antonyms": ["sad"],
            }
        ],
        "license": {"name": "CC BY-SA 3.0", "url": "https://creativecommons.org/licenses/by-sa/3.0"},
        "sourceUrls": ["https://en.wiktionary.org/wiki/happy"],
    }
]
MYMEMORY = "https://api.mymemory.translated.net/get"
TRANSLATING = Operation(
    url=re.escape(MYMEMORY),
    required={"q": ".+", "langpair": r"(autodetect|[a-z]{2,3}(-\w+)?)\|[a-z]{2,3}(-\w+)?"},
    optional={"mt": "[01]", "key": ".+", "de": ".+"},
)
TRANSLATION: dict[str, Any] = {
    "responseData": {"translatedText": "Guten Morgen &amp; hallo", "match": 0.99, "detectedLanguage": "en"},
    "quotaFinished": False,
    "responseDetails": "",
    "responseStatus": 200,
    "responderId": "235",
    "matches": [{"id": "1", "segment": "Good morning", "translation": "Guten Morgen", "quality": "74"}],
}


def test_a_word_is_looked_up(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", DICTIONARY + "happy", json=WORD)
    assert marvin_tools.call("dictionary_lookup", word="happy").text.splitlines() == [
        "happy /ˈhæpi/",
        "adjective:",
        '  1. Feeling joy. ("a happy child")',
        "  2. Lucky.",
        "  synonyms: cheerful, glad",
        "  antonyms: sad",
        "[Source: Free Dictionary.]",
    ]
    assert "synonyms" not in marvin_tools.call("dictionary_lookup", word="happy", include_synonyms=False).text
    check(marvin_http, DEFINING)


@pytest.mark.parametrize("word", ["happy?", "“happy”", "  Happy\n"])
def test_a_word_may_stand_in_marks(marvin_tools: ToolRunner, marvin_http: HttpReplay, word: str) -> None:
    marvin_http.on("GET", DICTIONARY + "happy", json=WORD)
    marvin_http.on("GET", DICTIONARY + "Happy", json=WORD)
    assert not marvin_tools.call("dictionary_lookup", word=word).is_error


def test_an_apostrophe_may_be_any(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", DICTIONARY + "don%27t", json=WORD)
    assert not marvin_tools.call("dictionary_lookup", word="don’t").is_error


@pytest.mark.slow
def test_a_word_of_many_meanings_is_cut_with_a_note(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    many = [{"definition": "d" * 290, "example": "e" * 290} for _ in range(50)]
    entry = {"word": "set", "meanings": [{"partOfSpeech": "noun", "definitions": many}] * 20}
    marvin_http.on("GET", DICTIONARY + "set", json=[entry] * 200)
    text = marvin_tools.call("dictionary_lookup", word="set").text
    assert len(text) < 6_000
    assert "characters omitted" in text


def test_wordnet_answers_where_the_service_does_not(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    if shutil.which("wn") is None:
        pytest.skip("wn is not installed")
    marvin_http.on("GET", DICTIONARY + "happy", status=500)
    text = marvin_tools.call("dictionary_lookup", word="happy").text
    assert "enjoying or showing or marked by joy" in text
    assert "[Source: WordNet, on this machine. Failed: Free Dictionary: " in text


def test_a_word_that_is_none(marvin_tools: ToolRunner, marvin_http: HttpReplay, tmp_path: Path) -> None:
    """I27: nor is one ever taken for an option."""
    bare = marvin_tools.session(env={"PATH": str(tmp_path)})
    missing = {"title": "No Definitions Found", "message": "Sorry pal", "resolution": "Try later"}
    marvin_http.on("GET", DICTIONARY + "xqzt", json=missing, status=404)
    assert "no English word 'xqzt'" in bare.call("dictionary_lookup", word="xqzt").text
    for word in ("-over", "", "9", "../x", "a/b", "x" * 200):
        assert "is not a word" in bare.call("dictionary_lookup", word=word).text


def test_a_text_is_translated(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", MYMEMORY, json=TRANSLATION)
    outcome = marvin_tools.call("translate_text", text="Good morning & hello", target_language="German")
    assert outcome.text == "Guten Morgen & hallo\n[en to de] [Source: MyMemory.]"
    check(marvin_http, TRANSLATING)
    assert marvin_http.requests[0].params["langpair"] == "autodetect|de"


def test_a_long_text_goes_in_parts(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", MYMEMORY, json=TRANSLATION)
    long = " ".join(f"Sentence {number}." for number in range(100))
    outcome = marvin_tools.call("translate_text", text=long, target_language="de", source_language="en")
    assert len(marvin_http.requests) == 3
    assert all(len(request.params["q"].encode()) <= 500 for request in marvin_http.requests)
    assert outcome.text.count("Guten Morgen") == 3


def test_what_was_translated_before_the_end_of_the_quota_is_shown(
    marvin_tools: ToolRunner, marvin_http: HttpReplay
) -> None:
    marvin_http.on("GET", MYMEMORY, json=TRANSLATION, times=2)
    marvin_http.on("GET", MYMEMORY, json={**TRANSLATION, "quotaFinished": True})
    long = " ".join(f"Sentence {number}." for number in range(100))
    outcome = marvin_tools.call("translate_text", text=long, target_language="swahili", source_language="en")
    assert not outcome.is_error
    assert outcome.text.count("Guten Morgen") == 2
    assert re.search(
        r"\[The last \d+ characters were not translated: MyMemory: the daily limit of free translations is reached",
        outcome.text,
    )
    assert marvin_http.requests[0].params["langpair"] == "en|sw"


def test_space_around_parts_is_kept(marvin_tools: ToolRunner, marvin_http: HttpReplay) -> None:
    marvin_http.on("GET", MYMEMORY, json=TRANSLATION)
    text = f"{'a' * 400}.\n\n    {'b' * 400}."
    outcome = marvin_tools.call("translate_text", text=text, target_language="de", source_language="en")
    assert "hallo\n\n" in outcome.text


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ({**TRANSLATION, "quotaFinished": True}, "daily limit"),
        ({**TRANSLATION, "responseData": {"translatedText": "MYMEMORY WARNING: YOU USED ALL ..."}}, "daily limit"),
        (
            {**TRANSLATION, "responseStatus": "403", "responseDetails": "'XX' IS AN INVALID TARGET LANGUAGE"},
            "INVALID TARGET",
        ),
        ({**TRANSLATION, "responseData": {"translatedText": ""}}, "unexpected form"),
    ],
)
def test_a_translation_that_is_refused(
    marvin_tools: ToolRunner, marvin_http: HttpReplay, reply: dict[str, Any], says: str
) -> None:
    marvin_http.on("GET", MYMEMORY, json=reply)
    outcome = marvin_tools.call("translate_text", text="x", target_language="xx")
    assert outcome.is_error
    assert says in outcome.text


@pytest.mark.parametrize("language", ["klingonese language", "d", "", "auto", "de|en", "../x"])
def test_what_is_no_language_is_explained(marvin_tools: ToolRunner, language: str) -> None:
    outcome = marvin_tools.call("translate_text", text="x", target_language=language)
    assert outcome.is_error
    assert "code, " in outcome.text


@given(st.text(alphabet=st.sampled_from("ab .!?\näöü漢字😀" + "\u0301"), max_size=3_000))
def test_parts_are_short_and_together_the_text(text: str) -> None:
    parts = list(translation.parts_of(text))
    assert "".join(parts) == text
    assert all(0 < len(part.encode()) <= 500 for part in parts)


@given(st.text(max_size=200), st.text(max_size=20))
def test_any_pattern_finds_or_is_explained(text: str, pattern: str) -> None:
    found = article_search.search({"pattern": pattern, "most": 5}, text.encode("utf-8", "replace"))
    assert "error" in found or len(found["matches"]) == min(found["total"], 5)


# --- what goes wrong ------------------------------------------------------------------------------------------------


@given(st.data())
def test_replies_with_anything_in_them_are_read_or_refused(data: st.DataObject) -> None:
    """Whatever a service puts in the place of its values, nothing but what the client expects is raised."""
    from marvin_tools_web.knowledge import dictionary, mediawiki, stack_exchange

    readers = [
        (HITS, lambda answer: mediawiki.hits_in(answer, WIKI)),
        (PAGE, lambda answer: mediawiki.article_in(answer, WIKI)),
        (QUESTIONS, stack_exchange.page_in),
        (PAPERS, papers.scholar_papers),
        (WORD, lambda answer: dictionary.entries_in(answer, True)),
        (TRANSLATION, translation.part_in),
    ]
    read_or_refused(data, readers)
