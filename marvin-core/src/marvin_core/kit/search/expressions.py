"""Converts regular expressions of ripgrep to those of the library `regex`, for a search without ripgrep.

ripgrep reads an expression with its own engine, and with PCRE2 what this does not know. The two read some signs
differently: `[[a]b]` is one set, or the set `[[a]` and `b]`. What they or their versions disagree about is refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from .sets_of_characters import (
    CODE,
    ONLY_LINES,
    PROPERTY,
    Style,
    UnsupportedExpressionError,
    character,
    class_of,
    code_of,
    property_of,
    read_set,
)

_TOKEN = re.compile(
    r"(?P<count>(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?)"
    r"|(?P<unclear>\{(?=[^}]*\d)\s*\d*\s*,?\s*(?P<most>\d*)\s*\})"
    r"|\\Q(?P<quoted>.*?)(?:\\E|$)"
    rf"|{CODE}"
    rf"|{PROPERTY}"
    r"|\\(?P<number>[1-9]\d*)"
    r"|(?:\\k[<{']|\(\?P=)(?P<same>[A-Za-z_]\w*)[>}')]"
    r"|(?P<boundary>\\b\{[^}]*\}?|\\[<>])"
    r"|\\(?P<escape>.)"
    r"|\(\?#(?P<comment>[^)]*\)?)"
    r"|(?P<look>\(\?(?:<?[=!]|>))"
    r"|\(\?(?:P?<(?P<name>[A-Za-z_]\w*)>|'(?P<quoted_name>[A-Za-z_]\w*)')"
    r"|\(\?(?P<flags>[imsx]*(?:-[isx]+)?)(?P<flags_end>[:)])"
    r"|(?P<strange>\((?:\*|\?[^\s)]*\)?))"
    r"|.",
    re.DOTALL,
)
_ENDS = {"A": r"\A", "z": "$", "Z": "$"}
_OF_PCRE = {"N": r"[^\n\r]", "e": r"\x1b", "K": r"\K", "X": r"\X", "E": ""}


class Expression(NamedTuple):
    """An expression of the library `regex` (version 1), and whether ripgrep would match it with PCRE2."""

    text: str
    by_pcre: bool


class _OtherEngineError(Exception):
    """Only PCRE2 knows a part of the expression."""


def converted(pattern: str, *, ignore_case: bool) -> Expression:
    """The expression that matches the same as ripgrep's.

    Raises:
        UnsupportedExpressionError: there is none; the text says what to write instead.
        ValueError: it is not valid.
    """
    try:
        return Expression(_Conversion(pattern, ignore_case, by_pcre=False).text(), by_pcre=False)
    except _OtherEngineError:
        return Expression(_Conversion(pattern, ignore_case, by_pcre=True).text(), by_pcre=True)


class _Conversion:
    def __init__(self, pattern: str, ignore_case: bool, *, by_pcre: bool) -> None:
        self._pattern = pattern
        self._style = Style(by_pcre, ignore_case)
        self._groups: list[tuple[int, Style]] = []
        self._parts: list[str] = []
        self._last: int | None = None
        """Where the part begins that a count repeats."""

    def text(self) -> str:
        at = 0
        while at < len(self._pattern):
            token = _TOKEN.match(self._pattern, at)
            assert token is not None
            at = token.end()
            if token[0] == "[":
                text, at = self._set(at)
                self._add(text)
            elif token[0] == "#" and self._style.with_spaces:
                break  # a comment, up to the end of the line
            elif not (token[0].isspace() and self._style.with_spaces):
                self._take(token)
        return "".join(self._parts)

    def _take(self, token: re.Match[str]) -> None:
        if token["count"]:
            self._repeat(token["count"])
        elif token["escape"]:
            self._escape(token["escape"])
        elif token["code"]:
            self._number(token["code"])
        elif token["property"]:
            self._add(property_of(token["property"], self._style))
        elif token["flags_end"]:
            self._set_flags(token["flags"], token["flags_end"])
        elif token[0].startswith("("):
            self._open(token)
        elif token[0] == ")":
            self._close()
        elif token[0].startswith("\\") or token["unclear"]:
            self._other_escape(token)
        elif len(token[0]) == 1:
            self._plain(token[0])

    def _add(self, text: str) -> None:
        self._last = len(self._parts)
        self._parts.append(text)

    def _needs_pcre(self) -> None:
        if not self._style.by_pcre:
            raise _OtherEngineError

    def _number(self, written: str) -> None:
        code = code_of(written)
        if chr(min(code, 0x10FFFF)) in "\n\r":
            raise UnsupportedExpressionError(ONLY_LINES.format(written))
        self._add(character(code))

    def _repeat(self, count: str) -> None:
        """Repeat the last part. Two counts in sequence repeat each other; of PCRE2, `+` after one is possessive."""
        if self._last is None:
            self._parts.append(count)  # the library says what is wrong
            return
        counts = [count]
        if count[-1] == "+" and len(count) > 1 and not self._style.by_pcre:
            counts = [count[:-1], "+"]
        for one in counts:
            self._parts[self._last :] = [f"(?:{''.join(self._parts[self._last :])}){one}"]

    def _plain(self, sign: str) -> None:
        if sign == "|":
            self._parts.append(sign)
            self._last = None
        elif sign == ".":
            self._add(r"[\s\S]" if self._style.any_sign and self._style.by_pcre else r"[^\n\r]")
        elif sign in "^$":
            # PCRE2 sees the end of the line, and ends within it.
            of_pcre = r"(?<![^\r])" if sign == "^" else r"(?![^\n\r])"
            self._add(of_pcre if self._style.by_pcre else sign)
        else:
            if sign == "{":
                self._needs_pcre()
            self._add(character(ord(sign)))

    def _escape(self, letter: str) -> None:
        of_class = class_of(letter, self._style)
        if of_class:
            self._add(of_class)
        elif not (letter.isascii() and letter.isalnum()):
            self._add(character(ord(letter)))
        elif letter in "bBaftv":
            self._add(r"\x0b" if letter == "v" else f"\\{letter}")
        elif letter in _ENDS:
            if letter == "Z":
                self._needs_pcre()
            self._plain("$") if _ENDS[letter] == "$" else self._add(_ENDS[letter])
        elif letter in "nr":
            raise UnsupportedExpressionError(ONLY_LINES.format(f"\\{letter}"))
        elif letter in _OF_PCRE or letter in "hHvV":
            self._needs_pcre()
            self._add(_OF_PCRE[letter])
        else:
            raise UnsupportedExpressionError(
                f"\\{letter} is not supported. Write a sign as \\x{{..}}, a text as it stands, and sets as [...]."
            )

    def _other_escape(self, token: re.Match[str]) -> None:
        """What begins with a backslash, and counts that versions of ripgrep read differently."""
        if token["unclear"]:
            raise UnsupportedExpressionError(
                f"{token[0]} is a count in some versions of ripgrep, and text in others. "
                f"Write {{0,{token['most']}}} or {{1,2}} without spaces for a count, or \\{token[0]} for the text."
            )
        if token["boundary"]:
            raise UnsupportedExpressionError(
                f"{token[0]} is not supported by all versions of ripgrep. Write \\b for the edge of a word, or the "
                "sign itself."
            )
        self._needs_pcre()
        if token["quoted"] is not None:
            for sign in token["quoted"]:
                self._add(character(ord(sign)))
        elif token["same"]:
            self._add(f"(?P={token['same']})")
        elif token["number"] and int(token["number"]) < 10:
            self._add(f"(?:\\{token['number']})")
        else:
            raise UnsupportedExpressionError(
                f"{token[0]} is not supported. Name the group, as in (?P<n>...) and (?P=n), or write \\\\ for the sign."
            )

    def _open(self, token: re.Match[str]) -> None:
        if token["strange"]:
            raise UnsupportedExpressionError(
                f"{token[0]} is not supported. Use (?:...), (?P<name>...), look-around such as (?=...), and the flags "
                "i, m, s and x. For a \\w of ASCII write [0-9A-Za-z_], for a bracket \\(."
            )
        if token["comment"] is not None or token["same"] or token["look"] or token["quoted_name"]:
            self._needs_pcre()
        if token["same"]:
            self._add(f"(?P={token['same']})")
        elif token["comment"] is None:
            name = token["name"] or token["quoted_name"]
            self._enter(f"(?P<{name}>" if name else token["look"] or "(")

    def _enter(self, text: str) -> None:
        self._groups.append((len(self._parts), self._style))
        self._parts.append(text)
        self._last = None

    def _close(self) -> None:
        self._parts.append(")")
        if self._groups:
            self._last, self._style = self._groups.pop()

    def _set_flags(self, flags: str, end: str) -> None:
        on, _, off = flags.partition("-")
        now = [(was or sign in on) and sign not in off for sign, was in zip("isx", self._style[1:], strict=True)]
        case = "i" if "i" in on and "i" not in off else "-i" if "i" in off else ""
        if end == ":":
            self._enter(f"(?{case}:")
        elif case:
            self._parts.append(f"(?{case})")
            self._last = None
        self._style = Style(self._style.by_pcre, *now)

    def _set(self, at: int) -> tuple[str, int]:
        found = read_set(self._pattern, at, self._style)
        if found is None:
            self._needs_pcre()
            raise ValueError("a set has no end, or a range in it has its ends the wrong way round")
        return found
