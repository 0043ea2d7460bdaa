"""Parses JSON as models write it, without guessing, and distinguishes invalid text from truncated text.

Accepted: a byte order mark, code fences, trailing commas, raw control characters in strings, single quotes, Python's
True, False and None, one object sent twice. Rejected as ambiguous: invalid escapes, unquoted names, missing commas,
text around the object, NaN, a key with two values.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..util.text import cut

DEPTH_LIMIT = 100
"""The maximum depth of nesting; deeper values break recursive code."""

_QUOTED = 20


class Malformed(ValueError):
    """The text cannot be parsed as JSON without guessing; the message is the reason."""


class Unclosed(ValueError):
    """The text ends inside a string, an object or an array; the message names it."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    for key, value in pairs:
        if members[key] != value:
            raise Malformed(f"the key {cut(key, _QUOTED)!r} occurs twice with different values")
    return members


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Malformed(f"the number {cut(text, _QUOTED)!r} is too large")
    return number


def _no_constant(name: str) -> Any:
    raise Malformed(f"{name} is not a JSON value")


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant)


def read(text: str) -> Any:
    """The JSON value in the text; None for blank text.

    Raises:
        Malformed: the text is not JSON, or has a value that cannot be stored.
        Unclosed: the text is truncated JSON.
    """
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError):
        # Python gives a plain ValueError for an integer of thousands of digits.
        value = _read_tolerantly(text)
    # Counting costs almost nothing and walking the value does, so most values are never walked.
    if text.count("{") + text.count("[") > DEPTH_LIMIT and _deeper_than_limit(value):
        raise Malformed(f"it is nested more than {DEPTH_LIMIT} levels deep")
    _refuse_lone_surrogates(value, text)
    return value


def unfence(text: str) -> str:
    """The text without blanks, byte order marks and a Markdown code fence around it.

    Raises:
        Unclosed: there is an opening fence with nothing after it.
    """
    text = _trim(text)
    if not text.startswith("```"):
        return text
    body = _trim(re.sub(_FENCE, "", text, count=1))
    if body.endswith("```"):
        return _trim(body.rstrip("`"))
    if not body:
        raise Unclosed("after a code fence")
    return body


_FENCE = r"`{3,}[\w.+-]*"
_EDGES = " \t\r\n\v\f\xa0\u2028\u2029\ufeff\u200b"


def _trim(text: str) -> str:
    return text.strip(_EDGES)


def _read_tolerantly(text: str) -> Any:
    documents = _Rewriter(unfence(text)).documents()
    if len(set(documents)) > 1:
        raise Malformed(f"there are {len(documents)} different objects, one after the other; make one call for each")
    if not documents:
        return None
    try:
        return _DECODER.decode(documents[0])
    except Malformed:
        raise
    except json.JSONDecodeError as error:
        raise Malformed(_reason(error)) from None
    except ValueError:
        raise Malformed("a number in it has too many digits") from None


def _reason(error: json.JSONDecodeError) -> str:
    if "escape" not in error.msg:
        return f"{error.msg} at character {error.pos + 1}"
    start = error.doc.rfind("\\", 0, error.pos + 1)
    escape = error.doc[start : start + 2]
    return f"{escape} is not a JSON escape; write every backslash inside a string as two backslashes"


def _deeper_than_limit(value: Any) -> bool:
    level = [value]
    for _ in range(DEPTH_LIMIT + 1):
        inner: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(node.values())
            elif isinstance(node, list):
                inner.extend(node)
        level = inner
    return bool(level)


def _refuse_lone_surrogates(value: Any, text: str) -> None:
    try:
        if not text.isascii():
            text.encode()
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        raise Malformed(f"{half} is a lone surrogate, one half of a character") from None


# Texts, not patterns: they are compiled for the first call that needs them, and most runs have none.
_PIECE = r"""
      (?P<blank>[\s\ufeff\u200b]++)
    | (?P<mark>[{}\[\],:])
    | (?P<string>"(?:[^"\\]++|\\.)*+")
    | (?P<single>'(?:[^'\\]++|\\.)*+')
    | (?P<endless>["'])
    | (?P<word>[^\s\ufeff\u200b{}\[\],:"']++)
"""
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_NUMBER_BEGUN = r"-?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]*)?"
_WORDS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "True": "true",
    "False": "false",
    "None": "null",
}
_NOT_JSON = frozenset({"NaN", "Infinity", "-Infinity", "undefined"})
_REQUOTED = r"""(?s)\\x([0-9a-fA-F]{2})|\\.|\""""

