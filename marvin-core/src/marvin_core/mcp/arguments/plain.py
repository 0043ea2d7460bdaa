"""A fast check of arguments against a plain schema: most calls of tools have a few numbers and texts, all valid.

It only accepts. What it does not accept is validated in full, which also says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Accepts = Callable[[Any], bool]

_DEEPEST = 8
"""The maximum depth of nested schemas; a deeper one is no plain schema."""
_SAYING = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"})
"""Keywords that describe a value, and allow any."""
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def accepting(schema: Any, depth: int = 0) -> Accepts | None:
    """A function that is true only for values that a valid schema accepts; None if the schema is not plain."""
    if depth > _DEEPEST or not isinstance(schema, Mapping):
        return None
    keywords = schema.keys() - _SAYING
    kind = schema.get("type")
    if kind == "object":
        return _object(schema, keywords, depth)
    if kind == "array" and keywords <= {"type", "items"}:
        return _array(schema.get("items", {}), depth)
    if keywords == {"type", "enum"} and kind == "string":
        return _choice(schema["enum"])
    if not keywords:
        return lambda _: True
    if keywords == {"type"} and isinstance(kind, str) and kind in _TYPES:
        types = _TYPES[kind]
        return lambda value: type(value) in types
    return None


def _choice(offered: Any) -> Accepts:
    words = frozenset(one for one in offered if isinstance(one, str))
    return lambda value: type(value) is str and value in words


def _array(items: Any, depth: int) -> Accepts | None:
    fits = accepting(items, depth + 1)
    if fits is None:
        return None
    return lambda value: type(value) is list and all(map(fits, value))


def _object(schema: Mapping[str, Any], keywords: Any, depth: int) -> Accepts | None:
    more = schema.get("additionalProperties", True)
    if not keywords <= {"type", "properties", "required", "additionalProperties"} or not isinstance(more, bool):
        return None
    fits = {name: accepting(one, depth + 1) for name, one in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))

    def accepts(value: Any) -> bool:
        if type(value) is not dict or not value.keys() >= required:
            return False
        for name, inner in value.items():
            if name not in fits:
                if not more:
                    return False
            elif (fit := fits[name]) is None or not fit(inner):
                return False
        return True

    return accepts
