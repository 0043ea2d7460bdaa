"""The objects of JSON in a text that holds other things, too."""

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
"""Levels of objects in an object that is read; so often, at most, is one character looked at."""
_OPEN_LIMIT = 100
_MOST = 1_000
"""Objects of one text."""
_RESTARTS = 50
"""How often a quotation mark without an end is passed over."""
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|"', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


class Found(NamedTuple):
    """An object, and where it stands."""

    value: Mapping[str, Any]
    start: int
    end: int


def json_objects(text: str) -> list[Found]:
    """All objects in a text, inner ones before those around them. What cannot be read is passed over.

    Strings in single quotes, commas before a closing bracket, raw ends of lines in strings and Python's True, False and
    None are read, as models write them.
    """
    return list(islice(_objects(text), _MOST))


def _objects(text: str) -> Iterator[Found]:
    opened: list[tuple[int, int]] = []  # where each began, and how many levels are in it so far
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
    """The braces outside of strings. Prose has lone quotation marks, so strings count inside of braces only."""
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
    for form in (text, _LAST_COMMA.sub(r"\1", text)):
        try:
            return json.loads(form, strict=False)
        except (ValueError, RecursionError):
            continue
    if "'" not in text and "None" not in text and "True" not in text and "False" not in text:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
