"""Test arguments for a tool, generated from its schema: valid ones, edge cases and invalid ones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain, islice, zip_longest
from typing import Any

from ...api.tools import ToolSpec
from ...tools.samples import sample

Schema = Mapping[str, Any]

MOST_CASES = 24
"""The maximum number of test calls of a tool."""
_LONG = 20_000
_TEXTS = (
    "",
    " ",
    "missing.txt",
    "../../etc/passwd",
    "-rf",
    "näïve \u202e\u0000 🙂",
    "http://127.0.0.1:9/",
    "x" * _LONG,
)
_NUMBERS = (0, -1, 10**12)
_BROKEN = ("{", "[]", '{"no_such_parameter": 1}')


def cases(spec: ToolSpec) -> list[str]:
    """Arguments as text, as a model would write them; at most `MOST_CASES`, the sample call first."""
    properties: Mapping[str, Schema] = spec.parameters.get("properties", {})
    base = {name: sample(name, properties[name]) for name in spec.parameters.get("required", ())}
    phrases = [dict(arguments) for entry in spec.phrases if (arguments := entry.get("arguments")) and _plain(arguments)]
    varied = [[{**base, name: value} for value in _values(name, schema)] for name, schema in properties.items()]
    in_turn = (case for several in zip_longest(*varied) for case in several if case is not None)
    whole = {name: sample(name, schema) for name, schema in properties.items()}
    texts = chain(map(json.dumps, chain([base, whole], phrases[:2])), _BROKEN, map(json.dumps, in_turn))
    return list(islice(dict.fromkeys(texts), MOST_CASES))


def _plain(arguments: object) -> bool:
    """Whether the arguments of a phrase are values only, without slots."""
    return isinstance(arguments, Mapping) and not any("{" in str(value) for value in arguments.values())


def _values(name: str, schema: Schema) -> Iterator[Any]:
    for member in schema.get("anyOf", (schema,)):
        yield from member.get("enum", ())[:4]
        kinds = member.get("type", "string")
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            yield from _of_kind(kind, name, member)


def _of_kind(kind: str, name: str, schema: Schema) -> Iterator[Any]:
    if kind == "string":
        yield from (() if "enum" in schema else _TEXTS)
    elif kind in ("integer", "number"):
        yield from (schema[edge] for edge in ("minimum", "maximum") if edge in schema)
        yield from _NUMBERS
    elif kind == "boolean":
        yield from (True, False)
    elif kind == "array":
        yield from ([], [sample(name, schema.get("items", {}))] * 50)
    elif kind == "object":
        yield {}
