"""The normal form of JSON schemas, from which providers and error messages are made.

In the normal form there is no `title` and no `$ref`. Types and defaults have no null, `enum` replaces `const`, `anyOf`
replaces `oneOf`. There is no `additionalProperties: false`, though unknown names are refused. Lists have `items` and
objects have `properties`, as OpenAI requires. Descriptions have a limited length, and keys a fixed order.
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
"""The keywords of a schema in the normal form, in their order."""

_LONGEST = 2_000
"""Characters of a parameter's description: third-party ones may have any length, and each request contains them."""


class Room:
    """The size limit for definitions, which are expanded wherever they are referenced.

    Args:
        left: characters.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, size: int) -> None:
        """Use a part of the limit. Raises `ValueError` if it is exceeded."""
        self.left -= size
        if self.left < 0:
            raise ValueError("their definitions take too many characters, written out")


class _Definitions(dict[str, Any]):
    """The definitions of a schema; each counts against the limit whenever it is expanded."""

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
    """A schema from pydantic or another service, in the normal form.

    Args:
        room: the size limit for third-party definitions; None for no limit.

    Raises:
        ValueError: a definition contains itself, is missing, or exceeds the limit.
    """
    definitions = _Definitions(schema, room)
    if schema.get("type") == "object" and "properties" not in schema:
        schema = {**schema, "properties": {}}
    return _normal(schema, definitions, ())


def _normal(node: Mapping[str, Any], definitions: _Definitions, inside: tuple[str, ...]) -> dict[str, Any]:
    """`inside` names the definitions that contain the node."""
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
