"""JSON schemas of structured answers, in the forms that services accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STRICT = frozenset({"type", "description", "title", "properties", "required", "additionalProperties", "items", "enum"})
"""The keywords that every service with strict schemas accepts."""


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether a schema has the strict form: each object requires all its fields and allows no others."""
    if not set(schema) <= _STRICT:
        return False
    properties = schema.get("properties", {})
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties)
    ):
        return False
    inner = [*properties.values(), *([schema["items"]] if "items" in schema else [])]
    return all(isinstance(node, Mapping) and is_strict(node) for node in inner)
