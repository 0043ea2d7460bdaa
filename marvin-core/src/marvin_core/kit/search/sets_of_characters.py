"""Converts characters and sets of them in expressions of ripgrep, such as `[a-z&&[^aeiou]]`; see `expressions`."""

from __future__ import annotations

import re
from typing import NamedTuple

_HEX = "[0-9A-Fa-f]"
CODE = rf"(?P<code>\\[xuU]\{{{_HEX}{{1,6}}\}}|\\x{_HEX}{{2}}|\\u{_HEX}{{4}}|\\U{_HEX}{{8}})"
"""A character that is written as a number."""
PROPERTY = r"(?P<property>\\[pP](?:\{[^}]*\}|.))"
ONLY_LINES = "A line is searched without its end. Leave {0} out, or write $ for the end of a line."
"""The error for a line end in an expression."""
_ITEM = re.compile(
    rf"\[:(?P<negated>\^?)(?P<posix>[a-z]+):\]|{CODE}|{PROPERTY}|\\(?P<escape>.)|(?P<operator>&&|--|~~)|.", re.DOTALL
)
_ASCII = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t\x20",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\t\n\x0b\f\r\x20",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
_UNICODE = {
    "alnum": r"\p{L}\p{N}",
    "alpha": r"\p{L}",
    "ascii": _ASCII["ascii"],
    "blank": r"\t\p{Zs}\u180e",
    "cntrl": r"\p{Cc}",
    "digit": r"\p{Nd}",
    "lower": r"\p{Ll}",
    "punct": r"\p{P}$+<=>\^`\|\~",
    "space": r"\s\u180e",
    "upper": r"\p{Lu}",
    "word": _WORD,
    "xdigit": _ASCII["xdigit"],
}
"""The same sets in PCRE2."""
_CLASSES = {"d": r"\d", "s": r"\s", "w": r"\w"}
_CLASSES_OF_PCRE = {
    "d": r"\d",
    "s": _UNICODE["space"],
    "w": _WORD,
    "h": _UNICODE["blank"],
    "v": r"\n\x0b\f\r\x85\u2028\u2029",
}
_CASED = re.compile(r"(?:[^=]*=)?(?:l[utlc]$|upper|lower|title|cased)", re.IGNORECASE)


class UnsupportedExpressionError(ValueError):
    """An expression that cannot be converted; the text says which part, and what to write instead."""


class Style(NamedTuple):
    """How a part of an expression is read: by PCRE2, in any case, and with spaces that say nothing."""

    by_pcre: bool
    ignore_case: bool = False
    any_sign: bool = False
    with_spaces: bool = False


def character(code: int) -> str:
    """The expression for one character."""
    letter = chr(code) if code < 0x110000 else "\ufffd"
    return letter if not letter.isascii() or letter.isalnum() else f"\\x{code:02x}"


def code_of(written: str) -> int:
    """The number of a character that is written as `CODE`."""
    return int(re.sub(r"[\\xuU{}]", "", written), 16)


def class_of(letter: str, style: Style) -> str:
    """The expression for a class such as `\\w`; "" if the letter names none."""
    inner = (_CLASSES_OF_PCRE if style.by_pcre else _CLASSES).get(letter.lower(), "")
    if not inner or (letter == "v" and not style.by_pcre):
        return ""
    return f"[{'' if letter.islower() else '^'}{inner}]"


def property_of(written: str, style: Style) -> str:
    """The expression for a property of Unicode, such as `\\p{Greek}`.

    Raises:
        UnsupportedExpressionError: it says the case of letters, which is ignored.
    """
    name = written[3:-1] if written[2] == "{" else written[2:]
    if not name.replace("=", "").replace("_", "").isalnum() or (style.ignore_case and _CASED.match(name)):
        raise UnsupportedExpressionError(
            f"{written} is not supported, or not where case is ignored. Write \\p{{L}}, or \\P{{L}} for all others."
        )
    return f"{written[:2]}{{{name}}}"


def read_set(pattern: str, at: int, style: Style) -> tuple[str, int] | None:
    """The set that begins after a bracket at this position, and the position after it; None if it is none.

    Raises:
        UnsupportedExpressionError: it contains what the library does not know.
    """
    try:
        return _Set(pattern, at, style).read()
    except _NoSetError:
        return None


class _NoSetError(Exception):
    pass


