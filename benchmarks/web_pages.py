"""How long a web page takes to become text, beside bare trafilatura, and replies of services to be read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from benchmarks.table import Row
from marvin_tools_web.knowledge import mediawiki, papers
from marvin_tools_web.media import music
from marvin_tools_web.pages import page_reader

_PAGE_GOAL = 1.5
_REPLY_GOAL = 5.0
_URL = "https://news.example/story"
_WORDS = "The river rose by two metres in one night, and the old bridge held. "
_MBID = "9c9f1380-2516-4fc9-a3e6-f9f61941d090"


def rows(count: int) -> Iterator[Row]:
    """Each is the best of `count`."""
    import trafilatura

    story = "".join(f"<p>{number}: {_WORDS * 6}<a href='/{number}'>more</a></p>" for number in range(600))
    page = f"<html><head><title>Story</title></head><body><nav>Home</nav><article>{story}</article></body></html>"
    body = page.encode()
    bare = _best(
        count,
        lambda: trafilatura.extract(
            page, url=_URL, output_format="markdown", include_links=True, include_tables=True, favor_recall=True
        ),
    )
    own = _best(count, lambda: page_reader.page(body, _URL))
    speeds = [len(body) / 1e6 / seconds for seconds in (own, bare)]
    said = f"{speeds[0]:.1f} MB/s, trafilatura {speeds[1]:.1f} MB/s, a page of {len(body) / 1e3:.0f} kB"
    yield Row("page to text", own / bare, _PAGE_GOAL, "x", said)
    for name, reply, read in _replies():
        text = json.dumps(reply)
        taken = _best(count, lambda text=text, read=read: read(json.loads(text)))  # type: ignore[misc]
        yield Row(f"reply of {name}", taken * 1e3, _REPLY_GOAL, "ms", f"{len(text) / 1e3:.0f} kB")


def _replies() -> Iterator[tuple[str, object, Callable[[object], object]]]:
    """Replies as large as services send them, and what reads them."""
    hits = [{"title": f"Bridge {n}", "snippet": _WORDS * 5, "wordcount": n} for n in range(10)]
    wiki = "https://en.wikipedia.org/w/api.php"
    yield "Wikipedia", {"query": {"search": hits}}, lambda answer: mediawiki.hits_in(answer, wiki)
    paper = {"title": "Bridges", "abstract": _WORDS * 30, "year": 2026, "authors": [{"name": "A. B."}] * 40}
    yield "Semantic Scholar", {"total": 20, "data": [paper] * 20}, papers.scholar_papers
    groups = [{"id": _MBID, "title": f"Album {n}", "first-release-date": "2003"} for n in range(100)]
    artist = {"id": _MBID, "name": "Muse", "release-groups": groups}
    yield "MusicBrainz", artist, lambda answer: music.whole_in("artist", answer)


def _best(count: int, work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)
