"""Converts regular expressions of ripgrep: for legacy encodings, and for searching without ripgrep.

A program that reads UTF-8 finds no `é` in a file of Windows-1252, nor does its `.` match one. A widened expression
matches every line that the original one matches, and more lines that are not ASCII: those are checked again.
"""

from __future__ import annotations

import re

from ...api.errors import ToolError

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

_ATOM = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\[xuU]\{(?P<code>[0-9A-Fa-f]{1,6})\}"
    r"|\\[pP]\{[^}]*\}"
    r"|\\(?P<escape>[a-zA-Z]\{?)"
    r"|\\."
    r"|\(\?(?P<flags>[a-zA-Z]*-?[a-zA-Z]*)[:)]"
    r"|\[:(?P<negated>\^?)(?P<posix>[a-z]+):\]"
    r"|(?P<open>\[\^?\]?)"
    r"|(?P<brace>\{)(?!\d+(?:,\d*)?\})"
    r"|\|\|"
    r"|.",
    re.DOTALL,
)
_POSIX = {
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
_ESCAPES = {"H": r"[^\h]", "N": r"[^\n]", "V": r"[^\n\x0b\f\r\x85\u2028\u2029]", "e": r"\x1b", "E": ""}
_ONLY_RIPGREP = re.compile(r"[bgNo]\{|[cgkLMmlo]\{?")
"""Escapes with another meaning, or none, in the expressions that are used without ripgrep."""
_UNCLEAR_COUNT = re.compile(r"(?<!\\)(?:\\\\)*(\{,(\d+)\})")
_UNCLEAR_END = re.compile(r"(?<!\\)(?:\\\\)*(\\[AzZ])")


class UnsupportedExpressionError(ValueError):
    """An expression that cannot be converted; the text says which part, and what to write instead."""


def refuse_unclear(pattern: str) -> None:
    """Refuse what means one thing in some versions of ripgrep, and another in others.

    Raises:
        ToolError: the pattern contains such a part.
    """
    count, end = _UNCLEAR_COUNT.search(pattern), _UNCLEAR_END.search(pattern)
    if count:
        raise ToolError(
            f"{count[1]} is not clear: some programs read it as a number, others as text. "
            f"Write {{0,{count[2]}}} for the number, or \\{count[1]} for the text."
        )
    if end:
        raise ToolError(f"{end[1]} is not clear: lines are searched one by one. Write ^ or $ for the ends of a line.")


def without_ripgrep(pattern: str) -> str:
    """The expression of the library `regex` (version 1) that matches the same as ripgrep's.

    Raises:
        UnsupportedExpressionError: there is none.
    """
    parts: list[str] = []
    depth = 0
    for atom in _ATOM.finditer(pattern):
        parts.append(_converted(atom, in_set=depth > 0))
        if atom["open"]:
            depth += 1
        elif depth and atom[0] == "]":
            depth -= 1
    return "".join(parts)


def _converted(atom: re.Match[str], *, in_set: bool) -> str:
    if atom["quoted"] is not None:
        return re.escape(atom["quoted"])
    if atom["code"]:
        return f"\\U{int(atom['code'], 16):08x}"
    if atom["escape"]:
        if _ONLY_RIPGREP.fullmatch(atom["escape"]):
            raise UnsupportedExpressionError(f"{atom[0]} is not supported. Write it in another way.")
        return _ESCAPES.get(atom["escape"], atom[0])
    if atom["flags"] and not set(atom["flags"]) <= set("imsx-"):
        raise UnsupportedExpressionError(
            f"{atom[0]} is not supported. Leave it out, and write [0-9A-Za-z_] for a \\w of ASCII."
        )
    if in_set and atom["posix"] in _POSIX:
        inner = _POSIX[atom["posix"]]
        return f"[^{inner}]" if atom["negated"] else inner
    if atom["brace"] and not in_set:  # here it would mean a match with mistakes
        return r"\{"
    return r"|\|" if in_set and atom[0] == "||" else atom[0]


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