# The expected next tokens, as errors name them.
_VALUE = "a value"
_ITEM = "a value or ']'"
_KEY = "a key in double quotes or '}'"
_COLON = "':'"
_COMMA = "',' or the closing bracket"
_END = "the end"


class _Rewriter:
    """Rewrites accepted deviations as strict JSON, piece by piece: in linear time and without recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._documents: list[str] = []
        self._pieces: list[str] = []
        self._open: list[str] = []
        self._too_deep = False
        self._expected = _VALUE

    def documents(self) -> list[str]:
        """The consecutive values in the text, as strict JSON.

        Raises:
            Malformed, Unclosed: as `read` does.
        """
        for match in re.finditer(_PIECE, self._text, re.VERBOSE | re.DOTALL):
            if match.lastgroup != "blank":
                self._take(match)
        if self._open:
            raise Unclosed("inside an object" if self._open[-1] == "{" else "inside an array")
        if self._too_deep:
            raise Malformed(f"it is nested more than {DEPTH_LIMIT} levels deep")
        return self._documents

    def _take(self, match: re.Match[str]) -> None:
        part = match.group()
        if self._expected is _END:
            if not part.strip(";"):
                return
            if part != "{":
                raise Malformed(f"there is text after its end, at character {match.start() + 1}")
            self._expected = _VALUE
        if match.lastgroup == "mark":
            self._mark(part, match)
        elif match.lastgroup == "word":
            self._word(part, match)
        elif self._expected not in (_VALUE, _ITEM, _KEY):
            raise self._unexpected(match)
        elif match.lastgroup == "endless":
            raise Unclosed("inside a string")
        else:
            text = part if part[0] == '"' else '"' + re.sub(_REQUOTED, _requote, part[1:-1]) + '"'
            self._put(text, _COLON if self._expected is _KEY else None)

    def _mark(self, part: str, match: re.Match[str]) -> None:
        if part in "{[" and self._expected in (_VALUE, _ITEM):
            self._pieces.append(part)
            self._open.append(part)
            self._too_deep = self._too_deep or len(self._open) > DEPTH_LIMIT
            self._expected = _KEY if part == "{" else _ITEM
        elif part == ":" and self._expected is _COLON:
            self._put(part, _VALUE)
        elif part == "," and self._expected is _COMMA:
            self._put(part, _KEY if self._open[-1] == "{" else _ITEM)
        elif self._closes(part):
            self._open.pop()
            if self._pieces[-1] == ",":
                self._pieces.pop()
            self._put(part, None)
        else:
            raise self._unexpected(match)

    def _closes(self, part: str) -> bool:
        if part == "}":
            return self._expected in (_KEY, _COMMA) and self._open[-1] == "{"
        return part == "]" and self._expected in (_ITEM, _COMMA) and self._open[-1] == "["

    def _word(self, part: str, match: re.Match[str]) -> None:
        if self._expected not in (_VALUE, _ITEM):
            raise self._unexpected(match)
        if part in _NOT_JSON:
            raise Malformed(f"{part} is not a JSON value")
        if part in _WORDS or re.fullmatch(_NUMBER, part):
            self._put(_WORDS.get(part, part), None)
            return
        begun = any(word.startswith(part) for word in _WORDS) or re.fullmatch(_NUMBER_BEGUN, part)
        if begun and self._open and match.end() == len(self._text):
            raise Unclosed("inside a value")
        raise self._unexpected(match)

    def _put(self, piece: str, expected: str | None) -> None:
        """Append a piece; `expected` is None if it completes a value."""
        self._pieces.append(piece)
        self._expected = expected or (_COMMA if self._open else _END)
        if self._expected is _END:
            self._documents.append("".join(self._pieces))
            self._pieces = []

    def _unexpected(self, match: re.Match[str]) -> Malformed:
        found = repr(cut(match.group(), _QUOTED))
        hint = ""
        if match.lastgroup == "word" and self._pieces and self._pieces[-1][0] == '"':
            hint = ' (inside a string a quote is written \\")'
        return Malformed(f"at character {match.start() + 1}, expected {self._expected}, found {found}{hint}")


def _requote(match: re.Match[str]) -> str:
    """An escape or a quote of a Python string in single quotes, as JSON writes it."""
    if match[1]:
        return f"\\u00{match[1]}"
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])
