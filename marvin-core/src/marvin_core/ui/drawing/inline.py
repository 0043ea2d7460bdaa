"""Inline formatting of a block: bold, italic, code and links as spans of text with roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from ...util.terminal_text import disarm
from ..rendering import Measure, Paint, Role, before_joined

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Span: TypeAlias = tuple[tuple[Role, ...], str]
"""Some text, and its style."""
_SIGNS = frozenset("*_`[<~&\\!")
"""Text without any of these characters is plain."""
_ROLES: dict[str, Role] = {"strong": "bold", "em": "italic", "s": "struck", "link": "link"}


@cache
def _parser() -> MarkdownIt:
    """Imported when the first answer is drawn, since the start does not need it."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("strikethrough")


def prepare() -> None:
    """Import the parser; called in a thread while waiting for the first answer."""
    _parser()


def spans(text: str, base: tuple[Role, ...] = ()) -> list[Span]:
    """The text in spans, without Markdown signs; line breaks stay. Addresses of links follow in brackets."""
    if _SIGNS.isdisjoint(text):
        return [(base, text)]
    found: list[Span] = []
    for token in _parser().parseInline(text):
        found += _walk(token.children or (), base)
    # Entities and percent signs may have become control characters.
    return [(roles, safe) for roles, part in found if (safe := disarm(part).replace("\r", "").replace("\t", " "))]


def _walk(tokens: Sequence[Token], base: tuple[Role, ...]) -> Iterator[Span]:
    roles, links = list(base), list[tuple[str, str]]()
    for token in tokens:
        kind, _, end = token.type.rpartition("_")
        if end == "open" and kind in _ROLES:
            roles.append(_ROLES[kind])
            if kind == "link":
                links.append((str(token.attrs.get("href", "")), ""))
        elif end == "close" and kind in _ROLES:
            roles.remove(_ROLES[kind])
            if kind == "link" and links:
                address, text = links.pop()
                if address not in (text, f"mailto:{text}") and address.rstrip("/") != text.rstrip("/"):
                    yield tuple(roles), " ("
                    yield (*roles, "link"), address
                    yield tuple(roles), ")"
        elif text := _text(token):
            links = [(address, before + text) for address, before in links]
            yield (*roles, "code") if token.type == "code_inline" else tuple(roles), text


def _text(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type == "image":
        address = str(token.attrs.get("src", ""))
        return f"[picture: {', '.join(filter(None, (token.content, address)))}]"
    return token.content.replace("\n", " ")  # an entity may represent a line break


def lines_of(found: Sequence[Span]) -> list[list[Span]]:
    """The spans, line by line."""
    lines: list[list[Span]] = [[]]
    for roles, text in found:
        first, *more = text.split("\n")
        lines[-1].append((roles, first))
        lines += [[(roles, line)] for line in more]
    return lines


def painted(found: Sequence[Span], paint: Paint) -> str:
    """The spans with their colours."""
    together = groupby(found, key=lambda span: span[0])
    return "".join(paint.styled(roles, "".join(text for _, text in parts)) for roles, parts in together)


def width_of(found: Sequence[Span], measure: Measure) -> int:
    """The number of columns of the spans."""
    return sum(measure(text) for _, text in found)


def folded(found: Sequence[Span], width: int, measure: Measure) -> list[list[Span]]:
    """The spans in rows of this width, wrapped after spaces if possible. Only those spaces are dropped."""
    rows: list[list[Span]] = [[]]
    used = 0
    for roles, word in _words(found):
        columns = measure(word)
        if used and used + measure(word.rstrip(" ")) > width:
            rows.append([])
            used = 0
        while columns > width and measure(word.rstrip(" ")) > width:
            place = _fitting(word, width - used, measure)
            rows[-1].append((roles, word[:place]))
            rows.append([])
            word, used = word[place:], 0
            columns = measure(word)
        rows[-1].append((roles, word))
        used += columns
    return [_stripped(row) for row in rows]


def _words(found: Sequence[Span]) -> Iterator[Span]:
    """The spans, split after each space."""
    for roles, text in found:
        begin = 0
        while begin < len(text):
            end = text.find(" ", begin) + 1 or len(text)
            yield roles, text[begin:end]
            begin = end


def _fitting(word: str, room: int, measure: Measure) -> int:
    """The number of characters that fit; at least one, to guarantee termination."""
    used = 0
    for place, character in enumerate(word):
        used += measure(character)
        if used > room:
            return max(1, before_joined(word, place, measure))
    return len(word)


def _stripped(row: list[Span]) -> list[Span]:
    """A row without trailing spaces."""
    while row and not row[-1][1].strip(" "):
        row.pop()
    if row:
        roles, text = row[-1]
        row[-1] = (roles, text.rstrip(" "))
    return row
