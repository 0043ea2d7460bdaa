"""The links of a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin

from marvin_core import Record

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser

_MOST = 2_000
_TEXT = 200
_ADDRESS = 2_000


class PageLink(Record):
    """A link: its target and its text."""

    text: str
    url: str


def links_in(tree: LexborHTMLParser, url: str, selector: str = "a[href]") -> Iterator[PageLink]:
    """The web links of a page, each URL once, without links to the page itself.

    Args:
        url: the URL of the page, to resolve relative links.
    """
    base = tree.css_first("base[href]")
    here = _joined(url, (base.attributes.get("href") or "") if base is not None else "") or url
    seen = {urldefrag(url)[0]}
    for node in tree.css(selector)[:_MOST]:
        address = urldefrag(_joined(here, (node.attributes.get("href") or "").strip()))[0]
        if address in seen or len(address) > _ADDRESS or not address.startswith(("http://", "https://")):
            continue
        seen.add(address)
        text = " ".join(node.text(deep=True, separator=" ")[: _TEXT * 4].split())[:_TEXT]
        yield PageLink(text=text or (node.attributes.get("aria-label") or "")[:_TEXT] or "(no text)", url=address)


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # such as brackets that are not an IPv6 address
        return ""
