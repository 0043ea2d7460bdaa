"""Finds JSON objects in a text with other content."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

_SIZE_LIMIT = 20_000
"""Characters of one object; a finding has hundreds."""
_HEIGHT_LIMIT = 4
"""Levels of nesting of an object that is parsed, which limits how often a character is visited."""
_OPEN_LIMIT = 100
_MOST = 1_000
"""Objects of one text."""
_RESTARTS = 50
"""How many unmatched quotation marks are skipped."""
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|"', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_ESCAPE = re.compile(r'(\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))|\\')
_KEY = re.compile(r'[{,]\s*"(\w{1,30})"\s*:')


class Found(NamedTuple):
    """An object and its position."""

    value: Mapping[str, Any]
    start: int
    end: int


def json_objects(text: str) -> list[Found]:
    """All objects in a text, inner ones before outer ones. Malformed ones are skipped.

    Models' deviations are accepted: single quotes, trailing commas, raw line breaks in strings, and Python's True,
    False and None.
    """
    return list(islice(_objects(text), _MOST))


def _objects(text: str) -> Iterator[Found]:
    opened: list[tuple[int, int]] = []  # the start of each, and its levels so far
    for mark, at in _marks(text):
        if mark == "{":
            if len(opened) >= _OPEN_LIMIT:
                opened.clear()
            opened.append((at, 0))
            continue
        if not opened:
            continue
        start, height = opened.pop()
        height += 1
        if opened:
            opened[-1] = (opened[-1][0], max(opened[-1][1], height))
        if height <= _HEIGHT_LIMIT and at + 1 - start <= _SIZE_LIMIT:
            value = _read(text[start : at + 1])
            if isinstance(value, dict):
                yield Found({str(key): each for key, each in value.items()}, start, at + 1)


def _marks(text: str) -> Iterator[tuple[str, int]]:
    """The braces outside of strings. Prose has unmatched quotation marks, so strings count inside braces only."""
    depth = restarts = at = 0
    while at < len(text):
        if not depth:
            at = text.find("{", at)
            if at < 0:
                return
            yield "{", at
            depth, at = 1, at + 1
            continue
        piece = _PIECE.search(text, at)
        if piece is None:
            return
        at = piece.end()
        if piece[0] == '"':
            restarts += 1
            if restarts > _RESTARTS:
                return
        elif piece[0] in "{}":
            depth += 1 if piece[0] == "{" else -1
            yield piece[0], piece.start()


def _read(text: str) -> Any:
    escaped = _ESCAPE.sub(lambda found: found[1] or "\\\\", text)  # as in patterns and paths
    for form in dict.fromkeys((text, _LAST_COMMA.sub(r"\1", text), _LAST_COMMA.sub(r"\1", escaped))):
        try:
            return json.loads(form, strict=False)
        except (ValueError, RecursionError):
            continue
    if "'" in text or "None" in text or "True" in text or "False" in text:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    return (_by_keys(text) or None) if text.count("{") == 1 else None


def _by_keys(text: str) -> Mapping[str, str]:
    """The values of an object with unescaped quotes: the text between one key and the next."""
    keys = list(_KEY.finditer(text))
    ends = [*(key.start() for key in keys[1:]), len(text) - 1][: len(keys)]
    values = ((key[1], text[key.end() : end].strip().rstrip(",").rstrip()) for key, end in zip(keys, ends, strict=True))
    return {key: value[1:-1] for key, value in values if len(value) > 1 and value[0] == value[-1] == '"'}
