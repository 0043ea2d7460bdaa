"""Widens regular expressions so that they also match in files of legacy encodings, which are not UTF-8.

A program that reads UTF-8 finds no `é` in a file of Windows-1252, nor does its `.` match one. A widened expression
matches every line that the original one matches, and more lines that are not ASCII: those are checked again.
"""

from __future__ import annotations

import re

_MOST_CHARACTERS = 1_000
"""The maximum length of an expression that is widened, in characters."""
_CODECS = (
    *("cp1252", "iso8859_2", "iso8859_15", "cp1250", "cp1251", "koi8_u", "cp866", "cp437", "cp850", "mac_roman"),
    *("cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp932", "euc_jp", "gb18030", "big5", "cp949"),
)
"""The legacy encodings that are considered, which are the most frequent ones."""
_HIGH = r"(?-u:[\x80-\xff][\x40-\xff]?)"
"""One character that is not ASCII, in any of these encodings."""

_TOKEN = re.compile(
    r"(?P<open>\(\?(?:P?<[^>]*>|[a-zA-Z-]*[:)]))"
    r"|(?P<group>\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\\[])*\])"
    r"|(?P<escape>\\(?:[pPxuU]\{[^}]*\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.))"
    r"|(?P<text>[^\x00-\x7f]+(?![*+?{])|[^\x00-\x7f])"
    r"|(?P<plain>[^\[\\])",
    re.DOTALL,
)
_WIDE_GROUP = re.compile(r"\[\^|\[:\^|\\[wWsSDpPxuU]|[^\x00-\x7f]")
_BOUNDARY = r"\b"


def widened(pattern: str, *, literal: bool, ignore_case: bool) -> str:
    """The expression for ripgrep; empty if the original one matches ASCII only, or cannot be widened."""
    if len(pattern) > _MOST_CHARACTERS or (literal and pattern.isascii()):
        return ""
    expression = re.sub(r"[\\.+*?()|\[\]{}^$]", r"\\\g<0>", pattern) if literal else pattern
    tokens = _tokens(expression)
    any_case = ignore_case or any(re.match(r"\(\?[a-z]*i", token) for kind, token in tokens if kind == "open")
    whole = "".join(_wide(tokens, index, any_case=any_case) for index in range(len(tokens)))
    return "" if whole == expression else whole


def _tokens(expression: str) -> list[tuple[str, str]]:
    """The parts of an expression, each with its kind; none if its syntax is not supported here."""
    tokens: list[tuple[str, str]] = []
    end = 0
    while end < len(expression):
        found = _TOKEN.match(expression, end)
        if found is None or (found.lastgroup == "open" and re.match(r"\(\?[a-zA-Z-]*[xu]", found[0])):
            return [("plain", expression)]
        tokens.append((found.lastgroup or "", found[0]))
        end = found.end()
    return tokens


def _wide(tokens: list[tuple[str, str]], index: int, *, any_case: bool) -> str:
    kind, part = tokens[index]
    if kind == "text":
        return "".join(map(_in_any_codec, part)) if any_case else _in_any_codec(part)
    if part == _BOUNDARY:  # next to a byte that is not UTF-8 there is none
        beside = (tokens[place][0] for place in (index - 1, index + 1) if 0 <= place < len(tokens))
        return "" if "text" in beside else part
    is_wide = {
        "plain": part == ".",
        "escape": part[1:2] in tuple("wWsSDpPxuU"),
        "group": _WIDE_GROUP.search(part) is not None,
    }
    return f"(?:{part}|{_HIGH})" if is_wide.get(kind) else part


def _in_any_codec(text: str) -> str:
    encoded = set[bytes]()
    for form in {text, text.lower(), text.upper()}:
        for codec in _CODECS:
            try:
                encoded.add(form.encode(codec))
            except UnicodeEncodeError:
                continue
    ways = "|".join(sorted("".join(f"\\x{byte:02x}" for byte in way) for way in encoded if not way.isascii()))
    return f"(?:{text}|(?-u:{ways}))" if ways else text
