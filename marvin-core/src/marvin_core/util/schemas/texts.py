"""Describes in plain words what a JSON schema in the normal form allows, and why a value does not fit it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..text import to_json

Schema: TypeAlias = Mapping[str, Any]

_TYPE_TEXTS: Mapping[str, str] = {
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}
_LIMITS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " items"),
)
# Pydantic's errors that the schema itself describes best.
_SCHEMA_TELLS = frozenset(
    {
        "enum",
        "greater_than",
        "greater_than_equal",
        "finite_number",
        "int_from_float",
        "less_than",
        "less_than_equal",
        "literal_error",
        "string_pattern_mismatch",
        "string_too_long",
        "string_too_short",
        "too_long",
        "too_short",
    }
)


def type_text(schema: Schema, an_object: str = "an object") -> str:
    """What a schema in the normal form allows, in plain words: `an integer from 1 to 20`.

    `an_object` is the term for an object, which YAML calls a mapping.
    """
    if "enum" in schema:
        return "one of " + ", ".join(to_json(choice) for choice in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_text(member, an_object) for member in schema["anyOf"]))
    kind = schema.get("type", "")
    text = (an_object if kind == "object" else _TYPE_TEXTS.get(kind, "any value")) + _bounds(schema)
    if kind == "array" and schema.get("items"):
        text += f", each item {type_text(schema['items'], an_object)}"
    if "format" in schema:
        text += f" in the form {schema['format']}"
    if "pattern" in schema:
        text += f" that matches {schema['pattern']}"
    return text


def _bounds(schema: Schema) -> str:
    for low_name, high_name, noun in _LIMITS:
        low, high = schema.get(low_name), schema.get(high_name)
        if low is None and high is None:
            continue
        nouns = noun if high != 1 and (low, high) != (1, None) else noun.removesuffix("s")
        if high is None:
            return f" of at least {low}{nouns}"
        if low is None:
            return f" of at most {high}{nouns}"
        return f" of {low}{nouns}" if low == high else f" from {low} to {high}{nouns}"
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']}"
    return f" below {schema['exclusiveMaximum']}" if "exclusiveMaximum" in schema else ""


def reason_text(error: Mapping[str, Any], schema: Schema, an_object: str = "an object") -> str:
    """Why pydantic refuses a value for `schema`.

    `error` is one of its `ErrorDetails`; `an_object` as in `type_text`.
    """
    kind = str(error["type"])
    if kind in ("value_error", "assertion_error"):
        return str(error["ctx"]["error"])
    if kind in _SCHEMA_TELLS or kind.endswith(("_type", "_parsing")):
        return f"must be {type_text(schema, an_object)}"
    return str(error["msg"])


def schema_at(schema: Schema, location: Sequence[str | int]) -> Schema:
    """The schema at this path of keys and indexes; empty if it is unknown."""
    for part in location:
        schema = members_of(schema)
        others = schema.get("items" if isinstance(part, int) else "additionalProperties")
        schema = schema.get("properties", {}).get(part) or (others if isinstance(others, Mapping) else {})
    return schema


def members_of(schema: Schema) -> Schema:
    """The alternative of a schema that has keys; a schema without alternatives is returned unchanged."""
    return next((one for one in schema.get("anyOf", ()) if one.get("type") == "object"), schema)
