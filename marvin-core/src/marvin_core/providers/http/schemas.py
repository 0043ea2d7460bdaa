"""JSON schemas of whole answers, as services take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STRICT = frozenset({"type", "description", "title", "properties", "required", "additionalProperties", "items", "enum"})
"""What the strict form of a schema may hold at every service that has one."""


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a schema has the form that services hold a model to word by word.

    Each object lists all its fields as required and allows no other ones.
    """
    if not set(schema) <= _STRICT:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties)
    ):
        return False
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return all(isinstance(node, Mapping) and is_strict(node) for node in inner)