class _Set:
    """Of PCRE2 it is flat; else sets may stand in sets, with operators between them."""

    def __init__(self, pattern: str, at: int, style: Style) -> None:
        self._pattern = pattern
        self._at = at
        self._style = style
        self._items: list[str] = []
        self._left = ""
        """What stands before the last operator, and this."""

    def read(self) -> tuple[str, int]:
        is_negated = self._next() == "^"
        self._at += is_negated
        while not self._style.by_pcre and self._next() == "-":
            self._take_literal()
        if not self._items and self._next() == "]":
            self._take_literal()
        while (sign := self._next()) != "]":
            if not sign:
                raise _NoSetError
            self._take()
        self._at += 1
        if self._items and not is_negated and set(self._items) <= {"\\x0a", "\\x0d"}:
            raise UnsupportedExpressionError(ONLY_LINES.format("\\n or \\r"))
        return f"[{'^' if is_negated else ''}{self._operands()}]", self._at

    def _operands(self) -> str:
        """What is read up to here, as one operand; the operators are read from left to right."""
        items = "".join(self._items)
        if not items:
            raise UnsupportedExpressionError(
                "A set has nothing beside &&, -- or ~~. Write \\ before each for the signs."
            )
        return f"{self._left}[{items}]" if self._left else items

    def _next(self) -> str:
        while self._style.with_spaces and not self._style.by_pcre and self._pattern[self._at : self._at + 1].isspace():
            self._at += 1
        return self._pattern[self._at : self._at + 1]

    def _take_literal(self) -> None:
        self._items.append(character(ord(self._pattern[self._at])))
        self._at += 1

    def _take(self) -> None:
        token = _ITEM.match(self._pattern, self._at)
        assert token is not None
        if token["operator"] and not self._style.by_pcre:
            self._at = token.end()
            self._left = f"[{self._operands()}]{token[0]}"
            self._items = []
        elif token[0] == "[" and not self._style.by_pcre:
            text, self._at = _Set(self._pattern, token.end(), self._style).read()
            self._items.append(text)
        else:
            self._range()

    def _range(self) -> None:
        first = self._item()
        mark = self._pattern[self._at : self._at + 1] if self._style.by_pcre else self._next()
        before = self._at
        if mark == "-":
            self._at += 1
            after = self._next()
            if after and after not in ("]" if self._style.by_pcre else "]-"):
                if len(first) != 1 and not self._style.by_pcre:
                    raise _NoSetError
                if len(first) == 1:
                    last = self._item()
                    if len(last) != 1 or last < first:
                        raise _NoSetError
                    self._items.append(f"{character(ord(first))}-{character(ord(last))}")
                    return
            self._at = before
        self._items.append(character(ord(first)) if len(first) == 1 else first)

    def _item(self) -> str:
        """One character as it is, or a class as it is written in a set."""
        self._next()
        token = _ITEM.match(self._pattern, self._at)
        if token is None:
            raise _NoSetError
        if token["operator"]:
            token = re.compile(".", re.DOTALL).match(self._pattern, self._at)
            assert token is not None
            self._at += 1
            return token[0]
        self._at = token.end()
        if token["posix"]:
            return self._posix(token["posix"], token["negated"], token)
        if token["code"]:
            return chr(min(code_of(token["code"]), 0x10FFFF))
        if token["property"]:
            return property_of(token["property"], self._style)
        return self._escaped(token["escape"]) if token["escape"] else token[0]

    def _posix(self, name: str, negated: str, token: re.Match[str]) -> str:
        inner = (_UNICODE if self._style.by_pcre else _ASCII).get(name)
        if inner is None and not self._style.by_pcre:
            raise _NoSetError
        if inner is None or (self._style.by_pcre and self._style.ignore_case and name in ("lower", "upper")):
            raise UnsupportedExpressionError(f"{token[0]} is not supported here. Write the characters, as in [!-~].")
        return f"[{negated}{inner}]"

    def _escaped(self, letter: str) -> str:
        of_class = class_of(letter, self._style)
        if of_class:
            return of_class
        if not (letter.isascii() and letter.isalnum()):
            return letter
        if letter in "aftvnr":
            return {"a": "\a", "f": "\f", "t": "\t", "v": "\v", "n": "\n", "r": "\r"}[letter]
        if not self._style.by_pcre:
            raise _NoSetError
        if letter in "be":
            return {"b": "\b", "e": "\x1b"}[letter]
        raise UnsupportedExpressionError(f"\\{letter} in a set is not supported. Write a sign as \\x{{..}}.")
