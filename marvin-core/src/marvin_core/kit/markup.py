"""Extracts the text of HTML, in linear time."""

from __future__ import annotations

import html
import re
from functools import cache

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,40})")
_END = re.compile("[>\"']")
_CODE = frozenset({"script", "style"})
_UNSEEN = _CODE | {"noscript", "template", "textarea", "title", "svg", "iframe"}
"""Elements without text content."""
_LINES = frozenset(
    "address article aside body br caption dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5"
    " h6 head header hr html legend li main nav ol option p pre section summary table tbody tfoot thead tr ul"
    " blockquote".split()
)
"""Block elements: each begins and ends a line."""
_PARAGRAPHS = frozenset("blockquote h1 h2 h3 h4 h5 h6 hr ol p pre section table ul".split())
"""Block elements with an empty line before and after."""
_CELLS = frozenset({"td", "th"})
_COMMENT, _DATA = "<!--", "<![CDATA["


def plain_text(markup: str, *, lines: bool = True) -> str:
    """The visible text of HTML, which may be invalid.

    Scripts, styles and comments are left out, entities are resolved, and white space is collapsed, except in
    preformatted text. Any input is accepted: what is not a tag is text. The time is linear in its length.

    Args:
        lines: keep paragraphs, lines, list items and table cells apart; otherwise the result is one line.
    """
    page = _Page(markup)
    page.read()
    return "\n".join(page.lines) if lines else " ".join(" ".join(page.lines).split())


class _Page:
    """Parses HTML from beginning to end; `lines` is the result."""

    def __init__(self, markup: str) -> None:
        self.lines: list[str] = []
        self._markup = markup
        self._place = 0
        self._parts: list[str] = []
        self._is_begun = False
        self._begin = ""
        self._has_gap = False
        self._keeps_space = False
        self._never_ended: set[str] = set()

    def read(self) -> None:
        """Parse all of it."""
        markup = self._markup
        while self._place < len(markup):
            start = markup.find("<", self._place)
            self._add(markup[self._place : start if start >= 0 else len(markup)])
            self._place = start if start >= 0 else len(markup)
            if start >= 0:
                self._read_mark(start)
        self._end_line()

    def _read_mark(self, start: int) -> None:
        """Parse markup that begins with `<`."""
        tag = _TAG.match(self._markup, start)
        if tag is not None:
            self._place = self._behind_tag(tag.end())
            self._take_tag(tag[2].lower(), is_end=bool(tag[1]))
        elif self._markup.startswith(_COMMENT, start):
            self._place = self._behind("-->", start + len(_COMMENT))
        elif self._markup.startswith(_DATA, start):
            self._place = self._behind("]]>", start)
            self._add(self._markup[start + len(_DATA) : self._place].removesuffix("]]>"))
        elif self._markup.startswith(("<!", "<?"), start):
            self._place = self._behind(">", start)
        else:
            self._add("<")
            self._place = start + 1

    def _take_tag(self, name: str, *, is_end: bool) -> None:
        if name in _LINES:
            self._end_line()
            self._has_gap = self._has_gap or name in _PARAGRAPHS
        if name == "pre":
            self._keeps_space = not is_end
        elif name == "li":
            self._begin = "" if is_end else "- "
        elif name in _CELLS and not is_end and self._is_begun:
            self._add(" | ")
        elif name in _UNSEEN and not is_end:
            self._skip(name)

    def _skip(self, name: str) -> None:
        """Skip the content of an element; one without an end tag has none, unless it is a script or a style."""
        if name not in _CODE and (self._markup[self._place - 2 : self._place] == "/>" or name in self._never_ended):
            return
        found = _end_tag(name).search(self._markup, self._place)
        if found is not None:
            self._place = self._behind_tag(found.end())
        elif name in _CODE:
            self._place = len(self._markup)
        else:
            self._never_ended.add(name)  # nor does a later one: what is behind here was searched

    def _behind_tag(self, place: int) -> int:
        """The position after the `>` of a tag, ignoring any in quotes."""
        while (found := _END.search(self._markup, place)) is not None:
            if found[0] == ">":
                return found.end()
            closing = self._markup.find(found[0], found.end())
            # A quote that is not closed is the last of its kind, so that this happens twice at most.
            place = closing + 1 if closing >= 0 else found.end()
        return len(self._markup)

    def _behind(self, mark: str, place: int) -> int:
        found = self._markup.find(mark, place)
        return found + len(mark) if found >= 0 else len(self._markup)

    def _add(self, text: str) -> None:
        self._is_begun = self._is_begun or (bool(text) and not text.isspace())
        if not self._keeps_space:
            self._parts.append(text)
            return
        *ended, rest = text.split("\n")
        for line in ended:
            self._parts.append(line)
            self._end_line(is_empty_told=True)
        self._parts.append(rest)

    def _end_line(self, *, is_empty_told: bool = False) -> None:
        """End the current line. A line without text is dropped, except in preformatted text."""
        text = html.unescape("".join(self._parts))
        self._parts.clear()
        self._is_begun = False
        text = text.rstrip() if self._keeps_space else " ".join(text.split())
        if text:
            if self._has_gap and self.lines:
                self.lines.append("")
            self.lines.append(self._begin + text)
            self._begin, self._has_gap = "", False
        elif is_empty_told:
            self._has_gap = True


@cache
def _end_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE | re.ASCII)
