"""Results of searches, and the detection of duplicates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from marvin_core import Record

_TRACKING = re.compile(
    r"utm_\w+|fbclid|gclid|dclid|msclkid|yclid|mc_[ce]id|igshid|ref|ref_src|cmpid|ocid|guccounter|amp", re.IGNORECASE
)
"""Tracking parameters, which do not change the page."""
_SUFFIX = re.compile(r"\s+[-|–—]\s+[^-|–—]{2,40}$")
_WORDS = re.compile(r"\w+")


class Result(Record):
    """A result. `date` is as in 2026-11-23T14:15:00+00:00, or empty."""

    title: str
    url: str
    snippet: str = ""
    source: str = ""
    date: str = ""


def canonical(url: str) -> str:
    """A canonical URL, the same for all URLs of a page."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removeprefix("www.").removeprefix("m."), parts.port
    except ValueError:
        return url
    given = parse_qsl(parts.query, keep_blank_values=True)  # some sites use a bare name: /story?4711
    kept = sorted((name, value) for name, value in given if not _TRACKING.fullmatch(name))
    path = parts.path.rstrip("/")
    for ending in ("/amp", "/index.html", "/index.php"):
        path = path.removesuffix(ending)
    shown_port = f":{port}" if port not in (None, 80, 443) else ""
    # Some sites use paths in fragments: https://a.example/#!/story and https://a.example/#/story
    place = f"#{parts.fragment}" if parts.fragment.startswith(("!", "/")) else ""
    return f"{host}{shown_port}{path}{f'?{urlencode(kept)}' if kept else ''}{place}"


def unwrapped(url: str) -> str:
    """The target of a DuckDuckGo redirect as ddgs gives it: decoded."""
    if url.startswith("//"):
        url = f"https:{url}"
    elif url.startswith("/l/?"):
        url = f"https://duckduckgo.com{url}"
    head, wrapped, target = url.partition("uddg=")
    if not wrapped or not re.match(r"https?://(?:[\w-]+\.)?duckduckgo\.com/l/\?", head):
        return url
    # DuckDuckGo's own parameters follow the target, and cannot be told from the target's parameters once decoded.
    target = target.rpartition("&rut=")[0] or target
    return target if "://" in target else unquote(target)


def title_key(title: str) -> str:
    """The words of a title, without the name of the newspaper at its end."""
    words = _WORDS.findall(_SUFFIX.sub("", title).casefold())
    return " ".join(words) if len(words) > 3 else ""


def without_duplicates(results: Iterable[Result], *, by_title: bool = True) -> list[Result]:
    """The results in order, without duplicates; of two the one with the longer text is kept.

    Args:
        by_title: also drop results with the same title, as newspapers reprint stories. Other pages often share
            a title without being duplicates.
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
    """The results as texts for a numbered list."""
    return ["\n".join(filter(None, (_head(result), result.url, result.snippet))) for result in results]


def _head(result: Result) -> str:
    about = ", ".join(filter(None, (result.source, result.date[:16].replace("T", " "))))
    return f"{result.title or '(no title)'}{f' ({about})' if about else ''}"
