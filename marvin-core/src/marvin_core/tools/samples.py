"""Sample values for parameters, for the correct calls in error texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..util.schemas.texts import Schema

_BY_NAME: Mapping[str, Any] = {
    "branch": "main",
    "city": "Berlin",
    "command": "ls -la",
    "content": "First line\nSecond line\n",
    "date": "2030-01-31",
    "end": 100,
    "end_line": 100,
    "file_path": "src/main.py",
    "filename": "notes.md",
    "lat": 52.52,
    "latitude": 52.52,
    "lng": 13.4,
    "location": "Berlin",
    "lon": 13.4,
    "longitude": 13.4,
    "message": "Fix the total of an empty list",
    "name": "notes",
    "near": "Berlin",
    "new_str": "return 2",
    "old_str": "return 1",
    "packages": ["requests"],
    "patch": "*** Begin Patch\n*** Update File: src/main.py\n@@\n-return 1\n+return 2\n*** End Patch",
    "path": "src/main.py",
    "paths": ["src/main.py"],
    # Valid both as a glob and as a regular expression.
    "pattern": "main.*",
    "place": "Berlin",
    "prompt": "Add a test for the empty list",
    "query": "asyncio time-out",
    "repo": "octocat/hello-world",
    "start": 1,
    "start_line": 1,
    "task": "Add a test for the empty list",
    "text": "Buy milk",
    "time": "07:30",
    "title": "Shopping",
    "topic": "history of Berlin",
    "url": "https://example.com/",
}

_BY_FORMAT: Mapping[str, str] = {
    "date": "2030-01-31",
    "date-time": "2030-01-31T07:30:00Z",
    "email": "ada@example.com",
    "time": "07:30:00",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}

_FOLDER = "src"
_IS_FOLDER = re.compile(r"(?!.*\bfile)(?=.*\b(folder|director))", re.IGNORECASE | re.DOTALL).match
"""Whether a path is described as a folder, not a file."""

_PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def sample(name: str, schema: Schema) -> Any:
    """A valid value for the schema (in the normal form) that suits the name of the parameter."""
    examples = schema.get("examples")
    if examples:
        return examples[0]
    known = _FOLDER if name == "path" and _IS_FOLDER(schema.get("description", "")) else _BY_NAME.get(name)
    if known is not None and _fits(known, schema):
        return known
    if "enum" in schema:
        return next((choice for choice in schema["enum"] if choice), schema["enum"][0])
    if schema.get("default"):
        return schema["default"]
    if "anyOf" in schema:
        return sample(name, schema["anyOf"][0])
    return _of_type(name, schema)


def _of_type(name: str, schema: Schema) -> Any:
    kind = _kind(schema) or "string"
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "boolean":
        return True
    if kind == "array":
        return [sample(name, schema.get("items", {}))] * max(1, schema.get("minItems", 1))
    if kind == "object":
        properties = schema.get("properties", {})
        return {inner: sample(inner, properties[inner]) for inner in schema.get("required", ())}
    if schema.get("format") in _BY_FORMAT:
        return _BY_FORMAT[schema["format"]]
    return "text".ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def _kind(schema: Schema) -> str:
    """The type of a schema, the first one of several; empty if there is none."""
    kind = schema.get("type", "")
    return str(kind[0] if isinstance(kind, list) and kind else kind or "")


def _number(schema: Schema) -> int | float:
    number = 1
    if "minimum" in schema:
        number = max(number, schema["minimum"])
    if "exclusiveMinimum" in schema:
        number = max(number, schema["exclusiveMinimum"] + 1)
    if "maximum" in schema:
        number = min(number, schema["maximum"])
    if "exclusiveMaximum" in schema and number >= schema["exclusiveMaximum"]:
        number = schema["exclusiveMaximum"] - 1
    return number


def _fits(value: Any, schema: Schema) -> bool:
    if "enum" in schema:
        return value in schema["enum"]
    if "pattern" in schema or "format" in schema:
        return False
    kind = schema.get("type", "")
    if isinstance(kind, list):  # one of several
        return any(_fits(value, {**schema, "type": each}) for each in kind)
    if not isinstance(value, _PYTHON_TYPES.get(kind, ())):
        return False
    if isinstance(value, list):
        return schema.get("minItems", 1) <= 1 and all(_fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, str):
        return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))
    low = schema.get("minimum", schema.get("exclusiveMinimum", value))
    high = schema.get("maximum", schema.get("exclusiveMaximum", value))
    return bool(low <= value <= high)
