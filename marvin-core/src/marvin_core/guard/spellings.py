"""The encodings of a secret in a text: plain, in JSON, URLs, HTML, base64 and hexadecimal digits.

Line breaks, indentation, colours and escapes of single characters that a program adds are ignored.

The time depends on the size of a text and not on the number of secrets. The first overlapping groups of characters of
each spelling are indexed, and the search steps through a text so that it cannot skip all of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeAlias

SHORTEST = 8
"""The minimum length of a secret, in characters. Shorter strings occur in too many texts by chance."""
_GROUP = 4
_STEP = SHORTEST - _GROUP + 1
_BREAKS = re.compile(r"(?:\\?[\r\n]|\\{1,4}[rn])[ \t]*|\x1b\[[0-9;]{0,20}[mK]")
"""Insertions by programs in a long value: line breaks with indentation, the same in JSON, and colours of matches."""
_LINE = r"[A-Za-z0-9+/=_-]{20,}"
"""A line of a private key. Each line is a secret of its own, because programs show numbered lines and diffs."""
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
SIGNS = re.compile(r"[\r\n\\\x1b%&]")
"""Each encoded text contains at least one of these characters."""
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}
_LAST = 0x10FFFF

PIECE = 100_000
"""The number of characters that are searched at a time. The interpreter lock is held meanwhile, even in a thread."""
_HELD = 16
"""The maximum length of a secret with insertions, in lengths of the longest secret."""

Span: TypeAlias = tuple[int, int]


@cache  # most runs need neither this nor the next one, and they take long to compile
def _escapes() -> re.Pattern[str]:
    """`_BREAKS`, and escaped single characters; each program escapes different ones."""
    return re.compile(
        rf"{_BREAKS.pattern}|\\{{1,4}}u([0-9A-Fa-f]{{4}})|%(?:25){{0,3}}([0-9A-Fa-f]{{2}})"
        r"|&#(?:([0-9]{1,7})|[xX]([0-9A-Fa-f]{1,6}));|&(amp|lt|gt|quot|apos);|\\{1,4}(?=[ -/:-@[\]-`{-~])"
    )


@cache
def unfinished() -> re.Pattern[str]:
    """Text that may become one of them with the next piece."""
    return re.compile(
        r"(?:\\{1,4}(?:u[0-9A-Fa-f]{0,3})?|\\{0,4}(?:%[0-9A-Fa-f]{0,7}|&#?[0-9A-Za-z]{0,8}|\x1b(?:\[[0-9;]{0,20})?))\Z"
    )


class Spellings:
    """All spellings of the secrets, found in one pass over a text."""

    def __init__(self, values: Sequence[str]) -> None:
        found = {_BREAKS.sub("", text) for value in values if len(value) >= SHORTEST for text in _spellings(value)}
        self.texts = frozenset(text for text in found if len(text) >= SHORTEST)
        self._groups: dict[str, list[tuple[int, str]]] = {}
        for text in self.texts:
            for offset in range(_STEP):
                self._groups.setdefault(text[offset : offset + _GROUP], []).append((offset, text))
        self.beginnings = frozenset(text[:length] for text in self.texts for length in range(1, SHORTEST))
        self.longest = max(map(len, self.texts), default=0)
        self.margin = _HELD * self.longest
        """The maximum length in characters. A longer text with insertions does not count as a secret."""

    def candidates(self, text: str) -> Iterator[tuple[int, str]]:
        """The candidates: positions at which a spelling may begin, each with the spelling."""
        groups = self._groups
        places = range(0, len(text) - _GROUP + 1, _STEP)
        for place in [place for place in places if text[place : place + _GROUP] in groups]:
            for offset, spelling in groups[text[place : place + _GROUP]]:
                if place >= offset:
                    yield place - offset, spelling

    def spans(self, text: str) -> list[Span]:
        """The ranges of a text that are secrets, in order and without overlaps."""
        if len(text) < SHORTEST or not self.texts:
            return []
        size = max(PIECE, 4 * self.margin)
        found: set[Span] = set()
        for begin in range(0, max(1, len(text) - self.margin), size):
            piece = text if len(text) <= size else text[begin : begin + size + self.margin]
            found |= {(begin + start, begin + end) for start, end in self._spans(piece)}
        return merged(found) if found else []

    def _spans(self, text: str) -> Iterator[Span]:
        for reading in readings(text):
            yield from self._found(reading)

    def _found(self, reading: Reading) -> Iterator[Span]:
        text = reading.text
        for start, spelling in self.candidates(text):
            if text.startswith(spelling, start):
                yield reading.span(start, start + len(spelling))


class Reading:
    """A decoded text, with the position of each of its characters in the original text."""

    def __init__(self, text: str, pattern: re.Pattern[str] | None = None) -> None:
        self._given = text
        self._pattern = pattern
        self._parts: tuple[list[int], list[int], list[int]] | None = None
        self.text = text if pattern is None else pattern.sub("" if pattern is _BREAKS else _character, text)

    def _read(self) -> tuple[list[int], list[int], list[int]]:
        """Per part: its start in the reading, its start in the text, and how long its characters are in the text."""
        begins, reals, widths = [0], [0], [1]
        read = end = 0
        for found in self._pattern.finditer(self._given) if self._pattern is not None else ():
            read += found.start() - end
            end = found.end()
            if _character(found):
                begins.append(read)
                reals.append(found.start())
                widths.append(end - found.start())
                read += 1
            begins.append(read)
            reals.append(end)
            widths.append(1)
        return begins, reals, widths

    def place(self, place: int, after: int = 0) -> int:
        """The position in the text of a position in the reading, or of so many characters `after` it."""
        if len(self.text) == len(self._given):
            return place + after
        if self._parts is None:
            self._parts = self._read()
        begins, reals, widths = self._parts
        part = bisect_right(begins, place) - 1
        return reals[part] + (place - begins[part] + after) * widths[part]

    def span(self, start: int, end: int) -> Span:
        """A range of the reading as a range of the text."""
        return self.place(start), self.place(end - 1, 1)


def readings(text: str) -> Iterator[Reading]:
    """The readings of a text: unchanged, without insertions, and with escapes decoded."""
    if not SIGNS.search(text):
        yield Reading(text)
        return
    yield Reading(text, _BREAKS)
    if "\\" in text or "%" in text or "&" in text:
        yield Reading(text, _escapes())


def _character(found: re.Match[str]) -> str:
    """The decoded character; empty for a pure insertion."""
    if not found.lastindex:
        return ""
    if found.lastindex == 5:
        return _NAMED[found[5]]
    number = int(found[found.lastindex], 10 if found.lastindex == 3 else 16)
    character = chr(number) if number <= _LAST else ""
    return "" if character in "\r\n" else character


def merged(spans: set[Span] | list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _spellings(value: str) -> Iterator[str]:
    """A value and its encodings."""
    from binascii import b2a_base64

    data = value.encode("utf-8", "surrogateescape")  # a variable may hold any bytes
    yield value
    yield from (line for line in _BREAKS.split(value) if line != value and re.fullmatch(_LINE, line))
    if SIGNS.search(value):
        yield _escapes().sub(_character, value)  # a value that looks like an escape is also decoded
    if not value.isascii():
        yield data.decode("latin-1")  # the decoded value if each of its bytes was escaped
    if not (value.isascii() and value.isalnum()):
        yield from _escaped(value, data)
    yield data.hex()
    yield data.hex().upper()
    percent = "".join(f"%{byte:02X}" for byte in data)
    yield from (percent, percent.lower())
    for before in range(3):  # base64 encodes three bytes at a time, so the result depends on the offset
        encoded = b2a_base64(bytes(before) + data, newline=False).decode()
        whole = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]
        yield from (whole, whole.replace("+", "-").replace("/", "_"))


def _escaped(value: str, data: bytes) -> Iterator[str]:
    import json
    from urllib.parse import quote

    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield from (text, text.replace("/", "\\/"), json.dumps(text, ensure_ascii=False)[1:-1])
    for safe in ("/", "", "!'()*", ":/?#[]@!$&'()*+,;="):  # programs differ in the characters that they escape
        text = quote(data, safe=safe)
        yield from (text, text.replace("%20", "+"))
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), text)
    html = "".join(_HTML.get(character, character) for character in value)
    yield from (html, html.replace("&#x27;", "&#39;"), html.replace("&quot;", '"').replace("&#x27;", "'"))
