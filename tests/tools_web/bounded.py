"""How much memory and time each parser takes for what was made to hurt it: `python -m tests.tools_web.bounded`.

Each parser is tried in a process of its own, forked from this one after a good reply was read, so that what its
libraries need is not counted. Standard output is JSON: for each parser the megabytes by which its process grew, and how
long the slowest reply took, in units of a calculation that takes a second on a machine of 2020.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from marvin_core import Fetched
from marvin_tools_web.knowledge import article_search
from marvin_tools_web.pages import feed_reader, page_reader, rendered
from marvin_tools_web.search import page_reader as search_page
from tests.tools_web import test_browsing, test_feeds, test_knowledge, test_scraping, test_search
from tests.tools_web.test_parsers import PARSERS, READABLE, changed, places_in

EXAMPLES = settings(
    max_examples=10,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
URL = "https://a.example/x"
LARGEST = 1_000_000
"""Bytes of a reply in JSON: more than services send by far."""
MARKED = 100_000
"""Characters of a page or feed, nothing of which is text. What is larger is ended with the process that reads it."""
PIECES = st.sampled_from(
    [
        *(
            "<a href='",
            "<div>",
            "<p>x",
            "<b><i>",
            "<!--",
            "<![CDATA[",
            "<table><tr><td>",
            "<a b=c ",
            "</",
            "<svg>",
            "<",
        ),
        *(
            "&amp;",
            "&#x10ffff;",
            "&",
            "\x00",
            "\x1b[",
            "\u202e",
            "é",
            "😀",
            " ",
            "\n",
            "9",
            "(",
            "[x](",
            "<item>",
            "$ 1",
        ),
        *(
            "<h2><a class='result__a' href='//a.example'>",
            "<li><h2><a class=title href=/>",
            "%PDF-1.4 1 0 obj<<",
            "]]>",
        ),
    ]
)
TEXTS = st.builds(
    lambda pieces, times: ("".join(pieces) * times)[:LARGEST], st.lists(PIECES, max_size=4), st.integers(0, 99_999)
)
SMALL = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20)


def spoiled(good: Any) -> st.SearchStrategy[bytes]:
    """A reply in JSON with one value that is something else, or very much of what it was."""
    nested: Any = []
    for _ in range(90):
        nested = [nested]

    def at(path: tuple[Any, ...]) -> st.SearchStrategy[Any]:
        there = good
        for step in path:
            there = there[step]
        many = st.integers(0, 10_000).map(lambda count: (there * count)[:10_000] if isinstance(there, list) else there)
        keys = st.integers(0, 10_000).map(lambda count: {str(key): there for key in range(count)})
        other = SMALL | TEXTS | many | keys | st.just(nested)
        return other.map(lambda value: changed(good, path, value))

    return st.sampled_from(places_in(good)).flatmap(at).map(lambda reply: json.dumps(reply).encode()[:LARGEST])


def marked(good: str) -> st.SearchStrategy[bytes]:
    """A page or feed with very much of something in it, somewhere."""
    return st.builds(
        lambda place, text: (good[:place] + text[:MARKED] + good[place:]).encode("utf-8", "replace"),
        st.integers(0, len(good)),
        TEXTS,
    )


def _of_json(read: Callable[[Any], Any]) -> Callable[[bytes], Any]:
    def parse(content: bytes) -> Any:
        return read(Fetched(url=URL, status=200, kind="application/json", headers={}, content=content).json())

    return parse


def _document(body: bytes) -> Any:
    return page_reader.read({"kind": "pdf", "url": URL}, body)


Parser = tuple[Callable[[bytes], Any], bytes, "st.SearchStrategy[bytes]"]


def parsers() -> Mapping[str, Parser]:
    """Each parser, a good reply, and what is made to hurt it."""
    found: dict[str, Parser] = {}
    for name, (read, good) in PARSERS.items():
        found[name] = (_of_json(read), json.dumps(good).encode(), spoiled(good))
    pdf = test_browsing.pdf("First page", "Second page").decode("latin-1")
    duck, mojeek = (answer.body.decode() for answer in (test_search.DUCK_REPLY, test_search.MOJEEK_REPLY))
    asked = {"url": URL, "extract": "menu", "selector": ""}
    texts: Mapping[str, tuple[Callable[[bytes], Any], str]] = {
        "a page": (lambda body: page_reader.page(body, URL), test_browsing.STORY),
        "a page of a browser": (lambda body: rendered.taken(asked, body), test_scraping.PAGE),
        "its links": (lambda body: rendered.taken({**asked, "extract": "links"}, body), test_scraping.PAGE),
        "a feed": (lambda body: feed_reader.read(URL, "text/xml", body, 20), test_feeds.rss().decode()),
        "an Atom feed": (lambda body: feed_reader.read(URL, "text/xml", body, 20), test_knowledge.FEED),
        "DuckDuckGo": (lambda body: search_page.read("duckduckgo", body.decode()), duck),
        "Mojeek": (lambda body: search_page.read("mojeek", body.decode()), mojeek),
        "an article": (lambda body: article_search.search({"pattern": "x", "most": 9}, body), test_knowledge.TEXT),
    }
    for name, (parse, text) in texts.items():
        found[name] = (parse, text.encode(), marked(text))
    cut = st.builds(
        lambda text, place, end: (text[:place] + text[end:]).encode("latin-1"),
        st.just(pdf),
        *[st.integers(0, len(pdf))] * 2,
    )
    found["a document"] = (_document, pdf.encode("latin-1"), cut | marked(pdf))
    return found


def slowest(parse: Callable[[bytes], Any], hostile: st.SearchStrategy[bytes]) -> float:
    """Seconds of a processor for the slowest reply."""
    taken = [0.0]

    @EXAMPLES
    @given(hostile)
    def each(body: bytes) -> None:
        began = time.process_time()
        try:
            parse(body)
        except READABLE:
            pass
        taken.append(time.process_time() - began)

    each()
    return max(taken)


def unit() -> float:
    """Seconds of a processor for what takes about one on a machine of 2020."""
    began = time.process_time()
    for _ in range(100):
        sum(len(f"<p>{number}</p>".replace("p", "q")) for number in range(100_000))
    return time.process_time() - began


def measured(parser: Parser, second: float) -> dict[str, float]:
    """What a parser takes, in a process of its own; an error where that does not come to its end."""
    parse, good, hostile = parser
    parse(good)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        begun = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        seconds = slowest(parse, hostile)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - begun
        os.write(writing, json.dumps({"megabytes": grown / 1e6, "seconds": seconds / second}).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    found: dict[str, float] = json.loads(text) if text else {"ended with": status}
    return found


if __name__ == "__main__":
    chosen, taken = sys.argv[1:], unit()
    tried = {name: parser for name, parser in parsers().items() if name in chosen or not chosen}
    print(json.dumps({name: measured(parser, taken) for name, parser in tried.items()}))
