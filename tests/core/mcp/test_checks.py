"""Arguments are checked by a server's schema in bounded time, whatever it was written for."""

from __future__ import annotations

import time
from typing import Any

import pytest

from marvin_core.mcp.arguments.checks import Check

SLOW = "^(a+)+$"
NEWEST = "https://json-schema.org/draft/2020-12/schema"
HOSTILE = "a" * 60 + "!"
MANY = {f"k{number}": number for number in range(20_000)}


def bomb(keyword: str, depth: int = 40) -> dict[str, Any]:
    """A schema that refers twice to the next level, on each level."""
    levels = {
        f"l{level}": {keyword: [{"$ref": f"#/$defs/l{level + 1}"}, {"$ref": f"#/$defs/l{level + 1}"}]}
        for level in range(depth)
    }
    return {"$ref": "#/$defs/l0", "$defs": {**levels, f"l{depth}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (bomb("allOf"), {}),
        (bomb("anyOf"), {}),
        (bomb("oneOf"), {}),
        ({"anyOf": [{"type": "string", "title": str(number)} for number in range(5_000)]}, MANY),
        ({"properties": {"a": {"pattern": SLOW}}}, {"a": HOSTILE}),
        ({"properties": {"a": {"$schema": NEWEST, "pattern": SLOW}}, "$schema": NEWEST}, {"a": HOSTILE}),
        ({"propertyNames": {"pattern": SLOW}}, {HOSTILE: 1}),
        ({"patternProperties": {SLOW: {}}}, {HOSTILE: 1}),
        ({"patternProperties": {SLOW: {}}, "additionalProperties": False}, {HOSTILE: 1}),
        ({"patternProperties": {SLOW: {}}, "unevaluatedProperties": False}, {HOSTILE: 1}),
        ({"properties": {"a": {"pattern": "a{99999999999}"}}}, {"a": "a"}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": number} for number in range(20_000)]}),
        ({"allOf": [{"$ref": "#"}]}, {}),
        ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, {}),
        ({"not": {"$ref": "#"}}, {}),
        ({"$ref": "http://127.0.0.1:1/schema"}, {}),
        ({"$ref": "#/$defs/missing"}, {}),
        ({"properties": {"a": {"multipleOf": 1e-300}}}, {"a": 10**400}),
    ],
)
def test_no_schema_takes_long_and_what_is_not_known_is_the_servers(schema: dict[str, Any], values: Any) -> None:
    begun = time.process_time()
    assert not Check(schema).problems(values)
    assert time.process_time() - begun < 3


def test_what_is_wrong_is_told_though_the_rest_is_not_known() -> None:
    wrong = {"properties": {"a": {"type": "integer"}, "b": {"pattern": SLOW}}}
    assert Check({**wrong, "allOf": [bomb("allOf"), {"$ref": "#"}]}).problems({"a": "x", "b": HOSTILE}) == [
        "a: 'x' is not of type 'integer'"
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
        {"not": {"pattern": "^b"}},
        {"if": {"pattern": "^b"}, "then": {"const": "b"}},
        {"if": {"not": {"pattern": "^a"}}, "then": {"const": "b"}},
        {"anyOf": [{"pattern": "^a"}, {"type": "integer"}]},
    ],
)
def test_a_pattern_that_is_not_tried_refuses_nothing_that_fits(schema: dict[str, Any]) -> None:
    assert not Check({"properties": {"a": schema}}).problems({"a": "abc"})
    listed = Check({"properties": {"a": {"contains": {"pattern": "^b"}, "minContains": 1, "maxContains": 1}}})
    assert not listed.problems({"a": ["b", "c"]})


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"additionalProperties": False}, {"b": 1}),
        ({"properties": {"a": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}}}, {"a": 3}),
        ({"properties": {"a": {"not": {"type": "string"}}}}, {"a": "x"}),
        ({"properties": {"a": {"uniqueItems": True}}}, {"a": [1, 1]}),
        ({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"enum": [1]}}}, {"a": 2}),
    ],
)
def test_what_can_be_checked_is_checked(schema: dict[str, Any], values: Any) -> None:
    assert len(Check(schema).problems(values)) == 1


def test_the_problems_are_few_and_short() -> None:
    found = Check({"additionalProperties": {"type": "string", "const": "x"}}).problems(MANY)
    assert len(found) == 10
    assert max(map(len, found)) <= 301
