"""Extracts what a call wants from a rendered page: `python -m marvin_tools_web.pages.rendered`.

The request has `url`, `extract` and `selector`; the answer has `text`, or `error`. The body is the page in UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from marvin_core import one_line, plain_text

from ..child_process import serve
from .links import links_in
from .nesting import is_too_deep

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_TEXT = 2_000_000
_PARTS = 500
_SELECTOR = 500
_NAME = 120
"""Characters of a line that can be the name of a dish or a section."""
_PRICE = re.compile(
    r"(?:[$€£¥₹₩]|\b(?:USD|EUR|GBP|CHF|Fr\.|kr|zł|Rs\.?))\s{0,2}\d{1,5}(?:[.,]\d{1,2})?"
    r"|(?<![\d.,])\d{1,5}(?:[.,]\d{2})?\s{0,2}(?:[$€£¥₹₩]|(?:USD|EUR|GBP|CHF|kr|zł)\b)"
    r"|(?<![\d.,:/])\d{1,3}[.,]\d{2}(?![\d.,:/%])"
)


def taken(asked: Mapping[str, Any], body: bytes) -> dict[str, str]:
    """The requested part of the page, as text."""
    from selectolax.lexbor import LexborHTMLParser, SelectolaxError

    markup = body.decode("utf-8", "replace")
    selector = str(asked["selector"]).strip()
    if is_too_deep(markup):
        return _as_it_stands(markup, is_enough=asked["extract"] == "text" and not selector)
    tree = LexborHTMLParser(markup)
    parts: Sequence[LexborNode] | None = None
    if selector:
        try:
            parts = _outermost(tree.css(selector[:_SELECTOR]))[:_PARTS]
        except (SelectolaxError, ValueError) as error:
            why = one_line(str(error), 100)
            return {"error": f"{selector[:80]!r} is not a CSS selector ({why}). Use one such as main .price, or none."}
        if not parts:
            return {
                "error": f"Nothing on the page matches {selector[:80]!r}. Leave css_selector out to see the whole page."
            }
        markup = "\n".join(f"<div>{part.html}</div>" for part in parts)
    if asked["extract"] == "links":
        return {"text": _links(LexborHTMLParser(_with_base(tree, markup)) if selector else tree, str(asked["url"]))}
    if asked["extract"] == "menu" and not selector:
        tree.strip_tags(["nav", "footer"], recursive=True)
        markup = tree.html or ""
    text = plain_text(markup)
    if asked["extract"] == "menu":
        text = "\n".join(menu(text.splitlines())) or f"[No prices were found. The text of the page:]\n\n{text}"
    return {"text": text[:_TEXT]}


def _as_it_stands(markup: str, *, is_enough: bool) -> dict[str, str]:
    """The text of a page that cannot be parsed."""
    if is_enough:
        return {"text": plain_text(markup)[:_TEXT]}
    return {"error": "The page is nested too deeply to be parsed. Read its text, without css_selector."}


def _outermost(nodes: Sequence[LexborNode]) -> list[LexborNode]:
    """The nodes that are not inside another one of them, so that nothing is shown twice, in document order."""
    seen: set[int] = set()
    found = []
    for node in nodes:
        seen.add(node.mem_id)
        above = node.parent
        while above is not None and above.mem_id not in seen:
            above = above.parent
        if above is None:
            found.append(node)
    return found


def _with_base(tree: LexborHTMLParser, markup: str) -> str:
    base = tree.css_first("base[href]")
    return f"{base.html if base is not None else ''}{markup}"


def _links(tree: LexborHTMLParser, url: str) -> str:
    lines = [f"{number}. {link.text}\n   {link.url}" for number, link in enumerate(links_in(tree, url), 1)]
    return "\n".join(lines)[:_TEXT] or "[There are no links.]"


def menu(lines: Sequence[str]) -> Iterator[str]:
    """The lines that name a dish with its price, and the headings above them.

    A price on a line of its own belongs to the nearest line above without one, with the lines in between.
    """
    waiting: list[str] = []
    for line in map(str.strip, lines):
        if not line:
            continue
        price = _PRICE.search(line)
        if price is None:
            waiting = [*waiting[-2:], line]
            continue
        named = re.sub(r"[\W\d_]", "", _PRICE.sub("", line))
        shown = [one for one in waiting if len(one) <= _NAME]
        if named:
            yield from (f"\n{one}" for one in shown[-1:] if one.isupper() or len(one) < _NAME // 4)
            yield line
        else:
            yield f"{' - '.join(shown) or '(no name)'}: {line}"
        waiting = []


if __name__ == "__main__":
    serve(taken)
