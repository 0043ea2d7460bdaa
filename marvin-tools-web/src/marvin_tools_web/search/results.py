"""Results of searches, and which of them are the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from marvin_core import Record

_TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|dclid|msclkid|yclid|mc_[ce]id|igshid|ref|ref_src|cmpid|ocid|guccounter|amp", re.IGNORECASE
)
"""Parameters that say where a reader comes from, and nothing of the page."""
_SUFFIX = re.compile(r"\s+[-|–—]\s+[^-|–—]{2,40}$")
_WORDS = re.compile(r"\w+")


class Result(Record):
    """A page that was found. `date` is as in 2026-11-23T14:15:00+00:00, or empty."""

    title: str
    url: str
    snippet: str = ""
    source: str = ""
    date: str = ""


def canonical(url: str) -> str:
    """An address by which the same page is known, however it is linked."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removeprefix("www.").removeprefix("m."), parts.port
    except ValueError:
        return url
    given = parse_qsl(parts.query, keep_blank_values=True)  # some sites have nothing but a name: /story?4711
    kept = sorted((name, value) for name, value in given if not _TRACKING.fullmatch(name))
    path = parts.path.rstrip("/")
    for ending in ("/amp", "/index.html", "/index.php"):
        path = path.removesuffix(ending)
    shown_port = f":{port}" if port not in (None, 80, 443) else ""
    # The pages of some sites have one address but for that: https://a.example/#!/story and https://a.example/#/story
    place = f"#{parts.fragment}" if parts.fragment.startswith(("!", "/")) else ""
    return f"{host}{shown_port}{path}{f'?{urlencode(kept)}' if kept else ''}{place}"


def unwrapped(url: str) -> str:
    """The address that a link of DuckDuckGo leads to by way of its own server, as ddgs gives it: decoded."""
    if url.startswith("//"):
        url = f"https:{url}"
    elif url.startswith("/l/?"):
        url = f"https://duckduckgo.com{url}"
    head, wrapped, target = url.partition("uddg=")
    if not wrapped or not re.match(r"https?://(?:[\w-]+\.)?duckduckgo\.com/l/\?", head):
        return url
    # Its own parameters come after the address, whose own are not told apart from them once they are decoded.
    target = target.rpartition("&rut=")[0] or target
    return target if "://" in target else unquote(target)


def title_key(title: str) -> str:
    """The words of a title, without the name of the paper at its end."""
    words = _WORDS.findall(_SUFFIX.sub("", title).casefold())
    return " ".join(words) if len(words) > 3 else ""


def without_duplicates(results: Iterable[Result], *, by_title: bool = True) -> list[Result]:
    """The results in their order, each page once; of two the one that says more comes.

    Args:
        by_title: each story once as well, which papers take from each other under one title. Of other pages many have
            the same title, and are others.
    """
    kept: list[Result] = []
    places: dict[str, int] = {}
    for result in results:
        keys = [key for key in (canonical(result.url), title_key(result.title) if by_title else "") if key]
        place = next((places[key] for key in keys if key in places), None)
        if place is None:
            place = len(kept)
            kept.append(result)
        else:
            kept[place] = _fuller(kept[place], result)
        for key in keys:
            places.setdefault(key, place)
    return kept


def _fuller(one: Result, other: Result) -> Result:
    return one.replace(
        snippet=max(one.snippet, other.snippet, key=len), date=one.date or other.date, source=one.source or other.source
    )


def texts(results: Sequence[Result]) -> list[str]:
    """The results as numbered lists have them."""
    return ["\n".join(filter(None, (_head(result), result.url, result.snippet))) for result in results]


def _head(result: Result) -> str:
    about = ", ".join(filter(None, (result.source, result.date[:16].replace("T", " "))))
    return f"{result.title or '(no title)'}{f' ({about})' if about else ''}"
