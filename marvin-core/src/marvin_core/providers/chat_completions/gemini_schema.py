"""Converts schemas of tools to the subset of JSON Schema that Gemini accepts.

The fields and formats: https://ai.google.dev/api/caching#Schema. An unknown field makes it reject the whole request, so
such fields are left out or moved to the description. Arguments are still checked against the whole schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...util.schemas.normal_form import KEY_ORDER

_KNOWN = (*KEY_ORDER, "anyOf")
_FORMATS = ("date-time", "enum", "float", "double", "int32", "int64")
_ANYTHING: Sequence[Mapping[str, Any]] = ({"type": "string"}, {"type": "number"}, {"type": "boolean"})


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A normalized schema, reduced to the fields that Gemini accepts."""
    narrow = {name: value for name, value in schema.items() if name in _KNOWN}
    if narrow.get("format") not in (None, *_FORMATS):
        del narrow["format"]
    if not all(isinstance(choice, str) and choice for choice in narrow.get("enum", ())):
        choices = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in narrow.pop("enum"))
        narrow["description"] = f"{narrow.get('description', '')} One of: {choices}.".strip()
        narrow.setdefault("type", _type_of(schema["enum"]))
    if isinstance(narrow.get("type"), list):
        narrow["anyOf"] = [{**narrow, "type": kind} for kind in narrow.pop("type")]
        return _inside({name: value for name, value in narrow.items() if name in ("anyOf", "description", "default")})
    if "type" not in narrow and "anyOf" not in narrow:
        narrow["anyOf"] = _ANYTHING
    if "prefixItems" in schema:
        narrow["items"] = {"anyOf": schema["prefixItems"]}
    return _inside(narrow)


def _inside(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        schema["anyOf"] = [gemini_schema(member) for member in schema["anyOf"]]
    if "properties" in schema:
        schema["properties"] = {name: gemini_schema(inner) for name, inner in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = gemini_schema(schema["items"])
    return schema


def _type_of(choices: Sequence[Any]) -> str:
    if all(isinstance(choice, bool) for choice in choices):
        return "boolean"
    return "number" if all(isinstance(choice, (int, float)) for choice in choices) else "string"
