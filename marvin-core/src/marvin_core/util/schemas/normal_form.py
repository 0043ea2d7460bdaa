"""JSON schemas in Marvin's normal form, which is what providers and errors are made from.

No `title`, no `$ref`, null left out of types and defaults, `enum` instead of `const`, `anyOf` instead of
`oneOf`, no `additionalProperties: false` (unknown names are refused all the same), lists with `items`
and an object with `properties` (OpenAI refuses others), no endless descriptions, keys in one order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

KEY_ORDER = (
    "type",
    "description",
    "enum",
    "default",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "items",
    "properties",
    "required",
)
"""What a schema in the normal form may say, in the order in which it does."""

_LONGEST = 2_000
"""Characters of what a parameter means: what a stranger writes may be of any length, and each request repeats it."""


class Room:
    """How much definitions may take that are written out wherever they are referred to.

    Args:
        left: characters.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, size: int) -> None:
        """Use some of it. Raises `ValueError` if there is no more."""
        self.left -= size
        if self.left < 0:
            raise ValueError("their definitions take too many characters, written out")


class _Definitions(dict[str, Any]):
    """The definitions of a schema, each of which takes room whenever it is written out."""

    def __init__(self, schema: Mapping[str, Any], room: Room | None) -> None:
        super().__init__({**schema.get("definitions", {}), **schema.get("$defs", {})})
        self._room = room
        self._sizes: dict[str, int] = {}

    def written_out(self, name: str) -> Any:
        if self._room is not None:
            if name not in self._sizes:
                self._sizes[name] = len(json.dumps(self[name]))
            self._room.take(self._sizes[name])
        return self[name]


def normal_form(schema: Mapping[str, Any], room: Room | None = None) -> dict[str, Any]:
    """The schema, as pydantic or a foreign service writes it, in the normal form.

    Args:
        room: what a stranger's definitions may take; without it, as much as they do.

    Raises:
        ValueError: a definition contains itself, is referred to and not there, or has no room.
    """
    definitions = _Definitions(schema, room)
    if schema.get("type") == "object" and "properties" not in schema:
        schema = {**schema, "properties": {}}
    return _normal(schema, definitions, ())


def _normal(node: Mapping[str, Any], definitions: _Definitions, inside: tuple[str, ...]) -> dict[str, Any]:
    """`inside` names the definitions that the node is part of."""
    schema = dict(node)
    if "$ref" in schema:
        name = schema.pop("$ref").rpartition("/")[2]
        if name in inside:
            raise ValueError(f"{name}, which contains itself")
        if name not in definitions:
            raise ValueError(f"{name}, which is not defined")
        return _normal({**definitions.written_out(name), **schema}, definitions, (*inside, name))
    if len(schema.get("allOf", ())) == 1:
        (only,) = schema.pop("allOf")
        return _normal({**only, **schema}, definitions, inside)
    members = schema.pop("anyOf", None) or schema.pop("oneOf", None)
    if members:
        kept = [member for member in members if member.get("type") != "null"]
        if len(kept) == 1:
            return _normal({**kept[0], **schema}, definitions, inside)
        schema["anyOf"] = [_normal(member, definitions, inside) for member in kept]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            schema[key] = _normal(schema[key], definitions, inside)
    if "prefixItems" in schema:
        schema["prefixItems"] = [_normal(item, definitions, inside) for item in schema["prefixItems"]]
    if "properties" in schema:
        schema["properties"] = {
            name: _normal(inner, definitions, inside) for name, inner in schema["properties"].items()
        }
    return _tidy(schema)


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    description = schema.get("description")
    if isinstance(description, str) and len(description) > _LONGEST:
        schema["description"] = f"{description[: _LONGEST - 1]}…"
    for key in ("title", "$defs", "definitions", "$schema", "discriminator"):
        schema.pop(key, None)
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if isinstance(schema.get("type"), list):
        kinds = [kind for kind in schema["type"] if kind != "null"]
        schema["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "enum" in schema:
        schema["enum"] = [choice for choice in schema["enum"] if choice is not None]
        if all(isinstance(choice, str) for choice in schema["enum"]):
            schema["type"] = "string"
    if "default" in schema and schema["default"] is None:
        del schema["default"]
    if schema.get("type") == "array":
        schema.setdefault("items", {})
    if schema.get("additionalProperties") is False:
        del schema["additionalProperties"]
    ordered = {key: schema[key] for key in KEY_ORDER if key in schema}
    return {**ordered, **schema}
