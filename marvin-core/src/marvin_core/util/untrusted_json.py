"""Reads JSON that may contain anything: state files, session files, output of services and models."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

LARGEST = 64 * 1024 * 1024
"""Bytes of one document."""
_VALUES = 500_000
"""Values in one document; a million empty lists take 3 MB as text and 100 MB in memory."""
_DEPTH = 100
_BOM = b"\xef\xbb\xbf"

_Text: TypeAlias = "bytes | bytearray | str"


def parse_json(text: _Text, largest: int = LARGEST) -> Any:
    """The value of a JSON text. NaN and infinities, which are not valid JSON, count as null.

    Raises:
        ValueError: it is not JSON, too large, nested too deeply, or has too many values. Nothing else is raised.
    """
    if len(text) > largest:
        raise ValueError(f"it is larger than {largest:,} bytes")
    if not isinstance(text, str):
        text = text.removeprefix(_BOM).decode("utf-8")
    marks = text.count("[") + text.count("{")
    if len(text) > _VALUES and marks + text.count(",") > _VALUES:
        raise ValueError(f"it holds more than {_VALUES:,} values")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(f"it is nested more than {_DEPTH} deep") from None
    if marks > _DEPTH:
        _check_depth(value)
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ValueError(f"it is nested more than {_DEPTH} deep")


def _inside(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [each for each in inner if isinstance(each, (dict, list))]


def _no_number(name: str) -> None:
    """The value for NaN and infinities."""


_DECODER = json.JSONDecoder(parse_constant=_no_number)
