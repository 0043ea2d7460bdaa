"""The requests to MediaWiki's action API, and its answers.

Source: mediawiki.org/wiki/API:Main_page, API:Search, Extension:TextExtracts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from marvin_core import Record, RequestFailed, ToolContext, plain_text

from ..services import values
from ..services.catalog import WIKIPEDIA, Service
from ..services.client import ServiceClient
from ..services.visible_text import seen
from ..settings import WebSettings

_TEXT = 3_000_000
_SNIPPET = 400
_TITLE = 300
_LARGEST = 10_000_000


class Hit(Record):
    """An article in the results of a search. `words` is its length."""

    title: str
    url: str
    snippet: str
    words: int | None


class Article(Record):
    """An article as plain text. `sections` are its headings; `title` is the one after redirects."""

    title: str
    url: str
    text: str
    is_disambiguation: bool = False


class Hits(Record):
    """Results of a search: articles, their total number, and a suggested query."""

    hits: tuple[Hit, ...]
    total: int | None
    suggestion: str


def wiki(context: ToolContext) -> Service:
    """The wiki to use: Wikipedia, or the one that the user configured, named by its host."""
    try:
        host = urlsplit(context.settings(WebSettings).services.wikipedia).hostname
    except ValueError:  # the request will report what is wrong
        host = None
    return WIKIPEDIA.replace(title=host) if host else WIKIPEDIA


async def search(context: ToolContext, query: str, most: int) -> Hits:
    """The articles that fit a query best.

    Raises:
        RequestFailed: there is no valid answer.
    """
    params: dict[str, str | float | None] = {
        "list": "search",
        "srsearch": query,
        "srlimit": most,
        "srprop": "snippet|wordcount",
        "srinfo": "totalhits|suggestion",
        "meta": "siteinfo",
        "siprop": "general",
    }
    client = ServiceClient(context, wiki(context))
    return await client.get_json("", lambda answer: hits_in(answer, client.url), params=_asked(params))


def _asked(params: Mapping[str, str | float | None]) -> dict[str, str | float | None]:
    return {"action": "query", "format": "json", "formatversion": 2, "utf8": 1, **params}


def hits_in(answer: Any, api: str) -> Hits:
    _refuse_errors(answer)
    found = values.required(answer, "query", "search")
    hits = tuple(_hit(one, answer, api) for one in values.objects(found))
    return Hits(
        hits=tuple(hit for hit in hits if hit.title),
        total=values.whole(answer, "query", "searchinfo", "totalhits"),
        suggestion=values.plain(answer, "query", "searchinfo", "suggestion"),
    )


def _hit(one: Mapping[str, Any], answer: Any, api: str) -> Hit:
    title = values.text(one, "title", limit=_TITLE)
    snippet = values.plain(one, "snippet", limit=_SNIPPET)
    return Hit(title=title, url=_address(answer, api, title), snippet=snippet, words=values.whole(one, "wordcount"))


def _address(answer: Any, api: str, title: str) -> str:
    """The URL of an article: the one that the site gives, else its path beside api.php."""
    name = quote(title.replace(" ", "_"), safe="/:(),!")
    server = values.text(answer, "query", "general", "server")
    path = values.text(answer, "query", "general", "articlepath")
    if server.startswith("//"):
        server = f"{urlsplit(api).scheme}:{server}"
    if server.startswith(("https://", "http://")) and "$1" in path:
        return f"{server}{path.replace('$1', name)}"
    return f"{api.rpartition('/')[0]}/index.php?title={name}"


def _refuse_errors(answer: Any) -> None:
    said = values.text(answer, "error", "info") or values.text(answer, "error", "code")
    if said:
        raise RequestFailed(f"it refused this: {said}. Change the request.")


async def article(context: ToolContext, title: str, *, lead: bool) -> Article | None:
    """An article, or its lead section; None if there is none with that title.

    Raises:
        RequestFailed: there is no valid answer.
    """
    params: dict[str, str | float | None] = {
        "prop": "extracts|info|pageprops",
        # A bar separates titles unless the list starts with this sign, which no title contains.
        "titles": f"\x1f{title}" if "|" in title else title,
        "redirects": 1,
        "inprop": "url",
        "ppprop": "disambiguation",
        "explaintext": 1,
        "exsectionformat": "wiki",
        "exintro": 1 if lead else None,
    }
    client = ServiceClient(context, wiki(context))
    found = await client.get_json(
        "", lambda answer: article_in(answer, client.url), params=_asked(params), largest=_LARGEST
    )
    if found is None or found.text:
        return found
    # The extension that makes plain text is missing, or has no text of this article.
    text = await _parsed(client, found.title, lead=lead)
    return found.replace(text=text)


def article_in(answer: Any, api: str) -> Article | None:
    _refuse_errors(answer)
    # A title of another wiki, such as de:Berlin, or an empty one, such as #.
    is_none = any(values.objects(answer, "query", name) for name in ("interwiki", "normalized"))
    if is_none and not values.inner(answer, "query", "pages"):
        return None
    pages = values.required(answer, "query", "pages")
    page = next(iter(values.objects(pages)), None)
    if page is None or page.get("missing") or page.get("invalid") or page.get("special"):
        return None
    title = values.text(page, "title", limit=_TITLE)
    if not title:
        raise ValueError("an article without a title")
    extract = page.get("extract")
    return Article(
        title=title,
        url=values.address(page, "fullurl") or _address(answer, api, title),
        text=seen(extract[:_TEXT]).strip() if isinstance(extract, str) else "",
        is_disambiguation="disambiguation" in (values.inner(page, "pageprops") or {}),
    )


async def _parsed(client: ServiceClient, title: str, *, lead: bool) -> str:
    params: dict[str, str | float | None] = {
        "action": "parse",
        "page": title,
        "prop": "text",
        "section": 0 if lead else None,
        "disableeditsection": 1,
        "disabletoc": 1,
    }
    return await client.get_json("", _parsed_text, params=_asked(params), largest=_LARGEST)


def _parsed_text(answer: Any) -> str:
    _refuse_errors(answer)
    markup = values.inner(answer, "parse", "text")
    if not isinstance(markup, str):
        raise ValueError("there is no text")
    return seen(plain_text(markup)[:_TEXT])
